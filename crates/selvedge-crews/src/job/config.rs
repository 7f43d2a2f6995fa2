//! What a job's config says, how it is found, and what is wrong with it.
//!
//! A config is a folder with `config.json` and `instructions.md`. What it does not say
//! comes from the config that it extends; objects are merged, lists take the place of
//! lists. Every file is held against the published schema by itself, so that a fault is
//! shown where it stands.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::folder;
use super::line::line_of;

/// What a config may say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobConfig {
    /// The config that this one extends, by name.
    #[serde(rename = "$extends", skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// What the agent is called. Default: the name of the config.
    pub agent_id: Option<String>,
    /// The same; either will do.
    pub job_type: Option<String>,
    /// What people call it.
    pub display_name: Option<String>,
    /// The model.
    pub llm: Llm,
    /// Whether strategic and tactical phases alternate, or the agent directs itself.
    #[serde(rename = "loop")]
    pub mode: LoopMode,
    /// The job's folder.
    pub workspace: WorkspaceConfig,
    /// The tools of each phase.
    pub tools: ToolsConfig,
    /// The phases.
    pub phase_settings: PhaseSettings,
    /// The todos of a `free` job.
    pub todo: TodoConfig,
    /// What it is connected to.
    pub connections: Connections,
    /// How workers take its jobs.
    pub polling: Polling,
    /// How far it may go.
    pub limits: JobLimits,
    /// What of the conversation is sent.
    pub context_management: ContextConfig,
}

/// Whether there are phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopMode {
    /// Strategic and tactical phases alternate, each with an empty conversation.
    #[default]
    Phased,
    /// One conversation, summarised whenever a list of todos is put away.
    Free,
}

/// The model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Llm {
    /// `provider/model`, an alias or a tier.
    pub model: Option<String>,
    /// A tier: `low`, `medium` or `high`. Default: `medium`.
    pub tier: Option<Tier>,
    /// How freely it chooses its words.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// How long it thinks. Kept for configs that name it; models decide by themselves.
    pub reasoning_level: Option<ReasoningLevel>,
    /// Not used: the address of a provider is set in `[catalogue]` or its variable.
    pub base_url: Option<String>,
}

/// A tier of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Quick and cheap.
    Low,
    /// In between.
    Medium,
    /// The best.
    High,
}

/// How long a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningLevel {
    /// Not at all.
    None,
    /// Briefly.
    Low,
    /// For a while.
    Medium,
    /// Thoroughly.
    High,
}

/// The job's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Folders that are made in it.
    pub structure: Vec<String>,
    /// The file, beside `config.json`, that becomes `instructions.md`.
    pub instructions_template: String,
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        let structure = ["analysis", "chunks", "notes"];
        Self {
            structure: structure.map(str::to_owned).into(),
            instructions_template: "instructions.md".into(),
        }
    }
}

/// The tools of each phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Those of every phase.
    pub workspace: Vec<String>,
    /// Those of strategic phases.
    pub strategic: Vec<String>,
    /// Those of tactical phases.
    pub tactical: Vec<String>,
    /// Those of a `free` job.
    pub todo: Vec<String>,
    /// Those that do the work, in tactical phases and `free` jobs.
    pub domain: Vec<String>,
    /// More of them, which are not in the prompt: `tool_search` finds them.
    pub deferred: Vec<String>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            workspace: names(&[
                "read_file",
                "write_file",
                "append_file",
                "list_files",
                "search_files",
                "file_exists",
                "delete_file",
                "get_workspace_summary",
            ]),
            strategic: names(&["todo_write", "job_complete"]),
            tactical: names(&["todo_complete"]),
            todo: names(&[
                "add_todo",
                "start_todo",
                "complete_todo",
                "list_todos",
                "get_next_todo",
                "get_progress",
                "archive_and_reset",
                "job_complete",
            ]),
            domain: Vec::new(),
            deferred: Vec::new(),
        }
    }
}

