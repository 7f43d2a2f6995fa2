//! A ledger in a file of its own.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions, Upcasts};
use tempfile::TempDir;

use crate::suite::Place;

/// A ledger in a folder that goes away with this value.
pub struct File {
    folder: TempDir,
}

impl File {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }

    /// Another file in the same folder.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file as a database, to do things to it that a ledger would not do.
    pub fn database(&self) -> Connection {
        let database = Connection::open(self.path()).expect("the file is a database");
        database
            .pragma_update(None, "foreign_keys", false)
            .expect("a new connection is in no transaction");
        database
    }
}

impl Place for File {
    async fn open_with(&self, upcasts: Upcasts) -> Arc<dyn Ledger> {
        let mut options = SqliteOptions::new(self.path());
        options.upcasts = upcasts;
        Arc::new(SqliteLedger::open(&options).expect("the ledger opens"))
    }
}
