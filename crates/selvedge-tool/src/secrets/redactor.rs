//! A text on its way, in pieces: what is certain is let go, the rest is held.
//!
//! A line is judged when it is complete. Its beginning is let go before, up to the
//! first place where a secret may begin: a word of a pattern, or the first letters
//! of a known value. So words appear as they come, and the sum of the pieces is what
//! the whole text would have become.

use super::block::Block;
use super::pattern::{self, Hit};
use super::{MARK, Rules};

// A line without an end is judged and let go at this length. Secrets that lie across
// such a place, in a line of megabytes, are only found by their first half.
const LINE_BYTES_MAX: usize = 1 << 20;
// So much of a known value's beginning is looked out for.
const START_BYTES: usize = 4;

/// Takes a text in pieces and gives it back without its secrets.
pub struct Redactor {
    rules: Rules,
    block: Block,
    /// The line so far, all of it: what was let go still decides about the rest.
    line: String,
    /// How much of it was let go.
    gone: usize,
    /// Whether a beginning was found: the rest of the line is held.
    is_held: bool,
}

impl Redactor {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            block: Block::default(),
            line: String::new(),
            gone: 0,
            is_held: false,
        }
    }

    /// Takes a piece; gives back what can be shown by now.
    pub fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for part in piece.split_inclusive(['\n', '\r']) {
            self.line.push_str(part);
            if part.ends_with(['\n', '\r']) || self.line.len() > LINE_BYTES_MAX {
                self.end_line(&mut shown);
            }
        }
        self.let_go(&mut shown);
        shown
    }

    /// Gives back the rest: the text has ended.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.end_line(&mut shown);
        self.block = Block::default();
        shown
    }

    fn end_line(&mut self, shown: &mut String) {
        let hits = self.rules.hits(&mut self.block, &self.line);
        replace(&self.line, self.gone, &hits, shown);
        self.line.clear();
        (self.gone, self.is_held) = (0, false);
    }

    /// Lets go of the beginning of a line in which no secret can begin.
    fn let_go(&mut self, shown: &mut String) {
        let is_closed = self.is_held || self.block.is_open();
        if is_closed || self.line.is_empty() || self.rules.patterns.is_unpredictable() {
            return;
        }
        let rest = self.line[self.gone..].to_ascii_lowercase();
        let starts = self.rules.starts();
        // The end of the line so far may be the beginning of a beginning.
        let may_start = |at: &usize| starts.may_begin(&rest[*at..]);
        let mut places = rest.char_indices().map(|(at, _)| at);
        let until = places.find(may_start).unwrap_or(rest.len());
        self.is_held = starts.begin(&rest[until..]);
        shown.push_str(&self.line[self.gone..self.gone + until]);
        self.gone += until;
    }
}

/// What secrets begin with, in lower case.
pub(super) struct Starts {
    sorted: Vec<String>,
    /// A bit for each two bytes that one of them begins with. Words come by the
    /// million, and nearly none of their letters needs a closer look.
    pairs: Box<[u64; 1024]>,
}

impl Starts {
    /// The words of patterns, and the first letters of known values.
    pub(super) fn of(rules: &Rules) -> Self {
        let known = rules.known.forms().map(|form| {
            let mut end = form.len().min(START_BYTES);
            while !form.is_char_boundary(end) {
                end += 1;
            }
            &form[..end]
        });
        let words = pattern::words().map(str::to_ascii_lowercase);
        let mut sorted: Vec<String> = words.chain(known.map(str::to_ascii_lowercase)).collect();
        sorted.sort();
        sorted.dedup();
        let mut pairs = Box::new([0; 1024]);
        for start in &sorted {
            match *start.as_bytes() {
                [first, second, ..] => mark(&mut pairs, first, second),
                [only] => (0..=u8::MAX).for_each(|second| mark(&mut pairs, only, second)),
                [] => {}
            }
        }
        Self { sorted, pairs }
    }

    /// Whether one of them begins `text`, or would if `text` went on.
    fn may_begin(&self, text: &str) -> bool {
        if let [first, second, ..] = *text.as_bytes() {
            let (word, bit) = place(first, second);
            if self.pairs[word] & bit == 0 {
                return false;
            }
        }
        let mut alike = self.alike(text);
        alike.any(|start| text.starts_with(start.as_str()) || start.starts_with(text))
    }

    /// Whether one of them begins `text`.
    fn begin(&self, text: &str) -> bool {
        self.alike(text)
            .any(|start| text.starts_with(start.as_str()))
    }

