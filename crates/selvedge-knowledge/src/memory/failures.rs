//! What was tried and failed, so that nobody tries it for the third time.
//!
//! Failures are the exception to the rule that sessions keep to themselves: every session
//! reads those of all others.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::likeness::likeness;
use crate::error::{KnowledgeError, Result};
use crate::kind::Domain;
use crate::store::Index;
use crate::time::Time;

/// Approaches that are this much alike are the same.
const ALIKE: f64 = 0.7;
/// Failed this often, an approach is warned of.
const WARN: u32 = 2;
/// Failed this often, another one is recommended.
const AVOID: u32 = 5;
/// The most failures that are compared with an approach: the latest.
const COMPARED_MAX: usize = 2_000;

/// Something that did not work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// What was tried.
    pub approach: String,
    /// What went wrong.
    pub error: String,
    /// Where, and under which circumstances.
    #[serde(default)]
    pub context: String,
    /// What helped, if anything did.
    #[serde(default)]
    pub resolution: Option<String>,
    /// In which session.
    pub session: String,
}

/// A failure on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Its number.
    pub id: i64,
    /// What was tried.
    pub approach: String,
    /// What went wrong.
    pub error: String,
    /// Where.
    pub context: String,
    /// What helped.
    pub resolution: Option<String>,
    /// How often it failed.
    pub recurrence: u32,
    /// When last.
    pub last: Time,
    /// In which sessions.
    pub sessions: Vec<String>,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// It failed once: good to know.
    Note,
    /// It failed before: be careful.
    Warn,
    /// It failed again and again: do something else.
    Avoid,
    /// It failed in this very session: ask for help.
    Escalate,
}

/// A failure like what is being considered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureWarning {
    /// What failed.
    pub failure: Failure,
    /// How alike the two are.
    pub similarity: f64,
    /// What follows.
    pub advice: Advice,
}

/// How an approach has fared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// Outcomes by kind: `success`, `partial`, `failure`.
    pub outcomes: BTreeMap<String, u32>,
    /// The share that succeeded.
    pub success_rate: Option<f64>,
    /// Whether to look for another approach.
    pub suggest_alternative: bool,
}

impl Index {
    /// Records a failure; one that is like another counts as its recurrence. A
    /// resolution reaches those that are alike and have none.
    pub fn record_failure(&self, attempt: &Attempt) -> Result<Failure> {
        let now = self.now();
        self.transaction(|index| {
            let alike = index.failures_like(&attempt.approach, &attempt.error)?;
            if let Some(resolution) = &attempt.resolution {
                for (failure, _) in alike.iter().filter(|(f, _)| f.resolution.is_none()) {
                    index.resolve_failure(failure.id, resolution)?;
                }
            }
            let Some((failure, _)) = alike.first() else {
                index.connection.execute(
                    "INSERT INTO failures (signature, error, context, resolution, recurrence, \
                        last, sessions) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6)",
                    params![
                        attempt.approach,
                        attempt.error,
                        attempt.context,
                        attempt.resolution,
                        now.0,
                        serde_json::json!([attempt.session]).to_string(),
                    ],
                )?;
                let id = index.connection.last_insert_rowid();
                return index.failure(id);
            };
            let mut sessions = failure.sessions.clone();
            sessions.push(attempt.session.clone());
            index.connection.execute(
                "UPDATE failures SET recurrence = recurrence + 1, last = ?2, sessions = ?3, \
                    error = ?4 WHERE key = ?1",
                params![
                    failure.id,
                    now.0,
                    serde_json::json!(sessions).to_string(),
                    attempt.error
                ],
            )?;
            index.failure(failure.id)
        })
    }

    /// Warns of failures like an approach, the most alike first.
    pub fn check_approach(&self, approach: &str, session: &str) -> Result<Vec<FailureWarning>> {
        let alike = self.failures_like(approach, "")?;
        let warning = |(failure, similarity): (Failure, f64)| {
            let here = failure.sessions.iter().filter(|s| *s == session).count();
            let advice = match failure.recurrence {
                _ if here >= 2 => Advice::Escalate,
                n if n >= AVOID => Advice::Avoid,
                n if n >= WARN => Advice::Warn,
                _ => Advice::Note,
            };
            FailureWarning {
                failure,
                similarity,
                advice,
            }
        };
        Ok(alike.into_iter().map(warning).collect())
    }

    /// Records what became of an approach.
    pub fn record_outcome(&self, id: i64, outcome: &str) -> Result<Statistics> {
        is_outcome(outcome)?;
        self.transaction(|index| {
            let mut outcomes = index.outcomes_of(id)?;
            *outcomes.entry(outcome.to_owned()).or_default() += 1;
            let text = serde_json::to_string(&outcomes).expect("a map with string keys");
            index.connection.execute(
                "UPDATE failures SET outcomes = ?2 WHERE key = ?1",
                params![id, text],
            )?;
            Ok(statistics(outcomes))
        })
    }

