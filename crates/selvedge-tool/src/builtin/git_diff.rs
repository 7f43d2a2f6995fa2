//! The difference between commits, the next commit and the files.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::git::{Git, path, revision, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct GitDiff;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only below this path.
    path: Option<String>,
    /// What the next commit would hold, instead of what is changed since.
    #[serde(default)]
    staged: bool,
    /// Compare with this commit.
    from: Option<String>,
    /// Compare `from` with this commit, instead of with the files.
    to: Option<String>,
    /// Only how much has changed in each file.
    #[serde(default)]
    stat: bool,
    /// Only the names of the files.
    #[serde(default)]
    name_only: bool,
}

#[async_trait]
impl Tool for GitDiff {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_diff".into(),
            description:
                "Show what has changed: in the files, in what is staged, or between commits.".into(),
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
    let mut line = words(&["diff", "--no-ext-diff", "--no-textconv", "--no-color"]);
    for (option, is_wanted) in [
        ("--cached", arguments.staged),
        ("--stat", arguments.stat),
        ("--name-only", arguments.name_only),
    ] {
        line.extend(is_wanted.then(|| option.into()));
    }
    line.push("--end-of-options".into());
    for commit in [&arguments.from, &arguments.to].into_iter().flatten() {
        line.push(revision(commit)?);
    }
    line.push("--".into());
    if let Some(text) = &arguments.path {
        line.push(path(context, text)?.into());
    }
    Git::look(context, line, "no difference").await
}
