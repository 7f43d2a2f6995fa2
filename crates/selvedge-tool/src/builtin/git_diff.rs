//! The difference between commits, the next commit and the files.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{path, revision, words};
use super::git_look::Looking;
use crate::tool::{ToolContext, ToolOutput};

pub(super) struct GitDiff;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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

impl Looking for GitDiff {
    const NAME: &'static str = "git_diff";
    const DESCRIPTION: &'static str =
        "Show what has changed: in the files, in what is staged, or between commits.";
    const NOTHING: &'static str = "no difference";
    type Arguments = Arguments;

    fn line(context: &ToolContext, arguments: &Arguments) -> Result<Vec<OsString>, ToolOutput> {
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
        Ok(line)
    }
}
