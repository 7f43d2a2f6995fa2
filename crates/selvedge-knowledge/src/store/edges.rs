//! Edges: how nodes are related, followed in either direction.

use std::collections::{HashMap, VecDeque};

use rusqlite::params;
use serde::Serialize;

use super::{Index, Row};
use crate::error::Result;
use crate::kind::EdgeType;
use crate::node::Node;

/// Which way an edge is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// From its source to its target.
    Target,
    /// From its target to its source.
    Source,
}

/// A node that was reached, and by which edge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// Where it leads.
    pub node: Node,
    /// How the two are related.
    pub edge: EdgeType,
    /// How strongly, from 0 to 1.
    pub weight: f64,
    /// How many edges lie between it and the start.
    pub depth: usize,
    /// Whether it was found by name only, and may mean another thing of that name.
    pub approximate: bool,
}

impl Index {
    /// Relates two nodes. The same edge again changes its weight.
    pub fn link(&self, source: &str, target: &str, edge: EdgeType, weight: f64) -> Result<()> {
        let (source, target) = (self.row_of(source)?, self.row_of(target)?);
        self.link_rows(source, target, edge, weight)
    }

    pub(crate) fn link_rows(
        &self,
        source: Row,
        target: Row,
        edge: EdgeType,
        weight: f64,
    ) -> Result<()> {
        let mut put = self.connection.prepare_cached(
            "INSERT INTO edges (source, target, type, weight, created) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (source, target, type) DO UPDATE SET weight = excluded.weight",
        )?;
        put.execute(params![source, target, edge.code(), weight, self.now().0])?;
        Ok(())
    }

    /// What can be reached from a node along some edges, each node once, the nearest
    /// first. The start is not among it, even where a circle leads back.
    pub fn follow(
        &self,
        id: &str,
        edges: &[EdgeType],
        towards: Towards,
        depth: usize,
        limit: usize,
    ) -> Result<Vec<Edge>> {
        let start = self.row_of(id)?;
        let mut depth_of: HashMap<Row, usize> = HashMap::from([(start, 0)]);
        let mut queue = VecDeque::from([start]);
        let mut found = Vec::new();
        while let Some(row) = queue.pop_front() {
            let here = depth_of[&row];
            if here == depth {
                continue;
            }
            for (next, edge, weight, approximate) in self.neighbours(row, edges, towards)? {
                if found.len() == limit {
                    return Ok(found);
                }
                if depth_of.contains_key(&next) {
                    continue;
                }
                depth_of.insert(next, here + 1);
                queue.push_back(next);
                if let Some(node) = self.node_at(next)? {
                    found.push(Edge {
                        node,
                        edge,
                        weight,
                        depth: here + 1,
                        approximate,
                    });
                }
            }
        }
        Ok(found)
    }

    /// The same in both directions, one edge far.
    pub fn related(&self, id: &str, edges: &[EdgeType], limit: usize) -> Result<Vec<Edge>> {
        let mut found = self.follow(id, edges, Towards::Target, 1, limit)?;
        for edge in self.follow(id, edges, Towards::Source, 1, limit)? {
            if !found.iter().any(|other| other.node.id == edge.node.id) {
                found.push(edge);
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    fn neighbours(
        &self,
        row: Row,
        edges: &[EdgeType],
        towards: Towards,
    ) -> Result<Vec<(Row, EdgeType, f64, bool)>> {
        let codes: Vec<String> = edges.iter().map(|e| e.code().to_string()).collect();
        let (from, to) = match towards {
            Towards::Target => ("source", "target"),
            Towards::Source => ("target", "source"),
        };
        let sql = format!(
            "SELECT {to}, type, weight, metadata LIKE '%approximate%' FROM edges
             WHERE {from} = ?1 AND type IN ({}) ORDER BY weight DESC, {to}",
            codes.join(",")
        );
        let mut find = self.connection.prepare_cached(&sql)?;
        let rows = find.query_map([row], |row| {
            let code: i64 = row.get(1)?;
            let edge = EdgeType::from_code(code).unwrap_or(EdgeType::References);
            Ok((row.get(0)?, edge, row.get(2)?, row.get(3)?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
