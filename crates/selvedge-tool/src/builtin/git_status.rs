//! What has changed since the last commit, and on which branch.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{path, words};
use super::git_look::Looking;
use crate::tool::{ToolContext, ToolOutput};

pub(super) struct GitStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Only below this path.
    path: Option<String>,
}

impl Looking for GitStatus {
    const NAME: &'static str = "git_status";
    const DESCRIPTION: &'static str =
        "Show the branch, and which files are changed, staged or new.";
    const NOTHING: &'static str = "nothing has changed";
    type Arguments = Arguments;

    fn line(context: &ToolContext, arguments: &Arguments) -> Result<Vec<OsString>, ToolOutput> {
        let mut line = words(&["status", "--porcelain", "--branch", "--"]);
        if let Some(text) = &arguments.path {
            line.push(path(context, text)?.into());
        }
        Ok(line)
    }
}
