//! A day's file: sections `## HH:MM`, each with its id in a comment.
//!
//! A text may itself have lines that look like the beginning of a section. They are
//! written with a backslash before them, which Markdown shows as what was meant, and read
//! back without it. What was written by hand without an id has one that says so.

use jiff::civil::{Date, Time};

use super::entry::{Entry, EntryId, NewEntry, Parsed};
use super::relative;

const CORRECTION: &str = "[correction]";

/// The time of a section, its title, and whether it is a correction.
type Heading = (Time, String, bool);

/// The section of an entry, as it is appended.
pub(super) fn section(entry: &NewEntry, corrects: Option<&EntryId>) -> String {
    let (hour, minute) = (entry.time.hour(), entry.time.minute());
    let (mark, target) = match corrects {
        Some(target) => (format!(" {CORRECTION}"), format!(" corrects: {target}")),
        None => Default::default(),
    };
    let text: Vec<String> = entry.text.split('\n').map(escaped).collect();
    let text = text.join("\n");
    let id = &entry.id;
    format!("## {hour:02}:{minute:02}{mark}\n<!-- id: {id}{target} -->\n{text}\n")
}

/// A file with a section added: everything that was there stays as it is.
pub(super) fn appended(mut file: Vec<u8>, section: &str) -> Vec<u8> {
    if !file.is_empty() {
        if !file.ends_with(b"\n") {
            file.push(b'\n');
        }
        file.push(b'\n');
    }
    file.extend_from_slice(section.as_bytes());
    file
}

/// Whether a file has an entry.
pub(super) fn has(file: &[u8], id: &EntryId) -> bool {
    let comment = format!("<!-- id: {id} ");
    let lines = file.split(|byte| *byte == b'\n');
    let mut after_heading = false;
    for line in lines {
        if after_heading && line.starts_with(comment.as_bytes()) {
            return true;
        }
        after_heading = std::str::from_utf8(line).is_ok_and(|line| heading(line).is_some());
    }
    false
}

/// The entries of a file, in the order of their times. What stands before the first
/// section is an entry, too.
pub(super) fn entries(date: Date, text: &str) -> Vec<Entry> {
    let mut sections: Vec<(Option<Heading>, Vec<&str>)> = vec![(None, Vec::new())];
    for line in text.split('\n') {
        match heading(line) {
            Some(heading) => sections.push((Some(heading), Vec::new())),
            None => sections.last_mut().expect("there is one").1.push(line),
        }
    }
    let mut entries = Vec::new();
    let mut by_hand = 0;
    for (heading, lines) in sections {
        let is_preamble = heading.is_none();
        let (time, title, is_correction) = heading.unwrap_or_default();
        let (named, lines) = match lines.split_first() {
            Some((first, rest)) if !is_preamble => match comment(first) {
                Some(named) => (Some(named), rest),
                None => (None, &lines[..]),
            },
            _ => (None, &lines[..]),
        };
        let is_written_here = named.is_some();
        let (id, corrects) = named.unwrap_or_else(|| {
            let suffix = match is_preamble {
                true => EntryId::LOOSE.to_owned(),
                false => {
                    by_hand += 1;
                    format!("hand{by_hand}")
                }
            };
            (EntryId::with_suffix(date, time, &suffix), None)
        });
        let text: Vec<String> = lines.iter().map(|line| unescaped(line)).collect();
        let mut text = text.join("\n");
        // The end of its last line, or the empty line before the next section.
        text.truncate(text.strip_suffix('\n').unwrap_or(&text).len());
        // A heading of ours has no title: one that has was written by hand, and got its id later.
        if !is_written_here || !title.is_empty() {
            text = by_hand_text(&title, &text, is_preamble);
        }
        if text.trim().is_empty() {
            continue;
        }
        entries.push(Entry {
            id,
            date,
            time,
            text,
            corrects: corrects.filter(|_| is_correction),
            file: relative(date),
            parsed: Parsed::default(),
        });
    }
    entries.sort_by_key(|entry| entry.time);
    entries
}

/// The file with an id below every heading that has none: by it what is parsed of a section
/// is found again, wherever the section moves to. None if every section has one.
pub(super) fn adopted(date: Date, text: &str) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_changed = false;
    let mut rest = text.split('\n').peekable();
    while let Some(line) = rest.next() {
        lines.push(line.to_owned());
        let Some((time, ..)) = heading(line) else {
            continue;
        };
        if rest.peek().is_none_or(|next| comment(next).is_none()) {
            let seed = format!("by hand\n{}\n{text}", lines.len());
            let id = EntryId::new(date, time, &seed);
            lines.push(format!("<!-- id: {id} -->"));
            is_changed = true;
        }
    }
    is_changed.then(|| lines.join("\n"))
}

/// The sections of a text that has the shape of a day's file, with their times; none if it
/// has not.
pub(crate) fn sections_of(date: Date, text: &str) -> Vec<(Time, String)> {
    let has_heading = text.split('\n').any(|line| heading(line).is_some());
    let entries = match has_heading {
        true => entries(date, text),
        false => Vec::new(),
    };
    entries
        .into_iter()
        .map(|entry| (entry.time, entry.text))
        .collect()
}

/// What somebody wrote without us: a title belongs to it, a file's heading does not.
fn by_hand_text(title: &str, text: &str, is_preamble: bool) -> String {
    let text = match is_preamble {
        false => text,
        true => {
            let text = text.trim_start();
            let is_title = text.starts_with("# ");
            let rest = || text.split_once('\n').map_or("", |(_, rest)| rest);
            if is_title { rest() } else { text }
        }
    };
    let text = text.trim();
    match (title.is_empty(), text.is_empty()) {
        (true, _) => text.to_owned(),
        (false, true) => title.to_owned(),
        (false, false) => format!("{title}\n{text}"),
    }
}

/// The time, the title, and whether it is a correction, if a line begins a section.
fn heading(line: &str) -> Option<Heading> {
    let rest = line.strip_prefix("## ")?;
    let (time, rest) = (rest.get(..5)?, rest.get(5..)?);
    if !(rest.is_empty() || rest.starts_with(char::is_whitespace)) {
        return None;
    }
    let is_number = |s: &str| s.len() == 2 && s.bytes().all(|b| b.is_ascii_digit());
    let (hour, minute) = time.split_once(':')?;
    if !is_number(hour) || !is_number(minute) {
        return None;
    }
    let time = Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    let title = rest.trim();
    let is_correction = title == CORRECTION;
    let title = if is_correction { "" } else { title };
    Some((time, title.to_owned(), is_correction))
}

/// The id, and the entry that is corrected, if a line is the comment that says so.
fn comment(line: &str) -> Option<(EntryId, Option<EntryId>)> {
    let inner = line
        .trim_end()
        .strip_prefix("<!-- id: ")?
        .strip_suffix("-->")?
        .trim();
    let (id, target) = match inner.split_once(" corrects: ") {
        Some((id, target)) => (id, Some(target)),
        None => (inner, None),
    };
    let target = target.and_then(|target| EntryId::parse(target.trim()));
    Some((EntryId::parse(id.trim())?, target))
}

/// A line of a text as it is written.
fn escaped(line: &str) -> String {
    match heading(line.trim_start_matches('\\')).is_some() {
        true => format!("\\{line}"),
        false => line.to_owned(),
    }
}

/// A line as it was meant.
fn unescaped(line: &str) -> String {
    match line.strip_prefix('\\') {
        Some(rest) if heading(rest.trim_start_matches('\\')).is_some() => rest.to_owned(),
        _ => line.to_owned(),
    }
}
