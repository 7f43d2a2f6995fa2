//! What a tool is: a declaration, a preparation, an act and a probe.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use selvedge_runtime::Nature;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cut::TEXT_CHARS_MAX;
use crate::policy::{Deed, Policy};
use crate::sandbox::Sandbox;
use crate::workspace::{PathError, Workspace};

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
    /// Finds the whole text of an earlier, shortened result by its name.
    pub results: Arc<dyn ResultStore>,
}

/// Where earlier results can be read again in full.
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// The text behind the path `@result/NAME`, if there is one.
    async fn result(&self, name: &str) -> Option<Arc<str>>;
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

    /// Adds what a program can rely on.
    pub fn with_facts(mut self, facts: Value) -> Self {
        self.facts = facts;
        self
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

    /// How much of an answer a model is told, in characters. Default: 30,000.
    fn text_chars_max(&self) -> usize {
        TEXT_CHARS_MAX
    }
}
