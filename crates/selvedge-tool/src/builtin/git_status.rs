//! What has changed since the last commit, and on which branch.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::git::{Git, path, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct GitStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only below this path.
    path: Option<String>,
}

#[async_trait]
impl Tool for GitStatus {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_status".into(),
            description: "Show the branch, and which files are changed, staged or new.".into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    fn deed(&self, _: &Value) -> Deed {
        Deed::Git {
            operation: Operation::Read,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        look(context, input).await.unwrap_or_else(|output| output)
    }
}

async fn look(context: &ToolContext, input: &Value) -> Result<ToolOutput, ToolOutput> {
    let arguments: Arguments = schema::arguments(input)?;
    let mut words = words(&["status", "--porcelain", "--branch", "--"]);
    if let Some(text) = &arguments.path {
        words.push(path(context, text)?.into());
    }
    Git::look(context, words, "nothing has changed").await
}
