//! The history, the newest commit first.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{path, words};
use super::git_look::Looking;
use crate::tool::{ToolContext, ToolOutput};

pub(super) struct GitLog;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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

impl Looking for GitLog {
    const NAME: &'static str = "git_log";
    const DESCRIPTION: &'static str =
        "List commits, the newest first: hash, date, author, subject.";
    const NOTHING: &'static str = "no such commits";
    type Arguments = Arguments;

    fn line(context: &ToolContext, arguments: &Arguments) -> Result<Vec<OsString>, ToolOutput> {
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
        Ok(line)
    }
}
