//! Answers within bounds: of age, of number, of size.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::table::TABLE;
use crate::tool::ToolOutput;

const ENTRIES_MAX: usize = 1_000;
const BYTES_MAX: usize = 100 * 1024 * 1024;

/// Answers, by what they follow from.
#[derive(Default)]
pub(super) struct Shelf {
    entries: HashMap<String, Entry>,
    bytes: usize,
    /// Counts uses: of two answers the one that was used longer ago goes first.
    uses: u64,
}

struct Entry {
    output: ToolOutput,
    since: Instant,
    used: u64,
}

impl Shelf {
    /// An answer that is young enough, and its age.
    pub(super) fn get(&mut self, key: &str, now: Instant) -> Option<(ToolOutput, Duration)> {
        let age = now.duration_since(self.entries.get(key)?.since);
        if age >= Duration::from_secs(TABLE.seconds) {
            self.remove(key);
            return None;
        }
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.uses;
        Some((entry.output.clone(), age))
    }

    /// Puts an answer there, in the place of those that were not used for longest.
    pub(super) fn put(&mut self, key: String, output: ToolOutput, now: Instant) {
        let bytes = size(&output);
        if bytes > BYTES_MAX {
            return;
        }
        self.remove(&key);
        while self.entries.len() >= ENTRIES_MAX || self.bytes + bytes > BYTES_MAX {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            self.remove(&oldest);
        }
        self.uses += 1;
        self.bytes += bytes;
        let entry = Entry {
            output,
            since: now,
            used: self.uses,
        };
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= size(&entry.output);
        }
    }
}

fn size(output: &ToolOutput) -> usize {
    output.text.len() + output.whole.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shelf: &mut Shelf, key: &str, now: Instant) -> Option<String> {
        shelf.get(key, now).map(|(output, _)| output.text)
    }

    #[test]
    fn an_answer_is_given_until_it_is_too_old() {
        let (mut shelf, now) = (Shelf::default(), Instant::now());
        shelf.put("a".into(), ToolOutput::ok("one"), now);
        let later = now + Duration::from_secs(299);
        assert_eq!(text(&mut shelf, "a", later).as_deref(), Some("one"));
        assert_eq!(text(&mut shelf, "b", later), None);
        assert_eq!(text(&mut shelf, "a", later + Duration::from_secs(1)), None);
        assert_eq!(shelf.bytes, 0);
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let (mut shelf, now) = (Shelf::default(), Instant::now());
        for n in 0..ENTRIES_MAX {
            shelf.put(n.to_string(), ToolOutput::ok("x"), now);
        }
        assert!(shelf.get("0", now).is_some());
        shelf.put("new".into(), ToolOutput::ok("x"), now);
        assert!(shelf.get("0", now).is_some() && shelf.get("1", now).is_none());
        assert_eq!(
            (shelf.entries.len(), shelf.bytes),
            (ENTRIES_MAX, ENTRIES_MAX)
        );
    }

    #[test]
    fn the_shelf_has_a_size() {
        let (mut shelf, now) = (Shelf::default(), Instant::now());
        let large = |part: usize| ToolOutput::ok("x".repeat(BYTES_MAX / part));
        shelf.put(
            "huge".into(),
            ToolOutput::ok("x".repeat(BYTES_MAX + 1)),
            now,
        );
        assert!(shelf.get("huge", now).is_none());
        for n in 0..3 {
            shelf.put(n.to_string(), large(2), now);
        }
        assert!(shelf.get("0", now).is_none() && shelf.get("2", now).is_some());
        assert!(shelf.bytes <= BYTES_MAX);
    }
}
