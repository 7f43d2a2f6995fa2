//! One commit: who, when, why and what.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{path, revision, words};
use super::git_look::Looking;
use crate::tool::{ToolContext, ToolOutput};

pub(super) struct GitShow;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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

impl Looking for GitShow {
    const NAME: &'static str = "git_show";
    const DESCRIPTION: &'static str = "Show a commit: author, date, message and changes.";
    const NOTHING: &'static str = "nothing to show";
    type Arguments = Arguments;

    fn line(context: &ToolContext, arguments: &Arguments) -> Result<Vec<OsString>, ToolOutput> {
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
        Ok(line)
    }
}
