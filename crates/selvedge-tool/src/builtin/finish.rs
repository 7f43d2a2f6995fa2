//! Ends the work: a declaration only, which the agent acts on.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct Finish;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "declares the schema; the agent reads the arguments"
)]
struct Arguments {
    /// What was done and how it was checked, or why it could not be done.
    summary: String,
    /// Whether the goal was reached. Default: done.
    outcome: Option<Outcome>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Done,
    Failed,
}

#[async_trait]
impl Tool for Finish {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "finish".into(),
            description: "End the work with a summary. Call it once, alone, when the goal is \
                          reached and checked, or when it cannot be reached."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Ends,
        }
    }

    async fn run(&self, _: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
        ToolOutput::error("`finish` is handled by the agent: it is not run as a tool")
    }
}
