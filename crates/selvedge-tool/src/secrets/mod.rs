//! Secrets: what they look like, which ones this process knows, and how they are
//! kept out of everything that is said, shown or stored.
//!
//! A secret is found by its value, if the process knows it, and by its shape, if it
//! does not. Either way only the value is replaced, by [`MARK`]: the name beside it
//! is what a reader needs. Text is looked at line by line, so that a text that
//! arrives in pieces is treated exactly as the same text at once.
//!
//! - `pattern`, `table`: shapes, and the list of those that are built in
//! - `assignment`: `api_key = …` and its relatives, where only the name says so
//! - `plausible`: whether a value is a secret, or an example, or code
//! - `block`: private keys, which are many lines and go as a whole
//! - `known`: values the process knows, in every encoding they may appear in
//! - `redactor`: a text on its way, in pieces
//! - `sighting`: what was found, said without saying it
//! - `files`, `harvest`: files that are secret by their name, and what is in them
//! - `marked`: a marker on its way back into a file or a command
//! - `lend`: credentials for tools

mod assignment;
mod block;
mod files;
mod harvest;
mod known;
mod lend;
mod marked;
mod pattern;
mod plausible;
mod redactor;
mod sighting;
mod table;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use serde_json::Value;

use crate::workspace::Workspace;

pub use files::SensitiveFiles;
pub use lend::{
    Consent, ConsentBook, Credential, Granted, Lender, Lent, NoConsent, Scopes, Vault, Wanted,
    variable,
};
pub use pattern::{CustomPattern, RuleError, Severity};
pub use redactor::Redactor;
use redactor::Starts;
pub use sighting::Sighting;

pub(crate) use files::stub;
pub(crate) use marked::{loses_secrets, refuse_marker};

use block::Block;
use known::Known;
use pattern::{Hit, Patterns};

/// What stands where a secret was.
pub const MARK: &str = "[REDACTED]";

/// The secrets of this process: shapes, known values, sensitive files.
///
/// A cheap handle. What one clone learns, all of them know.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Shared>);

#[derive(Default)]
struct Shared {
    rules: RwLock<Rules>,
    /// When each sensitive file of a workspace was read, by workspace.
    harvested: Mutex<HashMap<PathBuf, harvest::Harvest>>,
}

/// The values that the process knew at one moment.
#[derive(Clone, Default)]
pub struct KnownValues(Arc<Known>);

impl KnownValues {
    /// The text without them.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.redact(text)
    }

    /// Whether nothing was learned between the one and the other.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What holds at one moment.
#[derive(Clone, Default)]
struct Rules {
    patterns: Arc<Patterns>,
    known: Arc<Known>,
    files: Arc<SensitiveFiles>,
    /// What secrets begin with, found when first asked for.
    starts: Arc<OnceLock<Starts>>,
}

impl Secrets {
    /// The built-in shapes and files, and no known value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds shapes and files of the user's own. A file that begins with `!` is
    /// allowed to be read. Nothing is added if one of them cannot be used, and nothing
    /// twice.
    pub fn adopt(&self, patterns: &[CustomPattern], files: &[String]) -> Result<(), RuleError> {
        let mut rules = self.0.rules.write().expect("no panic under this lock");
        let added = rules.patterns.with(patterns)?;
        rules.files = Arc::new(rules.files.with(files)?);
        rules.patterns = Arc::new(added);
        rules.starts = Arc::default();
        Ok(())
    }

    /// Learns a value that must never be shown. One of less than eight characters
    /// is not learned: it would be found everywhere.
    pub fn know(&self, value: &str) {
        self.know_all([value]);
    }

