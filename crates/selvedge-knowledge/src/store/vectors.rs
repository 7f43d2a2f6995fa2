//! The vectors of nodes: kept, made anew, and searched exactly.
//!
//! The search is exact, so a filter is applied before anything is cut off and a rare
//! domain is never starved by a common one.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, params};

use super::postings::{BLOCK, ENTRY_BYTES};
use super::{Index, Row};
use crate::embed::{Model, Piece, Vector, cosine, weight};
use crate::error::{KnowledgeError, Result};
use crate::filter::Filter;
use crate::kind::Domain;
use crate::node::Node;

/// Texts that are embedded at a time when all vectors are made anew.
const BATCH: usize = 256;
/// Lists are made anew when this many times more vectors are gone than are there.
const WASTE_MAX: i64 = 1;
/// Below this many it is not worth the while.
const WASTE_MIN: i64 = 4_000;

/// Takes every vector away, also those that answers are kept under.
const FORGET_VECTORS: &str =
    "DELETE FROM vectors; DELETE FROM postings; UPDATE answers SET vector = NULL;";

/// A node and how near it is, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub(crate) node: Row,
    /// The cosine of the angle between the two.
    pub similarity: f32,
}

impl Index {
    /// The vector of what a node is found by, made outside of any transaction.
    pub(crate) fn embed_nodes(&self, nodes: &[&Node]) -> Result<Vec<Vector>> {
        let texts: Vec<String> = nodes.iter().map(|node| embedded_text(node)).collect();
        let pieces: Vec<Piece<'_>> = nodes
            .iter()
            .zip(&texts)
            .map(|(node, text)| Piece {
                name: &node.name,
                text,
                before: &node.context,
            })
            .collect();
        let vectors = self.embedder().embed(&pieces);
        let vectors = vectors.map_err(|why| KnowledgeError::Embedding { why })?;
        if vectors.len() != nodes.len() {
            let why = format!("{} texts gave {} vectors", nodes.len(), vectors.len());
            return Err(KnowledgeError::Embedding { why });
        }
        Ok(vectors)
    }

    /// Stores a node's vector in place of the one it had.
    pub(super) fn put_vector(&self, node: Row, domain: Domain, vector: &Vector) -> Result<()> {
        let expected = self.embedder().model().dimensions;
        let fits = match vector {
            Vector::Dense(values) => values.len() == expected && !self.embedder().is_sparse(),
            Vector::Sparse(values) => {
                let within = |(dim, _): &(u16, u8)| usize::from(*dim) < expected;
                values.iter().all(within) && self.embedder().is_sparse()
            }
        };
        if !fits {
            let actual = match vector {
                Vector::Dense(values) => values.len(),
                Vector::Sparse(values) => values.len(),
            };
            return Err(KnowledgeError::Dimension { expected, actual });
        }
        self.forget_vector(node)?;
        if vector.is_empty() {
            return Ok(());
        }
        let key = self
            .connection
            .prepare_cached("INSERT INTO vectors (node, domain, embedding) VALUES (?1, ?2, ?3)")?
            .insert(params![node, domain.code(), vector.to_bytes()])?;
        if let Vector::Sparse(entries) = vector {
            self.post(key, domain, entries);
        }
        Ok(())
    }

