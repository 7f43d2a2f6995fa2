//! Nodes: put, found, listed, superseded, forgotten.

use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, params, params_from_iter};
use serde::{Deserialize, Serialize};

use super::Index;
use crate::embed::Vector;
use crate::error::{KnowledgeError, Result};
use crate::filter::Filter;
use crate::kind::{EdgeType, NodeType, SourceType, Verification};
use crate::node::Node;
use crate::time::Time;

/// A node's place in the file.
pub(crate) type Row = i64;

/// The columns that [`read_node`] reads, of a node `n`.
pub(crate) const COLUMNS: &str = "n.key, n.id, n.type, n.name, n.path, n.line_start, n.line_end, \
    n.signature, n.doc, n.content, n.context, n.session, n.category, n.time, n.url, n.tags, \
    n.metadata, n.verified, n.verification, n.confidence, n.trust, n.created, n.expires, \
    (SELECT s.id FROM nodes s WHERE s.key = n.superseded_by), n.promoted";

/// The order of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The oldest first.
    Chronological,
    /// The newest first.
    NewestFirst,
    /// By file and line.
    ByPlace,
}

/// Where a node comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// What kind of source it is.
    pub source_type: SourceType,
    /// The node it was taken from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<String>,
    /// The file it was taken from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The address it was taken from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub url: Option<String>,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// When it was found to hold.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verified_at: Option<Time>,
}

impl Index {
    /// Stores nodes with their vectors: all of them, or none. What was there under the
    /// same id is replaced, and keeps its edges.
    pub fn put(&self, nodes: &[Node]) -> Result<()> {
        let borrowed: Vec<&Node> = nodes.iter().collect();
        let vectors = self.embed_nodes(&borrowed)?;
        self.transaction(|index| {
            for (node, vector) in nodes.iter().zip(&vectors) {
                index.put_embedded(node, None, Some(vector))?;
            }
            Ok(())
        })
    }

