//! One source of values: the defaults, a file, or the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use selvedge_tool::Rules;
use serde::Deserialize;

use super::file;
use super::hooks::Hook;
use super::settings::Settings;
use crate::env;
use crate::error::{Error, Result};
use crate::text::nearest;

/// A configuration key.
pub struct Key {
    /// Its name, dotted.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Text,
    /// A number with a fraction.
    Number,
    /// A whole number.
    Whole,
    /// Yes or no.
    Flag,
    /// Words, with commas in between.
    List,
}

const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, kind }
}

/// Every key that has one value.
pub const KEYS: &[Key] = &[
    key("model", Kind::Text),
    key("crew", Kind::Text),
    key("approve", Kind::Text),
    key("budget_usd", Kind::Number),
    key("budget_tokens", Kind::Whole),
    key("profile", Kind::Text),
    key("limits.model_calls_max", Kind::Whole),
    key("limits.output_tokens_max", Kind::Whole),
    key("limits.context_tokens_max", Kind::Whole),
    key("limits.tool_seconds_max", Kind::Whole),
    key("limits.strikes_max", Kind::Whole),
    key("slots.per_provider", Kind::Whole),
    key("slots.in_all", Kind::Whole),
    key("cache", Kind::Flag),
    key("tools.lazy", Kind::Text),
    key("sandbox.mode", Kind::Text),
    key("sandbox.fence", Kind::Text),
    key("sandbox.network", Kind::Text),
    key("sandbox.allow", Kind::List),
    key("sandbox.writable", Kind::List),
    key("sandbox.readable", Kind::List),
    key("sandbox.hidden", Kind::List),
    key("sandbox.memory_mb_max", Kind::Whole),
    key("sandbox.processes_max", Kind::Whole),
    key("sandbox.files_max", Kind::Whole),
    key("secrets.prompt", Kind::Text),
    key("knowledge.embedder", Kind::Text),
    key("knowledge.model", Kind::Text),
    key("knowledge.url", Kind::Text),
    key("knowledge.key_variable", Kind::Text),
    key("knowledge.folder", Kind::Text),
    key("journal.dir", Kind::Text),
    key("journal.timezone", Kind::Text),
    key("journal.units", Kind::Text),
    key("journal.max_global_context_tokens", Kind::Whole),
];

/// Every key that is a table of the user's own names, and why a project's is not
/// read.
const TABLES: &[(&str, &str)] = &[
    ("catalogue", "it decides where keys are sent"),
    ("fallback", "it decides who sees your work"),
    ("budget", "it decides what all your projects may spend"),
    ("soft_limits", "it is about all your projects"),
    ("mcp", "it decides which programs run as you"),
];

/// Every key that has a list: what all layers say holds together.
const LISTS: &[&str] = &["secrets.patterns", "secrets.files"];

/// What a project cannot say of the sandbox: each of these opens it.
const OPENINGS: [&str; 6] = [
    "sandbox.allow",
    "sandbox.writable",
    "sandbox.readable",
    "sandbox.memory_mb_max",
    "sandbox.processes_max",
    "sandbox.files_max",
];

