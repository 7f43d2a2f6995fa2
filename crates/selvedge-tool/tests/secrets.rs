//! What is taken for a secret, and what is not, over a corpus of our own.

use std::collections::BTreeSet;

use selvedge_tool::{MARK, Secrets, Severity};

const POSITIVE: &str = include_str!("fixtures/secrets/positive.txt");
const NEGATIVE: &str = include_str!("fixtures/secrets/negative.txt");

#[test]
fn every_secret_of_the_corpus_is_found_by_name_and_its_value_alone_replaced() {
    let secrets = Secrets::new();
    let mut names = BTreeSet::new();
    let mut count = 0;
    let mut missed = Vec::new();
    for (at, line) in POSITIVE.lines().enumerate() {
        let (name, template) = line.split_once('\t').unwrap();
        let marked = filled(template, at);
        let text = marked.replace(['⟦', '⟧'], "");
        let found = secrets.scan(&text);
        let clean = secrets.redact(&text);
        let is_right =
            found.iter().any(|f| f.pattern == name) && clean.trim_end() == expected(&marked);
        if !is_right {
            missed.push(format!("{name}: {text}\n  {clean}\n  {found:?}"));
        }
        names.insert(name);
        count += 1;
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(count >= 100, "{count} are not enough");
    assert!(names.len() >= 60, "{} patterns are not all", names.len());
}

#[test]
fn the_twins_of_the_corpus_stay_as_they_are() {
    let secrets = Secrets::new();
    let lines: Vec<String> = NEGATIVE
        .lines()
        .enumerate()
        .map(|(at, l)| filled(l, at))
        .collect();
    let wrong: Vec<_> = lines
        .iter()
        .flat_map(|line| {
            secrets
                .scan(line)
                .into_iter()
                .map(move |found| (line, found))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(lines.len() >= 100, "{} are not enough", lines.len());
    let whole = lines.join("\n");
    assert_eq!(secrets.redact(&whole), whole);
}

#[test]
fn a_finding_never_contains_the_secret() {
    let secrets = Secrets::new();
    for (at, line) in POSITIVE.lines().enumerate() {
        let (_, template) = line.split_once('\t').unwrap();
        let marked = filled(template, at);
        let secret = marked.split_once('⟦').unwrap().1.split_once('⟧').unwrap().0;
        for found in secrets.scan(&marked.replace(['⟦', '⟧'], "")) {
            assert!(!format!("{found:?}").contains(secret), "{found:?}");
        }
    }
}

#[test]
fn severity_grows_with_what_a_secret_opens() {
    let secrets = Secrets::new();
    let worst = |text: &str| secrets.scan(text).into_iter().map(|f| f.severity).max();
    let noise = noise('b', 64, 1);
    assert_eq!(
        worst(&format!("session_key = \"{noise}\"")),
        Some(Severity::Medium)
    );
    assert_eq!(worst("password: hunter22!"), Some(Severity::High));
    assert_eq!(worst("redis://:hunter22@h/0"), Some(Severity::Critical));
}

/// The text with a marker in the place of what is marked.
fn expected(marked: &str) -> String {
    let (before, rest) = marked.split_once('⟦').unwrap();
    let (_, after) = rest.split_once('⟧').unwrap();
    format!("{before}{MARK}{after}")
}

/// The template with noise in it, the same every time.
fn filled(template: &str, seed: usize) -> String {
    let template = template.replace("{+}", "").replace("\\\\n", "\u{1}");
    let template = template.replace("\\n", "\n").replace('\u{1}', "\\n");
    let mut text = String::new();
    let mut rest = template.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let piece = after.split_once('}').and_then(|(piece, rest)| {
            let (kind, length) = piece.split_once(':')?;
            let kind = kind.parse().ok()?;
            Some((noise(kind, length.parse().ok()?, seed + text.len()), rest))
        });
        match piece {
            Some((noise, after)) => {
                text.push_str(&noise);
                rest = after;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text + rest
}

fn noise(kind: char, length: usize, seed: usize) -> String {
    let alphabet: &[u8] = match kind {
        'a' => b"q8Zt1VbX0pLr7KdM2nWcY5jHs3fGxR9vTaE6uNoBiCwDyFzQkSmAhJePlUgI4O",
        'b' => b"q8Zt1VbX0p+r7KdM2nWcY5jHs3fGxR9vTaE6/NoBiCwDyFzQkSmAhJePlUgI4O",
        'l' => b"q8t1bx0pr7kd2nwcy5jhs3fgv9tae6uo4ilmz",
        'h' => b"8a1f0b7d2c5e394601fb",
        'u' => b"QZ7TVB2XPL3RKDM4NWC5YJHS6FGA",
        'd' => b"8102753964",
        'w' => b"qZtVbXpLrKdMnWcYjHsfGxRvTaEuNoBiCwDyFzQkSmAhJePlUgIO",
        _ => panic!("there is no noise `{kind}`"),
    };
    let mut state = seed as u64 * 2_654_435_761 + 97;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        alphabet[(state >> 33) as usize % alphabet.len()] as char
    };
    (0..length).map(|_| next()).collect()
}
