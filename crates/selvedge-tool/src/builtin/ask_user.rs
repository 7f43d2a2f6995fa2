//! Asks a person: a declaration only.
//!
//! A question may be answered days later, so it is not something that runs. The
//! agent records it and waits.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct AskUser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "declares the schema; the agent reads the arguments"
)]
struct Arguments {
    /// The question, complete in itself: the person may not have followed the work.
    #[schemars(length(min = 1))]
    question: String,
    /// Answers to choose from. Another answer is always possible.
    options: Option<Vec<String>>,
}

#[async_trait]
impl Tool for AskUser {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ask_user".into(),
            description: "Ask the user a question and wait for the answer. Use it for a decision \
                          that only the user can make, not for what can be found out by looking."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Asks,
        }
    }

    async fn run(&self, _: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
        ToolOutput::error("`ask_user` is handled by the agent: it is not run as a tool")
    }
}
