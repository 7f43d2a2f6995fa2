//! The index as tools: what a librarian, an archivalist and an academic can look up, and
//! what agents remember.
//!
//! A tool is a row of a table: name, description, arguments, and a function of the index.
//! Which agent has which is said in its file; one whose file names none has no way to the
//! index. All of them read or write only the index, and doing one twice is harmless.

mod academic;
mod answers;
mod archivalist;
mod librarian;
mod memory;
mod shown;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use selvedge_knowledge::{Index, KnowledgeError};
use selvedge_tool::{Caller, Tool, ToolContext, ToolOutput, ToolSpec, World};
use serde_json::{Map, Value, json};

/// Opens the index of a workspace, current as of now.
pub type OpenIndex = Arc<dyn Fn(&Path) -> Result<Index, String> + Send + Sync>;

/// The tools of the index.
pub fn knowledge_tools(open: &OpenIndex) -> Vec<Arc<dyn Tool>> {
    let rows = librarian::LOOKUPS
        .iter()
        .map(|lookup| ("librarian", lookup));
    let rows = rows.chain(
        archivalist::LOOKUPS
            .iter()
            .map(|lookup| ("archivalist", lookup)),
    );
    let rows = rows.chain(academic::LOOKUPS.iter().map(|lookup| ("academic", lookup)));
    let rows = rows.chain(answers::LOOKUPS.iter().map(|lookup| ("answers", lookup)));
    let rows = rows.chain(memory::LOOKUPS.iter().map(|lookup| ("memory", lookup)));
    rows.map(|(bundle, lookup)| -> Arc<dyn Tool> {
        Arc::new(Looking {
            lookup,
            bundle,
            open: open.clone(),
        })
    })
    .collect()
}

/// One thing that can be looked up or remembered.
struct Lookup {
    name: &'static str,
    description: &'static str,
    /// The arguments: a JSON Schema for each, and the names of those that are required.
    arguments: fn() -> Value,
    required: &'static [&'static str],
    act: fn(&Asked<'_>) -> Result<Value, KnowledgeError>,
}

/// What is asked, by whom, of which index.
struct Asked<'a> {
    index: &'a Index,
    caller: &'a Caller,
    input: &'a Value,
}

impl Lookup {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            description: self.description.into(),
            schema: json!({
                "type": "object",
                "properties": (self.arguments)(),
                "required": self.required,
                "additionalProperties": false,
            }),
            world: World::Reads,
        }
    }
}

struct Looking {
    lookup: &'static Lookup,
    bundle: &'static str,
    open: OpenIndex,
}

#[async_trait]
impl Tool for Looking {
    fn spec(&self) -> ToolSpec {
        self.lookup.spec()
    }

    fn bundle(&self) -> Option<&str> {
        Some(self.bundle)
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let (open, lookup) = (self.open.clone(), self.lookup);
        let (root, caller, input) = (
            context.workspace.root().to_owned(),
            context.caller.clone(),
            input.clone(),
        );
        let looked = tokio::task::spawn_blocking(move || {
            let index = open(&root).map_err(|why| format!("the index cannot be used: {why}"))?;
            let asked = Asked {
                index: &index,
                caller: &caller,
                input: &input,
            };
            (lookup.act)(&asked).map_err(|error| error.to_string())
        });
        match looked.await {
            Ok(Ok(answer)) => ToolOutput::ok(answer.to_string()),
            Ok(Err(why)) => ToolOutput::error(why),
            Err(_) => ToolOutput::error("the index did not answer; go on without it"),
        }
    }
}

impl Asked<'_> {
    /// A text that was given, and says something.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.input.get(name)?.as_str()?;
        (!text.trim().is_empty()).then_some(text)
    }

    /// A text that has to be given.
    fn wanted(&self, name: &str) -> Result<&str, KnowledgeError> {
        let missing = || KnowledgeError::Request(format!("`{name}` must not be empty"));
        self.text(name).ok_or_else(missing)
    }

    /// Whose word something is that is kept: an agent may have it from anybody, and what it
    /// was told to remember is not what the user said.
    fn signature(&self) -> String {
        let Caller { agent, session, .. } = self.caller;
        format!("kept by {agent} in {session}")
    }

    fn number(&self, name: &str, default: usize) -> usize {
        let number = self.input.get(name).and_then(Value::as_u64);
        number.map_or(default, |number| number as usize)
    }

    fn limit(&self, default: usize) -> usize {
        self.number("limit", default).clamp(1, 100)
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.input
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or(default)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self.input.get(name).and_then(Value::as_array);
        let items = items.map(Vec::as_slice).unwrap_or_default();
        items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }

    fn object(&self, name: &str) -> Map<String, Value> {
        let object = self.input.get(name).and_then(Value::as_object);
        object.cloned().unwrap_or_default()
    }

    /// The session that is meant: the one named, or else the caller's.
    fn session(&self) -> &str {
        self.text("session_id").unwrap_or(&self.caller.session)
    }
}

/// The schema of a text.
fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// The schema of one of some words.
fn word(words: &[&str], description: &str) -> Value {
    json!({ "type": "string", "enum": words, "description": description })
}

/// The schema of a number of results.
fn limit(default: usize) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 100,
            "description": format!("How many. Default: {default}.") })
}

/// The schema of a list of texts.
fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// The schema of a yes or no.
fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}
