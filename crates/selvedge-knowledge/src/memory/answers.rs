//! Answers given again to the same question, in whatever words it is asked.
//!
//! The key is what is wanted and of what, not the wording. An answer is kept with the
//! files it rests on and their hashes; when one of them changes, it is gone. Empty answers
//! are not kept: a new file may hold a better one. A question that only asks for something
//! is also the same if its vector is nearly the same.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::embed::Vector;
use crate::error::Result;
use crate::store::Index;
use crate::time::Time;
use crate::words::telling;

/// Only questions that were understood this surely are looked up and kept.
const SURE: f64 = 0.8;
/// Answers that are kept at most; those asked for least go first.
const ANSWERS_MAX: i64 = 5_000;
/// Questions whose vectors are this much alike are the same, where no key says what is
/// meant: rephrased ones lie between 0.78 and 0.90.
const ALIKE: f32 = 0.8;

/// What a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Where something is.
    Locate,
    /// How something is usually done here.
    Pattern,
    /// How something works.
    Explain,
    /// Something else about the code.
    General,
    /// What was done before.
    Historical,
    /// What was done that is like this.
    Similar,
}

impl Intent {
    /// For how long an answer holds if nothing changes; for ever if `None`.
    fn minutes(self) -> Option<i64> {
        match self {
            Self::Locate => None,
            Self::Pattern => Some(60),
            Self::Explain | Self::Historical | Self::Similar => Some(30),
            Self::General => Some(15),
        }
    }

    /// Whether a subject that is nearly the same will do.
    fn is_by_likeness(self) -> bool {
        matches!(self, Self::General | Self::Similar)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Locate => "locate",
            Self::Pattern => "pattern",
            Self::Explain => "explain",
            Self::General => "general",
            Self::Historical => "historical",
            Self::Similar => "similar",
        }
    }
}

/// A question, as it is looked up.
#[derive(Clone, Debug)]
pub struct AnswerKey {
    /// What is wanted.
    pub intent: Intent,
    /// Of what.
    pub subject: String,
    /// How surely it was understood, from 0 to 1.
    pub confidence: f64,
}

impl AnswerKey {
    /// The subject in its plain form: its telling words, in order.
    fn plain(&self) -> String {
        let mut words = telling(&self.subject);
        words.sort();
        words.join(" ")
    }
}

/// An answer that was kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CachedAnswer {
    /// The whole of it, with its conflicts and warnings.
    pub reply: Value,
    /// When it was given first.
    pub created: Time,
    /// How often it was given again.
    pub hits: u32,
}

/// What the cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnswerStats {
    /// Answers that are kept.
    pub kept: u64,
    /// How often one of them was given again.
    pub hits: u64,
}