    /// Those that have the same first letter.
    fn alike(&self, text: &str) -> impl Iterator<Item = &String> {
        let first = text.as_bytes().first().copied();
        let from = self
            .sorted
            .partition_point(|start| start.as_bytes().first().copied() < first);
        self.sorted[from..]
            .iter()
            .take_while(move |start| start.as_bytes().first().copied() == first)
    }
}

fn mark(pairs: &mut [u64; 1024], first: u8, second: u8) {
    let (word, bit) = place(first, second);
    pairs[word] |= bit;
}

/// Where the bit for two bytes is.
fn place(first: u8, second: u8) -> (usize, u64) {
    let pair = usize::from(first) << 8 | usize::from(second);
    (pair >> 6, 1 << (pair & 63))
}

/// Writes `line` from `from` on, with a marker in the place of every secret.
pub(super) fn replace(line: &str, from: usize, hits: &[Hit], shown: &mut String) {
    let mut at = from;
    for hit in hits {
        shown.push_str(&line[at.min(hit.range.start)..hit.range.start]);
        if !hit.goes_on {
            shown.push_str(MARK);
        }
        at = hit.range.end;
    }
    shown.push_str(&line[at..]);
}

#[cfg(test)]
mod tests {
    use super::super::Secrets;
    use proptest::prelude::*;

    /// Pieces of text that are, contain, or nearly are secrets.
    fn secrets() -> Secrets {
        let secrets = Secrets::new();
        secrets.know_all(["known-Value-17", "zz/+\"quoted\" väl"]);
        secrets
    }

    fn in_pieces(secrets: &Secrets, text: &str, cuts: &[usize]) -> String {
        let mut redactor = secrets.redactor();
        let mut shown = String::new();
        let mut from = 0;
        for cut in cuts {
            let mut to = (from + cut).min(text.len());
            while !text.is_char_boundary(to) {
                to += 1;
            }
            shown.push_str(&redactor.push(&text[from..to]));
            from = to;
        }
        shown.push_str(&redactor.push(&text[from..]));
        shown.push_str(&redactor.finish());
        shown
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn pieces_become_what_the_whole_becomes(
            parts in prop::collection::vec(prop_oneof![
                Just("known-Value-17"), Just("known-Val"), Just("a25vd24tVmFsdWUtMTc"),
                Just("api_key = "), Just("q8Zt1VbX0pLr7KdM2nWc"), Just("\n"), Just("\r\n"), Just(" "),
                Just("-----BEGIN RSA PRIVATE KEY-----\n"), Just("MIIEowIBAAKCAQEA7\n"),
                Just("-----END RSA PRIVATE KEY-----"), Just("-----BEGIN"), Just("sk-pr"), Just("sk-proj-"),
                Just("postgres://u:h4nter2x@db/x"), Just("wörds "), Just("Bearer "), Just("zz/+\\\"quoted\\\" väl"),
                Just("password: \""), Just("\""), Just("eyJ"), Just("="), Just("secret"),
            ], 0..24),
            cuts in prop::collection::vec(1_usize..9, 0..60),
        ) {
            let text = parts.concat();
            let secrets = secrets();
            prop_assert_eq!(in_pieces(&secrets, &text, &cuts), secrets.redact(&text));
        }
    }

    #[test]
    fn words_appear_as_they_come_and_a_secret_is_held() {
        let secrets = secrets();
        let mut redactor = secrets.redactor();
        assert_eq!(redactor.push("I think it is "), "I think it is ");
        assert_eq!(redactor.push("known-"), "");
        assert_eq!(redactor.push("Value-17, so"), "");
        assert_eq!(redactor.push("\nmore!"), "[REDACTED], so\nmore!");
    }

    #[test]
    fn a_private_key_goes_as_a_whole_and_what_follows_stays() {
        let key =
            "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nIIGl==\n-----END EC PRIVATE KEY-----\n";
        let secrets = Secrets::new();
        let text = format!("before\n{key}after\n");
        assert_eq!(secrets.redact(&text), "before\n[REDACTED]\nafter\n");
        let cut = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n[12 bytes left out]\nafter it\n";
        assert_eq!(
            secrets.redact(cut),
            "[REDACTED]\n[12 bytes left out]\nafter it\n"
        );
        let line = format!(
            "{{\"key\": {}, \"next\": 1}}",
            serde_json::json!(key.trim())
        );
        assert_eq!(
            secrets.redact(&line),
            "{\"key\": \"[REDACTED]\", \"next\": 1}"
        );
        let numbered: String = key
            .lines()
            .enumerate()
            .map(|(n, l)| format!("a.pem-{n}- {l}\n"))
            .collect();
        assert_eq!(secrets.redact(&numbered), "a.pem-0- [REDACTED]\n");
    }
}
