//! The vectors that are still to be made, where an embedder is slow.
//!
//! Files are stored with their words and found by them at once. Which vectors are missing
//! is a question to the tables, so there is no list that could be wrong after a kill:
//! whoever comes next goes on where the last one stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Index, Row};
use crate::error::Result;
use crate::indexer::Progress;
use crate::node::Node;

/// Texts that are embedded and stored together: a second's work of a local model.
const BATCH: usize = 32;

/// A node that has something to say and no vector.
const MISSING: &str = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.node = n.key)
    AND (n.content <> '' OR n.doc <> '' OR n.signature <> '')";

impl Index {
    /// How many vectors are still to be made.
    pub fn vectors_missing(&self) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM nodes n WHERE {MISSING}");
        let count: i64 = self.connection.query_row(&sql, [], |row| row.get(0))?;
        Ok(count as usize)
    }

    /// Makes the vectors that are missing, at most so many, until told to stop. Tells how
    /// many were made; what was made stays, whatever happens then.
    pub fn make_vectors(
        &self,
        most: usize,
        stop: &AtomicBool,
        progress: &dyn Fn(Progress),
    ) -> Result<usize> {
        if self.embedder().is_away().is_some() {
            return Ok(0);
        }
        let total = self.vectors_missing()?.min(most);
        let (mut done, mut made, mut after) = (0, 0, 0);
        while done < total && !stop.load(Ordering::Relaxed) {
            let some = self.without_vector(after, BATCH.min(total - done))?;
            let Some((last, _)) = some.last() else { break };
            after = *last;
            done += some.len();
            made += self.give_vectors(&some)?;
            progress(Progress { done, total });
        }
        Ok(made)
    }

    fn without_vector(&self, after: Row, count: usize) -> Result<Vec<(Row, Node)>> {
        let condition = format!("n.key > ?1 AND {MISSING} ORDER BY n.key");
        self.rows_where(&condition, after, count)
    }

    /// Embeds some nodes, and stores the vectors of those that are still what they were.
    fn give_vectors(&self, some: &[(Row, Node)]) -> Result<usize> {
        let nodes: Vec<&Node> = some.iter().map(|(_, node)| node).collect();
        let vectors = self.embed_nodes(&nodes)?;
        let model = self.embedder().model();
        self.transaction(|index| {
            let mut made = 0;
            // Another process may have gone over to another embedder meanwhile.
            if index.stored_model()?.as_ref() != Some(&model) {
                return Ok(made);
            }
            let mut is_there = index
                .connection
                .prepare_cached("SELECT 1 FROM nodes WHERE key = ?1 AND fingerprint = ?2")?;
            for ((row, node), vector) in some.iter().zip(&vectors) {
                if is_there.exists((row, node.fingerprint()))? {
                    index.put_vector(*row, node.domain(), vector)?;
                    made += 1;
                }
            }
            Ok(made)
        })
    }
}
