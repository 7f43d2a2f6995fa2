//! What a model is shown of a node: little, and how far to trust it.

use selvedge_knowledge::{Edge, Found, Hit, Node, Time, cut, freshness, trust};
use serde_json::{Value, json};

/// Characters of a snippet: some sixty tokens.
const SNIPPET_CHARS: usize = 240;

/// A node, in a few fields.
pub(super) fn node(node: &Node, now: Time) -> Value {
    let said = [&node.doc, &node.signature, &node.content];
    let said = said.into_iter().find(|text| !text.trim().is_empty());
    let snippet = said.map_or("", |text| cut(text.trim(), SNIPPET_CHARS));
    let mut shown = json!({ "id": node.id, "kind": node.node_type.name() });
    if !node.name.is_empty() {
        shown["name"] = node.name.clone().into();
    }
    if let (Some(path), Some((line, _))) = (&node.path, node.lines) {
        shown["at"] = format!("{path}:{line}").into();
    }
    if !snippet.is_empty() {
        shown["snippet"] = snippet.into();
    }
    // What agents have stored is their word, and nobody else's.
    if let Some(by) = node.metadata.get("kept_by") {
        shown["by"] = by.clone();
    }
    let (trusted, fresh) = (trust(node, now), freshness(node, now));
    if trusted.level < 100 {
        shown["trust"] = format!("{} {}", trusted.level, trusted.label).into();
    }
    let warning = fresh.warning.or(trusted.warning.map(str::to_owned));
    if let Some(warning) = warning {
        shown["warning"] = warning.into();
    }
    shown
}

/// Nodes, in a few fields each.
pub(super) fn nodes(all: &[Node], now: Time) -> Value {
    let shown: Vec<Value> = all.iter().map(|one| node(one, now)).collect();
    json!({ "count": shown.len(), "results": shown })
}

/// A hit: the node, how well it answers, and why.
pub(super) fn hit(hit: &Hit, now: Time) -> Value {
    let mut shown = node(&hit.node, now);
    shown["score"] = ((hit.score * 100.0).round() / 100.0).into();
    shown["why"] = hit.why.clone().into();
    shown
}

/// What was found, or shortly that nothing was.
pub(super) fn found(found: &Found, now: Time) -> Value {
    if found.hits.is_empty() {
        return no_matches(found);
    }
    let results: Vec<Value> = found.hits.iter().map(|one| hit(one, now)).collect();
    let mut shown = json!({ "status": "ok", "results": results });
    if found.by_words_only.is_some() {
        shown["note"] = "found by words only; the embedder does not answer".into();
    }
    shown
}

/// That nothing was found, in a few words, and where something is.
pub(super) fn no_matches(found: &Found) -> Value {
    let others: Vec<&str> = found.also_in.iter().map(|domain| domain.name()).collect();
    let hint = match others.is_empty() {
        true => "try other words, or a symbol's name".to_owned(),
        false => format!("there are matches in: {}", others.join(", ")),
    };
    json!({ "status": "no_matches", "hint": hint })
}

/// What was reached along edges.
pub(super) fn edges(all: &[Edge], now: Time) -> Value {
    let shown = all.iter().map(|edge| {
        let mut shown = node(&edge.node, now);
        shown["edge"] = edge.edge.name().into();
        shown["depth"] = edge.depth.into();
        if edge.approximate {
            shown["approximate"] = true.into();
        }
        shown
    });
    let shown: Vec<Value> = shown.collect();
    json!({ "count": shown.len(), "results": shown })
}
