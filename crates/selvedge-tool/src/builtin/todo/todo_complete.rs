//! Completes a todo; of a list whose end is the run's end, the last one is checked.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Rules, facts, meant};
use crate::builtin::blocking;
use crate::schema;
use crate::todo::{TodoBounds, TodoChange, TodoFile, TodoState};
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use crate::workspace::{PathError, Workspace};

pub(in crate::builtin) struct TodoComplete;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Which. Default: the current one.
    id: Option<i64>,
    /// What came of it, in a sentence.
    notes: Option<String>,
}

#[async_trait]
impl Tool for TodoComplete {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "todo_complete".into(),
            description: "Mark a todo as completed. Completing the last one ends the phase.".into(),
            schema: schema::of::<Arguments>(),
            // Nothing is written, but one is completed after the other: whether it is the
            // last depends on those before.
            world: World::Writes,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        match complete(context, input).await {
            Ok(output) | Err(output) => output,
        }
    }

    async fn probe(&self, _: &ToolContext, _: &Value, _: &Value) -> ToolProbe {
        ToolProbe::DidNotHappen
    }
}

async fn complete(context: &ToolContext, input: &Value) -> Result<ToolOutput, ToolOutput> {
    let Arguments { id, notes } = schema::arguments(input)?;
    let todos = &context.desk.todos;
    let todo = meant(todos, id)?;
    if todo.state == TodoState::Completed {
        let id = todo.id;
        return Err(ToolOutput::error(format!("todo {id} is completed already")));
    }
    let id = todo.id;
    let change = TodoChange::Completed {
        id,
        notes: notes.unwrap_or_default(),
    };
    let mut after = (**todos).clone();
    after.apply(&change);
    let rules = Rules::of(context);
    if let Some(next) = after.current() {
        let text = format!(
            "Todo {id} is completed. Next is {}: {}",
            next.id, next.content
        );
        return Ok(ToolOutput::ok(text).with_facts(facts(&change)));
    }
    let mut facts = facts(&change);
    if !rules.ends {
        return Ok(
            ToolOutput::ok(format!("Todo {id} is completed; none is left.")).with_facts(facts),
        );
    }
    let mut end = json!({});
    if let Some(bounds) = rules.next {
        let workspace = Arc::clone(&context.workspace);
        match blocking(move || next_list(&workspace, bounds)).await {
            Ok(file) => end = json!(file),
            Err(why) => {
                let change = TodoChange::Rejected {
                    id,
                    why: why.clone(),
                };
                let text = format!(
                    "Phase transition rejected: {why}\nTodo {id} is in progress again: put it \
                     right, then complete it."
                );
                return Err(ToolOutput::error(text).with_facts(super::facts(&change)));
            }
        }
    }
    facts["end"] = end;
    let text = format!("Todo {id} is completed. It was the last one: the phase is over.");
    Ok(ToolOutput::ok(text).with_facts(facts))
}

/// The list for what comes next, or why it cannot be used.
fn next_list(workspace: &Workspace, bounds: TodoBounds) -> Result<TodoFile, String> {
    let path = TodoFile::PATH;
    match workspace.read_whole(path) {
        Ok((content, _)) => {
            let text = String::from_utf8(content);
            let text = text.map_err(|_| format!("{path} is not valid YAML: it is not UTF-8"))?;
            TodoFile::check(&text, bounds)
        }
        Err(PathError::Missing { .. }) => {
            Err(format!("{path} not found. Create it with todo_write."))
        }
        Err(error) => Err(error.to_string()),
    }
}
