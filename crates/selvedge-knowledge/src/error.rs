//! Why the index did not do what was asked.

use std::fmt;
use std::path::Path;

/// One variant per decision that a caller can make.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The file is no index, or cannot be opened: name another, or make it anew.
    #[error("the index at `{path}` cannot be used: {why}")]
    Unusable {
        /// Where it is.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Another process is indexing: wait for it, or look without indexing.
    #[error("another process is indexing `{path}`")]
    Busy {
        /// The index.
        path: String,
    },
    /// There is no such node: look for another.
    #[error("there is no node `{id}`")]
    NoNode {
        /// What was asked for.
        id: String,
    },
    /// The embedder did not answer; nothing was stored. It may be tried again.
    #[error("no vector was made: {why}")]
    Embedding {
        /// What it said.
        why: String,
    },
    /// A vector does not fit those that are stored: embed everything anew.
    #[error("a vector has {actual} dimensions, the index has {expected}")]
    Dimension {
        /// What is stored.
        expected: usize,
        /// What was offered.
        actual: usize,
    },
    /// Something would take the place of what takes its place.
    #[error("`{old}` cannot be superseded by `{new}`: that would be a circle")]
    Circle {
        /// What was to be superseded.
        old: String,
        /// By what.
        new: String,
    },
    /// What was asked cannot be meant: correct it.
    #[error("{0}")]
    Request(String),
    /// A file or folder cannot be read.
    #[error("`{path}` cannot be read: {why}")]
    File {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
    /// A line of a corpus is not what a corpus is made of: correct it.
    #[error("`{path}` cannot be loaded: line {line} is not a record: {why}")]
    Record {
        /// The corpus.
        path: String,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such conflict: look which there are.
    #[error("there is no conflict {id}")]
    NoConflict {
        /// What was asked for.
        id: i64,
    },
    /// The store failed underneath; nothing was half done.
    #[error("the index did not answer: {0}")]
    Store(#[from] rusqlite::Error),
}

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, KnowledgeError>;

impl KnowledgeError {
    /// A file that cannot be read.
    pub(crate) fn file(path: &Path, why: impl fmt::Display) -> Self {
        Self::File {
            path: path.display().to_string(),
            why: why.to_string(),
        }
    }
}
