//! The graph of checked requirements.

use selvedge_knowledge::{
    DUPLICATE_MIN, Entity, LABELS, RELATIONS, Relation, RequirementCache, RequirementGraph, alike,
};
use selvedge_tool::{ToolOutput, World};
use serde_json::{Map, Value, json};

use super::{Asked, Row, Trouble, data, number, text};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "get_database_schema",
        description: "Which labels, relationships and properties the graph has.",
        arguments: || json!({}),
        required: &[],
        world: World::Reads,
        act: schema,
    },
    Row {
        name: "find_similar_requirements",
        description: "Requirements in the graph that are most like a statement.",
        arguments: || json!({ "text": text("The statement."), "limit": number("How many. Default: 5.") }),
        required: &["text"],
        world: World::Reads,
        act: similar,
    },
    Row {
        name: "check_for_duplicates",
        description: "Whether a requirement of the cache says the same as another, in the cache or \
                      in the graph. Without an id, all pairs.",
        arguments: || json!({ "id": text("The requirement in the cache. Default: all.") }),
        required: &[],
        world: World::Reads,
        act: duplicates,
    },
    Row {
        name: "generate_requirement_id",
        description: "The next free id for a requirement in the graph, such as R-0007.",
        arguments: || json!({}),
        required: &[],
        world: World::Reads,
        act: next_id,
    },
    Row {
        name: "create_requirement_node",
        description: "Put a requirement of the cache into the graph, with its citation.",
        arguments: || {
            json!({
                "id": text("Its id in the graph."),
                "requirement": text("Its id in the cache."),
                "status": { "type": "string", "enum": ["accepted", "rejected", "duplicate"],
                            "description": "How it stands." },
                "notes": text("Why."),
            })
        },
        required: &["id", "requirement", "status"],
        world: World::Writes,
        act: create,
    },
    Row {
        name: "create_fulfillment_relationship",
        description: "Relate two entities of the graph. A target that is not there is created.",
        arguments: || {
            json!({
                "source": text("From: an id."),
                "target": text("To: an id."),
                "kind": { "type": "string", "enum": RELATIONS, "description": "How." },
                "label": { "type": "string", "enum": LABELS,
                           "description": "What the target is, if it is new. Default: BusinessObject." },
                "notes": text("Why."),
            })
        },
        required: &["source", "target", "kind"],
        world: World::Writes,
        act: relate,
    },
    Row {
        name: "get_entity_relationships",
        description: "What an entity of the graph is related to.",
        arguments: || json!({ "id": text("The entity.") }),
        required: &["id"],
        world: World::Reads,
        act: relations,
    },
    Row {
        name: "count_graph_statistics",
        description: "How many entities and relationships the graph has.",
        arguments: || json!({}),
        required: &[],
        world: World::Reads,
        act: statistics,
    },
    Row {
        name: "validate_schema_compliance",
        description: "What in the graph does not comply with its schema.",
        arguments: || json!({}),
        required: &[],
        world: World::Reads,
        act: compliance,
    },
    Row {
        name: "query_graph",
        description: "Entities of the graph, by label and properties. Reads only.",
        arguments: || {
            json!({
                "label": { "type": "string", "enum": LABELS, "description": "Of this label." },
                "having": { "type": "object", "description": "Properties and their values." },
            })
        },
        required: &[],
        world: World::Reads,
        act: query,
    },
];

fn schema(_: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    Ok(data(&json!({
        "labels": LABELS,
        "relationships": RELATIONS,
        "properties of Requirement": {
            "text": "required", "status": "required: accepted, rejected or duplicate",
            "citation": "required", "name": "", "kind": "", "priority": "", "notes": "",
        },
    })))
}

fn similar(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let text = asked.wanted("text")?;
    let limit = asked.number("limit").unwrap_or(5).min(50);
    let entities = asked.shared()?.entities(Some(LABELS[0]), &Map::new())?;
    let mut found: Vec<(f64, Entity)> = entities
        .into_iter()
        .map(|entity| {
            let other = entity.properties.get("text").and_then(Value::as_str);
            (alike(text, other.unwrap_or_default()), entity)
        })
        .filter(|(likeness, _)| *likeness > 0.2)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(limit);
    Ok(match found.is_empty() {
        true => ToolOutput::ok("nothing in the graph is like it"),
        false => data(&json!(found)),
    })
}

