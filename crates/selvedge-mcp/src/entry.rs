//! How a server is reached and what it may reach, as somebody wrote it down.
//!
//! The same shape stands in a project's `.mcp.json` and in the user's configuration.
//! What is approved is the digest of it, with the bytes of the scripts it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use selvedge_tool::HostRule;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A script longer than this is not ours to read; its length stands for it.
const SCRIPT_BYTES_MAX: u64 = 8 * 1024 * 1024;
const NAME_CHARS_MAX: usize = 64;

/// How a server is reached, and what it may reach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// The program that is the server. A path begins at the workspace; a name is looked
    /// for on the search path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables the program is given. `${NAME}` stands for a variable of your own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where the server is, if it is not a program of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers that are sent with every request. `${NAME}` stands for a variable of
    /// your own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How you sign in there, where its own word is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<SignIn>,
    /// What the program may reach of the network: `"on"`, or hosts such as
    /// `["api.github.com"]`. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkWish>,
    /// Folders that the program may write besides the workspace. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// What the program may read of the home, besides the folders of tools. Default:
    /// nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<PathBuf>,
    /// The tools that only look, such as `get_*`: after a crash they are called again.
    /// Not read from a project's file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// Whether it is left alone. Default: no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// How long a call may take. Default: as long as any tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<u64>,
    /// How long it may take to start. Default: 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub startup_seconds: Option<u64>,
}

/// How a user signs in to a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// The client that was registered there for you.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret: `${NAME}` stands for a variable of your own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Where a description of this client is, if you publish one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// What is asked for. Default: what the server names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// What a program wants of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NetworkWish {
    /// `"on"` or `"off"`.
    Whole(Switch),
    /// These hosts.
    Hosts(#[schemars(with = "Vec<String>")] Vec<HostRule>),
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// All of it.
    On,
    /// Nothing.
    Off,
}

/// Whose list a server stands in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The user's configuration.
    User,
    /// The `.mcp.json` of this folder.
    Project(PathBuf),
}

/// A server that is listed somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name there.
    pub name: String,
    /// Whose list it is.
    pub scope: Scope,
    /// How it is reached.
    pub entry: Entry,
}