impl Key {
    /// The variable that sets it.
    pub fn variable(&self) -> String {
        let name = self.name.replace('.', "_").to_uppercase();
        format!("{}{name}", env::CONFIG_PREFIX)
    }
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file.
    File(PathBuf),
    /// A variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl Origin {
    /// The origin of one key of a layer.
    pub(super) fn of(&self, key: &str) -> Self {
        match self {
            Self::Variable(_) => {
                let key = KEYS.iter().find(|k| k.name == key);
                Self::Variable(key.map(Key::variable).unwrap_or_default())
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// The values of one source, checked.
pub struct Layer {
    pub(super) origin: Origin,
    pub(super) values: BTreeMap<&'static str, toml::Value>,
    pub(super) lists: BTreeMap<&'static str, Vec<toml::Value>>,
    pub(super) tables: toml::Table,
    pub(super) policy: Rules,
    pub(super) hooks: Vec<Hook>,
}

impl Layer {
    pub(super) fn defaults() -> Self {
        let text = |text: &str| toml::Value::String(text.into());
        Self {
            origin: Origin::Default,
            values: [
                ("crew", text("solo")),
                ("approve", text("ask")),
                ("tools.lazy", text("auto")),
                ("sandbox.mode", text("on")),
                ("sandbox.fence", text("auto")),
                ("sandbox.network", text("off")),
            ]
            .into(),
            lists: BTreeMap::new(),
            tables: toml::Table::new(),
            policy: Rules::default(),
            hooks: Vec::new(),
        }
    }

    /// The values of a file; `None` if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => {
                return Err(Error::usage(format!(
                    "the configuration `{}` cannot be read",
                    path.display()
                ))
                .cause(error)
                .hint("make it a readable file, or remove it"));
            }
        };
        let mut table = file::parse(path, &text)?;
        let tables = TABLES
            .iter()
            .filter_map(|(name, _)| table.remove_entry(*name));
        let tables = tables.collect();
        let policy = match table.remove("policy") {
            Some(policy) => Rules::deserialize(policy).expect("it was checked with the file"),
            None => Rules::default(),
        };
        let hooks = match table.remove("hooks") {
            Some(hooks) => Vec::deserialize(hooks).expect("they were checked with the file"),
            None => Vec::new(),
        };
        let value = |key: &str| match key.split_once('.') {
            None => table.get(key).cloned(),
            Some((group, name)) => table.get(group)?.get(name).cloned(),
        };
        let values = KEYS
            .iter()
            .filter_map(|key| Some((key.name, value(key.name)?)));
        let lists = LISTS.iter().filter_map(|key| match value(key)? {
            toml::Value::Array(items) => Some((*key, items)),
            _ => None,
        });
        Ok(Some(Self {
            origin: Origin::File(path.to_owned()),
            values: values.collect(),
            lists: lists.collect(),
            tables,
            policy,
            hooks,
        }))
    }

    /// The values of `SELVEDGE_*` variables.
    pub(super) fn environment() -> Result<Self> {
        let mut values = BTreeMap::new();
        for key in KEYS {
            let variable = key.variable();
            let Some(text) = env::text(&variable) else {
                continue;
            };
            let value = parse(key, &text.to_string_lossy()).map_err(|why| {
                Error::usage(format!("the variable `{variable}` cannot be used"))
                    .cause(why)
                    .hint(format!("correct it or unset it: `unset {variable}`"))
            })?;
            values.insert(key.name, value);
        }
        Ok(Self {
            origin: Origin::Variable(String::new()),
            values,
            lists: BTreeMap::new(),
            tables: toml::Table::new(),
            policy: Rules::default(),
            hooks: Vec::new(),
        })
    }

    /// The `SELVEDGE_*` variables that set nothing, with what was probably meant.
    pub(super) fn unknown_variables() -> Vec<String> {
        let mut known: Vec<String> = KEYS.iter().map(Key::variable).collect();
        known.extend(env::OWN.map(str::to_owned));
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let unknown = set.filter(|name| name.starts_with(env::CONFIG_PREFIX));
        let unknown = unknown.filter(|name| !known.contains(&name.as_str()));
        let warning = |name: String| match nearest(&name, &known) {
            Some(meant) => format!("the variable `{name}` sets nothing; did you mean `{meant}`?"),
            None => format!("the variable `{name}` sets nothing"),
        };
        unknown.map(warning).collect()
    }

    /// Leaves out what would make a run less safe than the defaults, and says so.
    pub(super) fn hold_back(&mut self, file: &Path) -> Vec<String> {
        let mut warnings = Vec::new();
        let file = file.display();
        if self.values.get("approve").and_then(toml::Value::as_str) == Some("auto") {
            self.values.remove("approve");
            warnings.push(format!(
                "`approve = \"auto\"` in `{file}` is ignored: a project may tighten security, \
                 not loosen it; pass `--approve auto` if you mean it"
            ));
        }
        warnings.extend(self.hold_back_sandbox(&file.to_string()));
        if self.values.remove("profile").is_some() {
            warnings.push(format!(
                "`profile` in `{file}` is ignored: it decides whose keys are used; put it into \
                 your own configuration"
            ));
        }
        warnings.extend(self.hold_back_secrets(&file.to_string()));
        if self.values.remove("cache").is_some() {
            warnings.push(format!(
                "`cache` in `{file}` is ignored: it decides what is kept of your work; put it \
                 into your own configuration"
            ));
        }
        let is_knowledge = |key: &&str, _: &mut toml::Value| key.starts_with("knowledge.");
        for (key, _) in self.values.extract_if(.., is_knowledge) {
            warnings.push(format!(
                "`{key}` in `{file}` is ignored: it decides who reads your code; put it into \
                 your own configuration"
            ));
        }
        let own = self
            .values
            .extract_if(.., |key, _| key.starts_with("journal."));
        if own.count() > 0 {
            warnings.push(format!(
                "`[journal]` in `{file}` is ignored: it decides where your notes go; put it into \
                 your own configuration"
            ));
        }
        for (name, why) in TABLES {
            if self.tables.remove(*name).is_some() {
                warnings.push(format!(
                    "`[{name}]` in `{file}` is ignored: {why}; put it into your own configuration"
                ));
            }
        }
        warnings
    }

    /// Leaves out what a folder allows or runs that nobody vouches for, and says so.
    pub(super) fn hold_back_rules(&mut self, file: &Path) -> Vec<String> {
        let allowed = std::mem::take(&mut self.policy.allow);
        let hooks = std::mem::take(&mut self.hooks);
        let held = [
            ("[policy] allow", !allowed.is_empty()),
            ("[[hooks]]", !hooks.is_empty()),
        ];
        let warning = |(name, _): &(&str, bool)| {
            format!(
                "`{name}` in `{}` is ignored: nobody vouches for this folder; look at it, then \
                 `selvedge trust`",
                file.display()
            )
        };
        held.iter().filter(|(_, is)| *is).map(warning).collect()
    }
}

impl Layer {
    /// Leaves out what would open the sandbox. What closes it further stays.
    fn hold_back_sandbox(&mut self, file: &str) -> Vec<String> {
        let is = |value: &toml::Value, word: &str| value.as_str() == Some(word);
        let opens = |key: &str, value: &toml::Value| match key {
            "sandbox.mode" => is(value, "off"),
            "sandbox.network" => is(value, "on"),
            _ => OPENINGS.contains(&key),
        };
        let found = self.values.extract_if(.., |key, value| opens(key, value));
        let warning = |(key, _): (&str, toml::Value)| {
            format!(
                "`{key}` in `{file}` is ignored: a project may tighten security, not loosen it; \
                 put it into your own configuration if you mean it"
            )
        };
        found.map(warning).collect()
    }

