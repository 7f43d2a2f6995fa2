//! What a tool is: a declaration, a preparation, an act and a probe.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use selvedge_runtime::Nature;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cut::TEXT_CHARS_MAX;
use crate::offer::Offer;
use crate::policy::{Deed, Policy};
use crate::sandbox::Sandbox;
use crate::secrets::{Lent, Secrets};
use crate::skills::Skill;
use crate::todo::Desk;
use crate::workspace::{PathError, Workspace};

/// The name of the tool by which an agent loads others.
pub const REQUEST_TOOLS: &str = "request_tools";

/// The name of the tool by which a job looks for tools that are not in its prompt.
pub const TOOL_SEARCH: &str = "tool_search";

/// The name of the tool by which an agent reads a skill.
pub const USE_SKILL: &str = "use_skill";

/// What a tool declares of itself. Permission, retry and resume follow from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for, in words for a model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// What it does to the world.
    pub world: World,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum World {
    /// Looks only. Repeating it is harmless.
    Reads,
    /// Changes files of the workspace.
    Writes,
    /// Runs a command: may do anything the fence allows.
    Runs,
    /// Needs a person.
    Asks,
    /// Ends the run.
    Ends,
    /// Hands work to another agent.
    Delegates,
}

impl World {
    /// What repeating a call would do.
    pub fn nature(self) -> Nature {
        match self {
            Self::Writes | Self::Runs => Nature::Changes,
            Self::Reads | Self::Asks | Self::Ends | Self::Delegates => Nature::Reads,
        }
    }
}

/// What a tool has at hand while it runs.
#[derive(Clone)]
pub struct ToolContext {
    /// The files it may touch.
    pub workspace: Arc<Workspace>,
    /// What its agent may do.
    pub policy: Arc<Policy>,
    /// Set when it must stop.
    pub cancel: CancellationToken,
    /// Takes output as it appears.
    pub output: Arc<dyn Fn(&str) + Send + Sync>,
    /// How long it may run.
    pub timeout: Duration,
    /// Whether somebody is waiting for the run: its commands go before others.
    pub awaited: bool,
    /// What commands may reach.
    pub sandbox: Arc<Sandbox>,
    /// What is on record of the run, such as the whole text of an earlier result.
    pub results: Arc<dyn ResultStore>,
    /// Who calls.
    pub caller: Caller,
    /// The todos of the run, and what it has to say to its tools.
    pub desk: Desk,
    /// What must not be shown; the toolbox's own while a tool runs.
    pub secrets: Secrets,
    /// The credentials that the toolbox lends to this call.
    pub credentials: Lent,
}

/// Who calls a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The agent, by its role's name.
    pub agent: String,
    /// Its session.
    pub session: String,
}

/// What is on record of a run, for tools to look up.
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// The text behind the path `@result/NAME`, if there is one.
    async fn result(&self, name: &str) -> Option<Arc<str>>;

    /// The tools that the run may ask for.
    async fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    /// The skills that the run knows of.
    async fn skills(&self) -> Vec<Skill> {
        Vec::new()
    }
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model is told, already cut to size.
    pub text: String,
    /// The whole of it, where `text` was cut.
    pub whole: Option<String>,
    /// What a program can rely on: exit code, path, hashes.
    pub facts: Value,
    /// Whether it failed. A failing tool is ordinary conversation.
    pub is_error: bool,
    /// Whether it was stopped before its end; `text` has what there was.
    pub interrupted: bool,
    /// Whether it failed for a reason that may pass by itself, and did nothing.
    pub is_transient: bool,
}

impl ToolOutput {
    /// A success.
    pub fn ok(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A failure, said so that the model knows whether to retry or change course.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
            ..Self::default()
        }
    }

    /// A failure that may pass by itself: nothing was done, and trying again may help.
    pub fn transient(text: impl Into<String>) -> Self {
        Self {
            is_transient: true,
            ..Self::error(text)
        }
    }

    /// Adds what a program can rely on.
    pub fn with_facts(mut self, facts: Value) -> Self {
        self.facts = facts;
        self
    }
}

impl ToolOutput {
    /// Adds one fact to those there are.
    pub(crate) fn note(&mut self, name: &str, fact: Value) {
        match &mut self.facts {
            Value::Object(facts) => drop(facts.insert(name.to_owned(), fact)),
            facts => *facts = serde_json::json!({ name: fact }),
        }
    }
}

impl From<PathError> for ToolOutput {
    fn from(error: PathError) -> Self {
        Self::error(error.to_string())
    }
}

/// What a probe found; see `selvedge_runtime::Probe`.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolProbe {
    /// It happened, with this answer.
    Happened(ToolOutput),
    /// It certainly did not.
    DidNotHappen,
    /// It may or may not have happened.
    Unknown,
}

/// Something an agent can do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it declares of itself.
    fn spec(&self) -> ToolSpec;

    /// What this call really does, for a policy to judge. `input` fits the schema.
    fn deed(&self, _input: &Value) -> Deed {
        Deed::Other
    }

    /// What must be on record before it begins; handed back to `probe`.
    ///
    /// An error here is an ordinary failure (no such file, no unique match) and
    /// the act is not begun.
    async fn prepare(&self, _context: &ToolContext, _input: &Value) -> Result<Value, ToolOutput> {
        Ok(Value::Null)
    }

    /// The act. `input` fits the schema; `evidence` is what `prepare` returned.
    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput;

    /// Whether an act that was begun, and whose end is not on record, happened.
    async fn probe(&self, _context: &ToolContext, _input: &Value, _evidence: &Value) -> ToolProbe {
        ToolProbe::Unknown
    }

    /// How long this call may run. Default: the context's timeout.
    fn deadline(&self, context: &ToolContext, _input: &Value) -> Duration {
        context.timeout
    }

    /// Whose credentials it needs, such as `github`. They are lent to the call.
    fn credentials(&self) -> Vec<String> {
        Vec::new()
    }

    /// The arguments, by name, that are the text of files: they may have what looks
    /// like a secret, for a test may need it.
    fn contents(&self) -> &'static [&'static str] {
        &[]
    }

    /// The group of tools it came with, such as the name of the server that offers it.
    /// Tools of a group are made known to a model together, and only on request.
    fn bundle(&self) -> Option<&str> {
        None
    }

    /// How much of an answer a model is told, in characters. Default: 30,000.
    fn text_chars_max(&self) -> usize {
        TEXT_CHARS_MAX
    }
}
