//! The servers of the Model Context Protocol that are listed here, and which of them
//! may be used.
//!
//! A user's own stand in the configuration, a project's in its `.mcp.json`, which is not
//! even read before the user trusts the folder. Either is used only as far as it was
//! approved.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use selvedge_mcp::{Book, Entry, Fleet, Listed, Options, Scope, Server};
use selvedge_tool::Workspace;
use serde_json::Value;

use crate::config::Config;
use crate::env;
use crate::error::Result;
use crate::out;
use crate::paths::Paths;
use crate::secrets;
use crate::text::escape;
use crate::trust::{SERVERS, Trust};

mod counter;
mod key_room;
mod window;

pub use counter::Counter;
pub use key_room::KeyRoom;
pub use window::Window;

/// More than this is no list.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What is listed in a folder.
#[derive(Default)]
pub struct Servers {
    /// The servers, by name.
    pub listed: Vec<Listed>,
    /// What is not as it was meant, and what to do.
    pub warnings: Vec<String>,
}

/// How a server stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Approved, with so many tools.
    Approved(usize),
    /// Approved once, and listed otherwise since.
    Changed,
    /// Nobody has looked at it.
    New,
    /// Left alone, because somebody said so.
    Disabled,
    /// It cannot be used.
    Wrong(String),
}

impl Servers {
    /// Everything that is listed for work in `workspace`.
    pub fn find(paths: &Paths, config: &Config, workspace: &Path) -> Self {
        let mut servers = Self::default();
        let mut own = config.settings().mcp.servers;
        for (name, entry) in servers.project(paths, workspace) {
            let users = own.remove(&name);
            let (scope, entry) = match users {
                // The user's own server goes before a project's of the same name.
                Some(users) if users.command.is_some() || users.url.is_some() => {
                    (Scope::User, users)
                }
                Some(users) => (project(workspace), treated(entry, users)),
                None => (project(workspace), entry),
            };
            servers.listed.push(Listed { name, scope, entry });
        }
        servers.listed.extend(own.into_iter().map(|(name, entry)| {
            let scope = Scope::User;
            Listed { name, scope, entry }
        }));
        servers
            .listed
            .sort_by(|one, other| one.name.cmp(&other.name));
        servers
    }

    /// What the project's file lists, if the user trusts the folder.
    fn project(&mut self, paths: &Paths, workspace: &Path) -> Vec<(String, Entry)> {
        let Some(text) = read(workspace) else {
            return Vec::new();
        };
        if !Trust::of(paths, workspace).is_given() {
            self.warnings.push(format!(
                "`{SERVERS}` is not read: nobody vouches for this folder; look at it, then \
                 `selvedge trust`"
            ));
            return Vec::new();
        }
        let file: Value = match serde_json::from_str(&text) {
            Ok(file) => file,
            Err(error) => {
                self.warnings
                    .push(format!("`{SERVERS}` is not read: {error}"));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for (name, entry) in file["mcpServers"].as_object().into_iter().flatten() {
            match Entry::from_json(entry) {
                Ok(entry) => found.push((name.clone(), entry)),
                Err(why) => self.warnings.push(format!(
                    "the server `{}` of `{SERVERS}` is left out: {why}",
                    escape(name)
                )),
            }
        }
        found
    }

    /// How each stands, in their order.
    pub fn standings(&self, paths: &Paths, workspace: &Path) -> Vec<Standing> {
        let book = Book::at(paths.mcp());
        let standing = |listed: &Listed| standing(&book, listed, workspace);
        self.listed.iter().map(standing).collect()
    }
}

/// How a server stands.
pub fn standing(book: &Book, listed: &Listed, workspace: &Path) -> Standing {
    if let Err(why) = listed.check() {
        return Standing::Wrong(why.to_string());
    }
    if listed.entry.disabled {
        return Standing::Disabled;
    }
    match (book.current(listed, workspace), book.of(listed)) {
        (Some(approved), _) => Standing::Approved(approved.definitions.len()),
        (None, Some(_)) => Standing::Changed,
        (None, None) => Standing::New,
    }
}

/// The servers that may be used for work in `workspace`. What is missing is said.
pub fn fleet(paths: &Paths, config: &Config, workspace: &Path) -> Fleet {
    let servers = Servers::find(paths, config, workspace);
    servers.warnings.iter().for_each(|w| out::warn(w));
    let book = Book::at(paths.mcp());
    let options = Arc::new(options());
    let mut usable = Vec::new();
    for listed in servers.listed {
        let name = escape(&listed.name);
        let approve = format!("`selvedge mcp approve {name}`");
        match standing(&book, &listed, workspace) {
            Standing::Disabled => {}
            Standing::Approved(_) => {
                let approved = book.current(&listed, workspace);
                usable.extend(approved.map(|a| Server::new(listed, a, options.clone())));
            }
            Standing::New => out::warn(&format!(
                "the MCP server `{name}` is not used: nobody has approved it; {approve}"
            )),
            Standing::Changed => out::warn(&format!(
                "the MCP server `{name}` is not used: its entry, or a script that it names, has changed since it was \
                 approved; look at it again: {approve}"
            )),
            Standing::Wrong(why) => {
                out::warn(&format!("the MCP server `{name}` is not used: {why}"));
            }
        }
    }
    Fleet::new(usable)
}

/// What all servers have in common here.
pub fn options() -> Options {
    Options {
        secrets: secrets::of_this_process().clone(),
        clerk: None,
        variable: Arc::new(env::word),
        tokens: Some(Arc::new(KeyRoom)),
        browser: None,
        version: None,
    }
}

/// The same where somebody can sign in at once.
pub async fn attended() -> Result<Options> {
    let mut options = options();
    if out::can_ask() {
        options.browser = Some(Arc::new(Window::open().await?));
    }
    Ok(options)
}

fn project(workspace: &Path) -> Scope {
    Scope::Project(workspace.to_owned())
}

/// A project's entry with what the user says of how its calls are treated.
fn treated(entry: Entry, users: Entry) -> Entry {
    Entry {
        read_only: users.read_only,
        disabled: entry.disabled || users.disabled,
        timeout_seconds: users.timeout_seconds,
        startup_seconds: users.startup_seconds,
        ..entry
    }
}

/// The project's file, if there is one. A link that leads out of it is none.
fn read(workspace: &Path) -> Option<String> {
    let workspace = Workspace::open(workspace).ok()?;
    let (file, _) = workspace.open_file(SERVERS).ok()?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}
