//! A consistent copy of the whole ledger, made while it is in use.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::SqliteOptions;
use super::schema::{BUSY_TIMEOUT, explain, make_private};
use crate::stream::LedgerError;

/// Copies the ledger to `path`, where nothing may be yet.
pub(super) fn backup(options: &SqliteOptions, path: &Path) -> Result<(), LedgerError> {
    let refused = |why: String| LedgerError::Unusable {
        path: path.display().to_string(),
        why,
    };
    if path.exists() {
        return Err(refused("there is a file already".into()));
    }
    make_private(path, options).map_err(|e| refused(e.to_string()))?;
    vacuum(options, path).map_err(|e| {
        // What is there is ours, and no backup.
        let _ = std::fs::remove_file(path);
        explain(&path.display().to_string(), &e)
    })
}

/// Reads one state while others write, and leaves a compact file. The connection
/// is its own, so that other readers need not wait.
fn vacuum(options: &SqliteOptions, path: &Path) -> Result<(), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&options.path, flags, vfs.as_str()),
        None => Connection::open_with_flags(&options.path, flags),
    }?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection
        .execute("vacuum into ?1", [path.display().to_string()])
        .map(drop)
}
