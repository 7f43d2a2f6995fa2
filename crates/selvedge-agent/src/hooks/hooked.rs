//! What hooks did to a call: the part of it that is on record.

use std::fmt;

use selvedge_tool::{Decision, Finding, Rule, Source};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What hooks did to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hooked {
    /// Each that did something, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<Did>,
    /// The arguments in place of the model's, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What the model is told beside the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What came instead of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<Instead>,
}

/// What one hook did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// Which hook.
    pub hook: String,
    /// What.
    pub did: Done,
    /// In its own words; empty for a change, which is on record itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub says: String,
}

/// What a hook can have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// Changed arguments or a result.
    Changed,
    /// Said something to the model.
    Warned,
    /// Answered in place of the call.
    Answered,
    /// Stopped the call.
    Stopped,
    /// Could not do its work; the call went on.
    Failed,
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hook, did, says } = self;
        let did = match did {
            Done::Changed => "changed it",
            Done::Warned => "warned",
            Done::Answered => "answered in its place",
            Done::Stopped => "stopped it",
            Done::Failed => "failed",
        };
        match says.is_empty() {
            true => write!(f, "hook `{hook}` {did}"),
            false => write!(f, "hook `{hook}` {did}: {says}"),
        }
    }
}

/// What came instead of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instead {
    /// This answer.
    Answer(String),
    /// Nothing, for this reason.
    Stop(String),
}

impl Hooked {
    /// Whether no hook did anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same, if any hook did anything.
    pub fn if_any(self) -> Option<Self> {
        (!self.is_empty()).then_some(self)
    }

    /// What hooks did to a call, as the evidence of its beginning says.
    pub fn in_evidence(evidence: &Value) -> Option<Self> {
        Self::deserialize(evidence.get("hooked")?).ok()
    }

    /// Adds what hooks did later.
    pub fn and(mut self, later: Self) -> Self {
        self.did.extend(later.did);
        self.notes.extend(later.notes);
        self.instead = later.instead.or(self.instead);
        self
    }

    pub(super) fn note(&mut self, hook: &str, did: Done, says: impl Into<String>) {
        let (hook, says) = (hook.to_owned(), says.into());
        self.did.push(Did { hook, did, says });
    }

    /// The denial that a stop is, as a policy's would be.
    pub(crate) fn denial(&self) -> Option<Finding> {
        let Some(Instead::Stop(why)) = &self.instead else {
            return None;
        };
        let hook = self.did.last().map_or("", |did| did.hook.as_str());
        Some(Finding {
            decision: Decision::Deny,
            // Whoever wrote it, it is the user who has it run.
            rule: Rule {
                source: Source::User,
                says: format!("hook {hook}"),
            },
            reason: why.clone(),
        })
    }

    /// What the model is told of a stop.
    pub(crate) fn refusal(why: &str) -> String {
        format!("Not done: {why}. Do not try the same again; find another way.")
    }

    /// The notes, below a result's text.
    pub(crate) fn annotate(&self, text: &mut String) {
        for note in &self.notes {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[note: {}]\n", note.trim()));
        }
    }
}
