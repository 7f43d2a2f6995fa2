//! Draws edges from what code refers to by name.
//!
//! Nothing here knows types, so a name is resolved by nearness: the same file, the same
//! folder, the whole project. A name that many things bear leads nowhere: a wrong edge is
//! worse than none. Every edge drawn here is marked as approximate.

use rusqlite::params;

use crate::error::Result;
use crate::kind::{EdgeType, NodeType};
use crate::store::{Index, Row};

/// A name that more things bear than this is not resolved across the project.
const AMBIGUOUS: usize = 3;
/// Names of one transaction.
const NAMES_PER_COMMIT: usize = 4_000;

/// Something that bears a name.
struct Bearer {
    row: Row,
    node_type: NodeType,
    path: String,
}

/// Resolves every name that has come, gone or been mentioned since the last time.
pub(super) fn draw_edges(index: &Index) -> Result<()> {
    loop {
        let names = stale_names(index)?;
        if names.is_empty() {
            return Ok(());
        }
        index.transaction(|index| {
            for name in &names {
                resolve(index, name)?;
                let sql = "DELETE FROM stale_names WHERE name = ?1";
                index.connection.prepare_cached(sql)?.execute([name])?;
            }
            Ok(())
        })?;
    }
}

fn stale_names(index: &Index) -> Result<Vec<String>> {
    let sql = format!("SELECT name FROM stale_names LIMIT {NAMES_PER_COMMIT}");
    let mut find = index.connection.prepare_cached(&sql)?;
    let rows = find.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn resolve(index: &Index, name: &str) -> Result<()> {
    let mentions = mentions_of(index, name)?;
    if mentions.is_empty() {
        return Ok(());
    }
    let bearers = bearers_of(index, name)?;
    let mut forget = index.connection.prepare_cached(
        "DELETE FROM edges WHERE source = ?1 AND type = ?2 AND target IN \
            (SELECT key FROM nodes WHERE name = ?3 COLLATE NOCASE OR name LIKE ?3 || '.%')",
    )?;
    let mut draw = index.connection.prepare_cached(
        "INSERT INTO edges (source, target, type, weight, metadata, created)
         VALUES (?1, ?2, ?3, ?4, '{\"approximate\":true}', ?5)
         ON CONFLICT (source, target, type) DO UPDATE SET weight = excluded.weight",
    )?;
    let now = index.now().0;
    for (from, edge, path, has_edges) in mentions {
        if has_edges {
            forget.execute(params![from, edge.code(), name])?;
        }
        let meant = meant(&bearers, from, edge, &path);
        for bearer in &meant {
            let weight = 1.0 / meant.len() as f64;
            draw.execute(params![from, bearer.row, edge.code(), weight, now])?;
        }
    }
    Ok(())
}

/// Which of the bearers of a name is meant, by nearness.
fn meant<'a>(bearers: &'a [Bearer], from: Row, edge: EdgeType, path: &str) -> Vec<&'a Bearer> {
    let fits = |bearer: &&Bearer| {
        bearer.row != from
            && match edge {
                EdgeType::Calls => is_callable(bearer.node_type),
                EdgeType::Implements | EdgeType::Extends => is_type(bearer.node_type),
                _ => true,
            }
    };
    let fitting: Vec<&Bearer> = bearers.iter().filter(fits).collect();
    let folder = |path: &str| {
        path.rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned()
    };
    let here = folder(path);
    let same_file = |bearer: &&&Bearer| bearer.path == path;
    let same_folder = |bearer: &&&Bearer| folder(&bearer.path) == here;
    for near in [
        fitting
            .iter()
            .filter(same_file)
            .copied()
            .collect::<Vec<_>>(),
        fitting.iter().filter(same_folder).copied().collect(),
        fitting.clone(),
    ] {
        if !near.is_empty() {
            return match near.len() <= AMBIGUOUS {
                true => near,
                false => Vec::new(),
            };
        }
    }
    Vec::new()
}

fn is_callable(node_type: NodeType) -> bool {
    use NodeType as T;
    matches!(
        node_type,
        T::Function | T::Method | T::Macro | T::Class | T::Struct | T::Enum | T::Constant
    )
}

fn is_type(node_type: NodeType) -> bool {
    use NodeType as T;
    matches!(
        node_type,
        T::Class | T::Struct | T::Enum | T::Interface | T::Trait | T::TypeAlias
    )
}

type Mentioned = (Row, EdgeType, String, bool);

fn mentions_of(index: &Index, name: &str) -> Result<Vec<Mentioned>> {
    let mut find = index.connection.prepare_cached(
        "SELECT m.node, m.type, n.path, \
            EXISTS (SELECT 1 FROM edges e WHERE e.source = m.node AND e.type = m.type)
         FROM mentions m JOIN nodes n ON n.key = m.node WHERE m.name = ?1",
    )?;
    let rows = find.query_map([name], |row| {
        let code: i64 = row.get(1)?;
        let edge = EdgeType::from_code(code).unwrap_or(EdgeType::References);
        let path: Option<String> = row.get(2)?;
        Ok((row.get(0)?, edge, path.unwrap_or_default(), row.get(3)?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn bearers_of(index: &Index, name: &str) -> Result<Vec<Bearer>> {
    let mut find = index.connection.prepare_cached(
        "SELECT key, type, path FROM nodes
         WHERE name = ?1 COLLATE NOCASE AND name = ?1 AND domain = 0
         UNION
         SELECT key, type, path FROM nodes
         WHERE name >= ?1 || '.' COLLATE NOCASE AND name < ?1 || '/' COLLATE NOCASE
            AND type = 0 AND name GLOB ?2 || '.*'",
    )?;
    let quoted = name.replace(['[', '*', '?'], "[*]");
    let rows = find.query_map(params![name, quoted], |row| {
        let code: i64 = row.get(1)?;
        let path: Option<String> = row.get(2)?;
        Ok(Bearer {
            row: row.get(0)?,
            node_type: NodeType::from_code(code).unwrap_or(NodeType::File),
            path: path.unwrap_or_default(),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
