//! The branches there are.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::git::{Git, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct GitBranches;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Those of other repositories, too.
    #[serde(default)]
    all: bool,
}

#[async_trait]
impl Tool for GitBranches {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_branches".into(),
            description: "List the branches, the newest first, with their last commits.".into(),
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
    let mut line = words(&["for-each-ref", "--sort=-committerdate"]);
    line.push("--format=%(HEAD) %(refname:short) %(objectname:short) %(contents:subject)".into());
    line.push("refs/heads".into());
    line.extend(arguments.all.then(|| "refs/remotes".into()));
    Git::look(context, line, "no branches").await
}