/// The phases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseSettings {
    /// Todos of a tactical phase, at least.
    #[schemars(range(min = 1, max = 100))]
    pub min_todos: usize,
    /// Todos of a tactical phase, at most.
    #[schemars(range(min = 1, max = 100))]
    pub max_todos: usize,
    /// Whether its todos are put into `archive/`.
    pub archive_on_transition: bool,
}

impl Default for PhaseSettings {
    fn default() -> Self {
        Self {
            min_todos: 5,
            max_todos: 20,
            archive_on_transition: true,
        }
    }
}

/// The todos of a `free` job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TodoConfig {
    /// Open todos at once.
    #[schemars(range(min = 1, max = 100))]
    pub max_items: usize,
}

impl Default for TodoConfig {
    fn default() -> Self {
        Self { max_items: 25 }
    }
}

/// What a job is connected to. Without any, the embedded store serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    /// The address of a PostgreSQL for the requirement cache: `postgres://host:port/name`.
    pub postgres: Option<String>,
    /// The address of a Neo4j for the graph: `bolt://host:port`.
    pub neo4j: Option<String>,
    /// What `web_search` asks.
    pub web_search: Option<SearchEndpoint>,
}

/// An endpoint that searches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEndpoint {
    /// Its address; `{query}` in it stands for the words, else they are its `q`.
    pub url: String,
}

/// How workers take the jobs of a config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Polling {
    /// Whether its jobs can be submitted to workers.
    pub enabled: bool,
    /// How often a worker looks for them.
    #[schemars(range(min = 1, max = 3600))]
    pub interval_seconds: u32,
}

impl Default for Polling {
    fn default() -> Self {
        Self {
            enabled: true,
            interval_seconds: 1,
        }
    }
}

/// How far a job may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobLimits {
    /// Model calls of the whole job.
    #[schemars(range(min = 1))]
    pub max_iterations: u32,
    /// Model calls of a phase in which no todo is completed.
    #[schemars(range(min = 1))]
    pub max_iterations_per_phase: u32,
    /// Tokens of the largest request.
    #[schemars(range(min = 8000))]
    pub context_threshold_tokens: u64,
    /// How often a tool is tried that fails for a reason that may pass.
    #[schemars(range(min = 1, max = 20))]
    pub tool_retry_count: u32,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            max_iterations: 500,
            max_iterations_per_phase: 100,
            context_threshold_tokens: 80_000,
            tool_retry_count: 3,
        }
    }
}

/// What of the conversation is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextConfig {
    /// Tool results that are sent in full; older ones are where they say.
    #[schemars(range(min = 1, max = 100))]
    pub keep_recent_tool_results: usize,
    /// Whether a `free` job's conversation is summarised when a list is put away.
    pub compact_on_archive: bool,
    /// What a summary is asked for with.
    pub summarization_prompt: Option<String>,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            keep_recent_tool_results: 5,
            compact_on_archive: true,
            summarization_prompt: None,
        }
    }
}

impl JobConfig {
    /// What the agent is called.
    pub fn name(&self) -> &str {
        let name = self.agent_id.as_deref().or(self.job_type.as_deref());
        name.unwrap_or("job")
    }

    /// The model it wants, as a name to be resolved.
    pub fn model(&self) -> String {
        let tier = match self.llm.tier {
            Some(Tier::Low) => "low",
            Some(Tier::High) => "high",
            Some(Tier::Medium) | None => "medium",
        };
        self.llm.model.clone().unwrap_or_else(|| tier.into())
    }
}

/// The JSON Schema of a `config.json`.
pub fn config_schema() -> Value {
    schemars::schema_for!(JobConfig).to_value()
}

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
struct Shipped {
    name: &'static str,
    config: &'static str,
    instructions: &'static str,
}

const SHIPPED: [Shipped; 3] = [
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
    /// What is not honoured, in sentences.
    pub warnings: Vec<String>,
    files: Vec<File>,
}

