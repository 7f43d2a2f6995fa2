//! How well a search finds what it should: recall, rank and time, list by list.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::filter::Filter;
use crate::search::{Mode, Query};
use crate::store::Index;

/// A question and what answers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The question.
    pub query: String,
    /// The ids of the nodes that answer it.
    pub relevant: Vec<String>,
}

/// How well one way of searching did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Marks {
    /// The share of answers that were among the first five, on average.
    pub recall_at_5: f64,
    /// The same among the first ten.
    pub recall_at_10: f64,
    /// One over the rank of the first answer, on average.
    pub mrr: f64,
    /// The median time of a question.
    pub millis_p50: f64,
    /// The time that all but one in a hundred stay below.
    pub millis_p99: f64,
}

impl Marks {
    /// Rank and recall as one number, to compare two ways of searching by.
    pub fn sum(&self) -> f64 {
        self.recall_at_5 + self.recall_at_10 + self.mrr
    }
}

/// The ways of searching, with their names.
pub const MODES: [(&str, Mode); 3] = [
    ("lexical", Mode::Lexical),
    ("vector", Mode::Vector),
    ("hybrid", Mode::Hybrid),
];

/// Asks all questions in one way.
pub fn evaluate(index: &Index, questions: &[Judged], mode: Mode) -> Result<Marks> {
    let mut marks = Marks::default();
    let mut times = Vec::with_capacity(questions.len());
    for judged in questions {
        let query = Query {
            text: judged.query.clone(),
            filter: Filter::default(),
            limit: 10,
            mode,
        };
        let begun = Instant::now();
        let found = index.search(&query)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let ids: Vec<&str> = found.hits.iter().map(|hit| hit.node.id.as_str()).collect();
        let is_answer = |id: &&str| judged.relevant.iter().any(|relevant| relevant == id);
        let among = |count: usize| {
            let found = ids.iter().take(count).filter(|id| is_answer(id)).count();
            found as f64 / judged.relevant.len().max(1) as f64
        };
        marks.recall_at_5 += among(5);
        marks.recall_at_10 += among(10);
        let first = ids.iter().position(is_answer);
        marks.mrr += first.map_or(0.0, |at| 1.0 / (at + 1) as f64);
    }
    let count = questions.len().max(1) as f64;
    marks.recall_at_5 /= count;
    marks.recall_at_10 /= count;
    marks.mrr /= count;
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let at = (times.len() as f64 * share) as usize;
        times.get(at.min(times.len().saturating_sub(1))).copied()
    };
    marks.millis_p50 = at(0.5).unwrap_or(0.0);
    marks.millis_p99 = at(0.99).unwrap_or(0.0);
    Ok(marks)
}

/// A set of questions made of what authors say of their own code: the first sentence of
/// a comment is the question, its symbol the answer. The comments are taken out of
/// `nodes`, so that only the code itself can be found.
pub fn questions_from_comments(nodes: &mut [crate::node::Node]) -> Vec<Judged> {
    let mut questions = Vec::new();
    for node in nodes.iter_mut() {
        let doc = std::mem::take(&mut node.doc);
        node.content = without_comments(&node.content);
        let sentence = first_sentence(&doc);
        let words = sentence.split_whitespace().count();
        // A shorter one says too little, a sentence that names its symbol too much.
        let is_telling = (5..=30).contains(&words)
            && node.node_type.is_definition()
            && node.content.lines().count() >= 3
            && !sentence.contains(&node.name);
        if is_telling {
            questions.push(Judged {
                query: sentence,
                relevant: vec![node.id.clone()],
            });
        }
    }
    questions
}

fn first_sentence(doc: &str) -> String {
    let paragraph = doc.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.find(". ").unwrap_or(line.len());
    line[..end].trim_end_matches('.').to_owned()
}

fn without_comments(text: &str) -> String {
    let is_comment = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("/*") || line.starts_with("* ") || line == "*"
    };
    let kept: Vec<&str> = text.lines().filter(|line| !is_comment(line)).collect();
    kept.join("\n")
}
