//! What the user prefers: said, observed, or only for this session.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::Index;
use crate::time::Time;

/// What a newly observed preference is worth.
const OBSERVED: f64 = 0.6;
/// What agreement adds, and rejection takes.
const AGREED: f64 = 0.1;
const REJECTED: f64 = 0.2;
/// Observed preferences of less are not used.
const USABLE: f64 = 0.6;
/// Evidence that is kept of one preference.
const EVIDENCE_MAX: usize = 20;

/// Where a preference comes from. The later stands above the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It was observed.
    Implicit,
    /// It was said.
    Explicit,
    /// It was said for this session.
    Session,
}

/// A preference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preference {
    /// What it is about: `code_style`, `ui`, `workflow`, `tools`…
    pub category: String,
    /// Which one.
    pub name: String,
    /// What is preferred.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
    /// From 0 to 1.
    pub confidence: f64,
    /// When it was said or last observed.
    pub observed: Time,
    /// What it rests on: who has kept it, or what was observed.
    pub evidence: Vec<String>,
}

/// What the user made of a suggestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It was taken.
    Accepted,
    /// It was refused.
    Rejected,
}

impl Index {
    /// Keeps what was said; with a session, for that session only. `evidence` is whose word
    /// it is that it was said.
    pub fn set_preference(
        &self,
        category: &str,
        name: &str,
        value: &str,
        session: Option<&str>,
        evidence: &str,
    ) -> Result<()> {
        let origin = match session {
            Some(_) => "session",
            None => "explicit",
        };
        self.write_preference(
            category,
            name,
            origin,
            session.unwrap_or_default(),
            value,
            1.0,
            &[evidence.to_owned()],
        )
    }

    /// Learns from a suggestion and what became of it.
    pub fn observe_preference(
        &self,
        category: &str,
        name: &str,
        suggestion: &str,
        reaction: Reaction,
        evidence: &str,
    ) -> Result<()> {
        self.transaction(|index| {
            let known: Option<(String, f64, String)> = index
                .connection
                .prepare_cached(
                    "SELECT value, confidence, evidence FROM preferences
                     WHERE category = ?1 AND name = ?2 AND origin = 'implicit'",
                )?
                .query_row([category, name], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let (value, confidence, mut all) = match (known, reaction) {
                (None, Reaction::Rejected) => return Ok(()),
                (None, Reaction::Accepted) => (suggestion.to_owned(), OBSERVED, Vec::new()),
                (Some((value, confidence, all)), reaction) => {
                    let all: Vec<String> = serde_json::from_str(&all).unwrap_or_default();
                    match (value == suggestion, reaction) {
                        (true, Reaction::Accepted) => (value, (confidence + AGREED).min(1.0), all),
                        (true, Reaction::Rejected) => {
                            (value, (confidence - REJECTED).max(0.0), all)
                        }
                        // A rejection of something else says nothing about this.
                        (false, Reaction::Rejected) => return Ok(()),
                        // One acceptance of another value weakens a strong preference; it
                        // replaces only one that was weak already.
                        (false, Reaction::Accepted) if confidence - REJECTED >= OBSERVED => {
                            (value, confidence - REJECTED, all)
                        }
                        (false, Reaction::Accepted) => {
                            (suggestion.to_owned(), OBSERVED, Vec::new())
                        }
                    }
                }
            };
            all.push(evidence.to_owned());
            let skip = all.len().saturating_sub(EVIDENCE_MAX);
            index.write_preference(
                category,
                name,
                "implicit",
                "",
                &value,
                confidence,
                &all[skip..],
            )
        })
    }

    /// What holds in a session, in one category or in all: for each name the preference
    /// of the highest standing.
    pub fn preferences(&self, category: Option<&str>, session: &str) -> Result<Vec<Preference>> {
        let mut find = self.connection.prepare_cached(
            "SELECT category, name, value, origin, confidence, observed, evidence
             FROM preferences
             WHERE (?1 IS NULL OR category = ?1) AND (session = '' OR session = ?2)
             ORDER BY category, name",
        )?;
        let rows = find.query_map(params![category, session], |row| {
            let (origin, evidence): (String, String) = (row.get(3)?, row.get(6)?);
            Ok(Preference {
                category: row.get(0)?,
                name: row.get(1)?,
                value: row.get(2)?,
                origin: match origin.as_str() {
                    "session" => Origin::Session,
                    "explicit" => Origin::Explicit,
                    _ => Origin::Implicit,
                },
                confidence: row.get(4)?,
                observed: Time(row.get(5)?),
                evidence: serde_json::from_str(&evidence).unwrap_or_default(),
            })
        })?;
        let mut held: Vec<Preference> = Vec::new();
        for preference in rows {
            let preference = preference?;
            if preference.origin == Origin::Implicit && preference.confidence < USABLE {
                continue;
            }
            match held.last_mut() {
                Some(last)
                    if (&last.category, &last.name) == (&preference.category, &preference.name) =>
                {
                    if preference.origin > last.origin {
                        *last = preference;
                    }
                }
                _ => held.push(preference),
            }
        }
        Ok(held)
    }

    #[allow(clippy::too_many_arguments)]
    fn write_preference(
        &self,
        category: &str,
        name: &str,
        origin: &str,
        session: &str,
        value: &str,
        confidence: f64,
        evidence: &[String],
    ) -> Result<()> {
        let evidence = serde_json::to_string(evidence).expect("a list of words");
        self.connection.execute(
            "INSERT INTO preferences (category, name, origin, session, value, confidence, \
                evidence, observed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET value = excluded.value, confidence = excluded.confidence, \
                evidence = excluded.evidence, observed = excluded.observed",
            params![
                category,
                name,
                origin,
                session,
                value,
                confidence,
                evidence,
                self.now().0
            ],
        )?;
        Ok(())
    }
}
