//! `journal import`: takes Markdown files in.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use selvedge_crews::journal::{import_file, markdown_files};

use super::room::Room;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::text::{escape, plural};

#[derive(Args)]
pub struct Import {
    /// The folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Import {
    pub fn perform(self) -> Result {
        let room = Room::here()?;
        let files = markdown_files(&self.folder).map_err(|error| {
            Error::usage(format!("`{}` cannot be read", self.folder.display()))
                .cause(error)
                .hint("name a folder with Markdown files")
        })?;
        let notes = room.notes();
        let bar = match out::is_live() {
            true => ProgressBar::new(files.len() as u64),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("  {bar:40} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (mut new, mut known, mut skipped) = (0_u64, 0_u64, 0_u64);
        for file in &files {
            let imported = import_file(&notes, &self.folder, file, &room.zone)?;
            new += imported.new as u64;
            known += imported.known as u64;
            if let Some(why) = imported.skipped {
                skipped += 1;
                let file = escape(&file.display().to_string());
                bar.suspend(|| out::warn(&format!("`{file}` was passed over: {}", escape(&why))));
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        let files = plural(files.len() as u64, "file");
        out::say(&format!(
            "{files}: {new} new, {known} known already, {skipped} passed over\n  \
             parse them: selvedge journal reparse"
        ));
        Ok(Exit::Done)
    }
}
