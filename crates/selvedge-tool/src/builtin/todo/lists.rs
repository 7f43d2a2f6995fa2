//! The list of an agent that directs itself: add, start, complete, look.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{OPEN_MAX, Rules, facts, meant};
use crate::schema;
use crate::todo::{TodoChange, TodoState};
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewTodo {
    /// What is to be done.
    #[schemars(length(min = 1))]
    content: String,
    /// More is sooner. Default: 0.
    priority: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Chosen {
    /// Which.
    id: i64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Finished {
    /// Which.
    id: i64,
    /// What came of it, in a sentence.
    notes: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A tool that changes the list, one call after the other.
macro_rules! todo_tool {
    ($type:ident, $name:literal, $words:literal, $arguments:ty, $world:expr, $act:expr) => {
        pub(in crate::builtin) struct $type;

        #[async_trait]
        impl Tool for $type {
            fn spec(&self) -> ToolSpec {
                ToolSpec {
                    name: $name.into(),
                    description: $words.into(),
                    schema: schema::of::<$arguments>(),
                    world: $world,
                }
            }

            async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
                let act: fn(&ToolContext, $arguments) -> Result<ToolOutput, ToolOutput> = $act;
                let done = schema::arguments(input).and_then(|given| act(context, given));
                done.unwrap_or_else(|refused| refused)
            }

            async fn probe(&self, _: &ToolContext, _: &Value, _: &Value) -> ToolProbe {
                ToolProbe::DidNotHappen
            }
        }
    };
}

todo_tool!(
    AddTodo,
    "add_todo",
    "Add a todo.",
    NewTodo,
    World::Writes,
    |context, NewTodo { content, priority }| {
        let todos = &context.desk.todos;
        let open_max = Rules::of(context).open_max.unwrap_or(OPEN_MAX);
        if todos.open().count() >= open_max {
            return Err(ToolOutput::error(format!(
                "{open_max} todos are open already: complete some first"
            )));
        }
        let change = TodoChange::Added {
            id: todos.next_id(),
            content,
            priority: priority.unwrap_or(0),
        };
        let text = format!("added todo {}", todos.next_id());
        Ok(ToolOutput::ok(text).with_facts(facts(&change)))
    }
);

todo_tool!(
    StartTodo,
    "start_todo",
    "Say that you begin a todo.",
    Chosen,
    World::Writes,
    |context, Chosen { id }| {
        let todo = meant(&context.desk.todos, Some(id))?;
        if todo.state == TodoState::Completed {
            return Err(ToolOutput::error(format!("todo {id} is completed already")));
        }
        let text = format!("todo {id} is in progress: {}", todo.content);
        Ok(ToolOutput::ok(text).with_facts(facts(&TodoChange::Started { id })))
    }
);

todo_tool!(
    CompleteTodo,
    "complete_todo",
    "Mark a todo as completed.",
    Finished,
    World::Writes,
    |context, Finished { id, notes }| {
        let todo = meant(&context.desk.todos, Some(id))?;
        if todo.state == TodoState::Completed {
            return Err(ToolOutput::error(format!("todo {id} is completed already")));
        }
        let notes = notes.unwrap_or_default();
        let change = TodoChange::Completed { id, notes };
        Ok(ToolOutput::ok(format!("todo {id} is completed")).with_facts(facts(&change)))
    }
);

todo_tool!(
    ListTodos,
    "list_todos",
    "Show all todos.",
    Nothing,
    World::Reads,
    |context, Nothing {}| Ok(ToolOutput::ok(context.desk.todos.render()))
);

todo_tool!(
    GetNextTodo,
    "get_next_todo",
    "Show the todo that comes next.",
    Nothing,
    World::Reads,
    |context, Nothing {}| {
        Ok(ToolOutput::ok(match context.desk.todos.current() {
            Some(todo) => format!("{}: {}", todo.id, todo.content),
            None => "no todo is open".into(),
        }))
    }
);

todo_tool!(
    GetProgress,
    "get_progress",
    "Show how many todos are completed.",
    Nothing,
    World::Reads,
    |context, Nothing {}| {
        let todos = &context.desk.todos;
        let (done, all) = (todos.done(), todos.items.len());
        Ok(ToolOutput::ok(format!(
            "{done} of {all} todos are completed"
        )))
    }
);
