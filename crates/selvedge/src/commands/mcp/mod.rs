//! `mcp`: lists, adds, approves and tries servers of the Model Context Protocol.

mod add;
mod approve;
mod list;
mod login;
mod remove;
mod show;
mod test;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use selvedge_mcp::{Book, ConnectError, Entry, Listed, NetworkWish, Scope, Surroundings, Way};
use selvedge_tool::Workspace;

use super::run;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::mcp::Servers;
use crate::out;
use crate::paths::Paths;
use crate::secrets;
use crate::text::{did_you_mean, escape};

#[derive(Subcommand)]
pub enum Mcp {
    /// List the servers, and how each stands.
    List(list::List),
    /// Show how a server is reached, and what was approved of it.
    Show(show::Show),
    /// Look at a server and its tools, and let agents use them.
    Approve(approve::Approve),
    /// Start an approved server and see whether it is what was approved.
    Test(test::Test),
    /// Sign in to a server.
    Login(login::Login),
    /// Forget what a server has given you.
    Logout(login::Logout),
    /// Add a server to your configuration.
    Add(add::Add),
    /// Take a server out of your configuration, and forget what was approved.
    Remove(remove::Remove),
}

impl Mcp {
    pub async fn perform(self) -> Result {
        match self {
            Self::List(command) => command.perform(),
            Self::Show(command) => command.perform(),
            Self::Approve(command) => command.perform().await,
            Self::Test(command) => command.perform().await,
            Self::Login(command) => command.perform().await,
            Self::Logout(command) => command.perform(),
            Self::Add(command) => command.perform(),
            Self::Remove(command) => command.perform(),
        }
    }
}

/// What holds in this directory.
struct Here {
    paths: Paths,
    config: Config,
    workspace: PathBuf,
    servers: Servers,
}

impl Here {
    fn find() -> Result<Self> {
        let (paths, workspace) = (Paths::find()?, run::workspace(None)?);
        let config = Config::load(&paths, &workspace)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        secrets::learn(&config)?;
        let servers = Servers::find(&paths, &config, &workspace);
        servers.warnings.iter().for_each(|w| out::warn(w));
        Ok(Self {
            paths,
            config,
            workspace,
            servers,
        })
    }

    fn book(&self) -> Book {
        Book::at(self.paths.mcp())
    }

    /// The server of this name.
    fn server(&self, name: &str) -> Result<&Listed> {
        let listed = &self.servers.listed;
        let found = listed.iter().find(|listed| listed.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = listed.iter().map(|l| l.name.as_str()).collect();
            let error = Error::usage(format!("there is no MCP server `{name}`"));
            match (did_you_mean(name, &names), names.is_empty()) {
                (Some(hint), _) => error.hint(hint),
                (None, true) => error
                    .cause("neither your configuration nor `.mcp.json` lists one")
                    .hint(format!("`selvedge mcp add {name} -- COMMAND`")),
                (None, false) => error.hint(format!("there are: {}", names.join(", "))),
            }
        })
    }

    /// Where a server would work.
    fn surroundings(&self) -> Result<Surroundings> {
        let workspace = Workspace::open(&self.workspace).map_err(|error| {
            Error::failed(format!("`{}` cannot be opened", self.workspace.display())).cause(error)
        })?;
        let sandbox = self.config.settings().sandbox.sandbox(&self.paths);
        Ok(Surroundings {
            workspace: Arc::new(workspace),
            sandbox: Arc::new(sandbox),
        })
    }
}

/// Why a server could not be looked at.
fn unreachable(name: &str, error: &ConnectError) -> Error {
    let hint = match error {
        ConnectError::Entry(_) => "correct its entry; `selvedge mcp show` names it".to_owned(),
        ConnectError::Variable(variable) => format!("set it: `export {variable}=…`"),
        ConnectError::Program(_) => "install it, or correct its `command`".to_owned(),
        ConnectError::TimedOut { .. } => {
            "if it must fetch something first, give it `network` or run it once yourself; \
             `startup_seconds` gives it longer"
                .to_owned()
        }
        ConnectError::SignIn(_) => format!("sign in: `selvedge mcp login {name}`"),
        ConnectError::Refused { .. } => {
            "servers run in the sandbox: `network`, `writable` and `readable` in its entry open it"
                .to_owned()
        }
        ConnectError::Fault(_) => "do not use it, or ask its makers".to_owned(),
        ConnectError::Cancelled => "try again".to_owned(),
    };
    Error::failed(format!("the MCP server `{name}` cannot be used"))
        .cause(error)
        .hint(hint)
}

/// How a server is reached, in a line.
fn way(entry: &Entry) -> String {
    match entry.way() {
        Ok(Way::Program(command)) => {
            let words = std::iter::once(command).chain(entry.args.iter().map(String::as_str));
            let words: Vec<String> = words.map(quoted).collect();
            words.join(" ")
        }
        Ok(Way::Web(url)) => url.to_owned(),
        Err(why) => format!("({why})"),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "@%+=:,./_-${}".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Everything that an approval of an entry allows, a line each.
fn description(listed: &Listed) -> String {
    let entry = &listed.entry;
    let mut lines = vec![
        format!("server:   {}", listed.name),
        format!("from:     {}", whose(&listed.scope)),
    ];
    match entry.url {
        None => {
            lines.push(format!("runs:     {}", way(entry)));
            lines.push("works in: this workspace, which it may change".into());
            lines.push(format!("network:  {}", network(entry)));
        }
        Some(_) => lines.push(format!("at:       {}", way(entry))),
    }
    let paths = |paths: &[PathBuf]| -> String {
        let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        paths.join(", ")
    };
    for (name, list) in [
        ("writes:   ", &entry.writable),
        ("reads:    ", &entry.readable),
    ] {
        if !list.is_empty() {
            lines.push(format!("{name}{}", paths(list)));
        }
    }
    for (name, value) in entry.env.iter().chain(&entry.headers) {
        lines.push(format!("is given: {name}={}", guarded(name, value)));
    }
    escape(&lines.join("\n"))
}

/// A value that may be shown: one with a name of its own, or none that is secret.
fn guarded(name: &str, value: &str) -> String {
    let is_secret =
        selvedge_tool::names_a_secret(name) || name.eq_ignore_ascii_case("authorization");
    match is_secret && !value.contains("${") {
        true => selvedge_tool::MARK.to_owned(),
        false => value.to_owned(),
    }
}

fn whose(scope: &Scope) -> String {
    match scope {
        Scope::User => "your configuration".into(),
        Scope::Project(folder) => folder.join(crate::trust::SERVERS).display().to_string(),
    }
}

fn network(entry: &Entry) -> String {
    match &entry.network {
        Some(NetworkWish::Hosts(hosts)) if !hosts.is_empty() => {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            hosts.join(", ")
        }
        Some(wish) if serde_json::json!(wish) == "on" => "all of it".into(),
        _ => "none".into(),
    }
}
