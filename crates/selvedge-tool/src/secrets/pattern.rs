//! Shapes of secrets, and finding them in a line.
//!
//! Every built-in shape has words without which it cannot occur. One pass for all
//! words of all shapes tells which expressions are worth running, and for nearly
//! every line that is none. A secret never begins before the first word of its
//! shape: a redactor relies on that when it lets the beginning of a line go.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;
use serde::Serialize;

use super::table::TABLE;
use super::{assignment, block, plausible};

/// How bad it is when a secret of this shape leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It may well be none.
    Medium,
    /// It opens somebody's account.
    High,
    /// It opens everything behind it.
    Critical,
}

/// A shape of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomPattern {
    /// What findings call it.
    pub name: String,
    /// A regular expression for one line. Its first group is the secret; without a
    /// group, all of it.
    pub regex: String,
}

/// Why a rule of the user's own cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not a regular expression.
    #[error("the pattern `{name}` is not a regular expression: {why}")]
    Pattern {
        /// Which.
        name: String,
        /// Why not.
        why: String,
    },
    /// Not a glob.
    #[error("`{glob}` does not name files: {why}")]
    Glob {
        /// Which.
        glob: String,
        /// Why not.
        why: String,
    },
}

/// A built-in shape.
pub(super) struct Pattern {
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    /// One of these is in every match, at its beginning or before the secret.
    pub(super) words: &'static [&'static str],
    /// Its first group is the secret; without a group, all of it.
    pub(super) regex: &'static str,
    /// Whether a value is a secret, given what follows it.
    pub(super) accepts: fn(&str, &str) -> bool,
}

/// A secret in a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hit {
    pub(super) range: Range<usize>,
    pub(super) name: Cow<'static, str>,
    pub(super) severity: Severity,
    /// Whether it goes on from the line before, which has the marker already.
    pub(super) goes_on: bool,
}

impl Hit {
    pub(super) fn new(
        range: Range<usize>,
        name: impl Into<Cow<'static, str>>,
        severity: Severity,
    ) -> Self {
        let name = name.into();
        Self {
            range,
            name,
            severity,
            goes_on: false,
        }
    }
}

/// The shapes that are looked for: the built-in ones, and the user's own.
#[derive(Clone, Default)]
pub(super) struct Patterns {
    custom: Vec<(String, Regex)>,
}

impl Patterns {
    /// These and some more.
    pub(super) fn with(&self, more: &[CustomPattern]) -> Result<Self, RuleError> {
        let mut custom = self.custom.clone();
        for CustomPattern { name, regex } in more {
            if custom
                .iter()
                .any(|(known, r)| known == name && r.as_str() == regex)
            {
                continue;
            }
            let compiled = Regex::new(regex).map_err(|error| RuleError::Pattern {
                name: name.clone(),
                why: error.to_string(),
            })?;
            custom.push((name.clone(), compiled));
        }
        Ok(Self { custom })
    }

    /// Whether there is any word of any shape.
    pub(super) fn suspects(&self, text: &str) -> bool {
        WORDS.automaton.is_match(text) || self.custom.iter().any(|(_, r)| r.is_match(text))
    }

    /// Whether a secret may begin anywhere, for want of words that it begins with.
    pub(super) fn is_unpredictable(&self) -> bool {
        !self.custom.is_empty()
    }

    /// Adds the secrets of one line.
    pub(super) fn find(&self, line: &str, hits: &mut Vec<Hit>) {
        let mut wanted = 0_u128;
        for found in WORDS.automaton.find_overlapping_iter(line) {
            wanted |= WORDS.owners[found.pattern().as_usize()];
        }
        for (at, pattern) in TABLE.iter().enumerate() {
            if wanted & (1 << at) != 0 {
                each(regex(at), line, |range| {
                    if (pattern.accepts)(&line[range.clone()], &line[range.end..]) {
                        hits.push(Hit::new(range, pattern.name, pattern.severity));
                    }
                });
            }
        }
        if wanted & ASSIGNMENT != 0 {
            assignment::find(line, hits);
        }
        for (name, regex) in &self.custom {
            each(regex, line, |range| {
                if !plausible::is_placeholder(&line[range.clone()]) {
                    hits.push(Hit::new(range, name.clone(), Severity::High));
                }
            });
        }
    }
}

