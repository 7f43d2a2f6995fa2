//! The tables, and how a connection is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
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

/// Long enough for any other process's transaction; a foreign lock of several
/// seconds is waited out, not reported.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const BUSY_TRIES: u32 = 3000;

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

/// The definitions of all tables and indexes, as the file states them.
pub(super) fn definitions(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    connection
        .prepare("select concat_ws(' ', type, name, tbl_name, sql) from sqlite_schema order by 1")?
        .query_map([], |r| r.get(0))?
        .collect()
}

/// What they must be.
pub(super) fn own_definitions() -> Result<Vec<String>, rusqlite::Error> {
    let blank = Connection::open_in_memory()?;
    blank.execute_batch(SCHEMA)?;
    definitions(&blank)
}

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
    .and_then(|c| c.busy_timeout(BUSY_TIMEOUT).map(|()| c))
    .map_err(|e| refuse(path, &e))?;
    let mut tries = 0;
    loop {
        match furnish(&connection, options, writer) {
            Ok(Ok(())) => return Ok(connection),
            Ok(Err(why)) => return Err(unusable(path, why)),
            // Where waiting could be in vain, as when two processes begin the
            // same ledger, SQLite does not wait: it leaves that to its caller.
            Err(e) if is_busy(&e) && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_TIMEOUT / BUSY_TRIES);
            }
            Err(e) => return Err(refuse(path, &e)),
        }
    }
}

/// Makes a connection ready, or says why the file is none of ours.
fn furnish(
    connection: &Connection,
    options: &SqliteOptions,
    writer: bool,
) -> Result<Result<(), String>, rusqlite::Error> {
    if writer && let Some(why) = foreign(identity(connection)?) {
        return Ok(Err(why));
    }
    set_up(connection, options, writer)?;
    if writer {
        migrate(connection)?;
    }
    Ok(Ok(()))
}

/// Why a file cannot be read here. Asked before anything is changed in it.
fn foreign(identity: (i32, i32, u32)) -> Option<String> {
    match identity {
        (0, 0, 0) | (APPLICATION_ID, 1..=SCHEMA_VERSION, _) => None,
        (APPLICATION_ID, version, _) if version > SCHEMA_VERSION => Some(format!(
            "it was written by a newer Selvedge (format {version}, this one reads {SCHEMA_VERSION})"
        )),
        _ => Some("it is the database of another program".into()),
    }
}

/// Application, format and number of tables, as one commit left them.
fn identity(connection: &Connection) -> Result<(i32, i32, u32), rusqlite::Error> {
    let reading = connection.unchecked_transaction()?;
    let pragma = |name| reading.pragma_query_value(None, name, |r| r.get(0));
    let tables = reading.query_row("select count(*) from sqlite_schema", [], |r| r.get(0))?;
    Ok((pragma("application_id")?, pragma("user_version")?, tables))
}

/// The database is for its owner only: it holds everything agents saw.
pub(super) fn make_private(path: &Path, options: &SqliteOptions) -> std::io::Result<()> {
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
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", -4096)?;
    // Plans that depend on bound values are made anew for every value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if writer {
        // Stepped to its end: only then does a failed change of mode show itself.
        let modes: Vec<String> = connection
            .prepare("pragma journal_mode=wal")?
            .query_map([], |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        if modes != ["wal"] {
            return Err(rusqlite::Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_CANTOPEN),
                Some(format!("it keeps its log in mode {modes:?}, not `wal`")),
            ));
        }
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

fn migrate(connection: &Connection) -> Result<(), rusqlite::Error> {
    if connection.pragma_query_value(None, "user_version", |r| r.get::<_, i32>(0))? != 0 {
        return Ok(());
    }
    connection.execute_batch("begin immediate")?;
    let made = create_unless_made(connection);
    let end = if made.is_ok() { "commit" } else { "rollback" };
    made.and(connection.execute_batch(end))
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

/// Why a connection cannot be had.
fn refuse(path: &Path, error: &rusqlite::Error) -> LedgerError {
    match explain(&path.display().to_string(), error) {
        LedgerError::Unavailable { why } => unusable(path, why),
        other => other,
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

/// Whether the error comes from what is stored, not from the database.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    match error {
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) => true,
        other => matches!(
            other.sqlite_error_code(),
            Some(
                rusqlite::ErrorCode::DatabaseCorrupt
                    | rusqlite::ErrorCode::ConstraintViolation
                    | rusqlite::ErrorCode::TypeMismatch
            )
        ),
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
            | rusqlite::ErrorCode::DatabaseCorrupt
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
