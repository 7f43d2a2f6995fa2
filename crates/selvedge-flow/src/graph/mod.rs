//! A graph of named states: what each is for, and what may follow it.
//!
//! A `Table` declares states and transitions. A `Flow` is the typed state of one
//! conversation: it says which steps a state consists of and what came of them means.
//! `Graph` folds events into both, and is the machine that a driver drives. More than one
//! state may be active: a state whose row says so takes every transition that holds, and
//! one that waits for others begins when none of them is active any more.

mod machine;
mod table;

pub use machine::{Graph, Walked};
pub use table::{Row, Table, Transition};

use std::fmt;

use selvedge_agent::{AgentCall, ToolOutcome};
use selvedge_ledger::{LedgerError, Payload, StreamId};
use selvedge_runtime::{Act, Ending};

/// The name of a state.
pub trait State: Copy + Ord + fmt::Debug + Send + Sync + 'static {
    /// As it is shown, and as its effects are named after it: lower case, no digits.
    fn name(self) -> &'static str;
}

/// One stay in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit<S> {
    /// Where.
    pub state: S,
    /// The how many-th stay there, from 1.
    pub number: u32,
}

/// Something to do in a state.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name, unique within the visit; empty for a state with one step.
    pub name: String,
    /// What to do.
    pub act: Act<AgentCall>,
}

/// What came of a step.
#[derive(Clone, Debug)]
pub enum Came {
    /// An agent ended.
    Ended(Ending),
    /// A tool answered.
    Tool(Box<ToolOutcome>),
    /// Nobody knows whether a tool did its work.
    InDoubt,
    /// A person answered.
    Answered(Payload),
}

/// A conversation: the typed state that a graph carries from state to state.
pub trait Flow: Default + Send + Sync + Sized + 'static {
    /// Its states.
    type State: State;

    /// Its states and transitions, declared.
    fn table() -> &'static Table<Self>;

    /// Folds what it starts with: the data of its `RunStarted`, as JSON.
    fn begin(&mut self, stream: &StreamId, started: &str) -> Result<(), LedgerError>;

    /// A state is entered.
    fn enter(&mut self, _visit: Visit<Self::State>) {}

    /// What is to be done in a state now, as far as it is not done. Steps that depend on
    /// others appear when those are done; a visit ends when there are none.
    fn steps(&self, visit: Visit<Self::State>) -> Vec<Step>;

    /// Folds what came of a step.
    fn came(&mut self, visit: Visit<Self::State>, step: &str, came: Came);

    /// Everything in a state is done, and the transitions are about to be judged.
    fn leave(&mut self, _visit: Visit<Self::State>) {}

    /// Somebody outside said something.
    fn told(&mut self, _text: &Payload) {}

    /// How it ended, when the last state is reached.
    fn ending(&self) -> Ending;
}

#[cfg(test)]
mod tests;
