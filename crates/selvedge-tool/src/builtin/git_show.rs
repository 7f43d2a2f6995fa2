//! One commit: who, when, why and what.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::git::{Git, path, revision, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct GitShow;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Which commit. Default: HEAD.
    commit: Option<String>,
    /// Only what it did to this path.
    path: Option<String>,
    /// Only how much it changed in each file.
    #[serde(default)]
    stat: bool,
    /// Only the names of the files.
    #[serde(default)]
    name_only: bool,
}

#[async_trait]
impl Tool for GitShow {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_show".into(),
            description: "Show a commit: author, date, message and changes.".into(),
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
    let mut line = words(&[
        "show",
        "--no-show-signature",
        "--no-ext-diff",
        "--no-textconv",
    ]);
    line.push("--no-color".into());
    for (option, is_wanted) in [
        ("--stat", arguments.stat),
        ("--name-only", arguments.name_only),
    ] {
        line.extend(is_wanted.then(|| option.into()));
    }
    line.push("--end-of-options".into());
    line.push(revision(arguments.commit.as_deref().unwrap_or("HEAD"))?);
    line.push("--".into());
    if let Some(text) = &arguments.path {
        line.push(path(context, text)?.into());
    }
    Git::look(context, line, "nothing to show").await
}
