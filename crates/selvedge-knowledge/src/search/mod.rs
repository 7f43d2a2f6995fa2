//! Finding: words, identifiers and likeness, joined.
//!
//! Three lists are made of a question: texts with its words, texts with its identifiers,
//! texts that are like it. Each list votes for what it found, the more the nearer it
//! comes to the best of its own. What a question names exactly comes first, whatever the
//! lists say.

mod fuse;
mod question;
mod why;

use std::collections::{HashMap, HashSet};

use rusqlite::OptionalExtension;
use serde::Serialize;

use crate::embed::{Piece, Vector};
use crate::error::{KnowledgeError, Result};
use crate::filter::Filter;
use crate::kind::{Domain, NodeType};
use crate::node::Node;
use crate::store::{Index, Row};
use fuse::{List, Standing, fuse, members};
use question::Question;

/// How far down each list is looked.
const LIST_LENGTH: usize = 120;
/// Definitions of a name that are put first.
const EXACT_MAX: usize = 5;
/// Below this likeness, a text without a common word is not a match: it is noise of the
/// hashing, measured on texts that have nothing in common.
const LIKENESS_MIN_SPARSE: f32 = 0.08;
/// The same for a turn of a conversation, whose vector knows the turns before, too: the
/// more a vector knows, the less of it is any one thing.
const LIKENESS_MIN_TURN: f32 = 0.04;
/// The same for sentence models: nine in ten pairs of turns of different conversations
/// are below 0.23 by MiniLM, and an answer in other words is often hardly above it.
const LIKENESS_MIN_DENSE: f32 = 0.25;

/// Which lists are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All of them.
    #[default]
    Hybrid,
    /// Words and identifiers.
    Lexical,
    /// Likeness.
    Vector,
}

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The question, in any words.
    pub text: String,
    /// What may be found.
    pub filter: Filter,
    /// How much of it.
    pub limit: usize,
    /// By which lists.
    pub mode: Mode,
}

