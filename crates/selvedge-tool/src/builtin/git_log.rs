//! The history, the newest commit first.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::git::{Git, path, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct GitLog;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How many commits. Default: 10.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// Only commits that touch this path.
    path: Option<String>,
    /// Only commits by this author.
    author: Option<String>,
    /// Only commits since then, such as `2 weeks ago`.
    since: Option<String>,
    /// Only commits whose message contains this.
    grep: Option<String>,
}

#[async_trait]
impl Tool for GitLog {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_log".into(),
            description: "List commits, the newest first: hash, date, author, subject.".into(),
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
    let mut line = words(&["log", "--no-show-signature", "--no-color", "--date=short"]);
    line.push("--format=%h %ad %an: %s".into());
    line.push(format!("--max-count={}", arguments.limit.unwrap_or(10)).into());
    for (option, value) in [
        ("author", &arguments.author),
        ("since", &arguments.since),
        ("grep", &arguments.grep),
    ] {
        // One word, so that the value cannot be an option.
        line.extend(
            value
                .iter()
                .map(|value| format!("--{option}={value}").into()),
        );
    }
    line.push("--".into());
    if let Some(text) = &arguments.path {
        line.push(path(context, text)?.into());
    }
    Git::look(context, line, "no such commits").await
}