impl Index {
    /// The answer that was given to this question before, if it still holds.
    pub fn cached_answer(&self, key: &AnswerKey) -> Result<Option<CachedAnswer>> {
        if key.confidence < SURE {
            return Ok(None);
        }
        let (intent, mut subject) = (key.intent.name(), key.plain());
        if key.intent.is_by_likeness()
            && let Some(alike) = self.subject_like(intent, &subject)?
        {
            subject = alike;
        }
        let found: Option<(String, i64, u32, Option<i64>)> = self
            .connection
            .prepare_cached(
                "SELECT reply, created, hits, expires FROM answers
                 WHERE intent = ?1 AND subject = ?2 AND session = ''",
            )?
            .query_row(params![intent, subject], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .optional()?;
        let Some((reply, created, hits, expires)) = found else {
            return Ok(None);
        };
        let is_over = expires.is_some_and(|expires| expires <= self.now().0);
        if is_over || self.has_changed(intent, &subject)? {
            let sql = "DELETE FROM answers WHERE intent = ?1 AND subject = ?2";
            self.connection.execute(sql, params![intent, subject])?;
            return Ok(None);
        }
        self.connection.execute(
            "UPDATE answers SET hits = hits + 1 WHERE intent = ?1 AND subject = ?2",
            params![intent, subject],
        )?;
        let Ok(reply) = serde_json::from_str(&reply) else {
            return Ok(None);
        };
        Ok(Some(CachedAnswer {
            reply,
            created: Time(created),
            hits: hits + 1,
        }))
    }

    /// Keeps an answer that rests on these files of the index.
    pub fn keep_answer(&self, key: &AnswerKey, reply: &Value, files: &[String]) -> Result<bool> {
        if key.confidence < SURE || is_nothing(reply) {
            return Ok(false);
        }
        let (intent, subject) = (key.intent.name(), key.plain());
        let now = self.now();
        let expires = key
            .intent
            .minutes()
            .map(|minutes| now.minutes_after(minutes).0);
        // Without a vector it is found by its words.
        let vector = match key.intent.is_by_likeness() {
            true => self.vector_for(&subject).ok().flatten(),
            false => None,
        };
        let vector = vector.map(|vector| vector.to_bytes());
        self.transaction(|index| {
            let sql = "DELETE FROM answers WHERE intent = ?1 AND subject = ?2";
            index.connection.execute(sql, params![intent, subject])?;
            index.connection.execute(
                "INSERT INTO answers (intent, subject, reply, created, expires, vector)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![intent, subject, reply.to_string(), now.0, expires, vector],
            )?;
            for path in files {
                index.connection.execute(
                    "INSERT OR IGNORE INTO answer_sources (intent, subject, session, path, hash)
                     SELECT ?1, ?2, '', path, hash FROM files WHERE path = ?3",
                    params![intent, subject, path],
                )?;
            }
            index.connection.execute(
                "DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers
                 ORDER BY hits DESC, created DESC LIMIT -1 OFFSET ?1)",
                [ANSWERS_MAX],
            )?;
            Ok(true)
        })
    }

    /// The subject of an answer that is kept and most like this one.
    fn subject_like(&self, intent: &str, subject: &str) -> Result<Option<String>> {
        // An embedder that does not answer costs the likeness, not the answer.
        let Some(wanted) = self.vector_for(subject).ok().flatten() else {
            return Ok(None);
        };
        let mut find = self.connection.prepare_cached(
            "SELECT subject, vector FROM answers WHERE intent = ?1 AND vector IS NOT NULL",
        )?;
        let mut rows = find.query([intent])?;
        let mut best: Option<(f32, String)> = None;
        while let Some(row) = rows.next()? {
            let (other, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let stored = match self.embedder().is_sparse() {
                true => Vector::sparse_from(&bytes),
                false => Vector::dense_from(&bytes),
            };
            let likeness = wanted.likeness(&stored);
            if likeness >= ALIKE && best.as_ref().is_none_or(|(most, _)| likeness > *most) {
                best = Some((likeness, other));
            }
        }
        Ok(best.map(|(_, subject)| subject))
    }

    /// Forgets answers about history that something new may have changed.
    pub fn forget_answers_about(&self, topic: &str) -> Result<usize> {
        let mut gone = 0;
        for word in telling(topic) {
            gone += self.connection.execute(
                "DELETE FROM answers WHERE intent IN ('historical', 'similar')
                    AND (' ' || subject || ' ') LIKE '% ' || ?1 || ' %'",
                [word],
            )?;
        }
        Ok(gone)
    }

    /// What the cache has done so far.
    pub fn answer_stats(&self) -> Result<AnswerStats> {
        let sql = "SELECT count(*), coalesce(sum(hits), 0) FROM answers";
        Ok(self.connection.query_row(sql, [], |row| {
            Ok(AnswerStats {
                kept: row.get(0)?,
                hits: row.get(1)?,
            })
        })?)
    }

    /// Whether a file that an answer rests on is other than it was, or gone.
    fn has_changed(&self, intent: &str, subject: &str) -> Result<bool> {
        let mut find = self.connection.prepare_cached(
            "SELECT 1 FROM answer_sources s LEFT JOIN files f ON f.path = s.path
             WHERE s.intent = ?1 AND s.subject = ?2 AND (f.hash IS NULL OR f.hash <> s.hash)",
        )?;
        Ok(find.exists(params![intent, subject])?)
    }
}

fn is_nothing(reply: &Value) -> bool {
    match reply {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.get("status") == Some(&Value::from("no_matches")),
        _ => false,
    }
}
