//! Text taken apart: identifiers, the words in them, and the words that say nothing.
//!
//! A tokenizer for prose takes `parseHttpHeader` for one word and finds it only if it is
//! asked for as it stands; one that splits it no longer knows the whole. So both are
//! kept: the words of every identifier in one list, the whole identifiers in another.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The pieces of a text that are words or identifiers, in order.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map(|word| word.trim_matches('_'))
        .filter(|word| !word.is_empty())
}

/// The words of an identifier: `parseHttpHeader2` is `parse`, `Http`, `Header2`.
pub fn parts(identifier: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for piece in identifier.split('_').filter(|piece| !piece.is_empty()) {
        let chars: Vec<(usize, char)> = piece.char_indices().collect();
        let mut begin = 0;
        for at in 1..chars.len() {
            let (before, here) = (chars[at - 1].1, chars[at].1);
            let next = chars.get(at + 1).map(|(_, c)| *c);
            let is_hump = before.is_lowercase() && here.is_uppercase();
            // The last capital of `HTTPServer` belongs to what follows it.
            let is_end_of_capitals = before.is_uppercase()
                && here.is_uppercase()
                && next.is_some_and(char::is_lowercase);
            if is_hump || is_end_of_capitals {
                parts.push(&piece[begin..chars[at].0]);
                begin = chars[at].0;
            }
        }
        parts.push(&piece[begin..]);
    }
    parts
}

/// The text as a word tokenizer should see it: identifiers taken apart.
pub fn spread(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for identifier in identifiers(text) {
        for part in parts(identifier) {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(part);
        }
    }
    out
}

/// Whether a word is written as only an identifier is: `retry_after`, `parseHeader`,
/// `HttpServer`.
pub fn is_identifier_like(word: &str) -> bool {
    word.contains('_') && word.len() > 2 || {
        let parts = parts(word);
        parts.len() > 1 && parts.iter().any(|part| part.len() > 1)
    }
}

/// The words of a question that can tell one text from another, lower-cased, once each.
pub fn telling(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let words = identifiers(text).flat_map(parts).map(str::to_lowercase);
    let all: Vec<String> = words.filter(|word| seen.insert(word.clone())).collect();
    let telling: Vec<String> = all.iter().filter(|word| !is_empty(word)).cloned().collect();
    match telling.is_empty() {
        true => all,
        false => telling,
    }
}

/// Whether a word says nothing about what is wanted.
pub fn is_empty(word: &str) -> bool {
    EMPTY.contains(word) || word.chars().count() == 1 && !word.chars().all(char::is_numeric)
}

/// A word without its English ending: enough for the n-grams, which do the rest.
pub fn stem(word: &str) -> &str {
    for (ending, rest_min) in [
        ("ing", 4),
        ("ies", 3),
        ("ied", 3),
        ("es", 4),
        ("ed", 4),
        ("s", 3),
    ] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= rest_min
            && !word.ends_with("ss")
        {
            return rest;
        }
    }
    word
}

static EMPTY: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    "a about all also am an and any are as at be because been being but by can could did do does \
     doing done for from get gets give given go goes had has have he her here his how i if in \
     into is it its itself just let like may me might more most must my no not of off on one only \
     or other our out over own please shall she should show so some such tell than that the their \
     them then there these they this those to too under until up us use used uses using very was \
     we were what when where whether which while who whom whose why will with would you your"
        .split_whitespace()
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_taken_apart_at_its_humps_and_bars() {
        assert_eq!(parts("parseHTTPHeader"), ["parse", "HTTP", "Header"]);
        assert_eq!(parts("retry_after"), ["retry", "after"]);
        assert_eq!(parts("MAX_RETRIES"), ["MAX", "RETRIES"]);
        assert_eq!(parts("größeÄndern"), ["größe", "Ändern"]);
        assert_eq!(parts("__init__"), ["init"]);
    }

    #[test]
    fn a_question_is_left_with_what_it_is_about() {
        assert_eq!(
            telling("where do we retry requests?"),
            ["retry", "requests"]
        );
        assert_eq!(
            telling("what is it?"),
            ["what", "is", "it"],
            "rather than nothing"
        );
    }

    #[test]
    fn an_identifier_is_told_from_a_word() {
        for one in ["retry_after", "parseHeader", "HttpServer", "HTTPServer"] {
            assert!(is_identifier_like(one), "{one}");
        }
        for one in ["retry", "Where", "HTTP", "a"] {
            assert!(!is_identifier_like(one), "{one}");
        }
    }
}