fn duplicates(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let store = asked.shared()?;
    let all = store.requirements(None)?;
    let wanted = asked.text("id");
    if let Some(id) = wanted
        && !all.iter().any(|requirement| requirement.id == id)
    {
        return Err(Trouble(format!(
            "there is no requirement `{id}` in the cache"
        )));
    }
    let graph = store.entities(Some(LABELS[0]), &Map::new())?;
    let mut pairs = Vec::new();
    for (at, one) in all.iter().enumerate() {
        if wanted.is_some_and(|id| id != one.id) {
            continue;
        }
        let others = all.iter().enumerate();
        // Without an id, every pair once.
        let others =
            others.filter(|(n, other)| other.id != one.id && (wanted.is_some() || *n > at));
        for (_, other) in others {
            let likeness = alike(&one.text, &other.text);
            if likeness >= DUPLICATE_MIN {
                pairs.push(json!({ "requirement": one.id, "duplicates": other.id,
                                   "likeness": likeness, "texts": [one.text, other.text] }));
            }
        }
        for entity in &graph {
            let from = entity.properties.get("requirement").and_then(Value::as_str);
            let text = entity.properties.get("text").and_then(Value::as_str);
            let likeness = alike(&one.text, text.unwrap_or_default());
            if from != Some(&one.id) && likeness >= DUPLICATE_MIN {
                pairs.push(json!({ "requirement": one.id, "duplicates": entity.id,
                                   "likeness": likeness, "in": "graph" }));
            }
        }
    }
    let facts = json!({ "duplicates": pairs.len() });
    Ok(match pairs.is_empty() {
        true => ToolOutput::ok("no duplicates"),
        false => data(&json!(pairs)),
    }
    .with_facts(facts))
}

fn next_id(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let entities = asked.shared()?.entities(Some(LABELS[0]), &Map::new())?;
    let number = |entity: &Entity| entity.id.strip_prefix("R-")?.parse::<u64>().ok();
    let last = entities.iter().filter_map(number).max().unwrap_or(0);
    Ok(ToolOutput::ok(format!("R-{:04}", last + 1)))
}

fn create(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let (id, from) = (asked.wanted("id")?, asked.wanted("requirement")?);
    let status = asked.wanted("status")?;
    let store = asked.shared()?;
    let all = store.requirements(None)?;
    let requirement = all.into_iter().find(|requirement| requirement.id == from);
    let requirement = requirement
        .ok_or_else(|| Trouble(format!("there is no requirement `{from}` in the cache")))?;
    let properties = json!({
        "text": requirement.text, "name": requirement.name, "kind": requirement.kind,
        "priority": requirement.priority, "status": status, "requirement": from,
        "citation": requirement.citations, "notes": asked.text("notes"),
    });
    let entity = Entity {
        id: id.to_owned(),
        label: LABELS[0].to_owned(),
        properties: properties.as_object().cloned().unwrap_or_default(),
    };
    store.put_entity(&entity)?;
    store.set_requirement_status(from, status)?;
    Ok(ToolOutput::ok(format!("`{id}` is in the graph: {status}")).with_facts(json!({ "id": id })))
}

fn relate(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let store = asked.shared()?;
    let (source, target) = (asked.wanted("source")?, asked.wanted("target")?);
    let by_id = json!({ "id": target })
        .as_object()
        .cloned()
        .unwrap_or_default();
    if store.entities(None, &by_id)?.is_empty() {
        let label = asked.text("label").unwrap_or(LABELS[1]);
        if label == LABELS[0] {
            let why = format!("there is no requirement `{target}` in the graph; create it first");
            return Err(Trouble(why));
        }
        store.put_entity(&Entity {
            id: target.to_owned(),
            label: label.to_owned(),
            properties: Map::new(),
        })?;
    }
    let kind = asked.wanted("kind")?;
    let notes = asked
        .text("notes")
        .map(|notes| ("notes".to_owned(), json!(notes)));
    store.relate(&Relation {
        source: source.to_owned(),
        target: target.to_owned(),
        kind: kind.to_owned(),
        properties: notes.into_iter().collect(),
    })?;
    Ok(ToolOutput::ok(format!("`{source}` {kind} `{target}`")))
}

fn relations(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let found = asked.shared()?.relations_of(asked.wanted("id")?)?;
    Ok(data(&json!(found)))
}

fn statistics(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    Ok(data(&json!(asked.shared()?.graph_statistics()?)))
}

fn compliance(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let found = asked.shared()?.violations()?;
    let facts = json!({ "violations": found.len() });
    Ok(match found.is_empty() {
        true => ToolOutput::ok("everything complies"),
        false => ToolOutput::ok(found.join("\n")),
    }
    .with_facts(facts))
}

fn query(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let having = asked.input.get("having").and_then(Value::as_object);
    let having = having.cloned().unwrap_or_default();
    let found = asked.shared()?.entities(asked.text("label"), &having)?;
    Ok(data(&json!(found)))
}
