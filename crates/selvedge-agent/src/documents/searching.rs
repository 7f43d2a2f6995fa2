//! Search over what a job has in its folder. What its tools write or delete is followed at
//! once, and what somebody else put there when somebody asks: an answer is never behind the
//! files.

use selvedge_knowledge::Query;
use selvedge_tool::{ToolOutput, World};
use serde_json::{Value, json};

use super::{Asked, Row, Trouble, data, number, text};

const CONTENT_CHARS_MAX: usize = 600;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "semantic_search",
        description: "Find passages in the files of the workspace by what they mean.",
        arguments: || json!({ "query": text("The question."), "limit": number("How many. Default: 5.") }),
        required: &["query"],
        world: World::Reads,
        act: search,
    },
    Row {
        name: "index_file_for_search",
        description: "Make sure that a file can be found. Files are indexed by themselves; this \
                      says whether one was, and why not.",
        arguments: || json!({ "path": text("The file, relative to the workspace root.") }),
        required: &["path"],
        world: World::Reads,
        act: index_file,
    },
    Row {
        name: "get_vector_index_stats",
        description: "How many files, passages and vectors the index of the workspace has now.",
        arguments: || json!({}),
        required: &[],
        world: World::Reads,
        act: stats,
    },
];

fn search(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let limit = asked.number("limit").unwrap_or(5).min(50);
    let found = asked
        .own()?
        .search(&Query::new(asked.wanted("query")?).at_most(limit))?;
    let hits: Vec<Value> = found
        .hits
        .iter()
        .map(|hit| {
            let content: String = hit.node.content.chars().take(CONTENT_CHARS_MAX).collect();
            json!({
                "path": hit.node.path, "lines": hit.node.lines, "heading": hit.node.name,
                "score": (hit.score * 100.0).round() / 100.0, "text": content,
            })
        })
        .collect();
    Ok(match hits.is_empty() {
        true => ToolOutput::ok("nothing was found"),
        false => data(&json!(hits)),
    })
}

fn index_file(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let path = asked.wanted("path")?;
    let (_, place) = asked.workspace.open_file(path)?;
    let place = place.to_string_lossy().into_owned();
    let index = asked.own()?;
    let count = index.passages_of(&place)?;
    match count {
        0 => Err(Trouble(format!(
            "`{path}` is not in the index: it has no text"
        ))),
        count => Ok(ToolOutput::ok(format!(
            "`{path}` is in the index: {count} passages"
        ))),
    }
}

fn stats(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let stats = asked.as_left()?.stats()?;
    let passages: u64 = stats.nodes.values().sum();
    Ok(data(&json!({
        "files": stats.files.values().sum::<u64>(),
        "passages": passages,
        "vectors": stats.vectors,
        "bytes": stats.bytes,
    })))
}
