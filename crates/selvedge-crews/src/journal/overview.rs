//! What can be told of notes without a model: which there are, how many, on this day.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::dates::Days;
use super::notes::{Entry, Found, Notes, NotesError, ParseState, keywords};

/// Which notes are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Of these days.
    pub days: Option<Days>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// With this domain's data.
    pub domain: Option<String>,
    /// With one of these words.
    pub words: String,
}

impl Selection {
    /// The notes that it means.
    pub fn find(&self, notes: &Notes) -> Result<Found, NotesError> {
        let words: Vec<Vec<String>> = keywords(&self.words).into_iter().map(|w| vec![w]).collect();
        let mut found = notes.search_entries(&words, self.days, false)?;
        let has_tags = |entry: &Entry| {
            let tags = entry.tags();
            let is_there =
                |tag: &String| tags.contains(&tag.trim_start_matches('#').to_lowercase());
            self.tags.iter().all(is_there)
        };
        let has_domain = |entry: &Entry| {
            let domain = self.domain.as_ref();
            domain.is_none_or(|domain| entry.parsed.domain_data.contains_key(domain))
        };
        found
            .entries
            .retain(|entry| has_tags(entry) && has_domain(entry));
        Ok(found)
    }
}

/// How much was noted, when and about what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Entries by day.
    pub by_day: BTreeMap<Date, usize>,
    /// Entries by domain.
    pub by_domain: BTreeMap<String, usize>,
    /// All of them.
    pub entries: usize,
    /// Those that are not parsed, or not any more.
    pub unparsed: usize,
    /// Days in a row up to the last day with a note.
    pub streak: usize,
    /// What could not be read.
    pub warnings: Vec<String>,
}

impl Overview {
    /// Counts the notes of some days.
    pub fn of(notes: &Notes, days: Option<Days>) -> Result<Self, NotesError> {
        let found = match days {
            Some((start, end)) => notes.get_entries_by_date_range(start, end)?,
            None => notes.get_entries_by_pattern("**/*.md")?,
        };
        let mut overview = Self {
            warnings: found.warnings,
            ..Self::default()
        };
        for entry in &found.entries {
            overview.entries += 1;
            *overview.by_day.entry(entry.date).or_default() += 1;
            match entry.state() {
                ParseState::Done => {}
                ParseState::Pending | ParseState::Stale => overview.unparsed += 1,
            }
            for domain in entry.parsed.domain_data.keys() {
                *overview.by_domain.entry(domain.clone()).or_default() += 1;
            }
        }
        let mut last = overview.by_day.keys().next_back().copied();
        while let Some(day) = last.filter(|day| overview.by_day.contains_key(day)) {
            overview.streak += 1;
            last = day.yesterday().ok();
        }
        Ok(overview)
    }

    /// The notes of the same day in earlier years, newest first.
    pub fn on_this_day(notes: &Notes, today: Date) -> Result<Found, NotesError> {
        let is_same =
            |date: Date| (date.month(), date.day()) == (today.month(), today.day()) && date < today;
        let mut found = Found::default();
        let days = notes.days(None)?;
        for (date, _) in days.into_iter().rev().filter(|(date, _)| is_same(*date)) {
            let mut that_day = notes.get_entries_by_date_range(date, date)?;
            found.entries.append(&mut that_day.entries);
            found.warnings.append(&mut that_day.warnings);
        }
        Ok(found)
    }
}
