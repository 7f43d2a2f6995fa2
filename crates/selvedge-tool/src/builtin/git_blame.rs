//! Who last changed each line of a file.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{path, words};
use super::git_look::Looking;
use crate::tool::{ToolContext, ToolOutput};

pub(super) struct GitBlame;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file.
    path: String,
    /// The first line to look at. Default: 1.
    #[schemars(range(min = 1))]
    first_line: Option<u32>,
    /// The last line to look at. Default: the last.
    #[schemars(range(min = 1))]
    last_line: Option<u32>,
}

impl Looking for GitBlame {
    const NAME: &'static str = "git_blame";
    const DESCRIPTION: &'static str =
        "Show, for each line of a file, the commit and author that last changed it.";
    const NOTHING: &'static str = "the file is empty";
    type Arguments = Arguments;

    fn line(context: &ToolContext, arguments: &Arguments) -> Result<Vec<OsString>, ToolOutput> {
        let mut line = words(&["blame", "--no-textconv", "--date=short", "-L"]);
        let last = arguments.last_line.map(|last| last.to_string());
        let first = arguments.first_line.unwrap_or(1);
        line.push(format!("{first},{}", last.unwrap_or_default()).into());
        line.push("--".into());
        line.push(path(context, &arguments.path)?.into());
        Ok(line)
    }
}
