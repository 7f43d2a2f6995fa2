//! The scripted model: a file of turns, for demos and tests.
//!
//! A reply is chosen by the agent's name and the ordinal of its call alone, so
//! a run that was killed and resumed gets the replies it would have got
//! anyway. Only errors need memory: each is given once per process, and the
//! next attempt at the same turn gets what follows it.

mod file;
mod turn;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_runtime::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

pub use file::ScriptError;
pub use turn::{Entry, Turn};

use crate::error::ModelError;
use crate::money::Price;
use crate::nearest::{did_you_mean, nearest};
use crate::provider::{DeltaSink, Provider};
use crate::types::{Delta, Request, Response};

const PROVIDER: &str = "scripted";

/// A model that says what it was told to say.
///
/// A script is a YAML file:
///
/// ```yaml
/// model: scripted/demo                  # what it calls itself
/// price: {input: 3.0, output: 15.0}     # US dollars per million tokens
/// agents:
///   engineer:
///     - text: I will look at the files first.
///       reasoning: The request names no file.
///       calls:
///         - list_files: {path: "."}
///         - read_file: '{"path": '      # a text is taken as it is, even if broken
///       usage: {input: 900, output: 60} # else a token for every four bytes
///       delay: 300ms                    # spread over the words
///     - error: {kind: rate_limited, retry_after: 1s}
///     - answer: {verdict: pass}         # a structured answer
///     - text: cut off in the mid
///       stop: length                    # end, tools, length or filtered
/// ```
///
/// Only `agents` is required. An agent that is called for one task after another may
/// have turns for each, such as `builder/task-002`. An `error` (`transient`, `rate_limited`, `degraded`,
/// `permanent` or `user_fixable`, with `what` and `hint`) is what one attempt at
/// the turn after it gets; with `after`, it breaks off after these words.
pub struct ScriptedModel {
    source: Source,
    label: Option<String>,
    price: Option<Price>,
    latency: Duration,
    clock: Arc<dyn Clock>,
}

enum Source {
    Script(Script),
    Function(Box<dyn Fn(&Request) -> Response + Send + Sync>),
}

struct Script {
    // Where it was read, for error messages.
    name: String,
    agents: BTreeMap<String, Vec<Slot>>,
    // How many errors of an agent's turn this process has given.
    errors_given: Mutex<HashMap<(String, u32), usize>>,
}

/// A turn: what goes wrong first, then what is said.
#[derive(Default)]
struct Slot {
    errors: Vec<(String, ModelError)>,
    // Absent when a script ends in errors.
    reply: Option<Turn>,
}

