//! The words of nodes: two full-text tables, one of words and one of whole identifiers.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, params, params_from_iter};

use super::{Index, Row};
use crate::error::Result;
use crate::filter::Filter;
use crate::node::Node;
use crate::words::{identifiers, is_identifier_like, spread};

/// What a match counts for, by column: name, doc, path, body, context. Chosen on the
/// sources that `tests/it/quality.rs` calls those to tune by.
const WORD_WEIGHTS: &str = "10.0, 3.0, 4.0, 1.0, 0.6";
/// The same for identifiers: defined here, used here.
const IDENTIFIER_WEIGHTS: &str = "8.0, 1.0";
/// How many texts the words of one question may match before its commonest words are
/// left to the others: ranking costs about a microsecond each.
const MATCHES_MAX: i64 = 12_000;
/// How much more is fetched than is wanted, because some may be superseded.
const SPARE: usize = 2;

impl Index {
    pub(super) fn put_words(&self, row: Row, node: &Node) -> Result<()> {
        let path = node.path.as_deref().unwrap_or_default();
        let place = spread(&format!("{path} {}", node.owner()));
        let mut tags = node.tags.join(" ");
        if let Some(category) = &node.category {
            tags.push(' ');
            tags.push_str(category);
        }
        let body = format!("{} {}", spread(&node.signature), spread(&node.content));
        let doc = format!("{} {}", spread(&node.doc), spread(&tags));
        let mut put = self.connection.prepare_cached(
            "INSERT INTO words (rowid, name, doc, path, body, context)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        put.execute(params![
            row,
            spread(&node.name),
            doc,
            place,
            body,
            spread(&node.context)
        ])?;
        let mut seen = HashSet::new();
        let used: Vec<&str> = identifiers(&node.signature)
            .chain(identifiers(&node.content))
            .filter(|word| is_identifier_like(word) && seen.insert(*word))
            .collect();
        let mut put = self
            .connection
            .prepare_cached("INSERT INTO identifiers (rowid, defined, used) VALUES (?1, ?2, ?3)")?;
        put.execute(params![row, node.name, used.join(" ")])?;
        Ok(())
    }

    pub(super) fn forget_words(&self, row: Row) -> Result<()> {
        for table in ["words", "identifiers"] {
            let sql = format!("DELETE FROM {table} WHERE rowid = ?1");
            self.connection.prepare_cached(&sql)?.execute([row])?;
        }
        Ok(())
    }

    /// The nodes that have these words and how well they match, the best first.
    pub(crate) fn with_words(
        &self,
        words: &[String],
        filter: &Filter,
        count: usize,
    ) -> Result<Vec<(Row, f32)>> {
        let words = self.affordable(words)?;
        self.matching("words", WORD_WEIGHTS, &words, filter, count)
    }

    /// The nodes that define or use these identifiers, the best first.
    pub(crate) fn with_identifiers(
        &self,
        names: &[String],
        filter: &Filter,
        count: usize,
    ) -> Result<Vec<(Row, f32)>> {
        self.matching("identifiers", IDENTIFIER_WEIGHTS, names, filter, count)
    }

    fn matching(
        &self,
        table: &str,
        weights: &str,
        words: &[String],
        filter: &Filter,
        count: usize,
    ) -> Result<Vec<(Row, f32)>> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let question = quoted.join(" OR ");
        // The ranking function calls the best match the least.
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, -row.get::<_, f64>(1)? as f32));
        if filter.is_narrow() {
            let (condition, values) = filter.sql();
            let sql = format!(
                "SELECT t.rowid, bm25({table}, {weights}) FROM {table} t
                 JOIN nodes n ON n.key = t.rowid WHERE t.{table} MATCH ? AND {condition}
                 ORDER BY 2, t.rowid LIMIT {count}"
            );
            let mut find = self.connection.prepare_cached(&sql)?;
            let values = std::iter::once(question.into()).chain(values);
            let rows = find.query_map(params_from_iter(values), read)?;
            return Ok(rows.collect::<rusqlite::Result<_>>()?);
        }
        // Without a filter, who is superseded is looked up for the best only.
        let sql = format!(
            "SELECT rowid, bm25({table}, {weights}) FROM {table} WHERE {table} MATCH ?1
             ORDER BY 2, rowid LIMIT {}",
            count * SPARE
        );
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map([question], read)?;
        let mut rows = rows.collect::<rusqlite::Result<Vec<(Row, f32)>>>()?;
        if !filter.with_superseded {
            let superseded = self.superseded_among(&rows)?;
            rows.retain(|(row, _)| !superseded.contains(row));
        }
        rows.truncate(count);
        Ok(rows)
    }

    fn superseded_among(&self, rows: &[(Row, f32)]) -> Result<HashSet<Row>> {
        let mut find = self
            .connection
            .prepare_cached("SELECT 1 FROM nodes WHERE key = ?1 AND superseded_by IS NOT NULL")?;
        let mut superseded = HashSet::new();
        for (row, _) in rows {
            if find.exists([row])? {
                superseded.insert(*row);
            }
        }
        Ok(superseded)
    }

    /// Whether anything is called by this word.
    pub(crate) fn is_called(&self, word: &str) -> Result<bool> {
        let mut find = self
            .connection
            .prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1")?;
        Ok(find.exists([format!("name : {}", quote(word))])?)
    }

    /// The words that can be afforded, the rarest first: at least two, and more as long
    /// as they do not match too much.
    fn affordable(&self, words: &[String]) -> Result<Vec<String>> {
        let mut counted = Vec::new();
        for word in words {
            counted.push((self.frequency(word)?, word.clone()));
        }
        counted.sort();
        let mut matches = 0;
        let mut affordable = Vec::new();
        for (frequency, word) in counted {
            if affordable.len() >= 2 && matches + frequency > MATCHES_MAX {
                break;
            }
            matches += frequency;
            affordable.push(word);
        }
        Ok(affordable)
    }

    /// In how many texts a word occurs, nearly: the vocabulary holds porter's stems, and
    /// the likeliest of them are tried.
    fn frequency(&self, word: &str) -> Result<i64> {
        let mut find = self
            .connection
            .prepare_cached("SELECT doc FROM words_vocabulary WHERE term = ?1")?;
        let stem = crate::words::stem(word);
        let mut most = 0;
        for form in [
            word.to_owned(),
            stem.to_owned(),
            format!("{stem}i"),
            format!("{}i", word.trim_end_matches('y')),
            word.trim_end_matches('e').to_owned(),
        ] {
            let found: Option<i64> = find.query_row([form], |row| row.get(0)).optional()?;
            most = most.max(found.unwrap_or(0));
        }
        Ok(most)
    }
}

/// A word as a question takes it literally.
fn quote(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}
