//! The notes: plain Markdown under the user's control, and what was read out of them.
//!
//! `YYYY/MM/YYYY-MM-DD.md` has a section `## HH:MM` for each entry; the JSON file beside it
//! has what was parsed. The Markdown is the truth: it is only ever appended to, may be
//! edited by hand at any time, and what was parsed of a text that has changed since is
//! stale. One repository with six operations; nobody else touches the files.
//!
//! In reading order: `entry` (what is kept), `day` (a day's file), `sidecar` (what was
//! parsed), `disk` (atomic and locked writes), `words` (how words are found), `context`
//! (what is known of the user).

pub mod context;
mod day;
mod disk;
mod entry;
mod sidecar;
mod words;

pub(crate) use day::sections_of;
pub use disk::NotesError;
pub use entry::{Applied, Correction, Entry, EntryId, NewEntry, ParseState, Parsed};
pub(crate) use words::expanded;
pub use words::{Vocabulary, keywords};

use std::path::{Path, PathBuf};

use jiff::Span;
use jiff::civil::Date;
use selvedge_tool::glob;

use crate::journal::dates::Days;
use disk::{Lock, read, replace};
use sidecar::Sidecar;

/// What somebody did is noted so many days later at most, or it is told by its words.
const LATE_DAYS: i64 = 31;

/// The repository.
#[derive(Clone, Debug)]
pub struct Notes {
    root: PathBuf,
}

/// Entries, oldest first, and what could not be read.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Files that were passed over, and why.
    pub warnings: Vec<String>,
}

/// What saving came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It stands there now.
    Stored,
    /// It stood there already; what was parsed is up to date.
    Updated,
    /// The correction was made before: nothing was changed.
    Unchanged,
}

impl Notes {
    /// The notes below `root`, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where they are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every entry of one day to another, both included: written on them, or about them.
    pub fn get_entries_by_date_range(&self, start: Date, end: Date) -> Result<Found, NotesError> {
        let range = Some((start, end));
        let mut found = self.read_days(self.days_written(range)?, |_| true)?;
        found.entries.retain(|entry| is_of(entry, range));
        Ok(found)
    }

    /// Every entry of the files whose name fits, such as `2026/01/**/*.md`.
    pub fn get_entries_by_pattern(&self, pattern: &str) -> Result<Found, NotesError> {
        // `**/` stands for any number of folders, none included.
        let pattern = pattern.trim().replace("**/", "*");
        let mut days = self.days(None)?;
        days.retain(|(date, _)| glob(&pattern, &relative(*date)));
        self.read_days(days, |_| true)
    }

    /// Every entry with one of the words, or with all of them.
    pub fn search_entries(
        &self,
        keywords: &[Vec<String>],
        range: Option<Days>,
        match_all: bool,
    ) -> Result<Found, NotesError> {
        let words = words::Finder::new(keywords, match_all);
        self.read_days(self.days_written(range)?, |text| words.may_be_in(text))
            .map(|mut found| {
                found
                    .entries
                    .retain(|entry| is_of(entry, range) && words.is_in(entry));
                found
            })
    }

    /// Saves an entry, or what was parsed of one that is there. A correction appends what
    /// changed and leaves the original as it is; only what was parsed is changed.
    pub fn save_entry(
        &self,
        entry: &NewEntry,
        correction: Option<&Correction>,
    ) -> Result<Saved, NotesError> {
        let _lock = Lock::take(&self.root)?;
        if let Some(correction) = correction
            && self.is_corrected(entry, correction)?
        {
            return Ok(Saved::Unchanged);
        }
        let path = self.path(entry.date);
        let before = read(&path)?.unwrap_or_default();
        let is_new = !day::has(&before, &entry.id);
        if is_new {
            let section = day::section(entry, correction.map(|c| &c.target));
            replace(&path, &day::appended(before, &section))?;
        }
        if let Some(correction) = correction {
            self.correct(entry, correction)?;
        } else if let Some(parsed) = &entry.parsed {
            let mut parsed = parsed.clone();
            parsed.text_hash = entry::text_hash(&entry.text);
            let mut sidecar = Sidecar::load(&path)?;
            sidecar.entries.insert(entry.id.clone(), parsed);
            sidecar.save(&path)?;
        }
        Ok(match is_new {
            true => Saved::Stored,
            false => Saved::Updated,
        })
    }

