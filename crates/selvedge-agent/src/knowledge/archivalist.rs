//! What was done: summaries, decisions, failures.

use std::collections::BTreeMap;

use selvedge_knowledge::{
    Domain, Filter, KnowledgeError, Listing, Node, NodeType, Query, Summary, parse_moment,
};
use serde_json::{Value, json};

use super::{Asked, Lookup, flag, limit, shown, text, texts, word};

const SUMMARIES: &[&str] = &[
    "task_completion",
    "decision",
    "failure",
    "pattern",
    "refactoring",
    "bug_fix",
    "feature",
];
/// Entries that patterns are looked for in.
const CANDIDATES: usize = 50;

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        name: "store_summary",
        description: "Remember what was done. What it says of files and symbols is checked \
                      against the code; what does not hold is stored as unverified.",
        arguments: || {
            json!({
                "content": text("What was done and why, in a few sentences."),
                "summary_type": word(SUMMARIES, "What kind of thing it was."),
                "session_id": text("The session. Default: this one."),
                "code_references": texts("The symbols it is about, such as `Parser.parse`."),
                "modified_files": texts("The files that really changed, from the diff."),
                "tags": texts("Words to find it by."),
                "metadata": { "type": "object", "description": "agent, task_id, confidence." },
            })
        },
        required: &["content", "summary_type"],
        act: store_summary,
    },
    Lookup {
        name: "search_history",
        description: "What was done before that has to do with this.",
        arguments: || {
            json!({
                "query": text("What to look for, in any words."),
                "type": word(SUMMARIES, "Only of this kind."),
                "session_id": text("Only of this session."),
                "since": text("Only from then on, such as `2026-11-01T00:00:00Z`."),
                "limit": limit(10),
            })
        },
        required: &["query"],
        act: search_history,
    },
    Lookup {
        name: "find_patterns",
        description: "What came up again and again in history.",
        arguments: || {
            json!({
                "query": text("About what."),
                "min_occurrences": { "type": "integer", "minimum": 2,
                                     "description": "How often. Default: 2." },
                "category": text("Only of this category."),
            })
        },
        required: &["query"],
        act: find_patterns,
    },
    Lookup {
        name: "find_failures",
        description: "What was tried before and failed, from every session, with what helped.",
        arguments: || {
            json!({
                "query": text("The approach, or what goes wrong."),
                "resolved_only": flag("Only those that were put right. Default: false."),
                "limit": limit(10),
            })
        },
        required: &["query"],
        act: find_failures,
    },
    Lookup {
        name: "get_session_history",
        description: "What a session did, in order.",
        arguments: || {
            json!({
                "session_id": text("The session. Default: this one."),
                "chronological": flag("The oldest first. Default: true."),
                "include": word(&["all", "decisions", "tasks", "failures"], "Default: all."),
            })
        },
        required: &[],
        act: get_session_history,
    },
    Lookup {
        name: "get_decisions",
        description: "Decisions and what they rest on, the newest first, or those about something.",
        arguments: || json!({ "query": text("About what. Default: all."), "limit": limit(10) }),
        required: &[],
        act: get_decisions,
    },
    Lookup {
        name: "get_approach_statistics",
        description: "How approaches like this one have fared, and whether to look for another.",
        arguments: || json!({ "approach": text("What one would do.") }),
        required: &["approach"],
        act: |asked| {
            let told = asked.index.approach_statistics(asked.wanted("approach")?)?;
            Ok(json!(told))
        },
    },
    Lookup {
        name: "mark_decision_outcome",
        description: "Record what became of a decision.",
        arguments: || {
            json!({
                "id": text("The decision's id."),
                "outcome": word(&["success", "partial", "failure"], "What became of it."),
                "notes": text("What was learned."),
            })
        },
        required: &["id", "outcome"],
        act: |asked| {
            let (id, outcome) = (asked.wanted("id")?, asked.wanted("outcome")?);
            let notes = asked.text("notes").unwrap_or_default();
            Ok(json!(asked.index.mark_outcome(id, outcome, notes)?))
        },
    },
    Lookup {
        name: "promote_entry",
        description: "Let all sessions read an entry of this session's history.",
        arguments: || json!({ "id": text("The entry's id.") }),
        required: &["id"],
        act: |asked| {
            asked.index.promote(asked.wanted("id")?)?;
            Ok(json!({ "promoted": true }))
        },
    },
    Lookup {
        name: "get_conflicts",
        description: "Contradictions in what is known that nobody has settled.",
        arguments: || json!({ "limit": limit(10) }),
        required: &[],
        act: |asked| {
            let mut open = asked.index.conflicts(false)?;
            open.truncate(asked.limit(10));
            Ok(json!({ "count": open.len(), "conflicts": open }))
        },
    },
    Lookup {
        name: "settle_conflict",
        description: "Record how a contradiction was settled.",
        arguments: || {
            json!({
                "id": { "type": "integer", "description": "Its number, from get_conflicts." },
                "resolution": text("What holds, and why."),
            })
        },
        required: &["id", "resolution"],
        act: |asked| {
            let id = asked.input.get("id").and_then(Value::as_i64).unwrap_or(-1);
            asked.index.settle(id, asked.wanted("resolution")?)?;
            Ok(json!({ "settled": true }))
        },
    },
    Lookup {
        name: "get_code_for_history",
        description: "The code that an entry of history is about.",
        arguments: || json!({ "id": text("The entry's id."), "limit": limit(10) }),
        required: &["id"],
        act: |asked| {
            let found = asked
                .index
                .code_of_history(asked.wanted("id")?, asked.limit(10))?;
            Ok(shown::nodes(&found, asked.index.now()))
        },
    },
];

