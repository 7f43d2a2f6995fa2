//! What exists: code, found and followed.

use std::collections::{BTreeSet, HashSet};

use selvedge_knowledge::{
    Domain, EdgeType, Filter, KnowledgeError, NodeType, Query, Towards, tokens,
};
use serde_json::{Value, json};

use super::{Asked, Lookup, flag, limit, shown, text, texts, word};

const SYMBOLS: &[&str] = &[
    "function",
    "method",
    "struct",
    "class",
    "interface",
    "trait",
    "enum",
    "type",
    "const",
    "var",
    "constant",
    "variable",
    "module",
    "macro",
    "file",
    "all",
];
const EDGES: &[&str] = &[
    "imports",
    "calls",
    "references",
    "extends",
    "implements",
    "all",
];
/// The deepest a graph is followed.
const DEPTH_MAX: usize = 5;
/// Nodes of one walk over the graph.
const REACHED_MAX: usize = 100;

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        name: "search_code",
        description: "Find code by what it does or what it is called. Answers with symbols, their \
                      place and why they were found; use it before reading whole files.",
        arguments: || {
            json!({
                "query": text("What to look for, in any words, or an exact identifier."),
                "symbol_type": word(SYMBOLS, "Only symbols of this type."),
                "file_pattern": text("Only files that match, such as `src/**/*.rs`."),
                "limit": limit(10),
            })
        },
        required: &["query"],
        act: search_code,
    },
    Lookup {
        name: "get_symbol",
        description: "Show one symbol: place, signature, documentation, and its source if asked for.",
        arguments: || {
            json!({
                "symbol": text("Its id, or its name such as `Parser.parse`."),
                "include_source": flag("Whether to show its source. Default: false."),
            })
        },
        required: &["symbol"],
        act: get_symbol,
    },
    Lookup {
        name: "get_dependencies",
        description: "What a symbol or file uses: calls, imports, base types. Calls are found by \
                      name and marked as approximate.",
        arguments: following,
        required: &["symbol"],
        act: |asked| follow(asked, Towards::Target),
    },
    Lookup {
        name: "get_dependents",
        description: "What uses a symbol or file, and so may break when it changes.",
        arguments: following,
        required: &["symbol"],
        act: |asked| follow(asked, Towards::Source),
    },
    Lookup {
        name: "get_blast_radius",
        description: "What may break when a symbol changes: who uses it, and who uses those, the \
                      nearest first, with the latest that was done to the symbol.",
        arguments: || {
            json!({
                "symbol": text("Its id or name."),
                "depth": { "type": "integer", "minimum": 1, "maximum": DEPTH_MAX,
                           "description": "How many steps far. Default: 3." },
            })
        },
        required: &["symbol"],
        act: get_blast_radius,
    },
    Lookup {
        name: "find_similar_symbols",
        description: "Symbols that are like another: duplicates, variants, prior art.",
        arguments: || {
            json!({
                "symbol": text("Its id or name."),
                "same_type_only": flag("Only symbols of the same type. Default: false."),
                "limit": limit(10),
            })
        },
        required: &["symbol"],
        act: find_similar,
    },
    Lookup {
        name: "get_file_symbols",
        description: "The outline of a file: its symbols by line.",
        arguments: || {
            json!({
                "path": text("The file, from the project's root."),
                "symbol_type": word(SYMBOLS, "Only symbols of this type."),
            })
        },
        required: &["path"],
        act: get_file_symbols,
    },
    Lookup {
        name: "get_history_for_code",
        description: "What was done to a piece of code before, the newest first.",
        arguments: || json!({ "symbol": text("Its id or name."), "limit": limit(10) }),
        required: &["symbol"],
        act: |asked| {
            let found = asked
                .index
                .history_of_code(asked.wanted("symbol")?, asked.limit(10))?;
            Ok(shown::nodes(&found, asked.index.now()))
        },
    },
    Lookup {
        name: "search_all",
        description: "Search code, history and documents at once, grouped, up to five of each.",
        arguments: || {
            json!({
                "query": text("What to look for, in any words."),
                "domains": texts("Some of: code, history, academic. Default: all."),
                "limit": limit(5),
            })
        },
        required: &["query"],
        act: search_all,
    },
    Lookup {
        name: "smart_search",
        description: "The best of everything within a budget of tokens, with the text itself.",
        arguments: || {
            json!({
                "query": text("What to look for, in any words."),
                "budget": { "type": "integer", "minimum": 50, "maximum": 20_000,
                            "description": "Tokens of the answer. Default: 1000." },
                "thoroughness": word(&["quick", "moderate", "thorough"], "Default: moderate."),
            })
        },
        required: &["query"],
        act: smart_search,
    },
];

