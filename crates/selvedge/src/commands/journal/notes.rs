//! `journal notes` and `journal on-this-day`: notes found without a model.

use clap::Args;
use selvedge_crews::journal::{Entry, Found, Overview, ParseState, Selection, days_of};
use serde_json::json;

use super::enter::Manner;
use super::room::Room;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::text::{escape, indented};

#[derive(Args)]
pub struct List {
    /// Words to look for.
    #[arg(value_name = "WORDS", num_args = 0..)]
    words: Vec<String>,
    /// The days: `last week`, `since March`, `2026-01-01..2026-01-31`.
    #[arg(long, value_name = "DAYS")]
    days: Option<String>,
    /// A tag that they have; may be given more than once.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// A domain that they were read by.
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Print one note per line, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct OnThisDay {
    /// Another day than today, such as `2026-01-04`.
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
}

impl List {
    pub fn perform(self) -> Result {
        let room = Room::here()?;
        let today = room.moment(None)?.date();
        let days = match &self.days {
            None => None,
            Some(words) => Some(days_of(words, today).ok_or_else(|| {
                Error::usage(format!("`{}` means no days", escape(words)))
                    .hint("write `last week`, `since March` or `2026-01-01..2026-01-31`")
            })?),
        };
        let selection = Selection {
            days,
            tags: self.tag,
            domain: self.domain,
            words: self.words.join(" "),
        };
        show(&selection.find(&room.notes())?, self.json);
        Ok(Exit::Done)
    }
}

impl OnThisDay {
    pub fn perform(self) -> Result {
        let room = Room::open(&Manner::default())?;
        let today = room.moment(self.at.as_deref())?.date();
        let found = Overview::on_this_day(&room.notes(), today)?;
        if found.entries.is_empty() {
            out::say("nothing was noted on this day in earlier years");
        }
        show(&found, false);
        Ok(Exit::Done)
    }
}

pub fn show(found: &Found, is_json: bool) {
    found
        .warnings
        .iter()
        .for_each(|warning| out::warn(&escape(warning)));
    for entry in &found.entries {
        match is_json {
            true => out::json(&json!({
                "id": entry.id,
                "text": entry.text,
                "parse": entry.state(),
                "domain_data": entry.parsed.domain_data,
                "rows": entry.parsed.rows,
                "tags": entry.tags(),
                "uncertain_fields": entry.parsed.uncertain_fields,
                "corrects": entry.corrects,
                "file": entry.file,
            })),
            false => out::line(&line(entry)),
        }
    }
}

fn line(entry: &Entry) -> String {
    let (hour, minute) = (entry.time.hour(), entry.time.minute());
    let mark = match entry.state() {
        ParseState::Done => "",
        ParseState::Pending => " (not parsed)",
        ParseState::Stale => " (edited since it was parsed)",
    };
    let text = escape(entry.text.trim());
    let text = indented(&text, "  ");
    format!("{} {hour:02}:{minute:02}{mark}\n{text}", entry.date)
}
