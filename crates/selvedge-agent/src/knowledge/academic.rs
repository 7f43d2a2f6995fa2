//! What could be done: documents, held against the code.
//!
//! What is found comes with the rules for using it and with its conflicts; the agent that
//! asked makes an answer of it, and cites.

use selvedge_knowledge::{
    Budget, Candidate, Domain, Filter, KnowledgeError, NodeType, Query, RULES, conflicts_among,
    prompt, select,
};
use serde_json::{Value, json};

use super::{Asked, Lookup, flag, limit, shown, text, texts};

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        name: "research",
        description: "Evidence from documents on a question, chosen within a budget, with \
                      conflicts first and numbered sources to cite.",
        arguments: || {
            json!({
                "question": text("The question."),
                "depth": { "type": "integer", "minimum": 1, "maximum": 3,
                           "description": "How thorough. Default: 2." },
                "focus_areas": texts("What to look at in particular."),
                "include_papers": flag("Default: true."),
                "include_docs": flag("Default: true."),
            })
        },
        required: &["question"],
        act: research,
    },
    Lookup {
        name: "find_best_practices",
        description: "Advice on a topic that is widely agreed upon, from the documents at hand.",
        arguments: || {
            json!({
                "topic": text("About what."),
                "technology": text("With what."),
                "limit": limit(5),
            })
        },
        required: &["topic"],
        act: |asked| {
            let technology = asked.text("technology").unwrap_or_default();
            let words = format!("{} {technology}", asked.wanted("topic")?);
            let types = [
                NodeType::BestPractice,
                NodeType::Documentation,
                NodeType::Tutorial,
            ];
            documents(asked, &words, &types, asked.limit(5))
        },
    },
    Lookup {
        name: "find_papers",
        description: "Papers on a topic, from the documents at hand.",
        arguments: || json!({ "query": text("About what."), "limit": limit(5) }),
        required: &["query"],
        act: |asked| {
            let types = [NodeType::Paper, NodeType::Rfc];
            documents(asked, asked.wanted("query")?, &types, asked.limit(5))
        },
    },
    Lookup {
        name: "compare_approaches",
        description: "Evidence on two to four approaches, side by side.",
        arguments: || {
            json!({
                "approaches": { "type": "array", "items": { "type": "string" }, "minItems": 2,
                                "maxItems": 4, "description": "What to compare." },
                "context": text("For what."),
                "criteria": texts("By what."),
            })
        },
        required: &["approaches"],
        act: compare_approaches,
    },
    Lookup {
        name: "synthesize_with_codebase",
        description: "What documents say on a topic beside what the code does.",
        arguments: || {
            json!({
                "topic": text("About what."),
                "show_gaps": flag("Say which side has nothing. Default: true."),
            })
        },
        required: &["topic"],
        act: synthesize,
    },
    Lookup {
        name: "get_code_for_academic",
        description: "The code that a document describes.",
        arguments: || json!({ "id": text("The document's id."), "limit": limit(5) }),
        required: &["id"],
        act: |asked| {
            let found = asked
                .index
                .code_of_document(asked.wanted("id")?, asked.limit(5))?;
            Ok(shown::nodes(&found, asked.index.now()))
        },
    },
    Lookup {
        name: "get_history_for_academic",
        description: "The decisions that rest on a document, the newest first.",
        arguments: || json!({ "id": text("The document's id."), "limit": limit(5) }),
        required: &["id"],
        act: |asked| {
            let found = asked
                .index
                .history_of_document(asked.wanted("id")?, asked.limit(5))?;
            Ok(shown::nodes(&found, asked.index.now()))
        },
    },
];

fn documents(
    asked: &Asked<'_>,
    words: &str,
    types: &[NodeType],
    count: usize,
) -> Result<Value, KnowledgeError> {
    let filter = Filter::of(Domain::Academic).with_types(types);
    let found = asked
        .index
        .search(&Query::new(words).within(filter).at_most(count))?;
    Ok(shown::found(&found, asked.index.now()))
}

fn research(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let question = asked.wanted("question")?;
    let depth = asked.number("depth", 2).clamp(1, 3);
    let mut types: Vec<NodeType> = NodeType::ALL
        .iter()
        .copied()
        .filter(|one| one.domain() == Domain::Academic)
        .collect();
    if !asked.flag("include_papers", true) {
        types.retain(|one| !matches!(one, NodeType::Paper | NodeType::Rfc));
    }
    if !asked.flag("include_docs", true) {
        types.retain(|one| *one != NodeType::Documentation);
    }
    let words = format!("{question} {}", asked.texts("focus_areas").join(" "));
    let filter = Filter::of(Domain::Academic).with_types(&types);
    let found = asked
        .index
        .search(&Query::new(words).within(filter).at_most(10 * depth))?;
    if found.hits.is_empty() {
        return Ok(shown::no_matches(&found));
    }
    let now = asked.index.now();
    let nodes: Vec<_> = found.hits.iter().map(|hit| hit.node.clone()).collect();
    let supports = |used: &str| selvedge_knowledge::Evidence::supports(asked.index, used).is_some();
    let conflicts = conflicts_among(&nodes, supports, now);
    asked.index.record_conflicts(&conflicts)?;
    // What was found by its words is relevant, however few of them it shares.
    let candidates: Vec<Candidate> = found
        .hits
        .into_iter()
        .map(|hit| Candidate {
            similarity: hit.similarity.max(hit.score * 0.5),
            node: hit.node,
        })
        .collect();
    let budget = Budget {
        tokens_max: 2_000 * depth,
        ..Budget::default()
    };
    let picked = select(&candidates, &budget, now);
    let sources: Vec<&str> = picked
        .iter()
        .map(|picked| picked.node.id.as_str())
        .collect();
    Ok(json!({
        "status": "ok",
        "rules": RULES,
        "sources": sources,
        "evidence": prompt(question, &conflicts, &picked),
    }))
}

fn compare_approaches(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let approaches = asked.texts("approaches");
    if !(2..=4).contains(&approaches.len()) {
        return Err(KnowledgeError::Request(
            "two to four approaches can be compared".into(),
        ));
    }
    let context = asked.text("context").unwrap_or_default();
    let criteria = asked.texts("criteria").join(" ");
    let mut compared = Vec::new();
    for approach in &approaches {
        let words = format!("{approach} {context} {criteria}");
        let filter = Filter::of(Domain::Academic);
        let found = asked
            .index
            .search(&Query::new(words).within(filter).at_most(5))?;
        let failed = asked
            .index
            .check_approach(approach, &asked.caller.session)?;
        compared.push(json!({
            "approach": approach,
            "evidence": shown::found(&found, asked.index.now()),
            "failed_before": failed.len(),
        }));
    }
    Ok(json!({ "status": "ok", "approaches": compared }))
}

fn synthesize(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let topic = asked.wanted("topic")?;
    let now = asked.index.now();
    let of = |domain| {
        asked
            .index
            .search(&Query::new(topic).within(Filter::of(domain)).at_most(5))
    };
    let (documents, code) = (of(Domain::Academic)?, of(Domain::Code)?);
    let mut answer = json!({
        "documents": shown::found(&documents, now),
        "code": shown::found(&code, now),
    });
    if asked.flag("show_gaps", true) {
        let gaps = [
            (documents.hits.is_empty(), "no document is about it"),
            (code.hits.is_empty(), "no code is about it"),
        ];
        let gaps: Vec<&str> = gaps.iter().filter(|gap| gap.0).map(|gap| gap.1).collect();
        answer["gaps"] = gaps.into();
    }
    Ok(answer)
}
