//! Who last changed each line of a file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::git::{Git, path, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct GitBlame;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file.
    path: String,
    /// The first line to look at. Default: 1.
    #[schemars(range(min = 1))]
    first_line: Option<u32>,
    /// The last line to look at. Default: the last.
    #[schemars(range(min = 1))]
    last_line: Option<u32>,
}

#[async_trait]
impl Tool for GitBlame {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_blame".into(),
            description:
                "Show, for each line of a file, the commit and author that last changed it.".into(),
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
    let mut line = words(&["blame", "--no-textconv", "--date=short", "-L"]);
    let last = arguments.last_line.map(|last| last.to_string());
    let first = arguments.first_line.unwrap_or(1);
    line.push(format!("{first},{}", last.unwrap_or_default()).into());
    line.push("--".into());
    line.push(path(context, &arguments.path)?.into());
    Git::look(context, line, "the file is empty").await
}
