//! One file: read, taken apart and embedded; then written.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::params;

use super::walk::Candidate;
use super::{Discretion, Report, Skipped};
use crate::embed::{Embedder, Piece, Vector};
use crate::error::{KnowledgeError, Result};
use crate::kind::{EdgeType, NodeType};
use crate::lang::{self, Language, Mention, Outline};
use crate::node::Node;
use crate::store::{Index, Row};

/// A file whose lines are longer than this on average was made by a program.
const LINE_BYTES_MAX: usize = 400;

/// A file, ready to be written.
pub(super) enum Prepared {
    /// Its content is what it was; only its time has changed.
    Same { path: String, modified: i64 },
    /// It is left out.
    Skipped(Skipped),
    /// It could not be embedded, so nothing of it may be written.
    Failed { why: String },
    /// It has to be written.
    Changed(Box<Changed>),
}

pub(super) struct Changed {
    path: String,
    hash: [u8; 32],
    size: u64,
    modified: i64,
    language: &'static str,
    line_count: u32,
    /// The file's own node comes first.
    nodes: Vec<(Node, Option<Vector>)>,
    /// What each node refers to.
    mentions: Vec<Vec<Mention>>,
    /// The node that each belongs to, by position.
    parents: Vec<Option<usize>>,
}

/// Reads a file and makes everything of it that can be made without the index.
pub(super) fn prepare(
    root: &Path,
    candidate: &Candidate,
    before: Option<&[u8]>,
    discretion: &dyn Discretion,
    embedder: &dyn Embedder,
) -> Prepared {
    let path = candidate.path.clone();
    let skip = |why: String| {
        Prepared::Skipped(Skipped {
            path: candidate.path.clone(),
            why,
        })
    };
    let bytes = match std::fs::read(root.join(&path)) {
        Ok(bytes) => bytes,
        Err(error) => return skip(error.to_string()),
    };
    let hash = *blake3::hash(&bytes).as_bytes();
    if before == Some(hash.as_slice()) {
        let modified = candidate.modified;
        return Prepared::Same { path, modified };
    }
    let text = match candidate.language {
        Language::Pdf => match lang::pdf_text(&bytes) {
            Ok(text) => text,
            Err(why) => return skip(why),
        },
        _ => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => text,
            _ => return skip("it is not text".into()),
        },
    };
    if let Some(why) = made_by_a_program(candidate.language, &text) {
        return skip(why.into());
    }
    let outline = lang::read(candidate.language, &discretion.clean(&text));
    let line_count = outline.line_count;
    let (nodes, mentions, parents) = nodes(&path, candidate.language, outline);
    let vectors = match embedder.is_slow() {
        true => vec![None; nodes.len()],
        false => match embed(&nodes, embedder) {
            Ok(vectors) => vectors.into_iter().map(Some).collect(),
            Err(why) => return Prepared::Failed { why },
        },
    };
    Prepared::Changed(Box::new(Changed {
        path,
        hash,
        size: candidate.size,
        modified: candidate.modified,
        language: candidate.language.name(),
        line_count,
        nodes: nodes.into_iter().zip(vectors).collect(),
        mentions,
        parents,
    }))
}

fn embed(nodes: &[Node], embedder: &dyn Embedder) -> std::result::Result<Vec<Vector>, String> {
    let texts = nodes.iter().map(crate::store::embedded_text);
    let texts: Vec<String> = texts.collect();
    let pieces: Vec<Piece<'_>> = nodes
        .iter()
        .zip(&texts)
        .map(|(node, text)| Piece {
            name: &node.name,
            text,
            before: &node.context,
        })
        .collect();
    let vectors = embedder.embed(&pieces)?;
    match vectors.len() == nodes.len() {
        true => Ok(vectors),
        false => Err("the embedder lost a text".into()),
    }
}

/// Writes a file, as part of a transaction. Tells how many nodes were touched.
pub(super) fn write(index: &Index, prepared: &Prepared, report: &mut Report) -> Result<usize> {
    let changed = match prepared {
        Prepared::Failed { why } => {
            let why = why.clone();
            return Err(KnowledgeError::Embedding { why });
        }
        Prepared::Skipped(skipped) => {
            report.skipped.push(skipped.clone());
            // It may have been let in before it became what it is.
            let sql = "DELETE FROM files WHERE path = ?1";
            index
                .connection
                .prepare_cached(sql)?
                .execute([&skipped.path])?;
            return Ok(0);
        }
        Prepared::Same { path, modified } => {
            let sql = "UPDATE files SET modified = ?2, indexed = ?3 WHERE path = ?1";
            let mut put = index.connection.prepare_cached(sql)?;
            put.execute(params![path, modified, index.now().0])?;
            return Ok(0);
        }
        Prepared::Changed(changed) => changed,
    };
    report.indexed += 1;
    report.lines += changed.line_count as usize;
    let file = write_file_row(index, changed)?;
    let mut before = nodes_of(index, file)?;
    let mut rows = Vec::with_capacity(changed.nodes.len());
    let mut touched = 0;
    for ((node, vector), mentions) in changed.nodes.iter().zip(&changed.mentions) {
        let (row, is_changed) = index.put_embedded(node, Some(file), vector.as_ref())?;
        let is_new = before.remove(&node.id).is_none();
        rows.push(row);
        touched += usize::from(is_changed);
        if is_new {
            mark_stale(index, stem(node))?;
        }
        if is_changed {
            write_mentions(index, row, mentions)?;
        }
    }
    for row in before.values() {
        index
            .connection
            .prepare_cached("DELETE FROM nodes WHERE key = ?1")?
            .execute([row])?;
        touched += 1;
    }
    for (at, parent) in changed.parents.iter().enumerate().skip(1) {
        let parent = parent.unwrap_or(0);
        let edge = match changed.nodes[at].0.node_type {
            NodeType::Method if parent > 0 => EdgeType::HasMethod,
            _ => EdgeType::Defines,
        };
        index.link_rows(rows[parent], rows[at], edge, 1.0)?;
    }
    Ok(touched)
}

