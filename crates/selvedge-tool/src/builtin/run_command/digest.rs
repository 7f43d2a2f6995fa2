//! What is shown of long output: its first lines, its last lines, and those in between
//! that matter. Everything is counted, whether it is shown or not.

use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

use crate::cut::{self, end_of};

/// What a command printed, in numbers, and what is shown of it.
#[derive(Debug, PartialEq)]
pub(super) struct Digest {
    /// Lines.
    pub(super) lines: usize,
    /// Lines that speak of an error.
    pub(super) errors: usize,
    /// Lines that speak of a warning.
    pub(super) warnings: usize,
    /// What is shown, if that is less than everything.
    pub(super) shown: Option<String>,
}

// Up to this many, all lines are shown.
const LINES_MAX: usize = 600;
const FIRST_LINES: usize = 50;
const LAST_LINES: usize = 100;
// More than this are no longer the ones that matter.
const IMPORTANT_LINES_MAX: usize = 100;
const LINE_CHARS_MAX: usize = 300;

static ERROR: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(error|panicked|exception)s?\b"));
static WARNING: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bwarn(ing)?s?\b"));
static NONE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(0|no) (error|exception|warning)s?\b"));

impl Digest {
    pub(super) fn new(text: &str) -> Self {
        let said = |pattern: &Regex| {
            let lines = cut::lines_with(pattern, text);
            lines.filter(|(_, line)| !NONE.is_match(line)).count()
        };
        let mut digest = Self {
            lines: text.lines().count(),
            errors: said(&ERROR),
            warnings: said(&WARNING),
            shown: None,
        };
        if digest.lines > LINES_MAX {
            digest.shown = Some(digest.show(text));
        }
        digest
    }

    fn show(&self, text: &str) -> String {
        let (first, rest) = text.split_at(start_of_line(text, FIRST_LINES));
        let (middle, last) = rest.split_at(start_of_last(rest, LAST_LINES));
        let mut important = cut::important_lines(middle);
        let mut shown = String::from(first);
        let mut push = |line: std::fmt::Arguments<'_>| {
            shown
                .write_fmt(line)
                .expect("a text takes what it is given");
        };
        push(format_args!(
            "[{} lines left out of {}, which have {} and {}; the whole text is kept and can be \
             read again]\n",
            self.lines - FIRST_LINES - LAST_LINES,
            self.lines,
            count(self.errors, "error"),
            count(self.warnings, "warning"),
        ));
        for (at, line) in important.by_ref().take(IMPORTANT_LINES_MAX) {
            let line = &line[..end_of(line, LINE_CHARS_MAX)];
            push(format_args!("line {}: {line}\n", FIRST_LINES + at + 1));
        }
        match important.count() {
            0 => {}
            more => push(format_args!(
                "[and {more} more lines that look important]\n"
            )),
        }
        push(format_args!("[the last {LAST_LINES} lines:]\n{last}"));
        shown
    }
}

/// Where line `number`, counted from 0, begins.
fn start_of_line(text: &str, number: usize) -> usize {
    let mut ends = text.match_indices('\n').map(|(at, _)| at + 1);
    ends.nth(number - 1).unwrap_or(text.len())
}

/// Where the last `count` lines begin.
fn start_of_last(text: &str, count: usize) -> usize {
    let whole = text.strip_suffix('\n').unwrap_or(text);
    let mut ends = whole.rmatch_indices('\n').map(|(at, _)| at + 1);
    ends.nth(count - 1).unwrap_or(0)
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_lines_are_all_shown() {
        let text: String = (1..=60).map(|n| format!("{n}\n")).collect();
        let digest = Digest::new(&text);
        assert_eq!((digest.lines, digest.shown), (60, None));
    }

    #[test]
    fn of_five_thousand_lines_the_ends_and_the_error_are_shown_and_counted() {
        let line = |n| match n {
            2_500 => "error: it broke".to_owned(),
            2_600 => "0 errors, 0 warnings".to_owned(),
            n => format!("line number {n}"),
        };
        let text: String = (1..=5_000).map(|n| format!("{}\n", line(n))).collect();
        let digest = Digest::new(&text);
        assert_eq!(
            (digest.lines, digest.errors, digest.warnings),
            (5_000, 1, 0)
        );
        let shown = digest.shown.unwrap();
        for n in (1..=50).chain(4_901..=5_000) {
            assert!(shown.contains(&format!("line number {n}\n")), "{n}");
        }
        assert!(shown.contains("line 2500: error: it broke\n"), "{shown}");
        assert!(shown.contains("[4850 lines left out of 5000, which have 1 error and 0 warnings"));
        assert!(!shown.contains("line number 51\n") && !shown.contains("line number 4900\n"));
    }
}
