//! Private keys: many lines that go as a whole.
//!
//! A key is swallowed from its first line to its last. One that breaks off, because
//! a text was cut, ends with the first line that cannot belong to it.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern::{Hit, Severity};

/// What a private key begins with.
pub(super) const WORDS: [&str; 2] = ["-----BEGIN ", "---- BEGIN "];

// The longest keys in use have some 150 lines.
const LINES_MAX: u32 = 400;

static BEGIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:-----|---- )BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
        .expect("valid")
});
static END: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:-----|---- )END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
        .expect("valid")
});
/// A line of a key: base64 or a header, behind a line number, a path, a diff's sign
/// or a quote.
static BODY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"^(?:\S{0,200}?[:|-]\d+[:|-]|[ \t]*\d+[ \t|:]|[+>#*/ \t-]*)[ \t]*["'`]?(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Subject|x-[a-z-]+): .*|[A-Za-z0-9+/=]*)(?:\\[nr])*["'`,;+. \t\\\r\n]*$"#,
    )
    .expect("valid")
});

/// The key that earlier lines have begun, if they have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    lines: u32,
}

impl Block {
    /// Whether a key has begun and not ended.
    pub(super) fn is_open(self) -> bool {
        self.lines > 0
    }

    /// What an open key takes of this line; `None` if there is none, or it has
    /// broken off before.
    pub(super) fn take(&mut self, line: &str) -> Option<Vec<Hit>> {
        if !self.is_open() {
            return None;
        }
        let ended = END.find(line).map(|end| end.end());
        let takes = match ended {
            Some(end) if line[end..].trim().is_empty() => Some(line.len()),
            Some(end) => Some(end),
            None => (self.lines < LINES_MAX && BODY.is_match(line)).then_some(line.len()),
        };
        self.lines = if ended.is_some() || takes.is_none() {
            0
        } else {
            self.lines + 1
        };
        let hit = Hit {
            goes_on: true,
            ..hit(0..takes?)
        };
        Some(vec![hit])
    }

    /// The keys that begin in this line. The last one may go on.
    pub(super) fn begin(&mut self, line: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut from = 0;
        while let Some(begin) = BEGIN.find_at(line, from) {
            let rest = &line[begin.end()..];
            if is_constant(rest) {
                from = begin.end();
                continue;
            }
            let end = match END.find(rest) {
                Some(end) => begin.end() + end.end(),
                // On its own line it goes on in the next; within one it was cut.
                None if rest.trim_matches(NOTHING).is_empty() => {
                    self.lines = 1;
                    begin.end()
                }
                None => begin.end() + rest.find(|c| !is_body(c)).unwrap_or(rest.trim_end().len()),
            };
            hits.push(hit(begin.start()..end));
            from = end;
        }
        hits
    }
}

/// Whether the first line of a key is a text of its own in a program that handles
/// keys: it is closed at once, and nothing is added to it.
fn is_constant(rest: &str) -> bool {
    let after = rest.trim_start_matches('\\').strip_prefix(['"', '\'', '`']);
    after.is_some_and(|after| !after.trim_start().starts_with(['+', ',']))
}

// What may follow the first line of a key in a quoted text.
const NOTHING: &[char] = &[
    ' ', '\t', '\r', '\n', '"', '\'', '`', '+', ',', '\\', 'n', 'r',
];

fn is_body(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\\' | ' ' | ':' | '-' | ',')
}

fn hit(range: std::ops::Range<usize>) -> Hit {
    Hit::new(range, "private_key", Severity::Critical)
}
