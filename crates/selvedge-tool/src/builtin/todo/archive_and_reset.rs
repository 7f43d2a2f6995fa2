//! Puts the list away as a page, and begins a new one: the time to make room.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Rules, facts, now};
use crate::builtin::change::Writing;
use crate::schema;
use crate::todo::TodoChange;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

const NAME_CHARS_MAX: usize = 60;

pub(in crate::builtin) struct ArchiveAndReset;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What the phase was called.
    phase_name: Option<String>,
}

#[async_trait]
impl Tool for ArchiveAndReset {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "archive_and_reset".into(),
            description:
                "At the end of a phase: put the todos into archive/ and begin a new list. \
                          What was said so far is summarised."
                    .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let Arguments { phase_name } = schema::arguments(input)?;
        if context.desk.todos.items.is_empty() {
            return Err(ToolOutput::error("there are no todos to be put away"));
        }
        let stamp: String = now().chars().filter(char::is_ascii_alphanumeric).collect();
        let phase = plain(phase_name.as_deref().unwrap_or("phase"));
        let path = format!("archive/todos_{phase}_{stamp}.md");
        let mut evidence = Writing::new(&path, context.desk.todos.page())
            .prepare(context)
            .await?;
        evidence["path"] = json!(path);
        Ok(evidence)
    }

    async fn run(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolOutput {
        match writing(context, evidence).run(context, evidence).await {
            Ok(_) => archived(context, evidence),
            Err(output) => output,
        }
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        match writing(context, evidence)
            .probe(context, evidence, "")
            .await
        {
            ToolProbe::Happened(output) if !output.is_error => {
                ToolProbe::Happened(archived(context, evidence))
            }
            other => other,
        }
    }
}

fn writing(context: &ToolContext, evidence: &Value) -> Writing {
    let path = evidence["path"].as_str().unwrap_or_default();
    Writing::new(path, context.desk.todos.page())
}

fn archived(context: &ToolContext, evidence: &Value) -> ToolOutput {
    let path = evidence["path"].as_str().unwrap_or_default();
    let mut facts = facts(&TodoChange::Archived);
    facts["path"] = json!(path);
    facts["compact"] = json!(Rules::of(context).compacts.unwrap_or(true));
    ToolOutput::ok(format!("The todos are in `{path}`, and the list is empty.")).with_facts(facts)
}

/// A name that is a name of a file everywhere.
fn plain(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let plain: String = words.join("_").chars().take(NAME_CHARS_MAX).collect();
    if plain.is_empty() {
        "phase".into()
    } else {
        plain
    }
}