impl Query {
    /// Ten of whatever answers best.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: 10,
            ..Self::default()
        }
    }

    /// The same among these.
    pub fn within(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// So many at most.
    pub fn at_most(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// What.
    pub node: Node,
    /// How well it answers, from 0 to 1, within this answer.
    pub score: f64,
    /// How like the question it is, from 0 to 1.
    pub similarity: f64,
    /// Whether the question names it.
    pub exact: bool,
    /// Why it was found, in a line.
    pub why: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Found {
    /// The best first.
    pub hits: Vec<Hit>,
    /// Other domains that have something to say.
    pub also_in: Vec<Domain>,
    /// Why likeness was not looked at, where it should have been: the embedder did not
    /// answer, and words had to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_words_only: Option<String>,
}

/// What is left of a test's share.
const TEST_SHARE: f64 = 0.5;
/// What is left of the share of a line such as `mod retry;`, which has little but the
/// name of what is meant.
const DECLARATION_SHARE: f64 = 0.3;

/// Whether a node only says that there is a module.
fn is_declaration(node: &Node) -> bool {
    node.node_type == NodeType::Module && !node.content.contains('{')
}

/// Whether a piece of code is a test, by its id.
fn is_test(id: &str) -> bool {
    let (path, name) = id.split_once('#').unwrap_or((id, ""));
    let is_in = path.split(['/', ':', '.', '_', '-']).any(|part| {
        matches!(
            part,
            "test" | "tests" | "spec" | "specs" | "testing" | "__tests__"
        )
    });
    is_in || name.starts_with("tests.") || name.starts_with("test_")
}

impl Index {
    /// Finds what answers a question.
    pub fn search(&self, query: &Query) -> Result<Found> {
        let is_called = |word: &str| self.is_called(word).unwrap_or(false);
        let question = Question::of(&query.text, is_called);
        let mut lists = Vec::new();
        let mut exact = Vec::new();
        let mut by_words_only = None;
        let mut like = None;
        if query.mode != Mode::Lexical {
            match self.near(&question, &query.filter) {
                Ok(near) => like = Some(near),
                // A search does not fail because somebody else's server does.
                Err(KnowledgeError::Embedding { why }) => by_words_only = Some(why),
                Err(error) => return Err(error),
            }
        }
        if query.mode != Mode::Vector || by_words_only.is_some() {
            exact = self.exact(&question, &query.filter)?;
            lists.push(List::words(self.with_words(
                &question.words,
                &query.filter,
                LIST_LENGTH,
            )?));
            let names = &question.identifiers;
            lists.push(List::identifiers(self.with_identifiers(
                names,
                &query.filter,
                LIST_LENGTH,
            )?));
        }
        let mut rows = members(&exact, &lists);
        let has_words: HashSet<Row> = rows.iter().copied().collect();
        let others = like.iter().flatten().map(|(row, _)| *row);
        rows.extend(others.filter(|row| !has_words.contains(row)));
        let standing = self.standing(&rows)?;
        let mut likeness: HashMap<Row, f32> = HashMap::new();
        if let Some(mut like) = like {
            let is_sparse = self.embedder().is_sparse();
            like.retain(|(row, similarity)| {
                let domain = standing.get(row).map(|(domain, _)| *domain);
                // Of turns that have the words, the likeness says which: noise or not.
                let is_turn = is_sparse && domain == Some(Domain::History);
                is_turn && has_words.contains(row) || *similarity >= self.least_likeness(domain)
            });
            likeness.extend(like.iter().copied());
            lists.push(List::likeness(like, is_sparse));
        }
        let ranked = fuse(&exact, &lists, &standing);
        let best = ranked.first().map_or(1.0, |(_, score)| *score);
        let exact: HashSet<Row> = exact.into_iter().collect();
        let mut hits = Vec::new();
        for (row, score) in ranked.into_iter().take(query.limit) {
            let Some(node) = self.node_at(row)? else {
                continue;
            };
            let similarity = likeness.get(&row).copied();
            let exact = exact.contains(&row);
            hits.push(Hit {
                why: why::why(&question, &node, exact, similarity),
                similarity: f64::from(similarity.unwrap_or(0.0)),
                score: score / best,
                exact,
                node,
            });
        }
        let also_in = match hits.is_empty() {
            true => self.elsewhere(&question, &query.filter)?,
            false => Vec::new(),
        };
        Ok(Found {
            hits,
            also_in,
            by_words_only,
        })
    }

    /// What is most like a node, the node itself left out.
    pub fn similar_to(&self, id: &str, filter: &Filter, limit: usize) -> Result<Vec<(Node, f32)>> {
        let row = self.row_of(id)?;
        let Some(vector) = self.vector_of(row)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for near in self.nearest(&vector, filter, limit + 1)? {
            if near.node != row
                && let Some(node) = self.node_at(near.node)?
            {
                found.push((node, near.similarity));
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The definitions of what a question names.
    fn exact(&self, question: &Question, filter: &Filter) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for name in &question.names {
            let mut found = self.named(name)?;
            found.retain(|node| node.node_type.is_definition() && !is_declaration(node));
            found.sort_by_key(|node| is_test(&node.id));
            for node in found.into_iter().take(EXACT_MAX) {
                let row = self.row_of(&node.id)?;
                if !rows.contains(&row) && self.passes(row, filter)? {
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    /// Where each row belongs, and what is left of its share: what is tested is meant
    /// rather than its test, whose name often says the same in more words; and what is in
    /// a module rather than the line that declares it.
    fn standing(&self, rows: &[Row]) -> Result<HashMap<Row, Standing>> {
        let mut find = self.connection.prepare_cached(
            "SELECT id, domain, type = ?2 AND instr(content, '{') = 0 FROM nodes WHERE key = ?1",
        )?;
        let mut standing = HashMap::new();
        for row in rows {
            let found: Option<(String, i64, bool)> = find
                .query_row((*row, NodeType::Module.code()), |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let Some((id, domain, is_declaration)) = found else {
                continue;
            };
            let domain = Domain::from_code(domain).unwrap_or(Domain::Code);
            let mut left = 1.0;
            if domain == Domain::Code && is_test(&id) {
                left *= TEST_SHARE;
            }
            if domain == Domain::Code && is_declaration {
                left *= DECLARATION_SHARE;
            }
            standing.insert(*row, (domain, left));
        }
        Ok(standing)
    }

    fn passes(&self, row: Row, filter: &Filter) -> Result<bool> {
        let (condition, mut values) = filter.sql();
        values.push(row.into());
        let sql = format!("SELECT 1 FROM nodes n WHERE {condition} AND n.key = ?");
        let mut find = self.connection.prepare_cached(&sql)?;
        Ok(find.exists(rusqlite::params_from_iter(values))?)
    }

    /// What is nearest to a question, noise included.
    fn near(&self, question: &Question, filter: &Filter) -> Result<Vec<(Row, f32)>> {
        let Some(vector) = self.vector_for(&question.embedded)? else {
            return Ok(Vec::new());
        };
        let near = self.nearest(&vector, filter, LIST_LENGTH)?.into_iter();
        Ok(near.map(|near| (near.node, near.similarity)).collect())
    }

    /// Below this likeness, something of a domain is like a question by chance.
    fn least_likeness(&self, domain: Option<Domain>) -> f32 {
        match (self.embedder().is_sparse(), domain) {
            (true, Some(Domain::History)) => LIKENESS_MIN_TURN,
            (true, _) => LIKENESS_MIN_SPARSE,
            (false, _) => LIKENESS_MIN_DENSE,
        }
    }

    /// The vector of a question; `None` if there is nothing in it.
    pub(crate) fn vector_for(&self, text: &str) -> Result<Option<Vector>> {
        let piece = Piece {
            text,
            ..Piece::default()
        };
        let vectors = self.embedder().embed(&[piece]);
        let vectors = vectors.map_err(|why| KnowledgeError::Embedding { why })?;
        Ok(vectors
            .into_iter()
            .next()
            .filter(|vector| !vector.is_empty()))
    }

    /// The domains outside of a filter that would have had an answer.
    fn elsewhere(&self, question: &Question, filter: &Filter) -> Result<Vec<Domain>> {
        let asked = filter.domains();
        let mut found = Vec::new();
        for domain in Domain::ALL.iter().filter(|domain| !asked.contains(domain)) {
            let only = Filter::of(*domain);
            let has_words = !self.with_words(&question.words, &only, 1)?.is_empty();
            let least = self.least_likeness(Some(*domain));
            let is_like = |near: Vec<(Row, f32)>| near.iter().any(|(_, like)| *like >= least);
            if has_words || self.near(question, &only).is_ok_and(is_like) {
                found.push(*domain);
            }
        }
        Ok(found)
    }
}