    /// Removes a node's vector, which no longer says what the node does.
    pub(super) fn forget_vector(&self, node: Row) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM vectors WHERE node = ?1")?
            .execute([node])?;
        Ok(())
    }

    /// The vector of a node.
    pub(crate) fn vector_of(&self, node: Row) -> Result<Option<Vector>> {
        let mut find = self
            .connection
            .prepare_cached("SELECT embedding FROM vectors WHERE node = ?1")?;
        let bytes: Option<Vec<u8>> = find.query_row([node], |row| row.get(0)).optional()?;
        let read = match self.embedder().is_sparse() {
            true => Vector::sparse_from,
            false => Vector::dense_from,
        };
        Ok(bytes.map(|bytes| read(&bytes)))
    }

    /// The `count` nodes that are nearest to a vector, the nearest first.
    pub fn nearest(&self, to: &Vector, filter: &Filter, count: usize) -> Result<Vec<Near>> {
        match to {
            Vector::Sparse(entries) => self.nearest_sparse(entries, filter, count),
            Vector::Dense(values) => self.nearest_dense(values, filter, count),
        }
    }

    fn nearest_sparse(&self, to: &[(u16, u8)], filter: &Filter, count: usize) -> Result<Vec<Near>> {
        let last: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(max(key), 0) FROM vectors")?
            .query_row([], |row| row.get(0))?;
        let domains = filter.domains();
        let mut scores = vec![0.0f32; last as usize + 1];
        let mut length = 0.0f32;
        let mut lists = Vec::new();
        for (dimension, stored) in to {
            lists.clear();
            self.list(&domains, *dimension, |block, entries| {
                lists.push((block, entries));
            })?;
            let with: usize = lists.iter().map(|(_, e)| e.len() / ENTRY_BYTES).sum();
            let rarity = ((last as f32 + 1.0) / (with as f32 + 0.5)).ln().max(0.05);
            let wanted = weight(*stored) * rarity;
            length += wanted * wanted;
            for (block, entries) in &lists {
                let base = block * BLOCK;
                for entry in entries.chunks_exact(ENTRY_BYTES) {
                    let place = i64::from(u16::from_le_bytes([entry[0], entry[1]]));
                    if let Some(score) = scores.get_mut((base + place) as usize) {
                        *score += wanted * weight(entry[2]);
                    }
                }
            }
        }
        let length = length.sqrt().max(f32::MIN_POSITIVE);
        let mut found: Vec<(i64, f32)> = (0..)
            .zip(scores)
            .filter(|(_, score)| *score > 0.0)
            .map(|(key, score)| (key, score / length))
            .collect();
        self.best(&mut found, filter, count)
    }

    /// The best that pass the filter; those that share nothing come last.
    fn best(
        &self,
        found: &mut Vec<(i64, f32)>,
        filter: &Filter,
        count: usize,
    ) -> Result<Vec<Near>> {
        let allowed = self.allowed(filter)?;
        if let Some(allowed) = &allowed {
            found.retain(|(key, _)| allowed.contains(key));
        }
        let mut best = Vec::new();
        let mut node_of = self.connection.prepare_cached(
            "SELECT v.node, n.superseded_by IS NOT NULL FROM vectors v
             JOIN nodes n ON n.key = v.node WHERE v.key = ?1",
        )?;
        // A sort of what is needed, and again of the rest only if much of it was gone.
        let mut done = 0;
        while best.len() < count && done < found.len() {
            let rest = &mut found[done..];
            let some = (count * 2).clamp(1, rest.len());
            let by_score = |a: &(i64, f32), b: &(i64, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
            if some < rest.len() {
                rest.select_nth_unstable_by(some - 1, by_score);
            }
            rest[..some].sort_unstable_by(by_score);
            for (key, similarity) in &rest[..some] {
                let there: Option<(Row, bool)> = node_of
                    .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                // A list may name a vector that is gone.
                let Some((node, is_superseded)) = there else {
                    continue;
                };
                if is_superseded && !filter.with_superseded {
                    continue;
                }
                let similarity = similarity.min(1.0);
                best.push(Near { node, similarity });
            }
            done += some;
        }
        best.truncate(count);
        if best.len() < count && filter.is_narrow() {
            self.fill(&mut best, filter, count)?;
        }
        Ok(best)
    }

    /// Adds those that pass the filter and share nothing with the question.
    fn fill(&self, best: &mut Vec<Near>, filter: &Filter, count: usize) -> Result<()> {
        let there: HashSet<Row> = best.iter().map(|near| near.node).collect();
        let (condition, values) = filter.sql();
        let sql = format!(
            "SELECT n.key FROM vectors v JOIN nodes n ON n.key = v.node
             WHERE {condition} ORDER BY n.key LIMIT {}",
            count + there.len()
        );
        let mut find = self.connection.prepare_cached(&sql)?;
        let mut rows = find.query(rusqlite::params_from_iter(values))?;
        while let Some(row) = rows.next()?
            && best.len() < count
        {
            let node: Row = row.get(0)?;
            if !there.contains(&node) {
                best.push(Near {
                    node,
                    similarity: 0.0,
                });
            }
        }
        Ok(())
    }

    /// The vectors that pass a filter; `None` if nothing but the domain is asked for.
    fn allowed(&self, filter: &Filter) -> Result<Option<HashSet<i64>>> {
        if !filter.is_beyond_domains() {
            return Ok(None);
        }
        let (condition, values) = filter.sql();
        let sql =
            format!("SELECT v.key FROM nodes n JOIN vectors v ON v.node = n.key WHERE {condition}");
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map(rusqlite::params_from_iter(values), |row| row.get(0))?;
        Ok(Some(rows.collect::<rusqlite::Result<_>>()?))
    }

    fn nearest_dense(&self, to: &[f32], filter: &Filter, count: usize) -> Result<Vec<Near>> {
        let expected = self.embedder().model().dimensions;
        if to.len() != expected {
            let actual = to.len();
            return Err(KnowledgeError::Dimension { expected, actual });
        }
        let (condition, values) = filter.sql();
        // Without a filter, who is superseded is looked up for the best only.
        let sql = match filter.is_narrow() {
            true => format!(
                "SELECT n.key, v.embedding FROM vectors v JOIN nodes n ON n.key = v.node
                 WHERE {condition}"
            ),
            false => "SELECT node, embedding FROM vectors".to_owned(),
        };
        let values = match filter.is_narrow() {
            true => values,
            false => Vec::new(),
        };
        let mut find = self.connection.prepare_cached(&sql)?;
        let mut rows = find.query(rusqlite::params_from_iter(values))?;
        let mut found = Vec::new();
        let mut stored = Vec::with_capacity(expected);
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
            stored.clear();
            let value = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            stored.extend(bytes.chunks_exact(4).map(value));
            let similarity = cosine(to, &stored).clamp(0.0, 1.0);
            let node: Row = row.get(0)?;
            found.push(Near { node, similarity });
        }
        let by_likeness = |a: &Near, b: &Near| {
            b.similarity
                .total_cmp(&a.similarity)
                .then(a.node.cmp(&b.node))
        };
        found.sort_unstable_by(by_likeness);
        if !filter.is_narrow() && !filter.with_superseded {
            let mut is_superseded = self.connection.prepare_cached(
                "SELECT 1 FROM nodes WHERE key = ?1 AND superseded_by IS NOT NULL",
            )?;
            let mut current = Vec::with_capacity(count);
            for near in found {
                if current.len() == count {
                    break;
                }
                if !is_superseded.exists([near.node])? {
                    current.push(near);
                }
            }
            return Ok(current);
        }
        found.truncate(count);
        Ok(found)
    }

    /// Makes every vector anew, by today's embedder, in one transaction.
    pub(super) fn re_embed(&self, model: &Model) -> Result<()> {
        let stored = serde_json::to_string(model).expect("a name and a number");
        if self.embedder().is_slow() {
            // They are made one after the other, by `make_vectors`.
            return self.transaction(|index| {
                index.connection.execute_batch(FORGET_VECTORS)?;
                index.set_remark("embedder", &stored)
            });
        }
        // Made before the transaction, for it may take long; what is indexed meanwhile
        // by somebody else would get vectors of the old kind, so that is looked for.
        let mut made: Vec<(Row, Domain, Vector)> = Vec::new();
        let mut after = 0;
        loop {
            let some = self.nodes_after(after, BATCH)?;
            let Some((last, _)) = some.last() else { break };
            after = *last;
            let nodes: Vec<&Node> = some.iter().map(|(_, node)| node).collect();
            let vectors = self.embed_nodes(&nodes)?;
            for ((row, node), vector) in some.iter().zip(vectors) {
                made.push((*row, node.domain(), vector));
            }
        }
        self.transaction(|index| {
            index.connection.execute_batch(FORGET_VECTORS)?;
            for (row, domain, vector) in &made {
                let is_there = index
                    .connection
                    .prepare_cached("SELECT 1 FROM nodes WHERE key = ?1")?
                    .exists([row])?;
                if is_there {
                    index.put_vector(*row, *domain, vector)?;
                }
            }
            index.set_remark("embedder", &stored)
        })
    }

    /// Writes the lists anew when most of what they name is gone.
    pub(crate) fn tidy_postings(&self) -> Result<bool> {
        let (there, last): (i64, i64) = self.connection.query_row(
            "SELECT count(*), coalesce(max(key), 0) FROM vectors",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if last - there < WASTE_MIN
            || last - there < there * WASTE_MAX
            || !self.embedder().is_sparse()
        {
            return Ok(false);
        }
        self.transaction(|index| {
            let mut all = index
                .connection
                .prepare("SELECT node, domain, embedding FROM vectors ORDER BY key")?;
            let read = |row: &rusqlite::Row<'_>| {
                let domain: i64 = row.get(1)?;
                Ok((row.get::<_, Row>(0)?, domain, row.get::<_, Vec<u8>>(2)?))
            };
            let all: Vec<(Row, i64, Vec<u8>)> =
                all.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
            index.connection.execute_batch(
                "DELETE FROM vectors; DELETE FROM postings;
                 DELETE FROM sqlite_sequence WHERE name = 'vectors';",
            )?;
            for (node, domain, bytes) in all {
                let domain = Domain::from_code(domain).unwrap_or(Domain::Code);
                index.put_vector(node, domain, &Vector::sparse_from(&bytes))?;
            }
            Ok(true)
        })
    }
}

/// What a node is embedded as, beside its name. A vector of pieces of words knows what a
/// turn answers only if it is told, as the lists of words are; one of meanings is blurred
/// by it. What is said itself counts for more than what was said before.
pub(crate) fn embedded_text(node: &Node) -> String {
    let path = node.path.as_deref().unwrap_or_default();
    // The folders say what it belongs to; the extension says nothing.
    let path = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let tags = node.tags.join(" ");
    let owner = node.owner();
    // What it belongs to counts twice: a method rarely repeats the name of its type.
    format!(
        "{} {} {path} {owner} {owner} {tags} {}",
        node.doc, node.signature, node.content
    )
}