    /// Stores a node whose vector was made already, or is made later, as part of a
    /// transaction. Tells its place, and whether anything it is found by has changed.
    pub(crate) fn put_embedded(
        &self,
        node: &Node,
        file: Option<i64>,
        vector: Option<&Vector>,
    ) -> Result<(Row, bool)> {
        let fingerprint = node.fingerprint();
        let mut find = self
            .connection
            .prepare_cached("SELECT key, fingerprint FROM nodes WHERE id = ?1")?;
        let there: Option<(Row, Vec<u8>)> = find
            .query_row([&node.id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let is_new = there.is_none();
        let row = self.write_row(node, file, &fingerprint)?;
        let is_same = there.is_some_and(|(_, before)| before == fingerprint);
        if is_same {
            return Ok((row, false));
        }
        if !is_new {
            self.forget_words(row)?;
        }
        self.put_words(row, node)?;
        match vector {
            Some(vector) => self.put_vector(row, node.domain(), vector)?,
            None => self.forget_vector(row)?,
        }
        Ok((row, true))
    }

    fn write_row(&self, node: &Node, file: Option<i64>, fingerprint: &[u8]) -> Result<Row> {
        let now = self.now();
        let created = match node.created {
            Time(0) => now,
            given => given,
        };
        let tags = serde_json::to_string(&node.tags).expect("a list of words");
        let metadata = serde_json::to_string(&node.metadata).expect("a map with string keys");
        let (first, last) = node.lines.unzip();
        let mut put = self.connection.prepare_cached(
            "INSERT INTO nodes (id, domain, type, name, file, path, line_start, line_end, \
                signature, doc, content, context, session, category, time, url, tags, metadata, \
                fingerprint, verified, verification, confidence, trust, created, updated, \
                expires, promoted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
                ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)
             ON CONFLICT (id) DO UPDATE SET domain = excluded.domain, type = excluded.type, \
                name = excluded.name, file = excluded.file, path = excluded.path, \
                line_start = excluded.line_start, line_end = excluded.line_end, \
                signature = excluded.signature, doc = excluded.doc, content = excluded.content, \
                context = excluded.context, session = excluded.session, \
                category = excluded.category, time = excluded.time, url = excluded.url, \
                tags = excluded.tags, metadata = excluded.metadata, \
                fingerprint = excluded.fingerprint, verified = excluded.verified, \
                verification = excluded.verification, confidence = excluded.confidence, \
                trust = coalesce(excluded.trust, trust), updated = excluded.updated, \
                expires = excluded.expires, promoted = max(promoted, excluded.promoted)
             RETURNING key",
        )?;
        let row = put.query_row(
            params![
                node.id,
                node.domain().code(),
                node.node_type.code(),
                node.name,
                file,
                node.path,
                first,
                last,
                node.signature,
                node.doc,
                node.content,
                node.context,
                node.session,
                node.category,
                node.time.map(|t| t.0),
                node.url,
                tags,
                metadata,
                fingerprint,
                node.verified,
                node.verification.code(),
                node.confidence,
                node.trust,
                created.0,
                now.0,
                node.expires.map(|t| t.0),
                node.promoted,
            ],
            |row| row.get(0),
        )?;
        Ok(row)
    }

    /// The place of a node.
    pub(crate) fn row_of(&self, id: &str) -> Result<Row> {
        let mut find = self
            .connection
            .prepare_cached("SELECT key FROM nodes WHERE id = ?1")?;
        let row = find.query_row([id], |row| row.get(0)).optional()?;
        row.ok_or_else(|| KnowledgeError::NoNode { id: id.into() })
    }

    /// The node with this id, or the only one with this name.
    pub fn node(&self, id: &str) -> Result<Node> {
        let no_node = || KnowledgeError::NoNode { id: id.into() };
        match self.nodes_where("n.id = ?", vec![Sql::from(id.to_owned())], 1)? {
            found if !found.is_empty() => found.into_iter().next().ok_or_else(no_node),
            _ => {
                let mut named = self.named(id)?;
                match named.len() {
                    1 => named.pop().ok_or_else(no_node),
                    _ => Err(no_node()),
                }
            }
        }
    }

    /// The node at a place.
    pub(crate) fn node_at(&self, row: Row) -> Result<Option<Node>> {
        Ok(self
            .nodes_where("n.key = ?", vec![Sql::from(row)], 1)?
            .into_iter()
            .next())
    }

    /// The symbols with this name, written as `name` or `Type.name` or `path#name`.
    pub fn named(&self, name: &str) -> Result<Vec<Node>> {
        let (path, name) = match name.rsplit_once('#') {
            Some((path, name)) => (Some(path.trim_start_matches("code:")), name),
            None => (None, name),
        };
        let qualified = name.replace("::", ".");
        let short = qualified.rsplit('.').next().unwrap_or_default().to_owned();
        let mut found = self.nodes_where(
            "n.name = ? COLLATE NOCASE AND n.domain = 0 ORDER BY n.name = ? DESC, n.key",
            vec![Sql::from(short.clone()), Sql::from(short.clone())],
            200,
        )?;
        if short != qualified {
            let tail = format!(".{qualified}");
            let is_meant = |node: &Node| {
                let whole = node.id.rsplit_once('#').map_or("", |(_, name)| name);
                whole == qualified || whole.ends_with(&tail)
            };
            found.retain(is_meant);
        }
        if let Some(path) = path {
            found.retain(|node| node.path.as_deref() == Some(path));
        }
        // Where the name is written just so, other spellings are not meant.
        if found.iter().any(|node| node.name == short) {
            found.retain(|node| node.name == short);
        }
        Ok(found)
    }

    /// The nodes that pass a filter, in an order.
    pub fn list_nodes(&self, filter: &Filter, order: Listing, limit: usize) -> Result<Vec<Node>> {
        let (condition, values) = filter.sql();
        let order = match order {
            Listing::Chronological => "coalesce(n.time, n.created), n.key",
            Listing::NewestFirst => "coalesce(n.time, n.created) DESC, n.key DESC",
            Listing::ByPlace => "n.path, n.line_start, n.key",
        };
        self.nodes_where(&format!("{condition} ORDER BY {order}"), values, limit)
    }

    /// The nodes of a file, by line.
    pub fn in_file(&self, path: &str, types: &[NodeType], limit: usize) -> Result<Vec<Node>> {
        let filter = Filter {
            types: types.to_vec(),
            with_superseded: true,
            ..Filter::default()
        };
        let (condition, mut values) = filter.sql();
        values.push(Sql::from(path.to_owned()));
        self.nodes_where(
            &format!("{condition} AND n.path = ? ORDER BY n.line_start, n.key"),
            values,
            limit,
        )
    }

    pub(crate) fn nodes_where(
        &self,
        condition: &str,
        values: Vec<Sql>,
        limit: usize,
    ) -> Result<Vec<Node>> {
        let sql = format!("SELECT {COLUMNS} FROM nodes n WHERE {condition} LIMIT {limit}");
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map(params_from_iter(values), |row| Ok(read_node(row)?.1))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Some nodes after a place, in order of place.
    pub(crate) fn nodes_after(&self, after: Row, limit: usize) -> Result<Vec<(Row, Node)>> {
        self.rows_where("n.key > ?1 ORDER BY n.key", after, limit)
    }

    pub(super) fn rows_where(
        &self,
        condition: &str,
        after: Row,
        limit: usize,
    ) -> Result<Vec<(Row, Node)>> {
        let sql = format!("SELECT {COLUMNS} FROM nodes n WHERE {condition} LIMIT {limit}");
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map([after], read_node)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Removes nodes, with everything that hangs on them. Tells how many there were.
    pub fn forget(&self, ids: &[&str]) -> Result<usize> {
        self.transaction(|index| {
            let mut gone = 0;
            for id in ids {
                gone += index
                    .connection
                    .prepare_cached("DELETE FROM nodes WHERE id = ?1")?
                    .execute([id])?;
            }
            Ok(gone)
        })
    }

    /// Removes history that expired more than thirty days ago. Tells how much it was.
    pub fn clean_up(&self) -> Result<usize> {
        let before = self.now().days_before(30).0;
        self.transaction(|index| {
            let sql = "DELETE FROM nodes WHERE domain = 1 AND expires < ?1";
            Ok(index.connection.execute(sql, [before])?)
        })
    }

    /// Puts `new` in the place of `old`.
    pub fn supersede(&self, old: &str, new: &str) -> Result<()> {
        self.transaction(|index| {
            let (from, to) = (index.row_of(old)?, index.row_of(new)?);
            let mut at = Some(to);
            while let Some(row) = at {
                if row == from {
                    let (old, new) = (old.to_owned(), new.to_owned());
                    return Err(KnowledgeError::Circle { old, new });
                }
                at = index.superseded_by(row)?;
            }
            index.connection.execute(
                "UPDATE nodes SET superseded_by = ?2 WHERE key = ?1",
                [from, to],
            )?;
            index.link_rows(to, from, EdgeType::Supersedes, 1.0)
        })
    }

    fn superseded_by(&self, row: Row) -> Result<Option<Row>> {
        let sql = "SELECT superseded_by FROM nodes WHERE key = ?1";
        Ok(self.connection.query_row(sql, [row], |row| row.get(0))?)
    }

    /// What stands in a node's place today: itself, unless it was superseded.
    pub fn current(&self, id: &str) -> Result<Node> {
        let mut row = self.row_of(id)?;
        while let Some(next) = self.superseded_by(row)? {
            row = next;
        }
        let no_node = || KnowledgeError::NoNode { id: id.into() };
        self.node_at(row)?.ok_or_else(no_node)
    }

    /// Lets other sessions read a node.
    pub fn promote(&self, id: &str) -> Result<()> {
        let row = self.row_of(id)?;
        let sql = "UPDATE nodes SET promoted = 1 WHERE key = ?1";
        self.connection.execute(sql, [row])?;
        Ok(())
    }

    /// Records where a node comes from.
    pub fn add_source(&self, id: &str, source: &Source) -> Result<()> {
        let row = self.row_of(id)?;
        let of = source.node.as_deref().map(|node| self.row_of(node));
        let of = of.transpose()?;
        self.connection.execute(
            "INSERT INTO provenance (node, source_type, source_node, source_path, source_url, \
                confidence, verified_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                row,
                source.source_type.code(),
                of,
                source.path,
                source.url,
                source.confidence,
                source.verified_at.map(|t| t.0),
            ],
        )?;
        Ok(())
    }

    /// Where a node comes from, the surest source first.
    pub fn sources(&self, id: &str) -> Result<Vec<Source>> {
        let row = self.row_of(id)?;
        let mut find = self.connection.prepare_cached(
            "SELECT p.source_type, s.id, p.source_path, p.source_url, p.confidence, \
                p.verified_at FROM provenance p LEFT JOIN nodes s ON s.key = p.source_node
             WHERE p.node = ?1 ORDER BY p.confidence DESC, p.key",
        )?;
        let rows = find.query_map([row], |row| {
            let code: i64 = row.get(0)?;
            Ok(Source {
                source_type: SourceType::from_code(code).unwrap_or(SourceType::LlmInference),
                node: row.get(1)?,
                path: row.get(2)?,
                url: row.get(3)?,
                confidence: row.get(4)?,
                verified_at: row.get::<_, Option<i64>>(5)?.map(Time),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// A node from the columns of [`COLUMNS`].
pub(crate) fn read_node(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Row, Node)> {
    let json = |at| -> rusqlite::Result<String> { row.get(at) };
    let lines: (Option<u32>, Option<u32>) = (row.get(5)?, row.get(6)?);
    let code: i64 = row.get(2)?;
    let checked: i64 = row.get(18)?;
    let node = Node {
        id: row.get(1)?,
        node_type: NodeType::from_code(code).unwrap_or(NodeType::Entry),
        name: row.get(3)?,
        path: row.get(4)?,
        lines: lines.0.zip(lines.1),
        signature: row.get(7)?,
        doc: row.get(8)?,
        content: row.get(9)?,
        context: row.get(10)?,
        session: row.get(11)?,
        category: row.get(12)?,
        time: row.get::<_, Option<i64>>(13)?.map(Time),
        url: row.get(14)?,
        tags: serde_json::from_str(&json(15)?).unwrap_or_default(),
        metadata: serde_json::from_str(&json(16)?).unwrap_or_default(),
        verified: row.get(17)?,
        verification: Verification::from_code(checked).unwrap_or(Verification::Unchecked),
        confidence: row.get(19)?,
        trust: row.get(20)?,
        created: Time(row.get(21)?),
        expires: row.get::<_, Option<i64>>(22)?.map(Time),
        superseded_by: row.get(23)?,
        promoted: row.get(24)?,
    };
    Ok((row.get(0)?, node))
}
