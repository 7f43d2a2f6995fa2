//! The tables of an index, and how older ones become today's.
//!
//! Everything is in one file and changes in one transaction: a node, its words, its
//! vector and its edges are there together or not at all. The full-text tables hold no
//! text of their own; a trigger keeps them in step when a node goes.

use std::path::Path;

use rusqlite::Connection;

use crate::error::{KnowledgeError, Result};

/// Marks a file as an index of ours: `slvk`.
const APPLICATION: i64 = 0x736c_766b;

/// Each step leads from the version before it to its own. Steps are only ever added.
const STEPS: &[&str] = &[FIRST, REQUIREMENTS];

/// What jobs pass on, and the graph that checked requirements end in.
const REQUIREMENTS: &str = "
CREATE TABLE citations (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    job TEXT NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE requirements (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    status TEXT NOT NULL,
    job TEXT NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE entities (
    id TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    properties TEXT NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE relations (
    source TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    target TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    properties TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (source, target, kind)
) WITHOUT ROWID;
";

const FIRST: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE files (
    key INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    language TEXT NOT NULL,
    line_count INTEGER NOT NULL,
    indexed INTEGER NOT NULL
);

CREATE TABLE nodes (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    domain INTEGER NOT NULL CHECK (domain IN (0, 1, 2)),
    type INTEGER NOT NULL,
    name TEXT NOT NULL,
    file INTEGER REFERENCES files (key) ON DELETE CASCADE,
    path TEXT,
    line_start INTEGER,
    line_end INTEGER,
    signature TEXT NOT NULL DEFAULT '',
    doc TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL DEFAULT '',
    context TEXT NOT NULL DEFAULT '',
    session TEXT,
    category TEXT,
    time INTEGER,
    url TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    metadata TEXT NOT NULL DEFAULT '{}',
    fingerprint BLOB NOT NULL,
    verified INTEGER NOT NULL DEFAULT 0,
    verification INTEGER NOT NULL DEFAULT 0,
    confidence REAL NOT NULL DEFAULT 1.0,
    trust INTEGER,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    expires INTEGER,
    superseded_by INTEGER REFERENCES nodes (key) ON DELETE SET NULL,
    promoted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX nodes_by_type ON nodes (domain, type);
CREATE INDEX nodes_by_name ON nodes (name COLLATE NOCASE);
CREATE INDEX nodes_by_path ON nodes (path) WHERE path IS NOT NULL;
CREATE INDEX nodes_by_file ON nodes (file) WHERE file IS NOT NULL;
CREATE INDEX nodes_by_session ON nodes (session, time) WHERE session IS NOT NULL;
CREATE INDEX nodes_by_supersession ON nodes (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE edges (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes (key) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES nodes (key) ON DELETE CASCADE,
    type INTEGER NOT NULL,
    weight REAL NOT NULL DEFAULT 1.0,
    metadata TEXT NOT NULL DEFAULT '{}',
    created INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX edges_by_target ON edges (target, type);

-- What code refers to by name. Edges are drawn from it, again whenever a name comes or
-- goes anywhere.
CREATE TABLE mentions (
    node INTEGER NOT NULL REFERENCES nodes (key) ON DELETE CASCADE,
    name TEXT NOT NULL,
    type INTEGER NOT NULL,
    PRIMARY KEY (node, type, name)
) WITHOUT ROWID;
CREATE INDEX mentions_by_name ON mentions (name);
CREATE TABLE stale_names (name TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE VIRTUAL TABLE words USING fts5 (
    name, doc, path, body, context,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE identifiers USING fts5 (
    defined, used,
    content = '', contentless_delete = 1, tokenize = \"unicode61 tokenchars '_'\"
);
CREATE VIRTUAL TABLE words_vocabulary USING fts5vocab (words, 'row');
CREATE TRIGGER node_gone AFTER DELETE ON nodes BEGIN
    DELETE FROM words WHERE rowid = old.key;
    DELETE FROM identifiers WHERE rowid = old.key;
    INSERT OR IGNORE INTO stale_names (name) SELECT old.name WHERE old.domain = 0;
END;

-- A vector's key is never used again: lists of a sparse index may still name it.
CREATE TABLE vectors (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    node INTEGER NOT NULL UNIQUE REFERENCES nodes (key) ON DELETE CASCADE,
    domain INTEGER NOT NULL,
    embedding BLOB NOT NULL
);
CREATE TABLE postings (
    domain INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    block INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (domain, dimension, block)
) WITHOUT ROWID;

CREATE TABLE provenance (
    key INTEGER PRIMARY KEY,
    node INTEGER NOT NULL REFERENCES nodes (key) ON DELETE CASCADE,
    source_type INTEGER NOT NULL,
    source_node INTEGER REFERENCES nodes (key) ON DELETE SET NULL,
    source_path TEXT,
    source_url TEXT,
    confidence REAL NOT NULL,
    verified_at INTEGER
);
CREATE INDEX provenance_by_node ON provenance (node);

CREATE TABLE conflicts (
    key INTEGER PRIMARY KEY,
    type INTEGER NOT NULL,
    subject TEXT NOT NULL,
    node_a INTEGER NOT NULL REFERENCES nodes (key) ON DELETE CASCADE,
    node_b INTEGER NOT NULL REFERENCES nodes (key) ON DELETE CASCADE,
    description TEXT NOT NULL,
    suggestion TEXT NOT NULL,
    resolution TEXT,
    detected INTEGER NOT NULL,
    resolved INTEGER,
    UNIQUE (type, node_a, node_b)
);

CREATE TABLE failures (
    key INTEGER PRIMARY KEY,
    signature TEXT NOT NULL,
    error TEXT NOT NULL,
    context TEXT NOT NULL,
    resolution TEXT,
    recurrence INTEGER NOT NULL,
    last INTEGER NOT NULL,
    sessions TEXT NOT NULL,
    outcomes TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE notes (
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (session, agent, key)
) WITHOUT ROWID;
CREATE TABLE mistakes (
    key INTEGER PRIMARY KEY,
    pattern TEXT NOT NULL,
    error TEXT NOT NULL,
    fix TEXT NOT NULL,
    context TEXT NOT NULL,
    tags TEXT NOT NULL,
    confidence REAL NOT NULL,
    occurrences INTEGER NOT NULL,
    created INTEGER NOT NULL,
    last INTEGER NOT NULL
);
CREATE TABLE preferences (
    category TEXT NOT NULL,
    name TEXT NOT NULL,
    origin TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    value TEXT NOT NULL,
    confidence REAL NOT NULL,
    evidence TEXT NOT NULL DEFAULT '[]',
    observed INTEGER NOT NULL,
    PRIMARY KEY (category, name, origin, session)
) WITHOUT ROWID;
CREATE TABLE checkpoints (
    key INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    body TEXT NOT NULL,
    created INTEGER NOT NULL
);
CREATE TABLE answers (
    intent TEXT NOT NULL,
    subject TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL,
    vector BLOB,
    created INTEGER NOT NULL,
    expires INTEGER,
    hits INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (intent, subject, session)
);
CREATE TABLE answer_sources (
    intent TEXT NOT NULL,
    subject TEXT NOT NULL,
    session TEXT NOT NULL,
    path TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (intent, subject, session, path),
    FOREIGN KEY (intent, subject, session) REFERENCES answers ON DELETE CASCADE
) WITHOUT ROWID;
";

/// Brings the file to today's version, in one transaction for each step.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<()> {
    let version = version(connection)?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let unusable = |why: String| {
        Err(KnowledgeError::Unusable {
            path: path.display().to_string(),
            why,
        })
    };
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if application != APPLICATION && tables > 0 {
        return unusable("it is a database of something else".into());
    }
    if version > STEPS.len() {
        return unusable(format!(
            "it was made by a newer Selvedge (version {version}, this one knows {})",
            STEPS.len()
        ));
    }
    for (step, sql) in STEPS.iter().enumerate().skip(version) {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Somebody else may have taken the step while this one waited.
        if self::version(&transaction)? == step {
            transaction.execute_batch(sql)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", step as i64 + 1)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(0))
}