fn store_summary(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let mut metadata = asked.object("metadata");
    metadata
        .entry("agent")
        .or_insert_with(|| asked.caller.agent.clone().into());
    // Whoever is named above may be somebody else.
    metadata.insert("kept_by".into(), asked.signature().into());
    let summary = Summary {
        content: asked.wanted("content")?.to_owned(),
        summary_type: asked.wanted("summary_type")?.to_owned(),
        session: Some(asked.session().to_owned()),
        code_references: asked.texts("code_references"),
        modified: asked.texts("modified_files"),
        tags: asked.texts("tags"),
        metadata,
    };
    let stored = asked.index.store_summary(&summary)?;
    asked.index.forget_answers_about(&summary.content)?;
    let mut answer = json!({
        "stored": true,
        "node_id": stored.node_id,
        "edges": stored.edges,
        "verified": stored.verdict.verified,
    });
    let mut warnings = stored.verdict.warnings;
    warnings.extend(stored.verdict.contradictions);
    if !warnings.is_empty() {
        answer["warnings"] = warnings.into();
    }
    Ok(answer)
}

/// History as the caller's session sees it.
fn history(asked: &Asked<'_>, types: Vec<NodeType>) -> Filter {
    Filter {
        in_domains: vec![Domain::History],
        types,
        reader: Some(asked.caller.session.clone()),
        ..Filter::default()
    }
}

fn search_history(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let types = asked.text("type").and_then(NodeType::named);
    let mut filter = history(asked, types.into_iter().collect());
    filter.session = asked.text("session_id").map(str::to_owned);
    if let Some(since) = asked.text("since") {
        let wrong =
            || KnowledgeError::Request(format!("`{since}` is no moment such as `2026-11-01`"));
        filter.since = Some(parse_moment(since).ok_or_else(wrong)?);
    }
    let query = Query::new(asked.wanted("query")?)
        .within(filter)
        .at_most(asked.limit(10));
    let found = asked.index.search(&query)?;
    Ok(shown::found(&found, asked.index.now()))
}

fn find_patterns(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let mut filter = history(asked, Vec::new());
    filter.category = asked.text("category").map(str::to_owned);
    let query = Query::new(asked.wanted("query")?)
        .within(filter)
        .at_most(CANDIDATES);
    let found = asked.index.search(&query)?;
    // Entries that share a tag, or else their kind, belong together.
    let mut groups: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
    for hit in &found.hits {
        let kind = hit.node.node_type.name().to_owned();
        let keys = match hit.node.tags.is_empty() {
            true => vec![kind],
            false => hit.node.tags.clone(),
        };
        keys.into_iter()
            .for_each(|key| groups.entry(key).or_default().push(&hit.node));
    }
    let least = asked.number("min_occurrences", 2).max(2);
    let mut patterns: Vec<(String, Vec<&Node>)> = groups
        .into_iter()
        .filter(|(_, nodes)| nodes.len() >= least)
        .collect();
    patterns.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    let now = asked.index.now();
    let shown = patterns.iter().map(|(pattern, nodes)| {
        let examples: Vec<Value> = nodes
            .iter()
            .take(3)
            .map(|node| shown::node(node, now))
            .collect();
        json!({ "pattern": pattern, "occurrences": nodes.len(), "examples": examples })
    });
    Ok(json!({ "patterns": shown.collect::<Vec<Value>>() }))
}

fn find_failures(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let approach = asked.wanted("query")?;
    let resolved_only = asked.flag("resolved_only", false);
    let mut warned = asked
        .index
        .check_approach(approach, &asked.caller.session)?;
    warned.retain(|warning| !resolved_only || warning.failure.resolution.is_some());
    warned.truncate(asked.limit(10));
    let query = Query::new(approach).within(history(asked, vec![NodeType::Failure]));
    let found = asked.index.search(&query.at_most(asked.limit(10)))?;
    let now = asked.index.now();
    let told: Vec<Value> = found.hits.iter().map(|hit| shown::hit(hit, now)).collect();
    if warned.is_empty() && told.is_empty() {
        return Ok(json!({ "status": "no_matches", "hint": "nothing like it has failed so far" }));
    }
    Ok(json!({ "status": "ok", "failures": warned, "history": told }))
}

fn get_session_history(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let types: &[NodeType] = match asked.text("include").unwrap_or("all") {
        "decisions" => &[NodeType::Decision],
        "tasks" => &[
            NodeType::TaskCompletion,
            NodeType::Feature,
            NodeType::BugFix,
            NodeType::Refactoring,
        ],
        "failures" => &[NodeType::Failure],
        _ => &[],
    };
    let chronological = asked.flag("chronological", true);
    let found = asked
        .index
        .session_history(asked.session(), types, chronological, 100)?;
    Ok(shown::nodes(&found, asked.index.now()))
}

fn get_decisions(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let filter = history(asked, vec![NodeType::Decision]);
    let decisions = match asked.text("query") {
        Some(text) => {
            let query = Query::new(text).within(filter).at_most(asked.limit(10));
            let found = asked.index.search(&query)?;
            found.hits.into_iter().map(|hit| hit.node).collect()
        }
        None => asked
            .index
            .list_nodes(&filter, Listing::NewestFirst, asked.limit(10))?,
    };
    let now = asked.index.now();
    let mut results = Vec::new();
    for decision in &decisions {
        let mut shown = shown::node(decision, now);
        let reasons = asked.index.reasons_of(&decision.id, 5)?;
        if !reasons.is_empty() {
            shown["based_on"] = reasons.iter().map(|node| shown::node(node, now)).collect();
        }
        results.push(shown);
    }
    Ok(json!({ "count": results.len(), "results": results }))
}
