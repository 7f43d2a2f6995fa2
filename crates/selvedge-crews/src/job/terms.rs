//! What a job starts with: recorded once, so that a config that changes later does not
//! change a job that has begun.

use std::collections::BTreeMap;

use selvedge_agent::RunSpec;
use selvedge_tool::TodoBounds;
use serde::{Deserialize, Serialize};

/// The data of a job's `RunStarted`: that of any run, and what makes it a job. Whoever
/// knows only runs reads it as one.
#[derive(Clone, Debug, Serialize)]
pub struct JobSpec {
    /// The session's own run. Its team has an agent for each kind of phase.
    #[serde(flatten)]
    pub run: RunSpec,
    /// What makes it a job.
    pub job: JobTerms,
}

/// What makes a run a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobTerms {
    /// The config it follows.
    pub config: String,
    /// What people call it.
    pub display_name: String,
    /// The kind of its first phase: `free` jobs have no other.
    pub first: PhaseKind,
    /// How many todos a phase has.
    pub bounds: TodoBounds,
    /// Whether the todos of a tactical phase are archived.
    pub archives: bool,
    /// Model calls of all phases together.
    pub iterations_max: u32,
    /// Model calls without a completed todo, after which a phase has failed.
    pub stall_calls_max: u32,
    /// Tokens of the largest request.
    pub context_tokens_max: u64,
    /// The system prompt of each agent, to which `workspace.md` is added.
    pub prompts: BTreeMap<String, String>,
    /// What it works on, from its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
    /// Whether it waits for a worker instead of whoever started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
}

/// The part of `RunStarted` that only a job has.
#[derive(Deserialize)]
pub(super) struct JobPart {
    pub(super) job: JobTerms,
}

/// What a phase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Plans.
    Strategic,
    /// Works through a list.
    Tactical,
    /// Both: the agent directs itself.
    Free,
}

impl PhaseKind {
    /// The agent that has its turn.
    pub fn agent(self) -> &'static str {
        match self {
            Self::Strategic => "strategic",
            Self::Tactical => "tactical",
            Self::Free => "worker",
        }
    }

    /// Its name, for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Strategic => "strategic",
            Self::Tactical => "tactical",
            Self::Free => "free",
        }
    }
}
