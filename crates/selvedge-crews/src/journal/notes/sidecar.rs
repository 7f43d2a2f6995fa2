//! What was parsed, in a JSON file beside a day's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk::{NotesError, read, replace};
use super::entry::{Entry, EntryId, Parsed};

/// What was parsed of a day.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Sidecar {
    version: u32,
    /// By entry.
    pub(super) entries: BTreeMap<EntryId, Parsed>,
    /// Why there is nothing in it, if it could not be read.
    #[serde(skip)]
    pub(super) warning: Option<String>,
}

impl Sidecar {
    /// Reads the file beside `day`. One that cannot be read says so, and has nothing.
    pub(super) fn load(day: &Path) -> Result<Self, NotesError> {
        let path = beside(day);
        let Some(bytes) = read(&path)? else {
            return Ok(Self::default());
        };
        Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            let path = path.display();
            Self {
                warning: Some(format!("`{path}` was passed over: {error}")),
                ..Self::default()
            }
        }))
    }

    /// What stands for one that cannot even be opened.
    pub(super) fn unreadable(error: NotesError) -> Self {
        Self {
            warning: Some(format!("what was parsed was passed over: {error}")),
            ..Self::default()
        }
    }

    /// Writes the file beside `day`. One that cannot be read is kept under another name.
    pub(super) fn save(mut self, day: &Path) -> Result<(), NotesError> {
        let path = beside(day);
        if self.warning.is_some() {
            let kept = path.with_extension("json.unreadable");
            std::fs::rename(&path, &kept).map_err(|e| NotesError::new("written", &kept, e))?;
        }
        self.version = 1;
        let mut text = serde_json::to_string_pretty(&self).expect("it is plain data");
        text.push('\n');
        replace(&path, text.as_bytes())
    }

    /// The entry with what was parsed of it.
    pub(super) fn complete(&self, entry: Entry) -> Entry {
        let parsed = self.entries.get(&entry.id).cloned().unwrap_or_default();
        Entry { parsed, ..entry }
    }
}

fn beside(day: &Path) -> PathBuf {
    day.with_extension("json")
}
