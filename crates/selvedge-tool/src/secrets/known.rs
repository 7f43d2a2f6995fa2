//! Values the process knows, in every form they may appear in.
//!
//! A key that was read from the environment can come back in a header that a
//! program logs, in base64, in an address. All forms of all values are one automaton,
//! so looking for a thousand of them takes one pass. The values stay in memory for as
//! long as the process runs: to be kept out of its output, they must be known.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::pattern::{Hit, Severity, merge};
use super::redactor;

// Shorter values are words that occur everywhere.
const VALUE_CHARS_MIN: usize = 8;
// Shorter pieces of an encoding would be found by accident.
const FORM_BYTES_MIN: usize = 8;
// More than any process has; the automaton then takes a few megabytes.
const VALUES_MAX: usize = 1_000;
// Programs break base64 into lines, of 64 or 76 characters mostly. Pieces of this
// length are found whatever the length of the lines.
const PIECE_BYTES: usize = 24;

/// The values, and what finds them.
#[derive(Default)]
pub(super) struct Known {
    values: BTreeSet<String>,
    forms: Vec<String>,
    automaton: Option<AhoCorasick>,
}

impl Known {
    /// These and some more; `None` if there is nothing new.
    pub(super) fn with<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut values = self.values.clone();
        // A secret of several lines is found line by line.
        for line in more.into_iter().flat_map(str::lines) {
            let line = line.trim();
            if line.chars().count() >= VALUE_CHARS_MIN && values.len() < VALUES_MAX {
                values.insert(line.to_owned());
            }
        }
        if values.len() == self.values.len() {
            return None;
        }
        let forms: BTreeSet<String> = values.iter().flat_map(|value| forms(value)).collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms);
        Some(Self {
            values,
            automaton: Some(automaton.expect("the number of values is bounded")),
            forms: forms.into_iter().collect(),
        })
    }

    /// How many values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// What the text of a value can begin with.
    pub(super) fn forms(&self) -> impl Iterator<Item = &str> {
        self.forms.iter().map(String::as_str)
    }

    /// Whether there is one.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.automaton.as_ref().is_some_and(|a| a.is_match(text))
    }

    /// Those in a line.
    pub(super) fn hits(&self, line: &str) -> Vec<Hit> {
        let found = self.automaton.iter().flat_map(|a| a.find_iter(line));
        found
            .map(|found| Hit::new(found.range(), "known_value", Severity::Critical))
            .collect()
    }

    /// The text without them.
    pub(super) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.is_in(text) {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        redactor::replace(text, 0, &merge(self.hits(text)), &mut clean);
        Cow::Owned(clean)
    }
}

/// A value as programs write it.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![
        value.to_owned(),
        json_escaped(value),
        value.replace('\'', "'\\''"),
        html_escaped(value),
        percent_encoded(value, false),
        percent_encoded(value, true),
        percent_encoded(value, false).replace("%20", "+"),
        hexadecimal(value, false),
        hexadecimal(value, true),
        // What `rev` makes of it takes one word to undo.
        value.chars().rev().collect(),
        // Alone, it ends otherwise than within something.
        STANDARD.encode(value),
        URL_SAFE.encode(value),
    ];
    for form in base64_forms(value) {
        forms.extend(pieces(&form));
        forms.push(form);
    }
    forms.retain(|form| form.len() >= FORM_BYTES_MIN);
    forms
}

/// The part of an encoding that is the same whatever stands before and after the
/// value: three bytes are four characters, so there are three ways it can fall.
fn base64_forms(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value.as_bytes());
        let begins = [0, 2, 3][before];
        let whole = bytes.len() * 8 / 6;
        for encoded in [
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            forms.push(encoded[begins..whole].to_owned());
        }
    }
    forms
}

fn pieces(form: &str) -> impl Iterator<Item = String> {
    let pieces = form.as_bytes().chunks_exact(PIECE_BYTES);
    // Base64 is ASCII.
    pieces.map(|piece| String::from_utf8_lossy(piece).into_owned())
}

fn json_escaped(value: &str) -> String {
    let quoted = serde_json::to_string(value).expect("a text is JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn html_escaped(value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;");
    value.replace('>', "&gt;").replace('"', "&quot;")
}

fn percent_encoded(value: &str, lower: bool) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match (byte, lower) {
            (b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~', _) => {
                encoded.push(char::from(byte));
            }
            (_, false) => write!(encoded, "%{byte:02X}").expect("a string takes everything"),
            (_, true) => write!(encoded, "%{byte:02x}").expect("a string takes everything"),
        }
    }
    encoded
}

fn hexadecimal(value: &str, upper: bool) -> String {
    let digits = value.bytes().map(|byte| match upper {
        true => format!("{byte:02X}"),
        false => format!("{byte:02x}"),
    });
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(value: &str) -> Known {
        Known::default().with([value]).unwrap()
    }

    #[test]
    fn a_value_is_found_in_every_form() {
        let value = "p@ss \"wörd\"/+&<x>'y";
        let known = known(value);
        let json = serde_json::to_string(value).unwrap();
        for text in [
            value.to_owned(),
            format!("{{\"a\":{json}}}"),
            percent_encoded(value, false),
            percent_encoded(value, true),
            hexadecimal(value, false),
            hexadecimal(value, true),
            html_escaped(value),
            "'p@ss \"wörd\"/+&<x>'\\''y'".to_owned(),
        ] {
            assert!(known.is_in(&text), "{text}");
            assert!(!known.redact(&text).contains("rd\"/+&"), "{text}");
        }
    }

    #[test]
    fn a_short_value_is_not_learned_and_the_same_value_is_learned_once() {
        assert!(Known::default().with(["short"]).is_none());
        assert!(known("long enough").with(["long enough"]).is_none());
    }

    #[test]
    fn a_value_of_several_lines_is_found_by_each() {
        let known = known("first line of it\nsecond line of it\n");
        assert!(known.is_in("… second line of it …"));
    }

    #[test]
    fn base64_that_is_broken_into_lines_is_found() {
        let value = "k3y-".repeat(40);
        let known = known(&value);
        let encoded = STANDARD.encode(&value);
        let broken: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        let clean = known.redact(&broken.join("\n")).into_owned();
        let left: usize = clean
            .split("[REDACTED]")
            .map(|rest| rest.trim().len())
            .sum();
        assert!(left < 4 * PIECE_BYTES, "{clean}");
    }

    proptest! {
        #[test]
        fn base64_is_found_whatever_is_around_it(
            before in prop::collection::vec(any::<u8>(), 0..9),
            value in "[ -~]{12,60}",
            after in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            prop_assume!(value.trim() == value);
            let bytes = [before.as_slice(), value.as_bytes(), &after].concat();
            let known = known(&value);
            prop_assert!(known.is_in(&STANDARD.encode(&bytes)));
            prop_assert!(known.is_in(&URL_SAFE_NO_PAD.encode(&bytes)));
        }
    }
}
