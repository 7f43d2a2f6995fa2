//! Contradictions among what was found, before anybody relies on it.

use std::sync::LazyLock;

use regex::Regex;

use crate::kind::{ConflictKind, Domain};
use crate::node::Node;
use crate::store::Conflict;
use crate::time::Time;

/// Two dated statements about the same that are further apart may not both hold.
const APART_DAYS: f64 = 30.0;
/// Sentences outside of these lengths state nothing, or too much.
const SENTENCE_CHARS: std::ops::Range<usize> = 11..200;
/// Words that two sentences must share to be about the same.
const SHARED_MIN: usize = 2;
/// Words of fewer letters do not count as shared.
const LETTERS_MIN: usize = 4;

/// The contradictions among some nodes. `supports` says whether anything in the whole
/// index of code bears out that something is used.
pub fn conflicts_among(
    nodes: &[Node],
    supports: impl Fn(&str) -> bool,
    now: Time,
) -> Vec<Conflict> {
    let mut found = Vec::new();
    let dated: Vec<&Node> = nodes
        .iter()
        .filter(|node| node.domain() != Domain::Code && node.time.is_some())
        .collect();
    for (at, a) in dated.iter().enumerate() {
        for b in &dated[at + 1..] {
            found.extend(temporal(a, b));
        }
    }
    let history: Vec<&Node> = nodes
        .iter()
        .filter(|n| n.domain() == Domain::History)
        .collect();
    let code: Vec<&Node> = nodes
        .iter()
        .filter(|n| n.domain() == Domain::Code)
        .collect();
    for node in &history {
        for (used, sentence) in uses(&node.content) {
            let is_there = code
                .iter()
                .any(|c| c.content.contains(&used) || c.name == used);
            // One contradiction for each statement, not one for each piece of code.
            if let Some(against) = code.first()
                && !is_there
                && !supports(&used)
            {
                found.push(Conflict {
                    kind: ConflictKind::SourceMismatch,
                    subject: used.clone(),
                    node_a: node.id.clone(),
                    node_b: against.id.clone(),
                    description: format!("history says \"{sentence}\"; no code has `{used}`"),
                    suggestion: "trust the code".into(),
                });
            }
        }
    }
    for (at, a) in history.iter().enumerate() {
        for b in &history[at + 1..] {
            found.extend(semantic(a, b, now));
        }
    }
    found
}

fn temporal(a: &Node, b: &Node) -> Option<Conflict> {
    let subject = subject(a)?;
    if subject != self::subject(b)? {
        return None;
    }
    let (older, newer) = if a.dated() <= b.dated() {
        (a, b)
    } else {
        (b, a)
    };
    let days = newer.dated().days_since(older.dated());
    (days > APART_DAYS).then(|| Conflict {
        kind: ConflictKind::Temporal,
        description: format!(
            "two entries about `{subject}` are {} days apart",
            days.floor()
        ),
        subject,
        node_a: older.id.clone(),
        node_b: newer.id.clone(),
        suggestion: format!("prefer the newer, `{}`", newer.id),
    })
}

/// What a node is about: its name, or else its first word.
fn subject(node: &Node) -> Option<String> {
    let name = match node.name.is_empty() {
        true => node.content.split_whitespace().next()?,
        false => &node.name,
    };
    Some(name.to_lowercase())
}

fn semantic(a: &Node, b: &Node, _now: Time) -> Option<Conflict> {
    for (used_a, sentence_a) in uses(&a.content) {
        for (used_b, sentence_b) in uses(&b.content) {
            let differ = !used_a.eq_ignore_ascii_case(&used_b);
            if differ && shared(&sentence_a, &sentence_b) >= SHARED_MIN {
                return Some(Conflict {
                    kind: ConflictKind::Semantic,
                    subject: used_a.clone(),
                    node_a: a.id.clone(),
                    node_b: b.id.clone(),
                    description: format!("\"{sentence_a}\" against \"{sentence_b}\""),
                    suggestion: "let a person decide".into(),
                });
            }
        }
    }
    None
}

static USES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\buses? `?([\w./:-]+)`?").expect("it is right"));

/// What a text says is used, with the sentence.
fn uses(text: &str) -> Vec<(String, String)> {
    let sentences = text.split(['.', '\n']).map(str::trim);
    let sentences = sentences.filter(|s| SENTENCE_CHARS.contains(&s.chars().count()));
    sentences
        .filter_map(|sentence| {
            let used = USES.captures(sentence)?[1].to_owned();
            Some((used, sentence.to_owned()))
        })
        .collect()
}

fn shared(a: &str, b: &str) -> usize {
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        crate::words::identifiers(text)
            .map(str::to_lowercase)
            .filter(|word| word.chars().count() >= LETTERS_MIN && word != "uses")
            .collect()
    };
    words(a).intersection(&words(b)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::NodeType;
    use crate::time::DAY;

    const NOW: Time = Time(1_000 * DAY);

    fn entry(id: &str, days: i64, text: &str) -> Node {
        let node = Node::new(id, NodeType::Decision, format!("about {id}"));
        node.with_content(text).at(NOW.days_before(days))
    }

    #[test]
    fn one_unsupported_statement_is_one_conflict_however_much_code_was_found() {
        let mut nodes = vec![entry("h", 1, "The login flow uses Kerberos for tokens.")];
        for n in 0..10 {
            nodes.push(Node::new(format!("c{n}"), NodeType::Function, "f").with_content("jwt"));
        }
        let found = conflicts_among(&nodes, |_| false, NOW);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, ConflictKind::SourceMismatch);
        assert!(conflicts_among(&nodes, |used| used == "Kerberos", NOW).is_empty());
    }

    #[test]
    fn two_tools_for_the_same_are_a_conflict() {
        let nodes = [
            entry("a", 1, "The session cache uses Redis for storage"),
            entry("b", 2, "The session cache uses Memcached for storage"),
        ];
        let found = conflicts_among(&nodes, |_| true, NOW);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, ConflictKind::Semantic);
    }

    #[test]
    fn code_has_no_date_and_is_no_party_to_a_conflict_of_times() {
        let mut old = entry("a", 90, "x");
        let mut new = entry("b", 1, "x");
        (old.name, new.name) = ("Cache".into(), "cache".into());
        let code = Node::new("c", NodeType::Struct, "cache");
        let found = conflicts_among(&[old, new, code], |_| true, NOW);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].node_a.as_str(), found[0].node_b.as_str()),
            ("a", "b")
        );
    }
}