fn following() -> Value {
    json!({
        "symbol": text("Its id or name."),
        "edge_type": word(EDGES, "By which relation. Default: all."),
        "depth": { "type": "integer", "minimum": 1, "maximum": DEPTH_MAX,
                   "description": "How many steps far. Default: 1." },
    })
}

/// The types that a word for symbols means; none if it means all.
fn types(asked: &Asked<'_>) -> Vec<NodeType> {
    use NodeType as T;
    match asked.text("symbol_type").unwrap_or("all") {
        "all" => Vec::new(),
        "function" => vec![T::Function, T::Method],
        "type" => vec![
            T::Struct,
            T::Class,
            T::Enum,
            T::Trait,
            T::Interface,
            T::TypeAlias,
        ],
        "class" | "struct" => vec![T::Class, T::Struct],
        "const" => vec![T::Constant],
        "var" => vec![T::Variable],
        other => NodeType::named(other).into_iter().collect(),
    }
}

fn search_code(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let filter = Filter {
        in_domains: vec![Domain::Code],
        types: types(asked),
        path: asked.text("file_pattern").map(str::to_owned),
        ..Filter::default()
    };
    let query = Query::new(asked.wanted("query")?)
        .within(filter)
        .at_most(asked.limit(10));
    let found = asked.index.search(&query)?;
    Ok(shown::found(&found, asked.index.now()))
}

fn get_symbol(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let name = asked.wanted("symbol")?;
    let now = asked.index.now();
    let node = match asked.index.node(name) {
        Ok(node) => node,
        Err(KnowledgeError::NoNode { .. }) => {
            let named = asked.index.named(name)?;
            // Several of that name: say which, rather than choose.
            return Ok(match named.is_empty() {
                true => json!({ "status": "no_matches", "hint": "look for it with search_code" }),
                false => shown::nodes(&named, now),
            });
        }
        Err(error) => return Err(error),
    };
    let mut shown = shown::node(&node, now);
    shown["signature"] = node.signature.clone().into();
    shown["doc"] = node.doc.clone().into();
    shown["lines"] = json!(node.lines);
    if asked.flag("include_source", false) {
        shown["source"] = node.content.clone().into();
    }
    Ok(shown)
}

fn follow(asked: &Asked<'_>, towards: Towards) -> Result<Value, KnowledgeError> {
    let edges: &[EdgeType] = match asked.text("edge_type").unwrap_or("all") {
        "imports" => &[EdgeType::Imports],
        "calls" => &[EdgeType::Calls],
        "references" => &[EdgeType::References],
        "extends" => &[EdgeType::Extends],
        "implements" => &[EdgeType::Implements],
        _ => &[
            EdgeType::Calls,
            EdgeType::Imports,
            EdgeType::References,
            EdgeType::Extends,
            EdgeType::Implements,
            EdgeType::Embeds,
        ],
    };
    let id = asked.index.node(asked.wanted("symbol")?)?.id;
    let depth = asked.number("depth", 1).clamp(1, DEPTH_MAX);
    let found = asked
        .index
        .follow(&id, edges, towards, depth, REACHED_MAX)?;
    Ok(shown::edges(&found, asked.index.now()))
}

