//! Configuration: what is set, and by whom.
//!
//! Lowest first: defaults, the project's file, the user's file, the user's own
//! file in the project, `SELVEDGE_*` variables, flags. The project's file comes
//! with somebody else's repository, so it may make a run safer and never less
//! safe: a value that would is left out, with a warning. The user's own file in the
//! project could come with the repository as well, and counts in full only where
//! the user vouches for the folder. Rules of all layers hold together.

mod file;
mod hooks;
mod knowledge;
mod layer;
mod sandbox;
mod settings;
mod shown;
mod spending;

use std::collections::BTreeMap;
use std::path::Path;

use selvedge_tool::{Policy, Source};
use serde::Deserialize;

pub use hooks::chain;
pub use knowledge::{EmbedderKind, KnowledgeSettings};
pub use layer::Origin;
pub use sandbox::SandboxMode;
pub use settings::{Approve, Dollars, OnSecret, Settings};
pub use shown::Row;

use layer::{KEYS, Key, Layer, place};

use crate::error::Result;
use crate::paths::Paths;
use crate::trust::Trust;

/// The configuration that holds, and where each value comes from.
pub struct Config {
    values: BTreeMap<&'static str, (toml::Value, Origin)>,
    lists: BTreeMap<&'static str, Vec<toml::Value>>,
    /// What is a table of the user's own names.
    tables: toml::Table,
    policy: Policy,
    /// Those of every layer, the lowest first.
    hooks: Vec<hooks::Hook>,
    /// What is set beside single values.
    rows: Vec<Row>,
    warnings: Vec<String>,
}

impl Config {
    /// Reads every layer that holds in `workspace`.
    pub fn load(paths: &Paths, workspace: &Path) -> Result<Self> {
        let mut config = Self::defaults();
        let files = Self::files(paths, workspace);
        let trust = Trust::of(paths, workspace);
        for (at, file) in files.iter().enumerate() {
            let Some(mut layer) = Layer::read(file)? else {
                continue;
            };
            let is_users = at == USER || trust.is_given();
            // What a project says of approvals and keys, it says to everybody.
            if at == PROJECT || !is_users {
                config.warnings.extend(layer.hold_back(file));
            }
            if !is_users {
                config.warnings.extend(layer.hold_back_rules(file));
            }
            let source = if at == USER {
                Source::User
            } else {
                Source::Project
            };
            config.lay_rows(shown::rows(&layer));
            config.policy = config
                .policy
                .with(source, std::mem::take(&mut layer.policy));
            config.lay(layer);
        }
        config.lay(Layer::environment()?);
        config.warnings.extend(Layer::unknown_variables());
        Ok(config)
    }

    /// What holds when nobody says anything.
    pub fn defaults() -> Self {
        let mut config = Self {
            values: BTreeMap::new(),
            lists: BTreeMap::new(),
            tables: toml::Table::new(),
            policy: Policy::default(),
            hooks: Vec::new(),
            rows: Vec::new(),
            warnings: Vec::new(),
        };
        config.lay(Layer::defaults());
        config
    }

    /// The files, lowest first, whether they exist or not.
    pub fn files(paths: &Paths, workspace: &Path) -> [std::path::PathBuf; 3] {
        let project = workspace.join(".selvedge");
        [
            project.join("config.toml"),
            paths.user_config(),
            project.join("local/config.toml"),
        ]
    }

    /// Sets a value by a flag.
    pub fn flag(&mut self, key: &'static str, flag: &'static str, value: Option<toml::Value>) {
        if let Some(value) = value {
            self.values.insert(key, (value, Origin::Flag(flag)));
        }
    }

    fn lay(&mut self, layer: Layer) {
        for (key, value) in layer.values {
            self.values.insert(key, (value, layer.origin.of(key)));
        }
        for (key, items) in layer.lists {
            self.lists.entry(key).or_default().extend(items);
        }
        lay_over(&mut self.tables, &layer.tables);
        self.hooks.extend(layer.hooks);
    }

    /// What is in a table is replaced by a layer above; what is in a list holds with it.
    fn lay_rows(&mut self, rows: Vec<Row>) {
        let holds_together = |row: &Row| {
            let groups = ["policy.", "hooks.", "secrets."];
            groups.iter().any(|group| row.key.starts_with(group))
        };
        for row in rows {
            match self.rows.iter_mut().find(|known| known.key == row.key) {
                Some(known) if !holds_together(&row) => *known = row,
                _ => self.rows.push(row),
            }
        }
    }

    /// What is set beside single values: tables, rules, hooks and lists.
    pub fn more(&self) -> &[Row] {
        &self.rows
    }

    /// Every value with its origin, by key; `None` where nothing is set.
    pub fn shown(&self) -> Vec<(&'static str, Option<(&toml::Value, &Origin)>)> {
        let value = |key: &Key| self.values.get(key.name).map(|(v, o)| (v, o));
        KEYS.iter().map(|key| (key.name, value(key))).collect()
    }

    /// The models and prices a user has added.
    pub fn catalogue(&self) -> toml::Table {
        let catalogue = self.tables.get("catalogue").and_then(toml::Value::as_table);
        catalogue.cloned().unwrap_or_default()
    }

    /// What every agent of a run is bound by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What was left out or sets nothing, and why.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The values, typed.
    pub fn settings(&self) -> Settings {
        let mut table = self.tables.clone();
        for (key, (value, _)) in &self.values {
            place(&mut table, key, value.clone());
        }
        for (key, items) in &self.lists {
            place(&mut table, key, toml::Value::Array(items.clone()));
        }
        let settings = Settings::deserialize(table);
        Settings {
            hooks: self.hooks.clone(),
            ..settings.expect("each value was checked in its own layer")
        }
    }
}

const PROJECT: usize = 0;
const USER: usize = 1;

fn lay_over(base: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => lay_over(base, over),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}
