//! The branches there are.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::words;
use super::git_look::Looking;
use crate::tool::{ToolContext, ToolOutput};

pub(super) struct GitBranches;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Those of other repositories, too.
    #[serde(default)]
    all: bool,
}

impl Looking for GitBranches {
    const NAME: &'static str = "git_branches";
    const DESCRIPTION: &'static str =
        "List the branches, the newest first, with their last commits.";
    const NOTHING: &'static str = "no branches";
    type Arguments = Arguments;

    fn line(_: &ToolContext, arguments: &Arguments) -> Result<Vec<OsString>, ToolOutput> {
        let mut line = words(&["for-each-ref", "--sort=-committerdate"]);
        line.push(
            "--format=%(HEAD) %(refname:short) %(objectname:short) %(contents:subject)".into(),
        );
        line.push("refs/heads".into());
        line.extend(arguments.all.then(|| "refs/remotes".into()));
        Ok(line)
    }
}
