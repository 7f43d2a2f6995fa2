//! The journal: messy notes in, cited answers out.
//!
//! Quilto is the framework: nine agents, a graph, notes and domains. Swealog is what it
//! ships with: general fitness as the base, strength, running, swimming and nutrition. The
//! agents' files and the domains are in `crews/journal`.
//!
//! In reading order: `protocol` (what agents are told and say), `flow` (the graph),
//! `tools` (what it does to files), `notes` (the files), `domains`, `rows` (quantities),
//! `dates`, `correction`, `searching`, `overview` (what can be told without a model),
//! `import`.

mod correction;
mod dates;
mod domains;
mod flow;
mod import;
mod notes;
mod overview;
mod protocol;
mod rows;
mod searching;
mod tools;

pub use dates::{Days, range as days_of};
pub use domains::{Domains, make_template};
pub use flow::{
    Brief, Intent, JournalFlow, JournalSpec, JournalState, REPLANS_MAX, RETRIES_MAX, TABLE,
    WITHOUT_MODELS,
};
pub use import::{Imported, import_file, markdown_files};
pub use notes::{Entry, EntryId, Found, NewEntry, Notes, NotesError, ParseState, Parsed, Saved};
pub use overview::{Overview, Selection};
pub use protocol::{DomainInfo, Style};
pub use rows::Units;
pub use tools::{DOMAINS, journal_tools, journal_worlds};

use selvedge_agent::{AgentCall, BuiltIn, RunSpec};
use selvedge_flow::Graph;
use selvedge_runtime::Machine;

/// The kind of a journal's stream.
pub const JOURNAL: &str = "journal";

/// The agents, in the order in which they come in.
pub const AGENTS: [&str; 9] = [
    "router",
    "planner",
    "retriever",
    "analyzer",
    "synthesizer",
    "evaluator",
    "clarifier",
    "parser",
    "observer",
];

macro_rules! agent {
    ($name:literal) => {
        (
            concat!("journal/agents/", $name, ".md"),
            include_str!(concat!("../../crews/journal/agents/", $name, ".md")),
        )
    };
}

/// The crew, as it comes with the program.
pub(crate) const CREW: BuiltIn = BuiltIn {
    name: "journal",
    crew: include_str!("../../crews/journal/crew.toml"),
    agents: &[
        agent!("router"),
        agent!("planner"),
        agent!("retriever"),
        agent!("analyzer"),
        agent!("synthesizer"),
        agent!("evaluator"),
        agent!("clarifier"),
        agent!("parser"),
        agent!("observer"),
    ],
    schemas: protocol::schemas,
};

/// The journal's machine.
pub fn journal_machine() -> Box<dyn Machine<Call = AgentCall>> {
    Box::new(Graph::<JournalFlow>::default())
}

/// What a session starts with: `agents` are what each agent of the crew starts with, and
/// none of them if no model can be asked. One of them lends the session its bounds.
pub fn journal_spec(mut base: RunSpec, agents: Vec<RunSpec>, journal: Brief) -> JournalSpec {
    base.agent = JOURNAL.to_owned();
    base.request = selvedge_ledger::Payload::new(journal.input.as_str());
    base.tools = journal_worlds();
    base.output_schema = None;
    // Nothing here counts as failed work that is put back.
    base.limits.strikes_max = 0;
    let agents = agents.into_iter().map(|agent| (agent.agent.clone(), agent));
    base.team = agents.collect();
    JournalSpec { run: base, journal }
}