    /// Gives every section that was written by hand an id, so that it can be parsed. Nothing
    /// else of a file is changed. Returns how many files were.
    pub fn adopt(&self) -> Result<usize, NotesError> {
        let _lock = Lock::take(&self.root)?;
        let mut changed = 0;
        for (date, path) in self.days(None)? {
            let text = read(&path)?.and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(adopted) = text.and_then(|text| day::adopted(date, &text)) {
                replace(&path, adopted.as_bytes())?;
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// Whether an entry stands there, with what was parsed of it.
    pub fn has(&self, entry: &NewEntry) -> Result<bool, NotesError> {
        let path = self.path(entry.date);
        let is_there = read(&path)?.is_some_and(|text| day::has(&text, &entry.id));
        let is_parsed = || Ok(Sidecar::load(&path)?.entries.contains_key(&entry.id));
        match (is_there, &entry.parsed) {
            (true, Some(_)) => is_parsed(),
            (is_there, _) => Ok(is_there),
        }
    }

    /// The entry of an id, or the only one whose id begins so.
    pub fn entry(&self, id: &str) -> Result<Option<Entry>, NotesError> {
        let Some(date) = id.get(..10).and_then(|date| date.parse().ok()) else {
            return Ok(None);
        };
        let mut found = self
            .read_days(self.days(Some((date, date)))?, |_| true)?
            .entries;
        found.retain(|entry| entry.id.as_str().starts_with(id));
        Ok(Some(found)
            .filter(|f| f.len() == 1)
            .and_then(|mut f| f.pop()))
    }

    /// The last entries that are no corrections, newest first.
    pub fn recent(&self, count: usize) -> Result<Found, NotesError> {
        let mut recent = Found::default();
        let mut days = self.days(None)?;
        while recent.entries.len() < count
            && let Some(day) = days.pop()
        {
            let found = self.read_days(vec![day], |_| true)?;
            recent.warnings.extend(found.warnings);
            let entries = found.entries.into_iter().rev();
            recent
                .entries
                .extend(entries.filter(|e| e.corrects.is_none()));
        }
        recent.entries.truncate(count);
        Ok(recent)
    }

    /// What is known of the user: Markdown, empty if nothing is.
    pub fn get_global_context(&self) -> Result<String, NotesError> {
        let text = read(&self.context_path())?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Replaces what is known of the user. `change` gets what is there now and says what
    /// is to be there, and what is to be added to the archive.
    pub fn update_global_context(
        &self,
        change: impl FnOnce(&str) -> (String, String),
    ) -> Result<bool, NotesError> {
        let _lock = Lock::take(&self.root)?;
        let before = self.get_global_context()?;
        let (after, archived) = change(&before);
        if !archived.is_empty() {
            let path = self.root.join("global-context-archive.md");
            let mut archive = read(&path)?.unwrap_or_default();
            archive.extend_from_slice(archived.as_bytes());
            replace(&path, &archive)?;
        }
        if after == before {
            return Ok(false);
        }
        replace(&self.context_path(), after.as_bytes())?;
        Ok(true)
    }

    /// The days that there are files of, oldest first.
    pub fn days(&self, range: Option<Days>) -> Result<Vec<(Date, PathBuf)>, NotesError> {
        let mut days = Vec::new();
        let is_in = |first: &str, last: &str| match range {
            None => true,
            Some((start, end)) => *last >= *start.to_string() && *first <= *end.to_string(),
        };
        for (year, folder) in disk::folders(&self.root, 4)? {
            if !is_in(&format!("{year}-01-01"), &format!("{year}-12-31")) {
                continue;
            }
            for (month, folder) in disk::folders(&folder, 2)? {
                if !is_in(&format!("{year}-{month}-01"), &format!("{year}-{month}-31")) {
                    continue;
                }
                for (name, path) in disk::files(&folder, ".md")? {
                    let Ok(date) = name.parse::<Date>() else {
                        continue;
                    };
                    let is_meant = range.is_none_or(|(start, end)| start <= date && date <= end);
                    if is_meant && name == date.to_string() {
                        days.push((date, path));
                    }
                }
            }
        }
        days.sort();
        Ok(days)
    }

    /// The days on which entries about a range may have been written: it itself, and some
    /// time after it.
    fn days_written(&self, range: Option<Days>) -> Result<Vec<(Date, PathBuf)>, NotesError> {
        let late = Span::new().days(LATE_DAYS);
        self.days(range.map(|(start, end)| (start, end.saturating_add(late))))
    }

    fn read_days(
        &self,
        days: Vec<(Date, PathBuf)>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Found, NotesError> {
        let mut found = Found::default();
        for (date, path) in days {
            let text = match read(&path) {
                Ok(Some(bytes)) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into()),
                Ok(None) => continue,
                Err(error) => Err(error.to_string()),
            };
            let text = match text {
                Ok(text) => text,
                Err(why) => {
                    let file = relative(date);
                    found
                        .warnings
                        .push(format!("`{file}` was passed over: {why}"));
                    continue;
                }
            };
            if !is_wanted(&text) {
                continue;
            }
            let sidecar = Sidecar::load(&path).unwrap_or_else(Sidecar::unreadable);
            found.warnings.extend(sidecar.warning.clone());
            let entries = day::entries(date, &text).into_iter();
            found
                .entries
                .extend(entries.map(|entry| sidecar.complete(entry)));
        }
        Ok(found)
    }

    /// Whether the same correction was made before.
    fn is_corrected(&self, entry: &NewEntry, correction: &Correction) -> Result<bool, NotesError> {
        let Some(date) = correction.target.date() else {
            return Ok(false);
        };
        let sidecar = Sidecar::load(&self.path(date))?;
        let target = sidecar.entries.get(&correction.target);
        Ok(target.is_some_and(|parsed| {
            let mut applied = parsed.corrections.iter();
            applied.any(|a| a.changes == correction.changes && a.by != entry.id)
        }))
    }

    fn correct(&self, entry: &NewEntry, correction: &Correction) -> Result<(), NotesError> {
        let Some(date) = correction.target.date() else {
            return Ok(());
        };
        let path = self.path(date);
        let mut sidecar = Sidecar::load(&path)?;
        let target = sidecar
            .entries
            .entry(correction.target.clone())
            .or_default();
        if target
            .corrections
            .iter()
            .any(|applied| applied.by == entry.id)
        {
            return Ok(());
        }
        target.domain_data = correction.domain_data.clone();
        target.rows = correction.rows.clone();
        target.corrections.push(Applied {
            by: entry.id.clone(),
            changes: correction.changes.clone(),
        });
        sidecar.save(&path)
    }

    fn path(&self, date: Date) -> PathBuf {
        self.root.join(relative(date))
    }

    fn context_path(&self) -> PathBuf {
        self.root.join("global-context.md")
    }
}

/// Whether an entry was written on one of these days, or is about one.
fn is_of(entry: &Entry, range: Option<Days>) -> bool {
    range.is_none_or(|(start, end)| {
        let is_in = |date: Date| start <= date && date <= end;
        is_in(entry.date) || is_in(entry.about())
    })
}

/// `2026/01/2026-01-04.md`.
fn relative(date: Date) -> String {
    format!("{:04}/{:02}/{date}.md", date.year(), date.month())
}

#[cfg(test)]
mod tests;
