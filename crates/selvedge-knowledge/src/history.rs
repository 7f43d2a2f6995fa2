//! What was done: summaries that pass the firewall, and the questions that join them to
//! code and documents.
//!
//! Every question here is answered from edges, in both directions, without a model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{KnowledgeError, Result};
use crate::filter::Filter;
use crate::judgement::{Claim, Evidence, Firewall, Verdict, claims};
use crate::kind::{Domain, EdgeType, NodeType, SourceType};
use crate::node::{Node, cut};
use crate::search::{Mode, Query};
use crate::store::{Edge, Index, Listing, Source};

/// How strongly a summary is tied to the code it names.
const REFERENCE_WEIGHT: f64 = 0.9;
/// Characters of the name that is made of a summary's beginning.
const NAME_CHARS: usize = 60;

/// Something to be remembered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// What happened.
    pub content: String,
    /// What kind of thing it was, such as `decision`.
    pub summary_type: String,
    /// In which session.
    #[serde(default)]
    pub session: Option<String>,
    /// The symbols it is about.
    #[serde(default)]
    pub code_references: Vec<String>,
    /// Files that the task really changed, from its diff.
    #[serde(default)]
    pub modified: Vec<String>,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who did it, for which task, and so on.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// What became of a summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stored {
    /// The node it is.
    pub node_id: String,
    /// How many edges lead from it.
    pub edges: usize,
    /// What the firewall found.
    pub verdict: Verdict,
}

/// The edges by which history speaks of code.
const ABOUT_CODE: [EdgeType; 5] = [
    EdgeType::Modified,
    EdgeType::Created,
    EdgeType::Deleted,
    EdgeType::References,
    EdgeType::ReferencedIn,
];
/// The edges by which documents speak of code.
const ABOUT_DOCUMENTS: [EdgeType; 5] = [
    EdgeType::Documents,
    EdgeType::ImplementsPattern,
    EdgeType::UsesLibrary,
    EdgeType::References,
    EdgeType::ReferencedIn,
];
/// The edges by which history rests on documents.
const RESTS_ON: [EdgeType; 4] = [
    EdgeType::BasedOn,
    EdgeType::References,
    EdgeType::ValidatedBy,
    EdgeType::InspiredBy,
];

impl Index {
    /// Stores a summary. It passes the firewall first, and is stored either way.
    pub fn store_summary(&self, summary: &Summary) -> Result<Stored> {
        if summary.content.trim().is_empty() {
            return Err(KnowledgeError::Request(
                "a summary has to say something".into(),
            ));
        }
        let node_type = NodeType::named(&summary.summary_type)
            .filter(|node_type| node_type.domain() == Domain::History)
            .unwrap_or(NodeType::Entry);
        let verdict = Firewall.check(&summary.content, &summary.code_references, self);
        let now = self.now();
        let id = format!("history:{}", short_hash(summary));
        let name = summary.content.lines().next().unwrap_or_default();
        let mut node = Node::new(id.clone(), node_type, cut(name.trim(), NAME_CHARS))
            .with_content(&summary.content)
            .at(now);
        node.session = summary.session.clone();
        node.category = Some(summary.summary_type.clone());
        node.tags = summary.tags.clone();
        node.metadata = summary.metadata.clone();
        node.verified = verdict.verified;
        node.verification = verdict.verification;
        node.confidence = verdict.confidence;
        if verdict.refuted || !verdict.contradictions.is_empty() {
            let flag = |name: &str, value: Value| (name.to_owned(), value);
            node.metadata.extend([
                flag("needs_review", true.into()),
                flag("warnings", verdict.warnings.clone().into()),
                flag("contradictions", verdict.contradictions.clone().into()),
            ]);
        }
        let vector = self.embed_nodes(&[&node])?.remove(0);
        let edges = self.transaction(|index| {
            let (row, _) = index.put_embedded(&node, None, Some(&vector))?;
            let mut edges = 0;
            for name in &summary.code_references {
                for target in index.named(name)?.iter().take(1) {
                    let target = index.row_of(&target.id)?;
                    index.link_rows(row, target, EdgeType::References, REFERENCE_WEIGHT)?;
                    edges += 1;
                }
            }
            for path in &summary.modified {
                if let Ok(target) = index.row_of(&format!("code:{path}")) {
                    index.link_rows(row, target, EdgeType::Modified, 1.0)?;
                    edges += 1;
                }
            }
            let sql = "DELETE FROM provenance WHERE node = ?1";
            index.connection.execute(sql, [row])?;
            for evidence in &verdict.evidence {
                let source = Source {
                    source_type: SourceType::Code,
                    node: Some(evidence.clone()),
                    path: None,
                    url: None,
                    confidence: verdict.confidence,
                    verified_at: verdict.verified.then_some(now),
                };
                index.add_source(&node.id, &source)?;
            }
            if verdict.evidence.is_empty() {
                let source = Source {
                    source_type: SourceType::LlmInference,
                    node: None,
                    path: None,
                    url: None,
                    confidence: verdict.confidence,
                    verified_at: None,
                };
                index.add_source(&node.id, &source)?;
            }
            // What is stored must be there: read it back before it counts as stored.
            index.node(&node.id)?;
            Ok(edges)
        })?;
        Ok(Stored {
            node_id: id,
            edges,
            verdict,
        })
    }

    /// What history says of a piece of code, the newest first.
    pub fn history_of_code(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        let node = self.node(id)?;
        let mut found = self.related_in(&node.id, &ABOUT_CODE, Domain::History)?;
        // What happened to a file happened to what is in it.
        if let Some(path) = node.path.filter(|_| node.node_type != NodeType::File)
            && let Ok(of_file) =
                self.related_in(&format!("code:{path}"), &ABOUT_CODE, Domain::History)
        {
            found.extend(of_file);
        }
        Ok(newest_first(found, limit))
    }

