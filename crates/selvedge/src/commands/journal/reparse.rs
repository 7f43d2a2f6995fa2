//! `journal reparse`: reads structured data out of notes that have none, or were edited.

use clap::Args;
use selvedge_crews::journal::{Intent, ParseState};

use super::enter::{Input, Manner, enter};
use super::room::Room;
use crate::error::{Exit, Result};
use crate::out;
use crate::text::plural;

#[derive(Args)]
pub struct Reparse {
    /// Look and change nothing: how many notes would be parsed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    manner: Manner,
}

impl Reparse {
    pub async fn perform(self) -> Result {
        let room = Room::open(&self.manner)?;
        if !self.dry_run {
            room.notes().adopt()?;
        }
        let found = room.notes().get_entries_by_pattern("**/*.md")?;
        found.warnings.iter().for_each(|warning| out::warn(warning));
        let mut open = found.entries;
        // What stands before a day's first heading has no place for an id: it is found, and
        // not parsed.
        open.retain(|entry| entry.state() != ParseState::Done && !entry.is_loose());
        if self.dry_run || open.is_empty() {
            out::say(&format!(
                "{} to be parsed",
                plural(open.len() as u64, "note")
            ));
            return Ok(Exit::Done);
        }
        let mut done = 0;
        for entry in &open {
            let mut input = Input::new(entry.text.clone(), Intent::Log);
            input.entry = Some((entry.id.clone(), entry.date.to_datetime(entry.time)));
            let (_, exit) = enter(&room, input, &self.manner).await?;
            if exit != Exit::Done {
                return Ok(exit);
            }
            let after = room.notes().entry(entry.id.as_str())?;
            done += u64::from(after.is_some_and(|after| after.state() == ParseState::Done));
        }
        let all = plural(open.len() as u64, "note");
        out::say(&format!("{done} of {all} parsed"));
        Ok(match done == open.len() as u64 {
            true => Exit::Done,
            false => Exit::NoProvider,
        })
    }
}
