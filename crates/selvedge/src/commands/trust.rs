//! `trust`: vouches for what a folder brings along.

use std::path::PathBuf;

use clap::Args;

use super::run;
use crate::error::{Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::{escape, plural};
use crate::trust::{self, Trust};

#[derive(Args)]
pub struct TrustFolder {
    /// The directory. Default: this one.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Take it back.
    #[arg(long)]
    remove: bool,
    /// Only say how it stands; exit code 1 if it is not trusted.
    #[arg(long, conflicts_with = "remove")]
    check: bool,
}

impl TrustFolder {
    pub fn perform(self) -> Result {
        let workspace = run::workspace(self.directory.as_deref())?;
        let paths = Paths::find()?;
        let shown = escape(&workspace.display().to_string());
        if self.check {
            let (how, exit) = match Trust::of(&paths, &workspace) {
                Trust::Given => ("trusted", Exit::Done),
                Trust::Stale => ("not trusted: it has changed since", Exit::Failed),
                Trust::None => ("not trusted", Exit::Failed),
            };
            out::line(&format!("{shown}: {how}"));
            return Ok(exit);
        }
        trust::set(&paths, &workspace, !self.remove)?;
        if self.remove {
            out::say(&format!("{shown} is not trusted any more"));
            return Ok(Exit::Done);
        }
        let files = trust::files(&workspace).unwrap_or_default();
        let count = plural(files.len() as u64, "file");
        out::say(&format!("{shown} is trusted as it is now: {count}"));
        for file in files {
            let file = file.strip_prefix(&workspace).unwrap_or(&file);
            out::say(&format!("  {}", escape(&file.display().to_string())));
        }
        out::say("what it allows holds from now on, until one of these files changes");
        Ok(Exit::Done)
    }
}
