//! A machine: a pure value folded from its events that says which effects are due.
//!
//! No I/O, no clock, no randomness in here or in any implementation: what a
//! machine decides is a function of its events.

use std::fmt;
use std::sync::Arc;

use selvedge_ledger::{Event, LedgerError, Payload, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names an effect within its stream. Derived from its cause, so the same
/// decision has the same id after a restart.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(Arc<str>);

impl EffectId {
    /// Wraps a name such as `m3` or `t3.0`.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Something that must happen next.
#[derive(Clone, Debug)]
pub struct Effect<C> {
    /// Its name.
    pub id: EffectId,
    /// What to do.
    pub act: Act<C>,
}

/// What there is to do.
#[derive(Clone, Debug)]
pub enum Act<C> {
    /// Call a model or a tool, by way of a `Performer`.
    Call(C),
    /// Ask a human, and wait for the answer as long as it takes.
    Ask(Question),
    /// Run another machine to its end.
    Child(ChildSpec),
    /// Wait until a time.
    Wait(Time),
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// Answers to choose from; empty for free text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What exactly would be allowed, when this is an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// What an approval is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The act, complete and as it will be executed.
    pub act: Payload,
    /// Digest of the act: the answer is bound to it.
    pub digest: String,
    /// What an answer that holds for longer is remembered by; empty if none can.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lasting: String,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// A child machine to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildSpec {
    /// Which machine.
    pub kind: String,
    /// What it starts with: the data of its `RunStarted`.
    pub spec: Value,
}

/// What a machine wants at this moment.
#[derive(Clone, Debug)]
pub enum Due<C> {
    /// These effects, in this order, as far as they have not begun. Empty means
    /// that all it waits for has begun or comes from outside.
    Effects(Vec<Effect<C>>),
    /// To rest until a message arrives; then it goes on.
    Idle,
    /// Nothing ever again.
    Ended(Ending),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Whether it did what it was for.
    pub status: Status,
    /// What it has to show, or why it failed.
    pub result: Payload,
    /// The result as data, where a schema was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Whether a run did what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did.
    Done,
    /// It did not.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

/// A value folded from events that says which effects are due.
pub trait Machine: Send {
    /// What this family of machines can call.
    type Call: Call;

    /// Folds an event in. Kinds it does not know are left alone.
    fn apply(&mut self, event: &Event) -> Result<(), LedgerError>;

    /// What must happen next.
    fn due(&self) -> Due<Self::Call>;

    /// The folded state, if it can be kept as a snapshot.
    fn snapshot(&self) -> Option<Value> {
        None
    }

    /// Takes the place of folding up to a snapshot; false if it does not fit.
    fn restore(&mut self, _state: &str) -> bool {
        false
    }
}

/// A call of a model or a tool, as data.
pub trait Call: Clone + Send + Sync + 'static {
    /// What comes of it: the `outcome` of its `…Finished` event.
    type Outcome: Serialize + Send + 'static;

    /// The noun in its events: `ToolCall` makes `ToolCallStarted`.
    fn noun(&self) -> &'static str;

    /// What it is about, recorded when it starts; small.
    fn describe(&self) -> Value;

    /// What repeating it would do.
    fn nature(&self) -> Nature;

    /// Whether it is over at once, so that its end alone is worth recording. Only
    /// for calls that look.
    fn is_brief(&self) -> bool {
        false
    }
}

/// What a call does to the world, as far as resuming is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// Looks only: after a crash it is simply run again.
    Reads,
    /// Changes nothing, but its outcome is worth keeping: a model's answer.
    /// After a crash it is run again; once it has ended, that is on disk.
    Costs,
    /// May change something: that it begins is on disk before it does, and it is
    /// never run again unless a probe shows that it did not happen.
    Changes,
}
