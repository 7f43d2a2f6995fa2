//! How a config is found and merged, and what is wrong with it.
//!
//! A config is a folder with `config.json` and `instructions.md`. What it does not say
//! comes from the config that it extends; objects are merged, lists take the place of
//! lists. Every file is held against the published schema by itself, so that a fault is
//! shown where it stands.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::{JobConfig, config_schema};
use super::folder;
use super::line::line_of;

/// What is wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`{}{} {reason}", place(*line), named(key))]
pub struct ConfigError {
    /// Which file.
    pub file: String,
    /// Which line of it, if that is known.
    pub line: Option<usize>,
    /// Which key; empty if it is about the whole file.
    pub key: String,
    /// Why it cannot be used.
    pub reason: String,
    /// The nearest valid name, or what else would help.
    pub hint: Option<String>,
}

fn place(line: Option<usize>) -> String {
    line.map_or(String::new(), |line| format!(", line {line}"))
}

fn named(key: &str) -> String {
    match key {
        "" => ":".into(),
        key => format!(": `{key}`"),
    }
}

/// Where configs are looked for.
#[derive(Clone, Debug, Default)]
pub struct Configs {
    /// Folders that hold `NAME/config.json`, the first one first; then come the shipped.
    pub folders: Vec<PathBuf>,
}

/// A config that comes with the program.
pub(super) struct Shipped {
    pub(super) name: &'static str,
    config: &'static str,
    pub(super) instructions: &'static str,
}

pub(super) const SHIPPED: [Shipped; 3] = [
    Shipped {
        name: "defaults",
        config: include_str!("../../configs/defaults/config.json"),
        instructions: include_str!("../../configs/defaults/instructions.md"),
    },
    Shipped {
        name: "creator",
        config: include_str!("../../configs/creator/config.json"),
        instructions: include_str!("../../configs/creator/instructions.md"),
    },
    Shipped {
        name: "validator",
        config: include_str!("../../configs/validator/config.json"),
        instructions: include_str!("../../configs/validator/instructions.md"),
    },
];

/// A config, whole.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// What it is called.
    pub name: String,
    /// What it says, with what it extends.
    pub config: JobConfig,
    /// What becomes `instructions.md`.
    pub instructions: String,
    pub(super) files: Vec<File>,
}

/// A file that a config was made of.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) folder: Option<PathBuf>,
}

impl Configs {
    /// The names there are.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = SHIPPED.iter().map(|s| s.name.to_owned()).collect();
        for folder in &self.folders {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let is_config = |e: &std::fs::DirEntry| e.path().join("config.json").is_file();
            let found = entries.filter(is_config);
            names.extend(found.filter_map(|e| e.file_name().into_string().ok()));
        }
        names.sort();
        names.dedup();
        names
    }

    /// Loads the config `name` with everything that it extends.
    pub fn load(&self, name: &str) -> Result<LoadedConfig, ConfigError> {
        let mut files: Vec<File> = Vec::new();
        let mut wanted = Some(name.to_owned());
        while let Some(name) = wanted {
            let (file, line) = match files.last() {
                Some(file) => (file.path.clone(), line_of(&file.text, "/$extends")),
                None => (String::new(), None),
            };
            if files.iter().any(|file| file.name == name) {
                let chain: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
                return Err(ConfigError {
                    file,
                    line,
                    key: "$extends".into(),
                    reason: format!("is a circle: {} → {name}", chain.join(" → ")),
                    hint: Some("let one of them extend `defaults`".into()),
                });
            }
            let found = self
                .file(&name)?
                .ok_or_else(|| self.unknown(&name, file, line))?;
            wanted = found.value["$extends"].as_str().map(str::to_owned);
            files.push(found);
        }
        let mut merged = Value::Object(Map::new());
        for file in files.iter().rev() {
            merge(&mut merged, &file.value);
        }
        let mut config = JobConfig::deserialize(&merged).map_err(|error| ConfigError {
            file: files[0].path.clone(),
            line: None,
            key: String::new(),
            reason: error.to_string(),
            hint: None,
        })?;
        if config.agent_id.is_none() && config.job_type.is_none() {
            config.agent_id = Some(name.to_owned());
        }
        let mut loaded = LoadedConfig {
            name: name.to_owned(),
            config,
            instructions: String::new(),
            files,
        };
        loaded.check()?;
        loaded.instructions = loaded.read_instructions()?;
        Ok(loaded)
    }

    fn unknown(&self, name: &str, file: String, line: Option<usize>) -> ConfigError {
        let names = self.names();
        let hint = nearest(name, names.iter().map(String::as_str));
        let (key, reason, file) = match file.is_empty() {
            true => (
                "",
                format!(
                    "there is no config of this name; there are {}",
                    names.join(", ")
                ),
                name.to_owned(),
            ),
            false => (
                "$extends",
                format!("names `{name}`, which is no config"),
                file,
            ),
        };
        ConfigError {
            file,
            line,
            key: key.into(),
            reason,
            hint,
        }
    }

    fn file(&self, name: &str) -> Result<Option<File>, ConfigError> {
        // A name that is a path would lead out of the folders.
        if !folder::is_inside(name) || name.contains('/') {
            return Ok(None);
        }
        let mut folders = self.folders.iter().map(|folder| folder.join(name));
        let folder = folders.find(|folder| folder.join("config.json").is_file());
        let (path, text) = match &folder {
            Some(folder) => {
                let path = folder.join("config.json");
                let shown = path.display().to_string();
                let text = std::fs::read_to_string(&path).map_err(|error| ConfigError {
                    file: shown.clone(),
                    line: None,
                    key: String::new(),
                    reason: format!("it cannot be read: {error}"),
                    hint: None,
                })?;
                (shown, text)
            }
            None => match SHIPPED.iter().find(|shipped| shipped.name == name) {
                Some(shipped) => (format!("{name}/config.json"), shipped.config.to_owned()),
                None => return Ok(None),
            },
        };
        let value = checked(&path, &text)?;
        let name = name.to_owned();
        Ok(Some(File {
            name,
            path,
            text,
            value,
            folder,
        }))
    }
}

