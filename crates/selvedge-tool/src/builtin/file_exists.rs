//! Says whether there is something at a path.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use crate::policy::Deed;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::PathError;

pub(super) struct FileExists;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The path, relative to the workspace root.
    #[schemars(length(min = 1))]
    path: String,
}

#[async_trait]
impl Tool for FileExists {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_exists".into(),
            description: "Say whether a file or directory exists.".into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        Deed::path(input)
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let Arguments { path } = match schema::arguments(input) {
            Ok(arguments) => arguments,
            Err(output) => return output,
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            let exists = match workspace.existing(&path) {
                Ok(_) => true,
                Err(PathError::Missing { .. }) => false,
                Err(error) => return error.into(),
            };
            let word = if exists { "exists" } else { "does not exist" };
            ToolOutput::ok(format!("`{path}` {word}"))
                .with_facts(json!({ "path": path, "exists": exists }))
        })
        .await
    }
}