/// Sorts what was found and joins what overlaps, under the name that came first.
pub(super) fn merge(mut hits: Vec<Hit>) -> Vec<Hit> {
    // Stable: of two that begin together, the one that was found first leads.
    hits.sort_by_key(|hit| hit.range.start);
    let mut merged: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.range.start < last.range.end => {
                last.range.end = last.range.end.max(hit.range.end);
                last.severity = last.severity.max(hit.severity);
            }
            _ => merged.push(hit),
        }
    }
    merged
}

/// The words that a secret begins with, or has before it.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    let table = TABLE.iter().flat_map(|pattern| pattern.words);
    let others = assignment::WORDS.iter().chain(&block::WORDS);
    table.chain(others).copied()
}

const ASSIGNMENT: u128 = 1 << 127;

struct Words {
    automaton: AhoCorasick,
    /// For each word, which shapes have it, as bits.
    owners: Vec<u128>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    assert!(TABLE.len() < 127, "a shape is a bit");
    let table = TABLE.iter().enumerate();
    let mut owners: Vec<u128> = table
        .flat_map(|(at, pattern)| pattern.words.iter().map(move |_| 1 << at))
        .collect();
    owners.extend(assignment::WORDS.map(|_| ASSIGNMENT));
    owners.extend(block::WORDS.map(|_| 0));
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words())
        .expect("a few short words");
    Words { automaton, owners }
});

/// Compiled when first needed: most processes need none.
fn regex(at: usize) -> &'static Regex {
    static COMPILED: [OnceLock<Regex>; 127] = [const { OnceLock::new() }; 127];
    COMPILED[at].get_or_init(|| Regex::new(TABLE[at].regex).expect("the table is tested"))
}

fn each(regex: &Regex, line: &str, mut visit: impl FnMut(Range<usize>)) {
    if regex.captures_len() == 1 {
        return regex.find_iter(line).for_each(|found| visit(found.range()));
    }
    for captures in regex.captures_iter(line) {
        // Alternatives have a group each; the one that matched is the secret.
        if let Some(secret) = captures.iter().skip(1).flatten().next() {
            visit(secret.range());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles_and_every_name_is_used_for_one_severity() {
        for (at, pattern) in TABLE.iter().enumerate() {
            regex(at);
            assert!(!pattern.words.is_empty(), "{}", pattern.name);
            let twins = TABLE.iter().filter(|other| other.name == pattern.name);
            assert!(
                twins
                    .map(|twin| twin.severity)
                    .all(|s| s == pattern.severity)
            );
        }
    }

    #[test]
    fn what_overlaps_is_one_secret_with_the_first_name() {
        let hit = |range, name: &'static str, severity| Hit::new(range, name, severity);
        let merged = merge(vec![
            hit(8..20, "generic", Severity::High),
            hit(4..12, "exact", Severity::Medium),
            hit(20..22, "other", Severity::Medium),
        ]);
        assert_eq!(
            merged,
            [
                hit(4..20, "exact", Severity::High),
                hit(20..22, "other", Severity::Medium)
            ]
        );
    }

    #[test]
    fn a_pattern_of_the_users_own_is_found_and_a_broken_one_explained() {
        let custom = |regex: &str| CustomPattern {
            name: "ticket".into(),
            regex: regex.into(),
        };
        let patterns = Patterns::default()
            .with(&[custom("TICKET-([0-9]{6})")])
            .unwrap();
        assert!(patterns.suspects("see TICKET-123456"));
        let mut hits = Vec::new();
        patterns.find("see TICKET-123456", &mut hits);
        assert_eq!(hits, [Hit::new(11..17, "ticket", Severity::High)]);
        let error = Patterns::default().with(&[custom("(")]).err().unwrap();
        assert!(error.to_string().contains("`ticket`"), "{error}");
    }
}
