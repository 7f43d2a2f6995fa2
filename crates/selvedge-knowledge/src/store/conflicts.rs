//! Contradictions that were found: recorded once, listed until somebody settles them.

use rusqlite::params;
use serde::Serialize;

use super::Index;
use crate::error::{KnowledgeError, Result};
use crate::kind::ConflictKind;
use crate::time::Time;

/// Two nodes that contradict one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conflict {
    /// How.
    pub kind: ConflictKind,
    /// What both are about.
    pub subject: String,
    /// One of them.
    pub node_a: String,
    /// The other.
    pub node_b: String,
    /// What they disagree about.
    pub description: String,
    /// What is probably right.
    pub suggestion: String,
}

/// A conflict on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConflictRecord {
    /// What it is settled by.
    pub id: i64,
    /// What it is.
    #[serde(flatten)]
    pub conflict: Conflict,
    /// When it was found first.
    pub detected: Time,
    /// How it was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
}

impl Index {
    /// Records conflicts. One that is on record already stays as it is.
    pub fn record_conflicts(&self, conflicts: &[Conflict]) -> Result<()> {
        self.transaction(|index| {
            for conflict in conflicts {
                // The same pair in the other order is the same conflict.
                let (a, b) = (
                    index.row_of(&conflict.node_a)?,
                    index.row_of(&conflict.node_b)?,
                );
                index.connection.execute(
                    "INSERT INTO conflicts (type, subject, node_a, node_b, description, \
                        suggestion, detected) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT DO NOTHING",
                    params![
                        conflict.kind.code(),
                        conflict.subject,
                        a.min(b),
                        a.max(b),
                        conflict.description,
                        conflict.suggestion,
                        index.now().0,
                    ],
                )?;
            }
            Ok(())
        })
    }

    /// Conflicts on record, the newest first: those that are not settled, or all.
    pub fn conflicts(&self, with_settled: bool) -> Result<Vec<ConflictRecord>> {
        let mut find = self.connection.prepare_cached(
            "SELECT c.key, c.type, c.subject, a.id, b.id, c.description, c.suggestion, \
                c.detected, c.resolution FROM conflicts c
             JOIN nodes a ON a.key = c.node_a JOIN nodes b ON b.key = c.node_b
             WHERE c.resolved IS NULL OR ?1 ORDER BY c.detected DESC, c.key DESC",
        )?;
        let rows = find.query_map([with_settled], |row| {
            let code: i64 = row.get(1)?;
            Ok(ConflictRecord {
                id: row.get(0)?,
                conflict: Conflict {
                    kind: ConflictKind::from_code(code).unwrap_or(ConflictKind::Semantic),
                    subject: row.get(2)?,
                    node_a: row.get(3)?,
                    node_b: row.get(4)?,
                    description: row.get(5)?,
                    suggestion: row.get(6)?,
                },
                detected: Time(row.get(7)?),
                resolution: row.get(8)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Settles a conflict.
    pub fn settle(&self, id: i64, resolution: &str) -> Result<()> {
        let changed = self.connection.execute(
            "UPDATE conflicts SET resolution = ?2, resolved = ?3 WHERE key = ?1",
            params![id, resolution, self.now().0],
        )?;
        match changed {
            0 => Err(KnowledgeError::NoConflict { id }),
            _ => Ok(()),
        }
    }
}
