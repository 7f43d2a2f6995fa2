//! `journal stats`: a calendar of how much was noted, and about what.

use clap::Args;
use selvedge_crews::journal::Overview;

use super::chart;
use super::room::Room;
use crate::error::{Exit, Result};
use crate::out;
use crate::text::{escape, plural};

#[derive(Args)]
pub struct Stats {
    /// How many weeks the calendar shows. Default: 26, or as many as fit.
    #[arg(long, value_name = "N", default_value_t = 26)]
    weeks: u16,
    /// Another day than today.
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
}

impl Stats {
    pub fn perform(self) -> Result {
        let room = Room::here()?;
        let today = room.moment(self.at.as_deref())?.date();
        let overview = Overview::of(&room.notes(), None)?;
        overview
            .warnings
            .iter()
            .for_each(|warning| out::warn(&escape(warning)));
        let weeks = usize::from(self.weeks)
            .min(out::columns().map_or(usize::MAX, |c| c.saturating_sub(6) / 2));
        out::line(&chart::calendar(&overview.by_day, today, weeks.max(1)));
        let mut summary = vec![plural(overview.entries as u64, "note")];
        summary.push(format!(
            "{} on which something was noted",
            plural(overview.by_day.len() as u64, "day")
        ));
        summary.push(format!(
            "{} in a row",
            plural(overview.streak as u64, "day")
        ));
        if overview.unparsed > 0 {
            summary.push(format!("{} not parsed", overview.unparsed));
        }
        out::line(&format!("\n{}", summary.join(" · ")));
        let bars = chart::bars(&overview.by_domain);
        if !bars.is_empty() {
            out::line(&format!("\n{bars}"));
        }
        Ok(Exit::Done)
    }
}
