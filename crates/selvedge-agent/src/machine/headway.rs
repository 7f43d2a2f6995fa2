//! How a run stands with its todos: what its tools' facts change, when it is stuck, and
//! what it reports in the end.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_runtime::Ending;
use selvedge_tool::TodoChange;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AgentMachine;
use crate::call::ToolOutcome;

/// How a run stands with its todos.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Headway {
    /// Model calls that were answered when a todo was completed last.
    progressed_at: u32,
    /// Times in a row that the last todo was refused, and the last reason.
    rejections: u32,
    rejected_because: String,
    /// The todo whose completion would end the run, until that is settled.
    last: Option<i64>,
    /// Whether older turns are to be summarised, though they fit.
    pub(super) is_to_compact: bool,
}

impl AgentMachine {
    /// Takes note of what a tool says of the run itself, if it is one that may.
    pub(super) fn note(&mut self, outcome: &ToolOutcome) {
        if !self.spec().terms.heeds.contains(&outcome.tool) {
            return;
        }
        let headway = &mut self.headway;
        headway.is_to_compact |= outcome.facts["compact"] == Value::Bool(true);
        let Some(change) = TodoChange::in_facts(&outcome.facts) else {
            return;
        };
        match &change {
            TodoChange::Completed { id, .. } => {
                headway.progressed_at = self.turn;
                headway.last = outcome.facts.get("end").map(|_| *id);
            }
            TodoChange::Rejected { why, .. } => {
                headway.rejections += 1;
                headway.rejected_because.clone_from(why);
            }
            _ => {}
        }
        Arc::make_mut(&mut self.todos).apply(&change);
    }

    /// Why there is no point in going on, if that is so.
    pub(super) fn stalled(&self) -> Option<String> {
        let rules = self.spec().terms.todos.as_ref()?;
        let Headway {
            rejections,
            rejected_because,
            progressed_at,
            ..
        } = &self.headway;
        let idle = self.turn.saturating_sub(*progressed_at);
        match (rules.rejections_max, rules.stall_calls_max) {
            (most, _) if most > 0 && *rejections >= most => Some(format!(
                "{rejections} phase transitions in a row were rejected; the last: \
                 {rejected_because}"
            )),
            (_, most) if most > 0 && idle >= most => {
                Some(format!("no todo was completed in {idle} model calls"))
            }
            _ => None,
        }
    }

    /// Whether an ending comes from a tool's facts.
    pub(super) fn is_heeded(&self, ending: &Ending) -> bool {
        let has_end = |data: &Value| data.get("end").is_some();
        !self.spec().terms.heeds.is_empty() && ending.data.as_ref().is_some_and(has_end)
    }

    /// Where the model ended the run without knowing something, its last todo is open
    /// again.
    pub(super) fn settle_todos(&mut self, is_over: bool) {
        if let (Some(id), false) = (self.headway.last.take(), is_over) {
            Arc::make_mut(&mut self.todos).apply(&TodoChange::Started { id });
        }
    }

    /// The ending with what whoever called the run wants to know of it.
    pub(super) fn reported(&self, mut ending: Ending) -> Ending {
        let unheard = self.steering.iter().chain(&self.queued);
        let unheard: Vec<&Payload> = unheard.collect();
        if let Some(data) = &mut ending.data {
            data["todos"] = json!(*self.todos);
            data["turns"] = json!(self.turn);
            data["unheard"] = json!(unheard);
        }
        ending
    }
}
