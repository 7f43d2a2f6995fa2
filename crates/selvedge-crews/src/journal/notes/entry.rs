//! An entry, and what was read out of it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::civil::{Date, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::protocol::{Change, EntryShown};
use crate::journal::rows::QuantityRow;

/// Names an entry: its date, its time and a short suffix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(String);

impl EntryId {
    /// The suffix of what stands before the first heading of a day.
    pub(super) const LOOSE: &str = "loose";

    /// The id of an entry of this moment; `seed` tells it from others of the same.
    pub fn new(date: Date, time: Time, seed: &str) -> Self {
        const SUFFIX_CHARS: usize = 6;
        let suffix = blake3::hash(seed.as_bytes()).to_hex();
        Self::with_suffix(date, time, &suffix[..SUFFIX_CHARS])
    }

    /// The same with a suffix of one's own.
    pub(super) fn with_suffix(date: Date, time: Time, suffix: &str) -> Self {
        let (hour, minute) = (time.hour(), time.minute());
        Self(format!("{date}T{hour:02}:{minute:02}-{suffix}"))
    }

    /// Reads an id as it is written; none if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_suffix = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric());
        let (moment, suffix) = (text.get(..16)?, text.get(17..)?);
        let (date, time) = moment.split_once('T')?;
        let is_one = date.parse::<Date>().is_ok()
            && time.len() == 5
            && time.parse::<Time>().is_ok()
            && text.as_bytes()[16] == b'-'
            && is_suffix(suffix);
        is_one.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its day.
    pub fn date(&self) -> Option<Date> {
        self.0.get(..10)?.parse().ok()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub id: EntryId,
    /// Its day.
    pub date: Date,
    /// Its time.
    pub time: Time,
    /// What the user wrote.
    pub text: String,
    /// The entry that it corrects.
    pub corrects: Option<EntryId>,
    /// The file it stands in, from the root.
    pub file: String,
    /// What was read out of it.
    pub parsed: Parsed,
}

impl Entry {
    /// Whether what was parsed can be relied on.
    pub fn state(&self) -> ParseState {
        match self.parsed.state {
            _ if self.corrects.is_some() => ParseState::Done,
            ParseState::Done if self.parsed.text_hash != text_hash(&self.text) => ParseState::Stale,
            state => state,
        }
    }

    /// Whether it stands before the first heading of its file, where no id has a place.
    pub fn is_loose(&self) -> bool {
        self.id.as_str().ends_with(EntryId::LOOSE)
    }

    /// The day that it is about.
    pub fn about(&self) -> Date {
        self.parsed.about.unwrap_or(self.date)
    }

    /// The words that it is tagged with: those of its text and those that were parsed.
    pub fn tags(&self) -> Vec<String> {
        let words = self.text.split_whitespace();
        let written = words.filter_map(|word| word.strip_prefix('#'));
        let written = written.map(|tag| tag.trim_end_matches(|c: char| !c.is_alphanumeric()));
        let parsed = self.parsed.tags.iter().map(String::as_str);
        let mut tags: Vec<String> = written
            .chain(parsed)
            .filter(|tag| !tag.is_empty())
            .map(str::to_lowercase)
            .collect();
        tags.sort();
        tags.dedup();
        tags
    }

    /// As agents see it.
    pub fn shown(&self) -> EntryShown {
        let is_good = self.state() == ParseState::Done;
        let data = Some(&self.parsed.domain_data).filter(|_| is_good);
        let corrections = self.parsed.corrections.iter().map(|made| &made.changes);
        EntryShown {
            id: self.id.to_string(),
            date: self.date.to_string(),
            timestamp: format!("{}T{}", self.date, self.time),
            raw_content: self.text.clone(),
            domain_data: data.cloned().unwrap_or_default(),
            source_file: self.file.clone(),
            corrects: self.corrects.as_ref().map(ToString::to_string),
            corrections: corrections.flatten().cloned().collect(),
        }
    }
}

/// What was read out of an entry, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parsed {
    /// How far that is.
    #[serde(rename = "parse")]
    pub state: ParseState,
    /// The day that the entry is about, where it is not that of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Date>,
    /// What it says, by domain.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub domain_data: BTreeMap<String, Value>,
    /// Its quantities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<QuantityRow>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What the user should confirm.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncertain_fields: Vec<String>,
    /// What was unclear, and what was assumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extraction_notes: Vec<String>,
    /// How sure all this is, from 0 to 1.
    pub confidence: f64,
    /// The corrections that were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Applied>,
    /// What the text was when it was parsed.
    pub text_hash: String,
}

/// How far an entry is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParseState {
    /// Not yet.
    #[default]
    Pending,
    /// It is.
    Done,
    /// It was, and its text has changed since.
    Stale,
}

/// A correction that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// The entry that made it.
    pub by: EntryId,
    /// What it changed.
    pub changes: Vec<Change>,
}

/// An entry to be saved.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Its name.
    pub id: EntryId,
    /// Its day.
    pub date: Date,
    /// Its time.
    pub time: Time,
    /// What the user wrote, or what a correction says.
    pub text: String,
    /// What was read out of it.
    pub parsed: Option<Parsed>,
}

/// A change of what was parsed of another entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    /// Which.
    pub target: EntryId,
    /// What changes.
    pub changes: Vec<Change>,
    /// What is right, by domain.
    pub domain_data: BTreeMap<String, Value>,
    /// Its quantities.
    pub rows: Vec<QuantityRow>,
}

/// What a text is known again by.
pub(super) fn text_hash(text: &str) -> String {
    blake3::hash(text.trim().as_bytes()).to_hex()[..16].to_owned()
}