    /// Records what became of a decision that is in the history.
    pub fn mark_outcome(&self, id: &str, outcome: &str, notes: &str) -> Result<Statistics> {
        is_outcome(outcome)?;
        let node = self.node(id)?;
        if node.domain() != Domain::History {
            return Err(KnowledgeError::Request(format!(
                "`{id}` is no entry of history, so nothing can have become of it"
            )));
        }
        self.connection.execute(
            "UPDATE nodes SET metadata = json_set(metadata, '$.outcome', ?2, '$.notes', ?3)
             WHERE id = ?1",
            params![node.id, outcome, notes],
        )?;
        self.approach_statistics(&node.content)
    }

    /// How approaches like this one have fared: failures on record, what became of them
    /// afterwards, and decisions whose outcome was marked.
    pub fn approach_statistics(&self, approach: &str) -> Result<Statistics> {
        let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
        for (failure, _) in self.failures_like(approach, "")? {
            *outcomes.entry("failure".into()).or_default() += failure.recurrence;
            for (outcome, count) in self.outcomes_of(failure.id)? {
                *outcomes.entry(outcome).or_default() += count;
            }
        }
        let sql = format!(
            "SELECT content, json_extract(metadata, '$.outcome') FROM nodes
             WHERE domain = ?1 AND json_extract(metadata, '$.outcome') IS NOT NULL
             ORDER BY key DESC LIMIT {COMPARED_MAX}"
        );
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map([Domain::History.code()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        for row in rows {
            let (content, outcome) = row?;
            if likeness(approach, &content) > ALIKE {
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        Ok(statistics(outcomes))
    }

    fn outcomes_of(&self, id: i64) -> Result<BTreeMap<String, u32>> {
        let sql = "SELECT outcomes FROM failures WHERE key = ?1";
        let stored: Option<String> = self
            .connection
            .query_row(sql, [id], |row| row.get(0))
            .optional()?;
        let no_failure = || KnowledgeError::Request(format!("there is no failure {id}"));
        Ok(serde_json::from_str(&stored.ok_or_else(no_failure)?).unwrap_or_default())
    }

    fn resolve_failure(&self, id: i64, resolution: &str) -> Result<()> {
        let sql = "UPDATE failures SET resolution = ?2 WHERE key = ?1";
        self.connection.execute(sql, params![id, resolution])?;
        Ok(())
    }

    fn failure(&self, id: i64) -> Result<Failure> {
        let sql = format!("SELECT {COLUMNS} FROM failures WHERE key = ?1");
        Ok(self.connection.query_row(&sql, [id], read)?)
    }

    fn failures_like(&self, approach: &str, error: &str) -> Result<Vec<(Failure, f64)>> {
        let sql = format!("SELECT {COLUMNS} FROM failures ORDER BY last DESC LIMIT {COMPARED_MAX}");
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map([], read)?;
        let mut alike = Vec::new();
        for failure in rows {
            let failure = failure?;
            let mut similarity = likeness(approach, &failure.approach);
            if !error.is_empty() {
                // The same approach that fails for another reason is another lesson.
                similarity = 0.7 * similarity + 0.3 * likeness(error, &failure.error);
            }
            if similarity > ALIKE {
                alike.push((failure, similarity));
            }
        }
        alike.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(alike)
    }
}

const COLUMNS: &str = "key, signature, error, context, resolution, recurrence, last, sessions";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Failure> {
    let sessions: String = row.get(7)?;
    Ok(Failure {
        id: row.get(0)?,
        approach: row.get(1)?,
        error: row.get(2)?,
        context: row.get(3)?,
        resolution: row.get(4)?,
        recurrence: row.get(5)?,
        last: Time(row.get(6)?),
        sessions: serde_json::from_str(&sessions).unwrap_or_default(),
    })
}

fn is_outcome(outcome: &str) -> Result<()> {
    match ["success", "failure", "partial"].contains(&outcome) {
        true => Ok(()),
        false => Err(KnowledgeError::Request(format!(
            "`{outcome}` is no outcome; they are: success, failure, partial"
        ))),
    }
}

fn statistics(outcomes: BTreeMap<String, u32>) -> Statistics {
    let all: u32 = outcomes.values().sum();
    let good = outcomes.get("success").copied().unwrap_or(0);
    let success_rate = (all > 0).then(|| f64::from(good) / f64::from(all));
    Statistics {
        suggest_alternative: success_rate.is_some_and(|rate| rate < 0.5),
        success_rate,
        outcomes,
    }
}
