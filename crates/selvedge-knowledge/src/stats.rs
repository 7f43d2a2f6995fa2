//! What an index holds, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::embed::Model;
use crate::error::Result;
use crate::kind::NodeType;
use crate::memory::AnswerStats;
use crate::store::Index;
use crate::time::Time;

/// What an index holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// The project's folder, or the corpus.
    pub root: Option<String>,
    /// When it was last brought up to date.
    pub indexed: Option<Time>,
    /// Who made its vectors.
    pub embedder: Model,
    /// Files, by language.
    pub files: BTreeMap<String, u64>,
    /// Lines of all files.
    pub lines: u64,
    /// Nodes, by type.
    pub nodes: BTreeMap<&'static str, u64>,
    /// Edges.
    pub edges: u64,
    /// Vectors.
    pub vectors: u64,
    /// Conflicts that nobody has settled.
    pub conflicts: u64,
    /// Failures on record.
    pub failures: u64,
    /// What the cache of answers has done.
    pub answers: AnswerStats,
    /// Bytes on disk.
    pub bytes: u64,
}

impl Index {
    /// How many passages of a file it holds.
    pub fn passages_of(&self, path: &str) -> Result<u64> {
        let sql = "SELECT count(*) FROM nodes n JOIN files f ON n.file = f.key WHERE f.path = ?1";
        Ok(self.connection.query_row(sql, [path], |row| row.get(0))?)
    }

    /// What it holds.
    pub fn stats(&self) -> Result<Stats> {
        let one = |sql: &str| -> Result<u64> {
            Ok(self.connection.query_row(sql, [], |row| row.get(0))?)
        };
        let mut files = BTreeMap::new();
        let mut find = self
            .connection
            .prepare("SELECT language, count(*) FROM files GROUP BY language")?;
        let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            let (language, count): (String, u64) = row?;
            files.insert(language, count);
        }
        let mut nodes = BTreeMap::new();
        let mut find = self
            .connection
            .prepare("SELECT type, count(*) FROM nodes GROUP BY type")?;
        let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            let (code, count): (i64, u64) = row?;
            let name = NodeType::from_code(code).map_or("other", NodeType::name);
            nodes.insert(name, count);
        }
        let root = match self.remark("root")? {
            Some(root) => Some(root),
            None => self.remark("corpus")?,
        };
        let indexed = self.remark("indexed")?;
        Ok(Stats {
            root,
            indexed: indexed.and_then(|time| time.parse().ok()).map(Time),
            embedder: self.stored_model()?.unwrap_or(self.embedder().model()),
            files,
            lines: one("SELECT coalesce(sum(line_count), 0) FROM files")?,
            nodes,
            edges: one("SELECT count(*) FROM edges")?,
            vectors: one("SELECT count(*) FROM vectors")?,
            conflicts: one("SELECT count(*) FROM conflicts WHERE resolved IS NULL")?,
            failures: one("SELECT count(*) FROM failures")?,
            answers: self.answer_stats()?,
            bytes: one("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
        })
    }
}
