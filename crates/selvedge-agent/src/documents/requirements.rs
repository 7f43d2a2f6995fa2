//! The requirement cache: how one job passes on what it found.

use selvedge_knowledge::{Requirement, RequirementCache};
use selvedge_tool::{ToolOutput, World};
use serde_json::{Value, json};

use super::{Asked, Row, Trouble, data, number, text, texts};

const ADD_ARGUMENTS: fn() -> Value = || {
    json!({
        "text": text("What has to be so, in one sentence that can be tested."),
        "name": text("A short name."),
        "kind": text("What kind: functional, compliance, data, quality…"),
        "priority": text("How much it matters: high, medium, low."),
        "citations": texts("The ids of its citations, at least one."),
    })
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "add_requirement",
        description: "Store a requirement in the cache, with the citations that carry it.",
        arguments: ADD_ARGUMENTS,
        required: &["text", "citations"],
        world: World::Writes,
        act: add,
    },
    Row {
        name: "write_requirement_to_cache",
        description: "The same as add_requirement.",
        arguments: ADD_ARGUMENTS,
        required: &["text", "citations"],
        world: World::Writes,
        act: add,
    },
    Row {
        name: "list_requirements",
        description: "The requirements in the cache, with their citations.",
        arguments: || json!({ "status": text("Only those of this status, such as pending.") }),
        required: &[],
        world: World::Reads,
        act: list,
    },
    Row {
        name: "query_similar_requirements",
        description: "The requirements in the cache that are most like a statement.",
        arguments: || json!({ "text": text("The statement."), "limit": number("How many. Default: 5.") }),
        required: &["text"],
        world: World::Reads,
        act: similar,
    },
];

fn add(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let word = |name| asked.text(name).unwrap_or_default().to_owned();
    let requirement = Requirement {
        text: asked.wanted("text")?.to_owned(),
        name: word("name"),
        kind: word("kind"),
        priority: word("priority"),
        job: asked.caller.session.clone(),
        ..Requirement::default()
    };
    let citations = asked.texts("citations");
    let id = asked.shared()?.add_requirement(&requirement, &citations)?;
    Ok(ToolOutput::ok(format!("stored requirement `{id}`"))
        .with_facts(json!({ "requirement": id })))
}

fn list(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let found = asked.shared()?.requirements(asked.text("status"))?;
    Ok(match found.is_empty() {
        true => ToolOutput::ok("there are no requirements"),
        false => data(&json!(found)),
    })
}

fn similar(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let limit = asked.number("limit").unwrap_or(5).min(50);
    let found = asked
        .shared()?
        .similar_requirements(asked.wanted("text")?, limit)?;
    let found: Vec<Value> = found
        .into_iter()
        .map(|(requirement, likeness)| {
            json!({ "likeness": (likeness * 100.0).round() / 100.0, "requirement": requirement })
        })
        .collect();
    Ok(match found.is_empty() {
        true => ToolOutput::ok("nothing is like it"),
        false => data(&json!(found)),
    })
}
