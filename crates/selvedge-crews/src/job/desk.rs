//! The machine's own tools: what it reads before a phase, and what it puts away after.
//!
//! They are on no agent's list; the machine calls them through the toolbox like any
//! other. Doing one twice is doing it once.

use std::sync::Arc;

use async_trait::async_trait;
use selvedge_ledger::Event;
use selvedge_runtime::Started;
use selvedge_tool::{TodoFile, Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use serde_json::{Value, json};

/// Reads what lasts over phases.
pub(super) const PHASE_OPEN: &str = "phase_open";
/// Puts the todos of a phase away.
pub(super) const PHASE_CLOSE: &str = "phase_close";

/// What lasts over phases, and is in every system prompt.
pub(super) const MEMORY: &str = "workspace.md";
/// So much of it is in a prompt.
const MEMORY_BYTES_MAX: usize = 16 * 1024;

/// Whether an event is of the beginning of a phase: whatever it does comes after.
pub fn opens_phase(event: &Event) -> bool {
    &*event.kind == "ToolCallStarted"
        && event
            .decode::<Started>()
            .is_ok_and(|started| started.what["tool"] == PHASE_OPEN)
}

/// The tools that a job machine calls itself.
pub fn desk_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(PhaseOpen), Arc::new(PhaseClose)]
}

struct PhaseOpen;

#[async_trait]
impl Tool for PhaseOpen {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: PHASE_OPEN.into(),
            description: "Reads workspace.md.".into(),
            schema: json!({ "type": "object" }),
            world: World::Reads,
        }
    }

    async fn run(&self, context: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
        let workspace = context.workspace.clone();
        let read = tokio::task::spawn_blocking(move || read_memory(&workspace)).await;
        match read.expect("reading a file does not panic") {
            Ok(text) => {
                ToolOutput::ok(format!("read {MEMORY}")).with_facts(json!({ "workspace_md": text }))
            }
            Err(why) => ToolOutput::error(why),
        }
    }
}

fn read_memory(workspace: &selvedge_tool::Workspace) -> Result<String, String> {
    use std::io::Read;
    let file = match workspace.open_file(MEMORY) {
        Ok((file, _)) => file,
        Err(selvedge_tool::PathError::Missing { .. }) => return Ok(String::new()),
        Err(error) => return Err(error.to_string()),
    };
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let mut content = Vec::new();
    let read = file.take(MEMORY_BYTES_MAX as u64).read_to_end(&mut content);
    read.map_err(|error| format!("`{MEMORY}` cannot be read: {error}"))?;
    let mut text = String::from_utf8_lossy(&content).into_owned();
    if bytes > content.len() as u64 {
        let shown = content.len();
        text.push_str(&format!(
            "\n[TRUNCATED: {shown} of {bytes} bytes; use read_file]"
        ));
    }
    Ok(text)
}

struct PhaseClose;

#[async_trait]
impl Tool for PhaseClose {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: PHASE_CLOSE.into(),
            description: "Archives the todos of a phase.".into(),
            schema: json!({
                "type": "object",
                "required": ["number", "archives", "content"],
                "properties": {
                    "number": { "type": "integer" },
                    "archives": { "type": "boolean" },
                    "content": { "type": "string" },
                },
            }),
            world: World::Writes,
        }
    }

    fn contents(&self) -> &'static [&'static str] {
        &["content"]
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let (workspace, input) = (context.workspace.clone(), input.clone());
        let put = tokio::task::spawn_blocking(move || put_away(&workspace, &input)).await;
        match put.expect("writing a file does not panic") {
            Ok(path) => {
                ToolOutput::ok(format!("archived to {path}")).with_facts(json!({ "path": path }))
            }
            Err(error) => ToolOutput::error(format!("the todos cannot be archived: {error}")),
        }
    }

    async fn probe(&self, _: &ToolContext, _: &Value, _: &Value) -> ToolProbe {
        ToolProbe::DidNotHappen
    }
}

fn put_away(workspace: &selvedge_tool::Workspace, input: &Value) -> std::io::Result<String> {
    let dir = workspace.dir();
    let path = format!("archive/phase_{}.yaml", input["number"]);
    if input["archives"] == true {
        dir.create_dir_all("archive")?;
        dir.write(&path, input["content"].as_str().unwrap_or_default())?;
    }
    // The list has done its work. Left there, it would pass for the next one.
    match dir.remove_file(TodoFile::PATH) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(path),
    }
}
