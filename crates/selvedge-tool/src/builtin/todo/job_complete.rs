//! Ends a job, and leaves a record of what it comes to.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::now;
use crate::builtin::blocking;
use crate::builtin::change::Writing;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use crate::workspace::Walk;

/// Where the record is.
const PATH: &str = "output/completion.json";
/// Outputs that are found without being named.
const OUTPUTS_MAX: usize = 200;

pub(in crate::builtin) struct JobComplete;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What was done, and what came of it.
    #[schemars(length(min = 1))]
    summary: String,
    /// The files that are the result. Default: everything in `output/`.
    outputs: Option<Vec<String>>,
}

#[async_trait]
impl Tool for JobComplete {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "job_complete".into(),
            description: "End the job, when the whole plan is carried out.".into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let record = record(context, input).await?;
        let mut evidence = writing(&record).prepare(context).await?;
        evidence["record"] = record;
        Ok(evidence)
    }

    async fn run(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolOutput {
        let record = &evidence["record"];
        match writing(record).run(context, evidence).await {
            Ok(facts) => complete(record, facts),
            Err(output) => output,
        }
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let record = &evidence["record"];
        match writing(record).probe(context, evidence, "").await {
            ToolProbe::Happened(output) if !output.is_error => {
                ToolProbe::Happened(complete(record, output.facts))
            }
            other => other,
        }
    }
}

fn complete(record: &Value, mut facts: Value) -> ToolOutput {
    facts["end"] = json!({
        "job": "completed",
        "summary": record["summary"],
        "outputs": record["outputs"],
    });
    ToolOutput::ok(format!("The job is complete; see `{PATH}`.")).with_facts(facts)
}

fn writing(record: &Value) -> Writing {
    let text = serde_json::to_string_pretty(record).unwrap_or_default();
    Writing::new(PATH, format!("{text}\n"))
}

async fn record(context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
    let Arguments { summary, outputs } = schema::arguments(input)?;
    let (workspace, cancel) = (Arc::clone(&context.workspace), context.cancel.clone());
    let outputs = blocking(move || match outputs {
        Some(named) => {
            for path in &named {
                workspace.open_file(path).map_err(|error| {
                    ToolOutput::error(format!(
                        "not complete: {error}. Name outputs that are there, or leave them out."
                    ))
                })?;
            }
            Ok(named)
        }
        None => {
            let mut found = Vec::new();
            if let Ok(start) = workspace.existing("output") {
                // A folder that cannot be walked has nothing to show.
                let _ = Walk::new(&workspace, &cancel).each(&start, |entry| {
                    if entry.kind == rustix::fs::FileType::RegularFile
                        && entry.path != std::path::Path::new(PATH)
                    {
                        found.push(entry.path.display().to_string());
                    }
                    found.len() < OUTPUTS_MAX
                });
            }
            found.sort();
            Ok::<_, ToolOutput>(found)
        }
    })
    .await?;
    Ok(json!({
        "status": "completed",
        "summary": summary,
        "outputs": outputs,
        "finished_at": now(),
    }))
}
