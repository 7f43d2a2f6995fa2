//! What a run is bound to beyond the loop: how it is called, how it may end, what of
//! its result is checked, and where it works.
//!
//! Crews differ in these. They are data like the rest of what a run starts with, so a
//! new crew needs a file and no code.

use std::collections::BTreeMap;

use selvedge_model::Effort;
use selvedge_tool::{Todos, WorkCopy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claims::Claims;

/// What a run is bound to beyond the loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The tool by which it is called. Its arguments are the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// The schema that the request must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The tool that alone ends it: done is an act, not a phrase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<String>,
    /// The schema of that tool, which a call must fit to end anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_schema: Option<Value>,
    /// What its result claims, to be compared with the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// Whether it has failed when the last work that it handed on has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub answerable: bool,
    /// Whether it goes alone: no other helper is at work meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Which task of its kind this is for whoever called it, from 1; 0 for a run that
    /// nobody called.
    #[serde(skip_serializing_if = "is_zero")]
    pub task: u32,
    /// The copy that the session works on, to be made first and merged last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<WorkCopy>,
    /// Whether what its agents say and hear is kept in a folder, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
    /// The todos that it begins with, rendered anew into every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<TodoTerms>,
    /// The tools whose facts it heeds: a change of todos (`todo`), that older turns are
    /// to be summarised (`compact`), that the run is over (`end`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heeds: Vec<String>,
    /// What it has to say to its tools, by the name of a tool or of a group.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// Tools that it does not have here, and why, in words for the model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// What a summary of its conversation is asked for with, instead of the usual words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_request: Option<String>,
    /// How freely its model chooses words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How long its model thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Where its provider is, if it is not where the user's configuration says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

/// Where a provider is for one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The provider.
    pub provider: String,
    /// Its address, such as `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// Whether the provider's key is sent there. It is not where somebody else than the
    /// user has named the address.
    pub has_key: bool,
}

/// The todos of a run, and how long it may take over them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoTerms {
    /// Those that it begins with.
    pub list: Todos,
    /// Model calls without a completed todo, after which it has failed; 0 for no limit.
    pub stall_calls_max: u32,
    /// Times in a row that its last todo may be refused; 0 for no limit.
    pub rejections_max: u32,
    /// Model calls of whatever its limit of them holds for, too, and came before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_before: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Terms {
    /// Whether a run starts without any.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The name of its task, such as `task-002`; none for a run that nobody called.
    pub fn task_name(&self) -> Option<String> {
        (self.task > 0).then(|| format!("task-{:03}", self.task))
    }
}