impl ScriptedModel {
    /// Reads a script from a YAML file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError {
            file: name.clone(),
            line: None,
            what: error.to_string(),
        })?;
        Self::parse(&name, &text)
    }

    /// Reads a script from YAML text; `name` stands for the file in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let file = file::parse(name, text)?;
        let mut model = Self::from_turns(file.agents);
        model.label = file.model;
        model.price = file.price;
        if let Source::Script(script) = &mut model.source {
            script.name = name.to_owned();
        }
        Ok(model)
    }

    /// A script from Rust values: for each agent its entries in order.
    pub fn from_turns<A, E>(agents: impl IntoIterator<Item = (A, E)>) -> Self
    where
        A: Into<String>,
        E: IntoIterator,
        E::Item: Into<Entry>,
    {
        let slots = |(agent, entries): (A, E)| {
            (
                agent.into(),
                into_slots(entries.into_iter().map(Into::into)),
            )
        };
        let agents = agents.into_iter().map(slots).collect();
        let script = Script {
            name: "script".to_owned(),
            agents,
            errors_given: Mutex::default(),
        };
        Self::new(Source::Script(script))
    }

    /// A model that answers by a function, for simulations and benchmarks.
    pub fn from_fn(
        name: impl Into<String>,
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let mut model = Self::new(Source::Function(Box::new(answer)));
        model.label = Some(name.into());
        model
    }

    fn new(source: Source) -> Self {
        let clock = Arc::new(SystemClock);
        Self {
            source,
            label: None,
            price: None,
            latency: Duration::ZERO,
            clock,
        }
    }

    /// The same model waiting by another clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same model waiting this long before each answer.
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// The same model at this price.
    pub fn with_price(self, price: Price) -> Self {
        Self {
            price: Some(price),
            ..self
        }
    }

    /// The name it gives itself, such as `scripted/demo`.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    async fn answer(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Response, ModelError> {
        let (delay, response) = match &self.source {
            Source::Script(script) => {
                let turn = script.turn(request).map_err(|(said, error)| {
                    if !said.is_empty() {
                        deltas.take(Delta::Text(said));
                    }
                    error
                })?;
                let label = self.label.as_deref().unwrap_or(&request.model);
                (turn.delay, turn.response(request, label))
            }
            Source::Function(answer) => (Duration::ZERO, answer(request)),
        };
        if !self.latency.is_zero() {
            self.clock.sleep(self.latency).await;
        }
        self.speak(&response.text(), delay, deltas).await;
        Ok(response)
    }

    /// Gives the text out, piece by piece if there is time to fill.
    async fn speak(&self, text: &str, duration: Duration, deltas: &mut dyn DeltaSink) {
        if duration.is_zero() {
            if !text.is_empty() {
                deltas.take(Delta::Text(text.to_owned()));
            }
            return;
        }
        let pieces = turn::pieces(text);
        let waits = u32::try_from(pieces.len()).unwrap_or(u32::MAX).max(1);
        for i in 0..waits {
            self.clock.sleep(duration / waits).await;
            deltas.take(match pieces.get(i as usize) {
                Some(piece) => Delta::Text((*piece).to_owned()),
                None => Delta::Alive,
            });
        }
    }
}

#[async_trait]
impl Provider for ScriptedModel {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            answer = self.answer(request, deltas) => answer,
        }
    }

    fn price(&self, _model: &str) -> Option<Price> {
        self.price
    }
}

impl Script {
    /// The turn, or what is said before what goes wrong.
    fn turn(&self, request: &Request) -> Result<&Turn, (String, ModelError)> {
        // `builder/task-002` has turns of its own, or those of every `builder`.
        let own = self.agents.get(&request.agent);
        let role = request.agent.split('/').next().unwrap_or_default();
        let Some(slots) = own.or_else(|| self.agents.get(role)) else {
            let names = nearest(role, self.agents.keys().map(String::as_str));
            let hint = did_you_mean(&names);
            let what = format!("has no agent `{}`{hint}", request.agent);
            return Err(self.refuse(what));
        };
        let slot = slots.get(request.turn as usize);
        if let Some(error) = slot.and_then(|slot| self.next_error(slot, request)) {
            return Err(error);
        }
        slot.and_then(|slot| slot.reply.as_ref()).ok_or_else(|| {
            let turns = slots.iter().filter(|slot| slot.reply.is_some()).count();
            self.refuse(format!(
                "has {turns} turns for agent `{}`, which asks for one more: turn {} counted from 0",
                request.agent, request.turn
            ))
        })
    }

    fn next_error(&self, slot: &Slot, request: &Request) -> Option<(String, ModelError)> {
        if slot.errors.is_empty() {
            return None;
        }
        let mut given = self
            .errors_given
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = given
            .entry((request.agent.clone(), request.turn))
            .or_default();
        let error = slot.errors.get(*count).cloned();
        *count += 1;
        error
    }

    fn refuse(&self, what: String) -> (String, ModelError) {
        let error = ModelError::Permanent {
            provider: PROVIDER.to_owned(),
            what: format!("`{}` {what}", self.name),
        };
        (String::new(), error)
    }
}

/// Puts each reply together with the errors before it.
fn into_slots(entries: impl Iterator<Item = Entry>) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut slot = Slot::default();
    for entry in entries {
        match entry {
            Entry::Error(error) => slot.errors.push((String::new(), error)),
            Entry::Cut(said, error) => slot.errors.push((said, error)),
            Entry::Reply(turn) => {
                slot.reply = Some(turn);
                slots.push(std::mem::take(&mut slot));
            }
        }
    }
    if !slot.errors.is_empty() {
        slots.push(slot);
    }
    slots
}

#[cfg(test)]
mod tests;
