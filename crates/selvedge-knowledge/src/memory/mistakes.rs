//! Mistakes and how they were put right, shared by all sessions of a project.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::likeness::likeness;
use crate::error::Result;
use crate::store::Index;
use crate::time::Time;

/// What a new report is worth, and what each recurrence adds.
const CONFIDENCE: f64 = 0.7;
const CONFIDENCE_STEP: f64 = 0.05;
/// What a mistake loses in a year without being seen.
const FADING: f64 = 0.5;
/// Patterns this much alike are the same mistake.
const ALIKE: f64 = 0.75;
/// An approach this much like a pattern is warned of.
const RESEMBLES: f64 = 0.6;
/// What has faded to less is not mentioned any more.
const CONFIDENCE_MIN: f64 = 0.2;

/// A report of a mistake.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MistakeReport {
    /// What was done.
    pub pattern: String,
    /// What went wrong.
    pub error: String,
    /// What put it right.
    pub fix: String,
    /// Where.
    #[serde(default)]
    pub context: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A mistake on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mistake {
    /// Its number.
    pub id: i64,
    /// What was done.
    pub pattern: String,
    /// What went wrong.
    pub error: String,
    /// What put it right.
    pub fix: String,
    /// Where.
    pub context: String,
    /// Words to find it by, and whose report it is.
    pub tags: Vec<String>,
    /// From 0 to 1: rises when it recurs, fades when it does not.
    pub confidence: f64,
    /// How often it was reported.
    pub occurrences: u32,
    /// When last.
    pub last: Time,
}

impl Index {
    /// Records a mistake; one that is on record already has recurred.
    pub fn report_mistake(&self, report: &MistakeReport) -> Result<Mistake> {
        let now = self.now();
        self.transaction(|index| {
            let known = index.mistakes()?.into_iter().find(|known| {
                likeness(&known.pattern, &report.pattern) >= ALIKE
                    && (known.context.is_empty()
                        || report.context.is_empty()
                        || likeness(&known.context, &report.context) >= 0.3)
            });
            let tags = serde_json::to_string(&report.tags).expect("a list of words");
            let id = match known {
                Some(known) => {
                    let confidence = (known.confidence + CONFIDENCE_STEP).min(1.0);
                    index.connection.execute(
                        "UPDATE mistakes SET occurrences = occurrences + 1, last = ?2, \
                            confidence = ?3, fix = ?4, tags = ?5 WHERE key = ?1",
                        params![known.id, now.0, confidence, report.fix, tags],
                    )?;
                    known.id
                }
                None => {
                    index.connection.execute(
                        "INSERT INTO mistakes (pattern, error, fix, context, tags, confidence, \
                            occurrences, created, last) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?7)",
                        params![
                            report.pattern,
                            report.error,
                            report.fix,
                            report.context,
                            tags,
                            CONFIDENCE,
                            now.0
                        ],
                    )?;
                    index.connection.last_insert_rowid()
                }
            };
            let sql = format!("SELECT {COLUMNS} FROM mistakes WHERE key = ?1");
            Ok(index.connection.query_row(&sql, [id], read)?)
        })
    }

    /// The known mistakes that an approach resembles, the surest first.
    pub fn check_mistakes(&self, approach: &str) -> Result<Vec<Mistake>> {
        let now = self.now();
        let mut found = self.mistakes()?;
        found.retain(|mistake| likeness(approach, &mistake.pattern) >= RESEMBLES);
        for mistake in &mut found {
            let years = now.days_since(mistake.last) / 365.0;
            mistake.confidence *= (1.0 - FADING).powf(years);
        }
        found.retain(|mistake| mistake.confidence >= CONFIDENCE_MIN);
        found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        Ok(found)
    }

    fn mistakes(&self) -> Result<Vec<Mistake>> {
        let sql = format!("SELECT {COLUMNS} FROM mistakes ORDER BY last DESC LIMIT 2000");
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map([], read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

const COLUMNS: &str = "key, pattern, error, fix, context, confidence, occurrences, last, tags";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Mistake> {
    let tags: String = row.get(8)?;
    Ok(Mistake {
        id: row.get(0)?,
        pattern: row.get(1)?,
        error: row.get(2)?,
        fix: row.get(3)?,
        context: row.get(4)?,
        confidence: row.get(5)?,
        occurrences: row.get(6)?,
        last: Time(row.get(7)?),
        tags: serde_json::from_str(&tags).unwrap_or_default(),
    })
}
