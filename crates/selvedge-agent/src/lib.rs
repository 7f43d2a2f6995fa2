//! The agent: the loop as a machine, its context, its files, and the performer
//! that joins models and tools.
//!
//! # Map
//!
//! - `definition`: an agent's Markdown file
//! - `crew`: a folder of agents, built in or the user's own
//! - `setup`: from files and a request to what a run starts with
//! - `instructions`: `AGENTS.md` and its like
//! - `slash`: requests that are kept as files
//! - `spec`: what a run starts with, recorded once
//! - `terms`: what binds a run beyond the loop: how it is called, how it ends
//! - `offers`: lazy loading: what a run begins with, and what it may ask for
//! - `machine`: the loop: ask, act, repeat
//! - `reply`: what a model's answer means
//! - `salvage`: what is left of a structured answer that does not fit
//! - `tools`: the calls of one answer, in their order
//! - `claims`: what an agent says it did, held against the record
//! - `approvals`: what a person's answer means, and for how long it holds
//! - `context`: what the model is sent, kept small without losing anything
//! - `call`: the stored shapes of calls and outcomes
//! - `performer`: carries calls out
//! - `acting`: uses a tool, from the hooks before it to those after
//! - `upkeep`: the copy that is worked on, what changed in it, merging it
//! - `judging`: decides about a call before it is carried out
//! - `hooks`: what is done before and after every call; three strikes
//! - `definitions`: what a model is told of tools
//! - `asking`: asks models, for the performer
//! - `sent`: what was sent before, so that only what is new is looked at
//! - `purse`: the budgets of a session and of its runs
//! - `common`: the ceilings that all sessions share
//! - `discretion`: what a model is not told, and what is not stored of its answers
//! - `knowledge`: the index as tools
//! - `documents`: documents, citations and requirements as tools
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
mod claims;
mod common;
mod context;
mod crew;
mod definition;
mod definitions;
mod discretion;
mod documents;
mod hooks;
mod instructions;
mod judging;
mod knowledge;
mod machine;
mod offers;
mod performer;
mod purse;
mod reply;
mod salvage;
mod sent;
mod setup;
mod slash;
mod spec;
mod terms;
mod tools;
mod upkeep;
mod usage;

pub use acting::TOOL as TOOL_PAUSE;
pub use approvals::{Answer, Scope};
pub use call::{
    AgentCall, AgentOutcome, Approved, Judged, ModelCall, ModelOutcome, Purpose, Reserved,
    ToolOutcome, ToolUse,
};
pub use claims::{Claims, DISCREPANCIES};
pub use context::{Context, Fit};
pub use crew::{BuiltIn, Crew, CrewError, Crews, Ways};
pub use definition::{AgentDefinition, DefinitionError, Limits};
pub use definitions::tools_sent;
pub use documents::{DocumentStores, document_tools};
pub use hooks::{
    CommandHook, Did, Done, FIRST, Failure, Hook, Hooked, Hooks, Instead, LAST, Moment, NORMAL,
    Occasion, Reaction, Restore, RestoreOutcome, Seen, Setting,
};
pub use instructions::{Instructions, user_instructions};
pub use knowledge::{OpenIndex, knowledge_tools};
pub use machine::{AgentMachine, LACKS_CALLS};
pub use offers::{Lazy, Offered, Offers, SchemaTokens};
pub use performer::AgentPerformer;
pub use salvage::salvage_note;
pub use setup::{Setup, SetupError, assemble};
pub use slash::{SlashCommand, SlashError, expand, slash_commands};
pub use spec::{Approve, RunSpec};
pub use terms::{Address, Terms, TodoTerms};
pub use tools::{AGENT, DELEGATE};
pub use upkeep::{COPY_REMOVED, Chore, Upkeep, UpkeepOutcome};
pub use usage::{Begun, Charge, Row, Spending};
