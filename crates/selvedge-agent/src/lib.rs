//! The agent: the loop as a machine, its context, its files, and the performer
//! that joins models and tools.
//!
//! # Map
//!
//! - `definition`: an agent's Markdown file
//! - `crew`: a folder of agents, built in or the user's own
//! - `setup`: from files and a request to what a run starts with
//! - `spec`: what a run starts with, recorded once
//! - `machine`: the loop: ask, act, repeat
//! - `reply`: what a model's answer means
//! - `salvage`: what is left of a structured answer that does not fit
//! - `tools`: the calls of one answer, in their order
//! - `approvals`: what a person's answer means, and for how long it holds
//! - `context`: what the model is sent, kept small without losing anything
//! - `call`: the stored shapes of calls and outcomes
//! - `performer`: carries calls out
//! - `acting`: uses a tool, from the hooks before it to those after
//! - `judging`: decides about a call before it is carried out
//! - `hooks`: what is done before and after every call; three strikes
//! - `asking`: asks models, for the performer
//! - `purse`: the budgets of a session and of its runs
//! - `common`: the ceilings that all sessions share
//! - `discretion`: what a model is not told, and what is not stored of its answers
//! - `usage`: what was spent
//!
//! # Invariants
//!
//! - `machine`, `reply`, `tools` and `context` do no I/O.
//! - A call and its result are never separated, and nothing is dropped silently.
//! - A tool call from an incomplete answer is never carried out.
//! - No known secret goes to a model, and none comes from one into the ledger.
//! - This crate knows nothing of terminals or of any one crew's ways.

mod acting;
mod approvals;
mod asking;
mod call;
mod common;
mod context;
mod crew;
mod definition;
mod discretion;
mod hooks;
mod judging;
mod machine;
mod performer;
mod purse;
mod reply;
mod salvage;
mod setup;
mod spec;
mod tools;
mod usage;

pub use approvals::{Answer, Scope};
pub use call::{
    AgentCall, AgentOutcome, Approved, Judged, ModelCall, ModelOutcome, Purpose, Reserved,
    ToolOutcome, ToolUse,
};
pub use context::{Context, Fit};
pub use crew::{Crew, CrewError};
pub use definition::{AgentDefinition, DefinitionError, Limits};
pub use hooks::{
    CommandHook, Did, Done, FIRST, Failure, Hook, Hooked, Hooks, Instead, LAST, Moment, NORMAL,
    Occasion, Reaction, Restore, RestoreOutcome, Seen, Setting,
};
pub use machine::AgentMachine;
pub use performer::AgentPerformer;
pub use salvage::salvage_note;
pub use setup::{Setup, SetupError, assemble};
pub use spec::{Approve, RunSpec};
pub use tools::{AGENT, DELEGATE};
pub use usage::{Begun, Charge, Row, Spending};
