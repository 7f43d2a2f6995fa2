//! A session in one JSON value: what it cost, who did how much, how it went.

use std::collections::{BTreeMap, HashMap};

use selvedge_agent::DISCREPANCIES;
use selvedge_ledger::StreamId;
use selvedge_model::Usd;
use serde_json::{Map, Value, json};

use super::issues;
use crate::tree::{Node, State, Tree};

/// The summary of everything so far; `requests` are what the agents were asked to do.
pub(super) fn summary(tree: &Tree, requests: &HashMap<StreamId, Value>) -> Value {
    let nodes = tree.nodes();
    let mut costs: BTreeMap<&str, Usd> = BTreeMap::new();
    for name in tree.cast.keys() {
        costs.entry(name).or_default();
    }
    for node in nodes {
        let cost = costs.entry(&node.agent).or_default();
        *cost = *cost + node.cost;
    }
    let mut summary = Map::new();
    let mut add = |name: &str, value: Value| summary.insert(name.to_owned(), value);
    let root = tree.root();
    add("session_id", json!(root.map(|node| node.stream.as_str())));
    add("request", json!(root.map(|node| &node.title)));
    add("outcome", json!(outcome(tree)));
    add(
        "total_cost",
        json!(nodes.iter().map(|n| n.cost).sum::<Usd>()),
    );
    let is_known = nodes.iter().all(|node| !node.is_unpriced);
    add("cost_is_known", json!(is_known));
    add("agent_costs", json!(costs));
    for (name, leads) in &tree.cast {
        let own = nodes.iter().filter(|node| node.agent == *name);
        match leads {
            true => add(
                &format!("{name}_turns"),
                json!(own.map(|n| n.turns).sum::<u64>()),
            ),
            false => add(&format!("{name}_tasks"), json!(own.count())),
        };
    }
    add("open_issues", json!(issues::open(nodes, requests)));
    add("discrepancies", json!(discrepancies(nodes)));
    add("timeline", json!(tree.timeline()));
    Value::Object(summary)
}

/// How it went, in a word.
fn outcome(tree: &Tree) -> &'static str {
    let Some(root) = tree.root() else {
        return "running";
    };
    match &root.state {
        State::Done => return "success",
        State::Failed => return "failed",
        State::Cancelled => return "cancelled",
        State::Working | State::Paused(_) => {}
    }
    let mut reasons = tree.nodes().iter().filter_map(|node| match &node.state {
        State::Paused(reasons) => Some(reasons),
        _ => None,
    });
    let all: Vec<&String> = reasons.by_ref().flatten().collect();
    let has = |reason: &str| all.iter().any(|known| *known == reason);
    match () {
        () if has("budget") => "budget_exhausted",
        () if has("merge") => "not_merged",
        () if has("interrupted") => "interrupted",
        () if !all.is_empty() => "paused",
        () => "running",
    }
}

/// Where results said something else than the record.
fn discrepancies(nodes: &[Node]) -> Vec<Value> {
    let found = nodes.iter().filter_map(|node| {
        let found = node.data.as_ref()?.get(DISCREPANCIES)?;
        Some(json!({ "agent": node.label(), "found": found }))
    });
    found.collect()
}
