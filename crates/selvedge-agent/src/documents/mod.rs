//! Documents as tools: their text with page numbers, citations that hold, the requirement
//! cache and the graph that jobs share, and search over what a job has written.
//!
//! A tool is a row of a table, as in `knowledge`. What is stored is named after what it
//! says, so storing it twice is storing it once.

mod citing;
mod graph;
mod reading;
mod requirements;
mod searching;

use std::sync::Arc;

use async_trait::async_trait;
use selvedge_knowledge::{Index, KnowledgeError};
use selvedge_tool::{
    Caller, PathError, Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, Workspace, World,
};
use serde_json::{Value, json};

use crate::knowledge::OpenIndex;

/// Where the tools find what they need.
#[derive(Clone)]
pub struct DocumentStores {
    /// The index of a run's own workspace, current as of now.
    pub own: OpenIndex,
    /// The same as it was left, without a look at the files.
    pub as_left: OpenIndex,
    /// The store that the jobs of a directory share, for a job's workspace.
    pub shared: OpenIndex,
}

/// The tools for documents and requirements.
pub fn document_tools(stores: &DocumentStores) -> Vec<Arc<dyn Tool>> {
    let rows = [
        reading::ROWS,
        citing::ROWS,
        requirements::ROWS,
        graph::ROWS,
        searching::ROWS,
    ];
    let rows = rows.into_iter().flatten();
    rows.map(|row| -> Arc<dyn Tool> {
        let stores = stores.clone();
        Arc::new(Using { row, stores })
    })
    .collect()
}

/// One thing that can be done.
struct Row {
    name: &'static str,
    description: &'static str,
    /// The arguments: a JSON Schema for each, and the names of those that are required.
    arguments: fn() -> Value,
    required: &'static [&'static str],
    world: World,
    act: fn(&Asked<'_>) -> Result<ToolOutput, Trouble>,
}

/// What is asked, by whom, and where.
struct Asked<'a> {
    workspace: &'a Workspace,
    stores: &'a DocumentStores,
    caller: &'a Caller,
    input: &'a Value,
}

/// Why it was not done.
struct Trouble(String);

impl From<KnowledgeError> for Trouble {
    fn from(error: KnowledgeError) -> Self {
        Self(error.to_string())
    }
}

impl From<PathError> for Trouble {
    fn from(error: PathError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self(why)
    }
}

struct Using {
    row: &'static Row,
    stores: DocumentStores,
}

#[async_trait]
impl Tool for Using {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.row.name.into(),
            description: self.row.description.into(),
            schema: json!({
                "type": "object",
                "properties": (self.row.arguments)(),
                "required": self.row.required,
                "additionalProperties": false,
            }),
            world: self.row.world,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let (row, stores) = (self.row, self.stores.clone());
        let (workspace, caller) = (context.workspace.clone(), context.caller.clone());
        let input = input.clone();
        let done = tokio::task::spawn_blocking(move || {
            (row.act)(&Asked {
                workspace: &workspace,
                stores: &stores,
                caller: &caller,
                input: &input,
            })
        });
        match done.await {
            Ok(Ok(output)) => output,
            Ok(Err(Trouble(why))) => ToolOutput::error(why),
            Err(_) => ToolOutput::error("the store did not answer; go on without it"),
        }
    }

    async fn probe(&self, _: &ToolContext, _: &Value, _: &Value) -> ToolProbe {
        // Doing it again is harmless.
        ToolProbe::DidNotHappen
    }
}

impl Asked<'_> {
    /// A text that was given, and says something.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.input.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// A text that has to be given.
    fn wanted(&self, name: &str) -> Result<&str, Trouble> {
        let missing = || Trouble(format!("`{name}` must not be empty"));
        self.text(name).ok_or_else(missing)
    }

    fn number(&self, name: &str) -> Option<usize> {
        let number = self.input.get(name)?.as_u64()?;
        usize::try_from(number).ok()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self.input.get(name).and_then(Value::as_array);
        let items = items.into_iter().flatten().filter_map(Value::as_str);
        items.map(str::to_owned).collect()
    }

    /// The store that jobs share.
    fn shared(&self) -> Result<Index, Trouble> {
        let opened = (self.stores.shared)(self.workspace.root());
        opened.map_err(|why| Trouble(format!("the requirement store cannot be used: {why}")))
    }

    /// The index of the workspace, current.
    fn own(&self) -> Result<Index, Trouble> {
        self.index(&self.stores.own)
    }

    /// The index of the workspace, as it is.
    fn as_left(&self) -> Result<Index, Trouble> {
        self.index(&self.stores.as_left)
    }

    fn index(&self, open: &OpenIndex) -> Result<Index, Trouble> {
        let opened = open(self.workspace.root());
        opened.map_err(|why| Trouble(format!("the index cannot be used: {why}")))
    }
}

/// The schema of a text.
fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// The schema of a number from 1 on.
fn number(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}

/// The schema of a list of texts.
fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// An answer that is data.
fn data(value: &Value) -> ToolOutput {
    let text = serde_json::to_string_pretty(value).expect("a JSON value is JSON");
    ToolOutput::ok(text)
}