    /// Learns several values at once.
    pub fn know_all<'a>(&self, values: impl IntoIterator<Item = &'a str>) {
        let mut rules = self.0.rules.write().expect("no panic under this lock");
        if let Some(known) = rules.known.with(values) {
            rules.known = Arc::new(known);
            rules.starts = Arc::default();
        }
    }

    /// Learns the variables of an environment that hold secrets.
    pub fn know_environment(&self, variables: impl IntoIterator<Item = (String, String)>) {
        let secret: Vec<String> = variables
            .into_iter()
            .filter(|(name, value)| plausible::is_secret_variable(name, value))
            .map(|(_, value)| value)
            .collect();
        self.know_all(secret.iter().map(String::as_str));
    }

    /// Learns what is in the sensitive files of a workspace. Looks for them once, for
    /// some milliseconds, and again into those that have changed.
    pub(crate) fn know_workspace(&self, workspace: &Workspace) {
        harvest::refresh(self, workspace);
    }

    /// The text with every secret replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let rules = self.rules();
        if !rules.suspects(text) {
            return Cow::Borrowed(text);
        }
        let mut redactor = Redactor::new(rules);
        let mut clean = redactor.push(text);
        clean.push_str(&redactor.finish());
        match clean == text {
            true => Cow::Borrowed(text),
            false => Cow::Owned(clean),
        }
    }

    /// Whether a text holds what is, or looks like, a secret.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        matches!(self.redact(text), Cow::Owned(_))
    }

    /// The text with every known value replaced, and shapes left alone: for what
    /// was already judged by its shape.
    pub fn redact_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.rules().known.redact(text)
    }

    /// What is known now, for many texts at once.
    pub fn known(&self) -> KnownValues {
        KnownValues(self.rules().known)
    }

    /// Replaces secrets in every text of a JSON value.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        // The name beside it may be what makes it a secret.
                        Value::String(text) if assignment::is_secret(name, text) => {
                            *text = MARK.to_owned();
                        }
                        _ => self.redact_json(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What a text holds that is, or looks like, a secret.
    pub fn scan(&self, text: &str) -> Vec<Sighting> {
        sighting::scan(&self.rules(), text)
    }

    /// Takes a text in pieces.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.rules())
    }

    /// The arguments of a call without what arguments must not have; `None` if there
    /// is nothing of the kind. Fields in `contents` keep what only looks like a secret.
    pub(crate) fn scrub(&self, arguments: &str, contents: &[&str]) -> Option<String> {
        if !self.rules().suspects(arguments) {
            return None;
        }
        let Ok(mut input) = serde_json::from_str::<Value>(arguments) else {
            let clean = self.redact(arguments);
            return (clean != arguments).then(|| clean.into_owned());
        };
        marked::scrub(self, &mut input, "", contents).then(|| input.to_string())
    }

    /// The names of what looks like a secret in file contents that a call writes.
    pub(crate) fn in_contents(&self, input: &Value, contents: &[&str]) -> Vec<String> {
        marked::in_contents(self, input, contents)
    }

    /// Takes note of a sensitive file that a tool has come by.
    pub(crate) fn note(&self, workspace: &Workspace, path: &Path) {
        harvest::note(self, workspace, path);
    }

    /// Whether a file is not to be shown, by its name.
    pub fn is_sensitive(&self, path: &Path) -> bool {
        self.rules().files.is_sensitive(path)
    }

    fn rules(&self) -> Rules {
        let rules = self.0.rules.read().expect("no panic under this lock");
        rules.clone()
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = self.rules().known.len();
        f.debug_struct("Secrets").field("known", &known).finish()
    }
}

impl Rules {
    /// Whether there may be a secret at all: one quick pass, and nearly always no.
    fn suspects(&self, text: &str) -> bool {
        self.patterns.suspects(text) || self.known.is_in(text)
    }

    fn starts(&self) -> &Starts {
        self.starts.get_or_init(|| Starts::of(self))
    }

    /// The secrets of one line, in order, none overlapping another. `block` is what
    /// the lines before have begun.
    fn hits(&self, block: &mut Block, line: &str) -> Vec<Hit> {
        if let Some(hits) = block.take(line) {
            return hits;
        }
        if !self.suspects(line) {
            return Vec::new();
        }
        let mut hits = self.known.hits(line);
        self.patterns.find(line, &mut hits);
        hits.extend(block.begin(line));
        pattern::merge(hits)
    }
}
