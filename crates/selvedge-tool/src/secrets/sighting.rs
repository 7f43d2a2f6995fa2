//! What was found, said without saying it.

use serde::Serialize;

use super::block::Block;
use super::{MARK, Rules, Severity};

// So much is shown on either side of a secret, for a person to find the place.
const CONTEXT_CHARS: usize = 20;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sighting {
    /// The name of its shape; `known_value` for a value that this process knows.
    pub pattern: String,
    /// How bad it is.
    pub severity: Severity,
    /// The line it is in, or begins in, from 1.
    pub line: usize,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends in its line, in bytes from the beginning of the text.
    pub end: usize,
    /// What is around it, every secret replaced.
    pub context: String,
}

/// Everything in a text that is, or looks like, a secret.
pub(super) fn scan(rules: &Rules, text: &str) -> Vec<Sighting> {
    let mut findings = Vec::new();
    if !rules.suspects(text) {
        return findings;
    }
    let mut block = Block::default();
    let (mut from, mut number) = (0, 1);
    for line in text.split_inclusive(['\n', '\r']) {
        let hits = rules.hits(&mut block, line);
        let mut clean = String::new();
        let mut places = Vec::new();
        let mut at = 0;
        for hit in &hits {
            clean.push_str(&line[at..hit.range.start]);
            places.push(clean.len());
            clean.push_str(MARK);
            at = hit.range.end;
        }
        clean.push_str(&line[at..]);
        for (hit, place) in hits.iter().zip(places).filter(|(hit, _)| !hit.goes_on) {
            findings.push(Sighting {
                pattern: hit.name.clone().into_owned(),
                severity: hit.severity,
                line: number,
                start: from + hit.range.start,
                end: from + hit.range.end,
                context: around(&clean, place),
            });
        }
        from += line.len();
        number += usize::from(line.ends_with('\n'));
    }
    findings
}

/// The marker at `place` with its neighbourhood.
fn around(clean: &str, place: usize) -> String {
    let after = place + MARK.len();
    let before = clean[..place].char_indices().rev();
    let begin = before
        .take(CONTEXT_CHARS)
        .last()
        .map_or(place, |(at, _)| at);
    let end = crate::cut::end_of(&clean[after..], CONTEXT_CHARS) + after;
    clean[begin..end].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Secrets;

    #[test]
    fn a_finding_says_where_and_never_what() {
        let secrets = Secrets::new();
        secrets.know("known-value-1");
        let text = "first\nthe password is known-value-1 and DB_PASSWORD=hunter22x\n";
        let found = secrets.scan(text);
        let said: Vec<_> = found.iter().map(|f| (f.pattern.as_str(), f.line)).collect();
        assert_eq!(said, [("known_value", 2), ("password_assignment", 2)]);
        assert_eq!(&text[found[0].start..found[0].end], "known-value-1");
        assert_eq!(
            found[0].context,
            "the password is [REDACTED] and DB_PASSWORD=[RE"
        );
    }
}