/// The two ways to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Way<'a> {
    /// A program of this machine, spoken to through pipes.
    Program(&'a str),
    /// An address.
    Web(&'a str),
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It names neither a program nor an address, or both.
    #[error("it needs either a `command` or a `url`")]
    NoWay,
    /// The address cannot be used.
    #[error("its `url` cannot be used: {0}")]
    Url(String),
    /// It speaks a protocol that is not spoken here.
    #[error("`type = \"{0}\"` is not spoken here; `stdio` and `http` are")]
    Kind(String),
    /// Its name cannot be used.
    #[error("its name is empty, too long, or not printable")]
    Name,
    /// It has not the shape of an entry.
    #[error("{0}")]
    Shape(String),
}

impl Entry {
    /// Reads an entry of `.mcp.json`, where other programs keep fields of their own:
    /// they are passed over. What only the user may say is left out.
    pub fn from_json(value: &Value) -> Result<Self, EntryError> {
        const KNOWN: [&str; 8] = [
            "command", "args", "env", "url", "headers", "network", "writable", "readable",
        ];
        let object = value
            .as_object()
            .ok_or_else(|| EntryError::Shape("it is not an object".into()))?;
        if let Some(kind) = object.get("type").and_then(Value::as_str)
            && !["stdio", "http", "streamable-http", "streamableHttp"].contains(&kind)
        {
            return Err(EntryError::Kind(kind.to_owned()));
        }
        let mut known: serde_json::Map<String, Value> = object
            .iter()
            .filter(|(key, value)| KNOWN.contains(&key.as_str()) && !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if object.get("disabled") == Some(&Value::Bool(true)) {
            known.insert("disabled".into(), Value::Bool(true));
        }
        serde_json::from_value(Value::Object(known))
            .map_err(|error| EntryError::Shape(error.to_string()))
    }

    /// The way to the server, if the entry says one.
    pub fn way(&self) -> Result<Way<'_>, EntryError> {
        match (&self.command, &self.url) {
            (Some(command), None) if !command.trim().is_empty() => Ok(Way::Program(command)),
            (None, Some(url)) => {
                crate::http::check_url(url).map_err(EntryError::Url)?;
                Ok(Way::Web(url))
            }
            _ => Err(EntryError::NoWay),
        }
    }

    /// What stands for the entry where it is approved: everything that decides what
    /// runs, whom it reaches and what it is handed.
    pub fn digest(&self, workspace: &Path) -> String {
        // What is only about how calls are treated is the user's own affair.
        let lasting = Self {
            read_only: Vec::new(),
            disabled: false,
            timeout_seconds: None,
            startup_seconds: None,
            ..self.clone()
        };
        let scripts: Vec<(String, String)> = self
            .command
            .iter()
            .chain(&self.args)
            .filter_map(|word| Some((word.clone(), script(workspace, word)?)))
            .collect();
        hash(&(lasting, scripts))
    }

    /// Whether the user has said that a tool only looks.
    pub fn only_looks(&self, tool: &str) -> bool {
        self.read_only
            .iter()
            .any(|pattern| selvedge_tool::glob(pattern, tool))
    }
}

impl Listed {
    /// Checks the name and the way.
    pub fn check(&self) -> Result<(), EntryError> {
        let is_fine = |c: char| !c.is_control() && c != '/';
        let name = &self.name;
        if name.trim().is_empty()
            || name.chars().count() > NAME_CHARS_MAX
            || !name.chars().all(is_fine)
        {
            return Err(EntryError::Name);
        }
        self.entry.way().map(drop)
    }
}

/// The hash of a file of the workspace that `word` names, if it names one.
fn script(workspace: &Path, word: &str) -> Option<String> {
    use std::io::Read;
    let path = std::fs::canonicalize(workspace.join(word)).ok()?;
    if !path.starts_with(workspace) || !path.is_file() {
        return None;
    }
    let file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = length.to_le_bytes().to_vec();
    file.take(SCRIPT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(blake3::hash(&bytes).to_hex().to_string())
}

/// The digest of plain data.
pub(crate) fn hash<T: Serialize>(data: &T) -> String {
    let bytes = serde_json::to_vec(data).expect("plain data serializes");
    blake3::hash(&bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Entry, EntryError> {
        Entry::from_json(&value)
    }

    #[test]
    fn an_entry_of_another_program_is_read_and_what_only_the_user_may_say_is_not() {
        let entry = read(json!({
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "server"],
            "env": {"TOKEN": "${TOKEN}"},
            "alwaysAllow": ["*"],
            "read_only": ["*"],
            "timeout_seconds": 9,
        }))
        .unwrap();
        assert_eq!(entry.way(), Ok(Way::Program("npx")));
        assert!(!entry.only_looks("get"));
        assert_eq!(entry.timeout_seconds, None);
        let sse = read(json!({"type": "sse", "url": "https://a.example/sse"}));
        assert_eq!(sse, Err(EntryError::Kind("sse".into())));
    }

    #[test]
    fn only_http_is_reached_and_without_a_password_in_the_address() {
        for (url, is_fine) in [
            ("https://mcp.example/mcp", true),
            ("http://127.0.0.1:8080/mcp", true),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("https://user:secret@mcp.example/", false),
            ("mcp.example", false),
            ("unix:/run/x.sock", false),
        ] {
            let entry = Entry {
                url: Some(url.into()),
                ..Entry::default()
            };
            assert_eq!(entry.way().is_ok(), is_fine, "{url}");
        }
        assert_eq!(Entry::default().way(), Err(EntryError::NoWay));
    }

    #[test]
    fn whatever_decides_what_runs_changes_the_digest() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::write(root.join("server.js"), "one").unwrap();
        let entry = read(json!({"command": "node", "args": ["server.js"]})).unwrap();
        let first = entry.digest(&root);
        assert_eq!(entry.digest(&root), first);
        let own = Entry {
            read_only: vec!["*".into()],
            timeout_seconds: Some(3),
            ..entry.clone()
        };
        assert_eq!(own.digest(&root), first, "that is the user's own affair");
        for changed in [
            json!({"command": "node", "args": ["server.js", "--all"]}),
            json!({"command": "deno", "args": ["server.js"]}),
            json!({"command": "node", "args": ["server.js"], "env": {"A": "${HOME}"}}),
            json!({"command": "node", "args": ["server.js"], "network": "on"}),
            json!({"command": "node", "args": ["server.js"], "writable": ["/srv"]}),
        ] {
            assert_ne!(read(changed).unwrap().digest(&root), first);
        }
        std::fs::write(root.join("server.js"), "two").unwrap();
        assert_ne!(entry.digest(&root), first, "the script is another");
    }
}
