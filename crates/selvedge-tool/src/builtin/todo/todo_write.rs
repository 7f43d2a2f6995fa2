//! Writes the list of todos for the phase that comes next.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Rules;
use crate::builtin::change::Writing;
use crate::schema;
use crate::todo::{Todo, TodoBounds, TodoFile};
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

pub(in crate::builtin) struct TodoWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The todos, in the order of work.
    todos: Vec<Item>,
    /// What the phase is called.
    phase: Option<String>,
    /// What it is for.
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    /// Its number. Default: its place in the list.
    id: Option<i64>,
    /// What is to be done, concretely.
    #[schemars(length(min = 1))]
    content: String,
}

#[async_trait]
impl Tool for TodoWrite {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "todo_write".into(),
            description: "Write the todos of the next phase to todos.yaml, in place of what is \
                          there."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        writing(input)?.prepare(context).await
    }

    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput {
        let written = async {
            let written = writing(input)?.run(context, evidence).await?;
            let bounds = Rules::of(context).next;
            let bounds = bounds.unwrap_or(TodoBounds {
                min: 0,
                max: usize::MAX,
            });
            let file = file(input)?;
            let said = match TodoFile::check(&file.yaml(), bounds) {
                Ok(_) => String::new(),
                Err(why) => format!("; as it is, it will be rejected: {why}"),
            };
            let text = format!("wrote {} todos to todos.yaml{said}", file.todos.len());
            Ok(ToolOutput::ok(text).with_facts(written))
        };
        written.await.unwrap_or_else(|output| output)
    }

    async fn probe(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolProbe {
        match writing(input) {
            Ok(writing) => writing.probe(context, evidence, "wrote todos.yaml").await,
            Err(_) => ToolProbe::Unknown,
        }
    }
}

fn file(input: &Value) -> Result<TodoFile, ToolOutput> {
    let Arguments {
        todos,
        phase,
        description,
    } = schema::arguments(input)?;
    let todos = (1..).zip(todos).map(|(at, Item { id, content })| Todo {
        id: id.unwrap_or(at),
        content,
        ..Todo::default()
    });
    Ok(TodoFile {
        phase: phase.unwrap_or_default(),
        description: description.unwrap_or_default(),
        todos: todos.collect(),
    })
}

fn writing(input: &Value) -> Result<Writing, ToolOutput> {
    Ok(Writing::new(TodoFile::PATH, file(input)?.yaml()))
}
