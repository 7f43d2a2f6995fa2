//! How effects touch the world: the one trait between the driver and everything else.

use std::sync::Arc;

use async_trait::async_trait;
use selvedge_ledger::{StreamId, Time};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::machine::{Call, EffectId};

/// Carries calls out.
#[async_trait]
pub trait Performer<C: Call>: Send + Sync {
    /// Gathers what must be on record before the call begins: a file's hash
    /// before it is overwritten, a reservation of money. It is stored with
    /// `…Started` and handed back to `perform` and `probe`.
    async fn prepare(&self, scene: &Scene, call: &C) -> Result<Value, Hold>;

    /// Carries the call out. Returns soon after `scene.cancel`, with nothing of
    /// it left running.
    async fn perform(&self, scene: Scene, call: C, evidence: Value) -> Performed<C::Outcome>;

    /// Finds out whether a call that was begun, and whose end is not on record,
    /// happened.
    async fn probe(&self, scene: &Scene, call: &C, evidence: &Value) -> Probe<C::Outcome>;
}

/// Where and under which name a call happens.
#[derive(Clone)]
pub struct Scene {
    /// The machine that asked for it.
    pub stream: StreamId,
    /// Its name there.
    pub effect: EffectId,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Set when the call must stop.
    pub cancel: CancellationToken,
    /// Takes what is worth showing before the call has ended.
    pub watcher: Arc<dyn Watcher>,
}

/// What `perform` returns.
#[derive(Debug)]
pub enum Performed<O> {
    /// The call ended, well or badly; the machine decides what follows.
    Finished(O),
    /// It was stopped before it had an effect; it may be begun again. What it
    /// left behind, if anything, is put on record and is no outcome.
    Interrupted(Option<O>),
    /// It cannot be done for now; it may be begun again later.
    Held(Hold, Option<O>),
}

/// Why a call cannot be done for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The reason the run is paused for, such as `budget` or `provider`.
    pub reason: String,
    /// What happened, in words for a person.
    pub detail: String,
    /// When to try again by itself; `None` waits for somebody.
    pub until: Option<Time>,
}

/// What `probe` found.
#[derive(Debug)]
pub enum Probe<O> {
    /// It happened, with this outcome.
    Happened(O),
    /// It certainly did not: it may be begun.
    DidNotHappen,
    /// It may or may not have happened.
    Unknown,
}

/// Sees what happens while it happens. Never the truth: the ledger is.
pub trait Watcher: Send + Sync {
    /// A piece of a model's answer.
    fn model_text(&self, _stream: &StreamId, _effect: &EffectId, _text: &str) {}
    /// A piece of a tool's output.
    fn tool_output(&self, _stream: &StreamId, _effect: &EffectId, _text: &str) {}
    /// Something a waiting person should know: a retry, a delay.
    fn notice(&self, _stream: &StreamId, _effect: &EffectId, _notice: &Notice) {}
}

/// Something a waiting person should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// What happened, in a sentence; empty if it is not worth one.
    pub text: String,
    /// When it goes on, for a countdown.
    pub until: Option<Time>,
    /// Whether the words of the answer so far do not count any more.
    pub abandons: bool,
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWatcher;

impl Watcher for NoWatcher {}
