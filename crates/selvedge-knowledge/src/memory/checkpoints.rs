//! Where a task stands, so that another session can go on with it.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::notes::Note;
use crate::error::Result;
use crate::store::Index;
use crate::time::Time;

/// How a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It goes on.
    #[default]
    InProgress,
    /// Something is in its way.
    Blocked,
    /// It rests.
    Paused,
    /// It is done.
    Completed,
}

/// A decision, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenBecause {
    /// What was to be decided.
    pub question: String,
    /// What was chosen.
    pub choice: String,
    /// Why.
    pub reason: String,
}

/// Where a task stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its number; 0 until it is saved.
    #[serde(default)]
    pub id: i64,
    /// The session that saved it.
    #[serde(default)]
    pub session: String,
    /// What the task is.
    pub summary: String,
    /// How it stands.
    #[serde(default)]
    pub status: Status,
    /// What is done.
    #[serde(default)]
    pub completed: Vec<String>,
    /// What comes next.
    #[serde(default)]
    pub next_steps: Vec<String>,
    /// Files that were read and changed.
    #[serde(default)]
    pub files_modified: Vec<String>,
    /// What was decided.
    #[serde(default)]
    pub decisions: Vec<ChosenBecause>,
    /// The scratchpad at that time.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// When it was saved.
    #[serde(default)]
    pub created: Time,
}

impl Checkpoint {
    /// What to do first when going on with it.
    pub fn hint(&self) -> String {
        match self.next_steps.first() {
            Some(step) => format!("continue with: {step}"),
            None => "nothing is left to do; ask what comes next".into(),
        }
    }
}

impl Index {
    /// Saves where a task of a session stands, with the session's notes.
    pub fn save_checkpoint(&self, session: &str, checkpoint: &Checkpoint) -> Result<Checkpoint> {
        let mut saved = checkpoint.clone();
        saved.session = session.to_owned();
        saved.notes = self.notes(session)?;
        saved.created = self.now();
        let body = serde_json::to_string(&saved).expect("a checkpoint has string keys");
        self.connection.execute(
            "INSERT INTO checkpoints (session, body, created) VALUES (?1, ?2, ?3)",
            params![session, body, saved.created.0],
        )?;
        saved.id = self.connection.last_insert_rowid();
        Ok(saved)
    }

    /// Takes a task up in a session: the notes of its checkpoint are written into it.
    /// Without an id, the latest of this session, or else of the project.
    pub fn resume_checkpoint(&self, session: &str, id: Option<i64>) -> Result<Option<Checkpoint>> {
        self.transaction(|index| {
            let sql = match id {
                Some(_) => "SELECT key, body FROM checkpoints WHERE key = ?2 AND ?1 = ?1",
                None => {
                    "SELECT key, body FROM checkpoints WHERE ?2 IS NULL
                     ORDER BY session = ?1 DESC, created DESC, key DESC LIMIT 1"
                }
            };
            let found: Option<(i64, String)> = index
                .connection
                .query_row(sql, params![session, id], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let Some((id, body)) = found else {
                return Ok(None);
            };
            let Ok(mut checkpoint) = serde_json::from_str::<Checkpoint>(&body) else {
                return Ok(None);
            };
            checkpoint.id = id;
            for note in &checkpoint.notes {
                index.write_note(session, &note.agent, &note.key, &note.content)?;
            }
            Ok(Some(checkpoint))
        })
    }
}