    /// The trouble there was with a piece of code, the newest first.
    pub fn issues_of_code(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        let mut found = self.history_of_code(id, usize::MAX)?;
        found.retain(|node| {
            matches!(node.node_type, NodeType::BugFix | NodeType::Failure)
                || matches!(node.category.as_deref(), Some("bug_fix" | "issue"))
        });
        found.truncate(limit);
        Ok(found)
    }

    /// The code that an entry of history is about.
    pub fn code_of_history(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        let mut found = self.related_in(id, &ABOUT_CODE, Domain::Code)?;
        found.truncate(limit);
        Ok(found)
    }

    /// The documents that describe a piece of code, or a pattern that it follows.
    pub fn documents_of_code(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        let mut found = self.related_in(&self.node(id)?.id, &ABOUT_DOCUMENTS, Domain::Academic)?;
        found.truncate(limit);
        Ok(found)
    }

    /// The documents that a decision rests on.
    pub fn reasons_of(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        let mut found = self.related_in(id, &RESTS_ON, Domain::Academic)?;
        found.truncate(limit);
        Ok(found)
    }

    /// The code that a document describes.
    pub fn code_of_document(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        let mut found = self.related_in(id, &ABOUT_DOCUMENTS, Domain::Code)?;
        found.truncate(limit);
        Ok(found)
    }

    /// The history that rests on a document.
    pub fn history_of_document(&self, id: &str, limit: usize) -> Result<Vec<Node>> {
        Ok(newest_first(
            self.related_in(id, &RESTS_ON, Domain::History)?,
            limit,
        ))
    }

    /// What may break when a symbol changes: who calls, imports, extends or implements
    /// it, and who does that to them, with the history of each.
    pub fn blast_radius(&self, id: &str, depth: usize, limit: usize) -> Result<Vec<Edge>> {
        let edges = [
            EdgeType::Calls,
            EdgeType::Imports,
            EdgeType::Extends,
            EdgeType::Implements,
            EdgeType::Embeds,
        ];
        let id = self.node(id)?.id;
        self.follow(&id, &edges, crate::store::Towards::Source, depth, limit)
    }

    /// What a session did, in order.
    pub fn session_history(
        &self,
        session: &str,
        types: &[NodeType],
        chronological: bool,
        limit: usize,
    ) -> Result<Vec<Node>> {
        let filter = Filter {
            in_domains: vec![Domain::History],
            types: types.to_vec(),
            session: Some(session.to_owned()),
            with_superseded: true,
            ..Filter::default()
        };
        let order = match chronological {
            true => Listing::Chronological,
            false => Listing::NewestFirst,
        };
        self.list_nodes(&filter, order, limit)
    }

    fn related_in(&self, id: &str, edges: &[EdgeType], domain: Domain) -> Result<Vec<Node>> {
        let related = self.related(id, edges, 1_000)?.into_iter();
        let nodes = related.map(|edge| edge.node);
        Ok(nodes.filter(|node| node.domain() == domain).collect())
    }
}

impl Evidence for Index {
    fn supports(&self, subject: &str) -> Option<String> {
        let named = self.named(subject).ok()?;
        if let Some(node) = named.first() {
            return Some(node.id.clone());
        }
        // A library has no symbol of its own here, but code that names it.
        let query = Query {
            text: subject.to_owned(),
            filter: Filter::of(Domain::Code),
            limit: 10,
            mode: Mode::Lexical,
        };
        let found = self.search(&query).ok()?;
        let lower = subject.to_lowercase();
        let says = |node: &Node| {
            let text = format!("{} {} {}", node.name, node.signature, node.content);
            text.to_lowercase().contains(&lower)
        };
        found
            .hits
            .into_iter()
            .map(|hit| hit.node)
            .find(says)
            .map(|node| node.id)
    }

    fn has_file(&self, path: &str) -> bool {
        let there = self.nodes_where("n.path = ?", vec![path.to_owned().into()], 1);
        there.is_ok_and(|found| !found.is_empty())
    }

    fn said_before(&self, claim: &Claim) -> Vec<(String, String)> {
        let query = Query {
            text: claim.object.clone(),
            filter: Filter::of(Domain::History),
            limit: 20,
            mode: Mode::Hybrid,
        };
        let Ok(found) = self.search(&query) else {
            return Vec::new();
        };
        let mut said = Vec::new();
        for hit in found.hits.iter().filter(|hit| hit.node.verified) {
            let other = claims(&hit.node.content).into_iter().find(|other| {
                other.kind == claim.kind
                    && other.object == claim.object
                    && !other.subject.eq_ignore_ascii_case(&claim.subject)
            });
            said.extend(other.map(|other| (hit.node.id.clone(), other.subject)));
        }
        said
    }
}

fn newest_first(mut nodes: Vec<Node>, limit: usize) -> Vec<Node> {
    nodes.sort_by(|a, b| b.dated().cmp(&a.dated()).then(a.id.cmp(&b.id)));
    nodes.dedup_by(|a, b| a.id == b.id);
    nodes.truncate(limit);
    nodes
}

/// A short name for a summary: the same in the same session is the same entry.
fn short_hash(summary: &Summary) -> String {
    let mut hasher = blake3::Hasher::new();
    let session = summary.session.as_deref().unwrap_or_default();
    for text in [session, &summary.summary_type, &summary.content] {
        hasher.update(text.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize().to_hex()[..12].to_owned()
}