fn write_file_row(index: &Index, changed: &Changed) -> Result<i64> {
    let mut put = index.connection.prepare_cached(
        "INSERT INTO files (path, hash, size, modified, language, line_count, indexed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, size = excluded.size, \
            modified = excluded.modified, language = excluded.language, \
            line_count = excluded.line_count, indexed = excluded.indexed
         RETURNING key",
    )?;
    let values = params![
        changed.path,
        changed.hash,
        changed.size,
        changed.modified,
        changed.language,
        changed.line_count,
        index.now().0,
    ];
    Ok(put.query_row(values, |row| row.get(0))?)
}

fn nodes_of(index: &Index, file: i64) -> Result<HashMap<String, Row>> {
    let mut find = index
        .connection
        .prepare_cached("SELECT id, key FROM nodes WHERE file = ?1")?;
    let rows = find.query_map([file], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn write_mentions(index: &Index, row: Row, mentions: &[Mention]) -> Result<()> {
    // What it referred to before is drawn no longer.
    let drawn = [
        EdgeType::Calls,
        EdgeType::Imports,
        EdgeType::Implements,
        EdgeType::Extends,
    ];
    let codes: Vec<String> = drawn.iter().map(|e| e.code().to_string()).collect();
    let sql = format!(
        "DELETE FROM edges WHERE source = ?1 AND type IN ({})",
        codes.join(",")
    );
    index.connection.prepare_cached(&sql)?.execute([row])?;
    index
        .connection
        .prepare_cached("DELETE FROM mentions WHERE node = ?1")?
        .execute([row])?;
    let mut put = index
        .connection
        .prepare_cached("INSERT OR IGNORE INTO mentions (node, name, type) VALUES (?1, ?2, ?3)")?;
    for mention in mentions {
        // Of a module's path, its last part is its name.
        let name = mention.name.rsplit('/').next().unwrap_or_default();
        put.execute(params![row, name, mention.edge.code()])?;
        mark_stale(index, name)?;
    }
    Ok(())
}

fn mark_stale(index: &Index, name: &str) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO stale_names (name) VALUES (?1)";
    index.connection.prepare_cached(sql)?.execute([name])?;
    Ok(())
}

/// What a node is referred to by.
fn stem(node: &Node) -> &str {
    match node.node_type {
        NodeType::File => node.name.split('.').next().unwrap_or_default(),
        _ => &node.name,
    }
}

type Parts = (Vec<Node>, Vec<Vec<Mention>>, Vec<Option<usize>>);

/// The nodes of a file.
fn nodes(path: &str, language: Language, outline: Outline) -> Parts {
    let (prefix, own) = match language.is_document() {
        true => ("doc", NodeType::Documentation),
        false => ("code", NodeType::File),
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut file = Node::new(format!("{prefix}:{path}"), own, name).verified();
    file.path = Some(path.to_owned());
    file.lines = Some((1, outline.line_count.max(1)));
    file.doc = outline.doc;
    file.content = outline.rest;
    let mut nodes = vec![file];
    let mut mentions = vec![outline.mentions];
    let mut parents = vec![None];
    let mut ids = HashSet::new();
    for symbol in outline.symbols {
        let plain = format!("{prefix}:{path}#{}", symbol.qualified);
        let mut id = plain.clone();
        // The same name twice, as conditional compilation has it.
        let mut count = 1;
        while !ids.insert(id.clone()) {
            count += 1;
            id = format!("{plain}~{count}");
        }
        let mut node = Node::new(id, symbol.node_type, symbol.name).verified();
        node.path = Some(path.to_owned());
        node.lines = Some(symbol.lines);
        node.signature = symbol.signature;
        node.doc = symbol.doc;
        node.content = symbol.content;
        nodes.push(node);
        mentions.push(symbol.mentions);
        parents.push(Some(symbol.parent.map_or(0, |parent| parent + 1)));
    }
    (nodes, mentions, parents)
}

/// Why a file is no text that somebody wrote.
fn made_by_a_program(language: Language, text: &str) -> Option<&'static str> {
    let beginning = crate::node::cut(text, 1_000);
    let says_so = beginning.lines().take(12).any(|line| {
        let is_comment = line
            .trim_start()
            .starts_with(['/', '#', '*', '<', '-', ';']);
        is_comment
            && (line.contains("@generated")
                || line.contains("DO NOT EDIT")
                || line.contains("Code generated by"))
    });
    if says_so {
        return Some("generated, as it says itself");
    }
    let lines = text.lines().count().max(1);
    let is_dense = text.len() > 4_000 && text.len() / lines > LINE_BYTES_MAX;
    (is_dense && matches!(language, Language::Code(_))).then_some("it looks minified")
}
