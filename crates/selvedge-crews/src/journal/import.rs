//! Takes Markdown files in: each once, however often it is done.
//!
//! An entry's id follows from where it came from and what it says, so doing it again
//! finds it there. A file with sections of our own shape has an entry for each of them.

use std::path::{Path, PathBuf};

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::notes::{EntryId, NewEntry, Notes, NotesError, Parsed, Saved, sections_of};

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Entries that are new.
    pub new: usize,
    /// Entries that were there.
    pub known: usize,
    /// Why the file was passed over, if it was.
    pub skipped: Option<String>,
}

/// The Markdown files below a folder, in the order of their names. Hidden ones are left.
pub fn markdown_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Takes one file in. Its day is that of its name or of its front matter, else that of
/// its last change.
pub fn import_file(
    notes: &Notes,
    folder: &Path,
    file: &Path,
    zone: &TimeZone,
) -> Result<Imported, NotesError> {
    let mut imported = Imported::default();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            imported.skipped = Some(error.to_string());
            return Ok(imported);
        }
    };
    let origin = file
        .strip_prefix(folder)
        .unwrap_or(file)
        .to_string_lossy()
        .into_owned();
    let (written, body) = dated(&text);
    let named = date_in(&file.file_stem().unwrap_or_default().to_string_lossy());
    let changed = || {
        let changed = std::fs::metadata(file)
            .and_then(|metadata| metadata.modified())
            .ok()?;
        let changed = Timestamp::try_from(changed).ok()?;
        Some(Zoned::new(changed, zone.clone()))
    };
    let (date, time) = match (written.or(named), changed()) {
        (Some(date), _) => (date, Time::midnight()),
        (None, Some(changed)) => {
            let time = changed.time();
            let whole = Time::new(time.hour(), time.minute(), 0, 0);
            (changed.date(), whole.unwrap_or_default())
        }
        (None, None) => {
            imported.skipped = Some("it has no date".to_owned());
            return Ok(imported);
        }
    };
    let sections = sections_of(date, body);
    let parts: Vec<(Time, String)> = match sections.is_empty() {
        true => vec![(time, body.trim().to_owned())],
        false => sections,
    };
    for (n, (time, text)) in parts.into_iter().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let entry = NewEntry {
            id: EntryId::new(date, time, &format!("import\n{origin}\n{n}\n{text}")),
            date,
            time,
            text,
            parsed: Some(Parsed::default()),
        };
        // What was parsed since is not thrown away.
        if notes.has(&entry)? {
            imported.known += 1;
            continue;
        }
        match notes.save_entry(&entry, None)? {
            Saved::Stored => imported.new += 1,
            _ => imported.known += 1,
        }
    }
    if imported == Imported::default() {
        imported.skipped = Some("it is empty".to_owned());
    }
    Ok(imported)
}

/// The date in the front matter, and what follows it.
fn dated(text: &str) -> (Option<Date>, &str) {
    let Some((front, body)) = selvedge_tool::front_matter(text) else {
        return (None, text);
    };
    let line = front
        .lines()
        .find_map(|line| line.trim().strip_prefix("date:"));
    (line.and_then(date_in), body)
}

/// The first date in a text.
fn date_in(text: &str) -> Option<Date> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts
        .filter_map(|at| text.get(at..at + 10)?.parse().ok())
        .next()
}
