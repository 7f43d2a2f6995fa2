//! The shapes of the driver's own events, as they are stored.
//!
//! The kinds of calls are not known here: a call of noun `ToolCall` is recorded
//! as `ToolCallStarted`, `ToolCallFinished`, `ToolCallInterrupted` and
//! `ToolCallInDoubt`; of a brief one only the end is recorded.

use selvedge_ledger::{Payload, Seq, StreamId, Time};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::{EffectId, Ending, Question};

/// `RunStarted`: a machine begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunStarted<S = Value> {
    /// What it starts with; its own business.
    pub spec: S,
}

/// `…Started`: a call begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    /// Which effect.
    pub effect: EffectId,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// What the call is about.
    pub what: Value,
    /// What was on record before it began.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub evidence: Value,
}

/// `…Finished`: a call ended, well or badly.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished<O> {
    /// Which effect.
    pub effect: EffectId,
    /// Which attempt.
    pub attempt: u32,
    /// What came of it.
    pub outcome: O,
    /// Whether a probe after a crash found this out, instead of the call itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probed: bool,
}

/// `…Interrupted`: a call was stopped without effect, and may be begun again.
/// `…InDoubt`: a call was begun and may or may not have happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unfinished<O = IgnoredAny> {
    /// Which effect.
    pub effect: EffectId,
    /// Which attempt.
    pub attempt: u32,
    /// What it left behind: the beginning of an answer, and what that cost.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub left: Option<O>,
}

/// A default that asks nothing of `O`.
fn nothing<O>() -> Option<O> {
    None
}

/// `QuestionAsked`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuestionAsked {
    /// Which effect.
    pub effect: EffectId,
    /// What is asked.
    pub question: Question,
}

/// `QuestionAnswered`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// Which effect.
    pub effect: EffectId,
    /// The answer.
    pub answer: Payload,
    /// Who answered.
    pub by: String,
    /// The letter that brought it.
    pub letter: Seq,
}

/// `ChildStarted`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildStarted {
    /// Which effect.
    pub effect: EffectId,
    /// The child's stream.
    pub stream: StreamId,
    /// Which machine.
    pub kind: String,
}

/// `ChildFinished`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChildFinished {
    /// Which effect.
    pub effect: EffectId,
    /// The child's stream.
    pub stream: StreamId,
    /// How it ended.
    pub ending: Ending,
}

/// `TimerSet` and `TimerFired`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timer {
    /// Which effect.
    pub effect: EffectId,
    /// Until when.
    pub until: Time,
}

/// `RunPaused`: nothing new begins while a reason is left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunPaused {
    /// The reason; the same reason twice is one.
    pub reason: String,
    /// What happened, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The letter that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letter: Option<Seq>,
}

/// `RunResumed`: a reason is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResumed {
    /// The reason.
    pub reason: String,
    /// The letter that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letter: Option<Seq>,
}

/// `RunCancelled`: the run will end, and nothing new begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCancelled {
    /// Who wants it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// The letter that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letter: Option<Seq>,
}

/// `MessageTaken`: a message from outside entered the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageTaken {
    /// Whether it enters the current work or waits until that is done.
    pub mode: SteerMode,
    /// What it says.
    pub text: Payload,
    /// The letter that brought it.
    pub letter: Seq,
}

/// Whether a message enters the current work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerMode {
    /// Enters the current work at the next safe point.
    #[default]
    Steer,
    /// Waits until the current work is done.
    Queue,
}

/// `BudgetRaised`: the run may spend more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BudgetRaised {
    /// The new limit in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The new limit in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The new limit in model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u32>,
    /// The letter that asked for it.
    pub letter: Seq,
}

/// `LetterIgnored`: a letter that fits nothing here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LetterIgnored {
    /// Which.
    pub letter: Seq,
    /// Why.
    pub why: String,
}

/// `RunFinished`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFinished {
    /// How.
    pub ending: Ending,
}