fn get_blast_radius(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let symbol = asked.wanted("symbol")?;
    let depth = asked.number("depth", 3).clamp(1, DEPTH_MAX);
    let reached = asked.index.blast_radius(symbol, depth, REACHED_MAX)?;
    let now = asked.index.now();
    let mut shown = shown::edges(&reached, now);
    let files: BTreeSet<&str> = reached
        .iter()
        .filter_map(|edge| edge.node.path.as_deref())
        .collect();
    shown["files"] = json!(files);
    let history = asked.index.history_of_code(symbol, 3)?;
    shown["history"] = shown::nodes(&history, now)["results"].take();
    Ok(shown)
}

fn find_similar(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let node = asked.index.node(asked.wanted("symbol")?)?;
    let mut filter = Filter::of(Domain::Code);
    if asked.flag("same_type_only", false) {
        filter.types = vec![node.node_type];
    }
    let found = asked.index.similar_to(&node.id, &filter, asked.limit(10))?;
    let now = asked.index.now();
    let results = found.iter().map(|(node, similarity)| {
        let mut shown = shown::node(node, now);
        shown["similarity"] = (f64::from(similarity * 100.0).round() / 100.0).into();
        shown
    });
    Ok(json!({ "results": results.collect::<Vec<Value>>() }))
}

fn get_file_symbols(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let found = asked
        .index
        .in_file(asked.wanted("path")?, &types(asked), 101)?;
    let now = asked.index.now();
    let symbols: Vec<_> = found
        .into_iter()
        .filter(|n| n.node_type != NodeType::File)
        .collect();
    Ok(shown::nodes(&symbols[..symbols.len().min(100)], now))
}

fn search_all(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let wanted = asked.texts("domains");
    let now = asked.index.now();
    let mut groups = json!({});
    let mut none = Vec::new();
    for domain in Domain::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == domain.name()) {
            continue;
        }
        let filter = Filter {
            in_domains: vec![*domain],
            reader: Some(asked.caller.session.clone()),
            ..Filter::default()
        };
        let query = Query::new(asked.wanted("query")?).within(filter);
        let found = asked.index.search(&query.at_most(asked.limit(5).min(5)))?;
        match found.hits.is_empty() {
            true => none.push(domain.name()),
            false => {
                let hits: Vec<Value> = found.hits.iter().map(|hit| shown::hit(hit, now)).collect();
                groups[domain.name()] = hits.into();
            }
        }
    }
    Ok(
        match groups.as_object().is_some_and(serde_json::Map::is_empty) {
            true => json!({ "status": "no_matches", "hint": "try other words" }),
            false => json!({ "status": "ok", "results": groups, "no_matches_in": none }),
        },
    )
}

fn smart_search(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let budget = asked.number("budget", 1_000);
    let count = match asked.text("thoroughness").unwrap_or("moderate") {
        "quick" => 5,
        "thorough" => 30,
        _ => 12,
    };
    let filter = Filter {
        reader: Some(asked.caller.session.clone()),
        ..Filter::default()
    };
    let query = Query::new(asked.wanted("query")?)
        .within(filter)
        .at_most(count);
    let found = asked.index.search(&query)?;
    if found.hits.is_empty() {
        return Ok(shown::no_matches(&found));
    }
    let now = asked.index.now();
    let (mut results, mut used, mut seen) = (Vec::new(), 0, HashSet::new());
    for hit in &found.hits {
        if !seen.insert(&hit.node.id) {
            continue;
        }
        let short = shown::hit(hit, now);
        let mut whole = short.clone();
        whole["text"] = hit.node.content.clone().into();
        // The whole text if it fits, else what is shown of it, else the next one.
        for shown in [whole, short] {
            let cost = tokens(&shown.to_string());
            if used + cost <= budget {
                used += cost;
                results.push(shown);
                break;
            }
        }
    }
    Ok(json!({ "status": "ok", "results": results, "tokens_used": used, "budget": budget }))
}
