//! The scratchpad: notes that outlive a context window, by session and agent.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::error::{KnowledgeError, Result};
use crate::store::Index;
use crate::time::Time;

/// The longest note, and the most notes of one session.
const NOTE_BYTES_MAX: usize = 16 * 1024;
const NOTES_MAX: i64 = 500;
/// Stands for all notes, so it is no key.
const ALL: &str = "all";

/// A note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Who wrote it.
    pub agent: String,
    /// What it is called.
    pub key: String,
    /// What it says.
    pub content: String,
    /// When it was written first, and last.
    pub created: Time,
    /// When it was written last.
    pub updated: Time,
}

impl Index {
    /// Writes a note in place of the one of the same key.
    pub fn write_note(&self, session: &str, agent: &str, key: &str, content: &str) -> Result<()> {
        if key == ALL || key.trim().is_empty() {
            let why = format!("`{key}` cannot be the key of a note; choose another");
            return Err(KnowledgeError::Request(why));
        }
        if content.len() > NOTE_BYTES_MAX {
            let why = format!("a note has at most {NOTE_BYTES_MAX} bytes; shorten it");
            return Err(KnowledgeError::Request(why));
        }
        let now = self.now().0;
        self.transaction(|index| {
            index.connection.execute(
                "INSERT INTO notes (session, agent, key, content, created, updated)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5)
                 ON CONFLICT DO UPDATE SET content = excluded.content, updated = excluded.updated",
                params![session, agent, key, content, now],
            )?;
            let sql = "SELECT count(*) FROM notes WHERE session = ?1";
            let count: i64 = index
                .connection
                .query_row(sql, [session], |row| row.get(0))?;
            match count > NOTES_MAX {
                true => Err(KnowledgeError::Request(format!(
                    "a session has at most {NOTES_MAX} notes; write over one of them"
                ))),
                false => Ok(()),
            }
        })
    }

    /// The note of a key: the agent's own, or else the latest of another agent.
    pub fn read_note(&self, session: &str, agent: &str, key: &str) -> Result<Option<Note>> {
        let mut notes = self.notes(session)?;
        notes.retain(|note| note.key == key);
        notes.sort_by_key(|note| (note.agent != agent, -note.updated.0));
        Ok(notes.into_iter().next())
    }

    /// All notes of a session, the latest first.
    pub fn notes(&self, session: &str) -> Result<Vec<Note>> {
        let mut find = self.connection.prepare_cached(
            "SELECT agent, key, content, created, updated FROM notes WHERE session = ?1
             ORDER BY updated DESC, key",
        )?;
        let rows = find.query_map([session], |row| {
            Ok(Note {
                agent: row.get(0)?,
                key: row.get(1)?,
                content: row.get(2)?,
                created: Time(row.get(3)?),
                updated: Time(row.get(4)?),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
