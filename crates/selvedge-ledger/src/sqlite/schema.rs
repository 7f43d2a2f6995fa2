//! The tables, and how a connection is set up.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, ffi};

use super::SqliteOptions;
use crate::stream::LedgerError;

// Versions before 3.51.3 can corrupt a database when a WAL is reset while
// another connection checkpoints.
const _: () = assert!(
    ffi::SQLITE_VERSION_NUMBER >= 3_051_003,
    "SQLite is older than 3.51.3"
);

/// Written into the file's header, so that another program's database is refused.
const APPLICATION_ID: i32 = 0x5e1_7ed6;
const SCHEMA_VERSION: i32 = 1;

const SCHEMA: &str = "
create table streams (
    id        integer primary key,
    name      text not null unique,
    kind      text not null,
    session   text not null,
    parent    text,
    head      integer not null,
    head_hash blob not null,
    opened    integer not null,
    updated   integer not null
) strict;
create index streams_by_session on streams (session);

create table events (
    position integer primary key,
    stream   integer not null references streams (id),
    seq      integer not null,
    time     integer not null,
    actor    text not null,
    kind     text not null,
    version  integer not null,
    cause    text,
    data     text not null,
    hash     blob not null
) strict;
create unique index events_by_stream on events (stream, seq);

create table blobs (
    id      blob primary key,
    bytes   integer not null,
    content blob not null
) strict;

create table letters (
    stream integer not null references streams (id),
    id     text not null,
    seq    integer not null,
    primary key (stream, id)
) strict, without rowid;

create table leases (
    stream  text primary key,
    holder  text not null,
    detail  text not null,
    epoch   integer not null,
    expires integer not null
) strict;
create index leases_by_holder on leases (holder);

create table snapshots (
    stream text primary key,
    seq    integer not null,
    hash   blob not null,
    state  blob not null
) strict;
";

/// Opens a connection to the ledger's file, making the tables if they are missing.
pub(super) fn connect(options: &SqliteOptions, writer: bool) -> Result<Connection, LedgerError> {
    let path = &options.path;
    if writer {
        make_private(path, options).map_err(|e| unusable(path, e))?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
        None => Connection::open_with_flags(path, flags),
    }
    .map_err(|e| unusable(path, e))?;
    set_up(&connection, options, writer).map_err(|e| unusable(path, e))?;
    if writer {
        migrate(&connection, path)?;
    }
    Ok(connection)
}

/// The database is for its owner only: it holds everything agents saw.
fn make_private(path: &Path, options: &SqliteOptions) -> std::io::Result<()> {
    if options.vfs.is_some() || path.exists() {
        return Ok(());
    }
    let mut open = std::fs::OpenOptions::new();
    open.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
    open.open(path).map(drop)
}

fn set_up(
    connection: &Connection,
    options: &SqliteOptions,
    writer: bool,
) -> Result<(), rusqlite::Error> {
    // Long enough for any other process's transaction; a foreign lock of several
    // seconds is waited out, not reported.
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", -4096)?;
    if writer {
        use_write_ahead_log(connection)?;
        connection.pragma_update(
            None,
            "synchronous",
            if options.sync { "full" } else { "normal" },
        )?;
        connection.pragma_update(None, "wal_autocheckpoint", options.checkpoint_pages)?;
    } else {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(())
}

/// SQLite answers before it commits the change, so the statement must be run to
/// its end: a failure there would otherwise leave the slower mode unnoticed.
fn use_write_ahead_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare("pragma journal_mode=wal")?;
    let mut rows = statement.query([])?;
    let mut mode = String::new();
    while let Some(row) = rows.next()? {
        mode = row.get(0)?;
    }
    if mode == "wal" {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(format!("its file system allows no write-ahead log (mode `{mode}`)")),
    ))
}

fn migrate(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let version: i32 = connection
        .pragma_query_value(None, "user_version", |r| r.get(0))
        .map_err(|e| unusable(path, e))?;
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    if version > SCHEMA_VERSION {
        let why = format!(
            "it was written by a newer Selvedge (format {version}, this one reads {SCHEMA_VERSION})"
        );
        return Err(LedgerError::Unusable {
            path: path.display().to_string(),
            why,
        });
    }
    connection
        .execute_batch("begin immediate")
        .map_err(|e| unusable(path, e))?;
    let made = create_unless_made(connection);
    connection
        .execute_batch(if made.is_ok() { "commit" } else { "rollback" })
        .map_err(|e| unusable(path, e))?;
    made.map_err(|e| unusable(path, e))
}

/// Another process may have made the tables while this one waited for the lock.
fn create_unless_made(connection: &Connection) -> Result<(), rusqlite::Error> {
    let version: i32 = connection.pragma_query_value(None, "user_version", |r| r.get(0))?;
    if version != 0 {
        return Ok(());
    }
    connection.execute_batch(SCHEMA)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

fn unusable(path: &Path, why: impl ToString) -> LedgerError {
    LedgerError::Unusable {
        path: path.display().to_string(),
        why: why.to_string(),
    }
}

/// What a SQLite error means to a caller.
pub(super) fn explain(path: &str, error: &rusqlite::Error) -> LedgerError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => LedgerError::Full {
            path: path.to_owned(),
        },
        Some(
            rusqlite::ErrorCode::ReadOnly
            | rusqlite::ErrorCode::CannotOpen
            | rusqlite::ErrorCode::NotADatabase
            | rusqlite::ErrorCode::PermissionDenied,
        ) => LedgerError::Unusable {
            path: path.to_owned(),
            why: error.to_string(),
        },
        _ => LedgerError::Unavailable {
            why: error.to_string(),
        },
    }
}
