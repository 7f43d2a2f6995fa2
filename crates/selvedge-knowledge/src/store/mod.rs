//! The index: one SQLite file that may be read while it is written.
//!
//! There is one writer at a time and any number of readers, in as many processes
//! (write-ahead log). Whatever was committed is found after a kill, because the rows are
//! the truth: there is no other file that could be behind them.

mod conflicts;
mod edges;
mod lag;
mod nodes;
mod postings;
mod schema;
mod text;
mod vectors;

pub use conflicts::{Conflict, ConflictRecord};
pub use edges::{Edge, Towards};
pub use nodes::{Listing, Source};
pub use vectors::Near;

pub(crate) use nodes::Row;
pub(crate) use vectors::embedded_text;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::embed::{Embedder, Model};
use crate::error::{KnowledgeError, Result};
use crate::time::{Clock, Time};

/// How long a write waits for another process to finish its own.
const BUSY_MILLIS: u64 = 30_000;
/// Pages of the cache, in kilobytes: enough for the inner pages of a large index.
const CACHE_KB: i64 = 16 * 1024;

/// An index, open.
pub struct Index {
    pub(crate) connection: Connection,
    path: PathBuf,
    embedder: Arc<dyn Embedder>,
    clock: Clock,
    pending: RefCell<postings::Pending>,
}

impl Index {
    /// Opens the index at `path`, and makes it if there is none. Vectors of another
    /// embedder are made anew before anything is compared with them.
    pub fn open(path: &Path, embedder: Arc<dyn Embedder>, clock: Clock) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let index = Self::open_with(path, flags, embedder, clock)?;
        index.adopt_embedder()?;
        Ok(index)
    }

    /// Opens an index that is there already, to look into it.
    pub fn open_existing(path: &Path, embedder: Arc<dyn Embedder>, clock: Clock) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let index = Self::open_with(path, flags, embedder, clock)?;
        index.adopt_embedder()?;
        Ok(index)
    }

    fn open_with(
        path: &Path,
        flags: OpenFlags,
        embedder: Arc<dyn Embedder>,
        clock: Clock,
    ) -> Result<Self> {
        let unusable = |error: rusqlite::Error| KnowledgeError::Unusable {
            path: path.display().to_string(),
            why: error.to_string(),
        };
        let mut connection = Connection::open_with_flags(path, flags).map_err(unusable)?;
        connection.busy_timeout(Duration::from_millis(BUSY_MILLIS))?;
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .map_err(unusable)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "cache_size", -CACHE_KB)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.set_prepared_statement_cache_capacity(64);
        schema::migrate(&mut connection, path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            embedder,
            clock,
            pending: RefCell::default(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The time.
    pub fn now(&self) -> Time {
        (self.clock)()
    }

    /// Who makes its vectors.
    pub fn embedder(&self) -> &Arc<dyn Embedder> {
        &self.embedder
    }

    /// Does several things as one: all of them are stored, or none.
    pub fn transaction<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        if !self.connection.is_autocommit() {
            // Part of a larger piece of work, which decides.
            return work(self);
        }
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = work(self).and_then(|value| {
            self.flush_postings()?;
            self.connection.execute_batch("COMMIT")?;
            Ok(value)
        });
        if done.is_err() {
            self.pending.borrow_mut().clear();
            // It may have been rolled back already, by what went wrong.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        done
    }

    /// Looks whether the file is sound: its pages, its references, and that words and
    /// lists of vectors agree with the nodes. Tells the first thing that is not.
    pub fn check(&self) -> Result<()> {
        let unusable = |why: String| KnowledgeError::Unusable {
            path: self.path.display().to_string(),
            why,
        };
        let sound: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if sound != "ok" {
            return Err(unusable(sound));
        }
        let dangling = self
            .connection
            .prepare("PRAGMA foreign_key_check")?
            .exists([])?;
        if dangling {
            return Err(unusable("a reference leads nowhere".into()));
        }
        for table in ["words", "identifiers"] {
            let sql = format!(
                "SELECT (SELECT count(*) FROM {table}_docsize) = (SELECT count(*) FROM nodes)"
            );
            if !self.connection.query_row(&sql, [], |row| row.get(0))? {
                return Err(unusable(format!("`{table}` and the nodes do not agree")));
            }
        }
        self.check_postings()?
            .map_or(Ok(()), |why| Err(unusable(why)))
    }

    /// A remark that is kept with the index.
    pub fn remark(&self, key: &str) -> Result<Option<String>> {
        let mut find = self
            .connection
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        Ok(find.query_row([key], |row| row.get(0)).optional()?)
    }

    /// Keeps a remark with the index.
    pub fn set_remark(&self, key: &str, value: &str) -> Result<()> {
        self.connection.execute(
            "INSERT INTO meta (key, value) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            params![key, value],
        )?;
        Ok(())
    }

    /// The embedder whose vectors are stored, if there are any.
    pub(crate) fn stored_model(&self) -> Result<Option<Model>> {
        let stored = self.remark("embedder")?;
        Ok(stored.and_then(|stored| serde_json::from_str(&stored).ok()))
    }

    /// Makes all vectors anew if somebody else made those that are stored.
    fn adopt_embedder(&self) -> Result<()> {
        let model = self.embedder.model();
        if self.embedder.is_away().is_some() {
            return Ok(());
        }
        if self.stored_model()?.as_ref() == Some(&model) {
            return Ok(());
        }
        self.re_embed(&model)
    }
}