/// The JSON of a file that fits the schema.
fn checked(path: &str, text: &str) -> Result<Value, ConfigError> {
    let value: Value = serde_json::from_str(text).map_err(|error| ConfigError {
        file: path.to_owned(),
        line: Some(error.line()),
        key: String::new(),
        reason: format!("it is not JSON: {error}"),
        hint: None,
    })?;
    let schema = config_schema();
    let validator = jsonschema::validator_for(&schema).expect("a generated schema is one");
    let Some(error) = validator.iter_errors(&value).next() else {
        return Ok(value);
    };
    let at = error.instance_path().to_string();
    use jsonschema::error::ValidationErrorKind as Kind;
    let (pointer, reason, hint) = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let key = unexpected.first().cloned().unwrap_or_default();
            let mut known = Vec::new();
            keys(&schema, &mut known);
            let hint = nearest(&key, known.iter().map(String::as_str));
            (
                format!("{at}/{key}"),
                "is not a key that a config has".to_owned(),
                hint,
            )
        }
        _ => (at, format!("cannot be that: {error}"), None),
    };
    Err(ConfigError {
        file: path.to_owned(),
        line: line_of(text, &pointer),
        key: pointer.trim_start_matches('/').replace('/', "."),
        reason,
        hint,
    })
}

/// Every key of a schema.
fn keys(schema: &Value, known: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                known.extend(properties.keys().cloned());
            }
            fields.values().for_each(|inner| keys(inner, known));
        }
        Value::Array(items) => items.iter().for_each(|inner| keys(inner, known)),
        _ => {}
    }
}

/// Merges `over` into `under`: objects key by key, everything else as a whole.
fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// The nearest of some names, as a hint.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(nearness, _)| *nearness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    near.map(|(_, name)| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(files: &[(&str, &str)]) -> (tempfile::TempDir, Configs) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let place = folder.path().join(name);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("config.json"), text).unwrap();
            std::fs::write(place.join("instructions.md"), "Do it.\n").unwrap();
        }
        let folders = vec![folder.path().to_owned()];
        (folder, Configs { folders })
    }

    #[test]
    fn the_shipped_configs_load_and_a_list_takes_the_place_of_a_list() {
        for shipped in SHIPPED {
            let loaded = Configs::default().load(shipped.name).unwrap();
            assert_eq!(loaded.name, shipped.name);
            assert!(!loaded.instructions.is_empty());
        }
        let mine = r#"{"$extends": "defaults", "limits": {"max_iterations": 9},
                       "tools": {"strategic": ["job_complete"]}}"#;
        let (_folder, configs) = configs(&[("mine", mine)]);
        let config = configs.load("mine").unwrap().config;
        assert_eq!(config.limits.max_iterations, 9);
        assert_eq!(config.limits.tool_retry_count, 3, "objects are merged");
        assert_eq!(config.tools.strategic, ["job_complete"]);
        assert_eq!(config.name(), "mine");
    }

    #[test]
    fn what_is_wrong_is_shown_with_file_line_key_reason_and_the_nearest_name() {
        let cases = [
            (
                "{\"limits\": {\n  \"max_iteration\": 3}}",
                "limits.max_iteration",
                2,
                "`max_iterations`",
            ),
            (
                "{\n\n\"phase_settings\": {\"min_todos\": \"five\"}}",
                "phase_settings.min_todos",
                3,
                "",
            ),
            ("{\"loop\":\n \"phases\"}", "loop", 1, ""),
            (
                "{\"phase_settings\": {\"min_todos\": 9,\n\"max_todos\": 3}}",
                "phase_settings.min_todos",
                1,
                "",
            ),
            (
                "{\"workspace\": {\"structure\": [\"a\",\n\"../b\"]}}",
                "workspace.structure.1",
                2,
                "",
            ),
            ("{\"$extends\": \"default\"}", "$extends", 1, "`defaults`"),
            ("{\n\"a\" 1}", "", 2, ""),
        ];
        for (text, key, line, hint) in cases {
            let (_folder, configs) = configs(&[("mine", text)]);
            let error = configs.load("mine").unwrap_err();
            assert_eq!(
                (error.key.as_str(), error.line),
                (key, Some(line)),
                "{error}"
            );
            assert!(error.file.ends_with("mine/config.json"), "{error}");
            assert!(
                error.hint.clone().unwrap_or_default().contains(hint),
                "{error:?}"
            );
        }
        let (_folder, configs) =
            configs(&[("mine", "{\"tools\": {\"domain\":\n[\"cite_documents\"]}}")]);
        let loaded = configs.load("mine").unwrap();
        let error = loaded.check_tools(&["cite_document".into()]).unwrap_err();
        // The defaults of the other groups are not known here, and come first.
        assert!(error.to_string().contains("does not exist"), "{error}");
    }

    #[test]
    fn a_circle_of_configs_is_refused() {
        let (_folder, configs) = configs(&[
            ("a", "{\"$extends\": \"b\"}"),
            ("b", "{\n\"$extends\": \"a\"}"),
        ]);
        let error = configs.load("a").unwrap_err();
        assert!(error.reason.contains("circle: a → b → a"), "{error}");
        assert!(
            error.file.ends_with("b/config.json") && error.line == Some(2),
            "{error:?}"
        );
    }
}
