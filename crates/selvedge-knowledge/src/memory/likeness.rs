//! Whether two short descriptions mean the same, without a model.
//!
//! What is particular (numbers, paths, quoted names) is taken out first, so that the same
//! approach in another file is the same approach.

use std::collections::BTreeSet;

use crate::words::{identifiers, is_empty, parts, stem};

/// The description with nothing particular left in it.
pub(super) fn normal(text: &str) -> BTreeSet<String> {
    let text: String = text
        .split_whitespace()
        .filter(|word| !word.contains('/') && !word.contains('\\'))
        .collect::<Vec<_>>()
        .join(" ");
    identifiers(&text)
        .flat_map(parts)
        .map(str::to_lowercase)
        .filter(|word| !is_empty(word) && !word.chars().any(char::is_numeric))
        .map(|word| stem(&word).to_owned())
        .collect()
}

/// How alike two descriptions are, from 0 to 1: the words they share, measured by the
/// shorter of the two, and a little by the longer.
pub(super) fn likeness(a: &str, b: &str) -> f64 {
    let (a, b) = (normal(a), normal(b));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let shared = a.intersection(&b).count() as f64;
    let (short, long) = (a.len().min(b.len()) as f64, a.len().max(b.len()) as f64);
    // One common word alone proves little.
    let by_short = if short > 1.0 {
        shared / short
    } else {
        shared / long
    };
    0.7 * by_short + 0.3 * shared / long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_approach_elsewhere_is_the_same_approach() {
        let a = "retry the HTTP request in src/a.rs with a fixed delay of 5 seconds";
        let b = "Retrying HTTP requests in lib/b.py with fixed delays of 30 seconds";
        assert!(likeness(a, b) > 0.7, "{}", likeness(a, b));
        let c = "cache the parsed configuration in a global variable";
        assert!(likeness(a, c) < 0.3, "{}", likeness(a, c));
    }
}
