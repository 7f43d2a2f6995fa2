//! What a job's config may say. The doc comments are the published schema.

use schemars::JsonSchema;
use selvedge_model::Effort;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// How long it thinks, where its provider has the setting.
    pub reasoning_level: Option<ReasoningLevel>,
    /// Where the provider of `model` is for this job: the address of a server that speaks
    /// its protocol, such as `http://127.0.0.1:8000/v1`. The provider's key goes there only
    /// if this stands in a config of the user's own, and not of the project's.
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

/// How workers take the jobs of a config: `selvedge worker --config NAME` follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Polling {
    /// Whether its jobs can be submitted to workers.
    pub enabled: bool,
    /// How often a worker looks for jobs that nobody told it of, such as those of a worker
    /// that was killed. A job that is submitted on this machine wakes it at once.
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

impl From<ReasoningLevel> for Effort {
    fn from(level: ReasoningLevel) -> Self {
        match level {
            ReasoningLevel::None => Self::None,
            ReasoningLevel::Low => Self::Low,
            ReasoningLevel::Medium => Self::Medium,
            ReasoningLevel::High => Self::High,
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