/// A file that a config was made of.
#[derive(Clone, Debug)]
struct File {
    name: String,
    path: String,
    text: String,
    value: Value,
    folder: Option<PathBuf>,
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
            warnings: Vec::new(),
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
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(nearness, _)| *nearness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    near.map(|(_, name)| format!("did you mean `{name}`?"))
}

impl LoadedConfig {
    /// An error about `key`, in the file that says it.
    fn wrong(&self, pointer: &str, reason: String, hint: Option<String>) -> ConfigError {
        let file = self
            .files
            .iter()
            .find(|file| file.value.pointer(pointer).is_some());
        let file = file.unwrap_or(&self.files[0]);
        ConfigError {
            file: file.path.clone(),
            line: line_of(&file.text, pointer),
            key: pointer.trim_start_matches('/').replace('/', "."),
            reason,
            hint,
        }
    }

    /// What no schema can say.
    fn check(&mut self) -> Result<(), ConfigError> {
        let PhaseSettings {
            min_todos,
            max_todos,
            ..
        } = self.config.phase_settings;
        if min_todos > max_todos {
            let reason = format!("is {min_todos}, more than `max_todos` ({max_todos})");
            return Err(self.wrong("/phase_settings/min_todos", reason, None));
        }
        let name = self.config.name();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let is_taken = ["strategic", "tactical", "worker"].contains(&name);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) || is_taken {
            let key = match self.config.agent_id {
                Some(_) => "/agent_id",
                None => "/job_type",
            };
            let reason = "is 1 to 64 letters, digits, `-` or `_`, and not a kind of phase";
            return Err(self.wrong(key, reason.into(), None));
        }
        for (n, name) in self.config.workspace.structure.iter().enumerate() {
            if !folder::is_inside(name) {
                let pointer = format!("/workspace/structure/{n}");
                let reason = format!("`{name}` leads out of the job's folder");
                return Err(self.wrong(&pointer, reason, None));
            }
        }
        if self.config.llm.base_url.is_some() {
            let reason = "is not set here".to_owned();
            let hint = "name the provider's address in `[catalogue]` of config.toml";
            return Err(self.wrong("/llm/base_url", reason, Some(hint.into())));
        }
        if self.config.llm.reasoning_level.is_some() {
            let warning = "`llm.reasoning_level` is not passed on: models decide by themselves";
            self.warnings.push(warning.into());
        }
        Ok(())
    }

    /// Checks that every tool it names is among `known`.
    pub fn check_tools(&self, known: &[String]) -> Result<(), ConfigError> {
        let tools = &self.config.tools;
        for (group, names) in [
            ("workspace", &tools.workspace),
            ("strategic", &tools.strategic),
            ("tactical", &tools.tactical),
            ("todo", &tools.todo),
            ("domain", &tools.domain),
            ("deferred", &tools.deferred),
        ] {
            for (n, name) in names.iter().enumerate() {
                if known.contains(name) {
                    continue;
                }
                let hint = nearest(name, known.iter().map(String::as_str));
                let reason = format!("names the tool `{name}`, which does not exist");
                return Err(self.wrong(&format!("/tools/{group}/{n}"), reason, hint));
            }
        }
        Ok(())
    }

    fn read_instructions(&self) -> Result<String, ConfigError> {
        let name = &self.config.workspace.instructions_template;
        let wrong = |reason: String| self.wrong("/workspace/instructions_template", reason, None);
        if !folder::is_inside(name) {
            return Err(wrong(format!("`{name}` leads out of the config's folder")));
        }
        for file in &self.files {
            let found = match &file.folder {
                Some(folder) => std::fs::read_to_string(folder.join(name)).ok(),
                None => {
                    let shipped = SHIPPED.iter().find(|shipped| shipped.name == file.name);
                    shipped
                        .filter(|_| name == "instructions.md")
                        .map(|shipped| shipped.instructions.to_owned())
                }
            };
            if let Some(text) = found {
                return Ok(text);
            }
        }
        Err(wrong(format!("`{name}` is not there")))
    }
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