    /// Leaves out what would show a secret. What hides more stays.
    fn hold_back_secrets(&mut self, file: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        let prompt = self.values.get("secrets.prompt");
        if prompt.is_some_and(|prompt| prompt.as_str() != Some("refuse")) {
            self.values.remove("secrets.prompt");
            warnings.push(format!(
                "`secrets.prompt` in `{file}` is ignored: a project may tighten security, not \
                 loosen it; put it into your own configuration if you mean it"
            ));
        }
        let allowed = |glob: &toml::Value| glob.as_str().is_some_and(|glob| glob.starts_with('!'));
        if let Some(files) = self.lists.get_mut("secrets.files")
            && files.iter().any(allowed)
        {
            files.retain(|glob| !allowed(glob));
            warnings.push(format!(
                "`secrets.files` in `{file}` allow nothing: a project may tighten security, not \
                 loosen it; put it into your own configuration if you mean it"
            ));
        }
        warnings
    }
}

/// Puts the value of a dotted key into a table.
pub(super) fn place(table: &mut toml::Table, key: &str, value: toml::Value) {
    let Some((group, name)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let group = table
        .entry(group)
        .or_insert_with(|| toml::Table::new().into());
    if let toml::Value::Table(group) = group {
        group.insert(name.to_owned(), value);
    }
}

/// A file that is not there, or below something that is no folder.
fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// The value of a variable, checked as if it stood in a file.
fn parse(key: &Key, text: &str) -> std::result::Result<toml::Value, String> {
    let value = match key.kind {
        Kind::Text => toml::Value::String(text.to_owned()),
        Kind::Number => text
            .trim()
            .parse()
            .map(toml::Value::Float)
            .map_err(|_| format!("`{text}` is not a number"))?,
        Kind::Whole => text
            .trim()
            .parse()
            .map(toml::Value::Integer)
            .map_err(|_| format!("`{text}` is not a whole number"))?,
        Kind::Flag => match text.trim() {
            "true" | "1" | "yes" => toml::Value::Boolean(true),
            "false" | "0" | "no" => toml::Value::Boolean(false),
            _ => return Err(format!("`{text}` is neither `true` nor `false`")),
        },
        Kind::List => {
            let words = text
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            toml::Value::Array(words.map(|word| word.to_owned().into()).collect())
        }
    };
    let mut table = toml::Table::new();
    place(&mut table, key.name, value.clone());
    match Settings::deserialize(table) {
        Ok(_) => Ok(value),
        Err(error) => Err(error.message().to_owned()),
    }
}
