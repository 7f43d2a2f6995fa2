//! The index agents consult: code, history and documents, and how far to trust them.
//!
//! # Map
//!
//! - `kind`: domains, and the types of nodes and edges in them
//! - `node`, `filter`, `time`: one thing that is known; which are wanted; when it was so
//! - `store`: one SQLite file: nodes, edges, words, vectors, sources, conflicts
//! - `words`, `embed`: text taken apart, and made into vectors
//! - `lang`: what is in a file, for each language
//! - `indexer`: reads a project, and later what has changed of it
//! - `search`: words, identifiers and likeness, joined
//! - `judgement`: trust, freshness, conflicts, selection, citations: pure decisions
//! - `history`: what was done, checked, and tied to code and documents
//! - `memory`: what failed, notes, mistakes, preferences, checkpoints, answers
//! - `paged`: documents as text with page numbers; where a quote stands
//! - `requirements`: what jobs find in documents, and the graph of what was checked
//! - `stats`, `evaluation`: what an index holds, and how well it is searched
//!
//! # Invariants
//!
//! - A node, its words and its vector are stored together or not at all; only where an
//!   embedder is slow do the vectors of files follow, and are missing rather than wrong.
//! - What is deleted leaves no trace that could be found.
//! - No vector is compared with one that somebody else made.
//! - Nothing is stored that the given [`Discretion`] takes for a secret.
//! - This crate knows nothing of models, tools, agents or the runtime, opens no
//!   connection, and reads no clock but the one it is given.

mod embed;
mod error;
mod evaluation;
mod filter;
mod history;
mod indexer;
mod judgement;
mod kind;
mod lang;
mod memory;
mod node;
mod paged;
mod requirements;
mod search;
mod stats;
mod store;
mod time;
mod words;

#[cfg(feature = "minilm")]
pub use embed::MiniLm;
pub use embed::{Away, Embedder, Endpoint, Hashed, Model, Piece, Protocol, SendRequest, Vector};
pub use error::{KnowledgeError, Result};
pub use evaluation::{Judged, MODES, Marks, evaluate, questions_from_comments};
pub use filter::Filter;
pub use history::{Stored, Summary};
pub use indexer::{
    Discretion, Progress, Project, Report, Skipped, Watching, index_project, load_jsonl,
    parse_moment, watch,
};
pub use judgement::{
    Budget, Candidate, Citations, Claim, ClaimKind, Evidence, Firewall, Freshness, Picked, RULES,
    Trust, Verdict, Winner, cited, claims, conflicts_among, freshness, paths_in, prompt, quality,
    select, tokens, trust, which_wins,
};
pub use kind::{ConflictKind, Domain, EdgeType, NodeType, SourceType, Verification};
pub use memory::{
    Advice, AnswerKey, AnswerStats, Attempt, CachedAnswer, Checkpoint, ChosenBecause, Failure,
    FailureWarning, Intent, Mistake, MistakeReport, Note, Origin, Preference, Reaction, Statistics,
    Status,
};
pub use node::{Node, cut};
pub use paged::{Paged, PagedError, quoted_on};
pub use requirements::{
    Citation, DUPLICATE_MIN, Entity, GraphStatistics, LABELS, RELATIONS, Relation, Requirement,
    RequirementCache, RequirementGraph, alike,
};
pub use search::{Found, Hit, Mode, Query};
pub use stats::Stats;
pub use store::{Conflict, ConflictRecord, Edge, Index, Listing, Near, Source, Towards};
pub use time::{Clock, Time};
