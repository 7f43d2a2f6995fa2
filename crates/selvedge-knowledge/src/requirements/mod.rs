//! Requirements that were found in documents, and the graph they are put into.
//!
//! Two traits, so that another store can take the place of the embedded one: the cache
//! that jobs pass requirements on by, and the graph that checked ones end in. The same
//! thing stored twice is stored once.

mod cache;
mod graph;

pub use cache::{Citation, Requirement, RequirementCache};
pub use graph::{Entity, GraphStatistics, LABELS, RELATIONS, Relation, RequirementGraph};

use std::collections::BTreeSet;

use crate::words::{identifiers, is_empty, parts, stem};

/// Statements this alike say the same, until somebody looks.
pub const DUPLICATE_MIN: f64 = 0.8;

/// How alike two statements are, from 0 to 1: the words they share.
pub fn alike(a: &str, b: &str) -> f64 {
    let (a, b) = (word_set(a), word_set(b));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let shared = a.intersection(&b).count() as f64;
    2.0 * shared / (a.len() + b.len()) as f64
}

fn word_set(text: &str) -> BTreeSet<String> {
    identifiers(text)
        .flat_map(parts)
        .map(str::to_lowercase)
        .filter(|word| !is_empty(word))
        .map(|word| stem(&word).to_owned())
        .collect()
}

/// A short name that follows from what it names.
fn id_of(prefix: &str, words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    let hash = hasher.finalize().to_hex();
    format!("{prefix}-{}", &hash[..10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_statement_in_other_words_is_alike_and_another_is_not() {
        let one = "Invoices must be kept for ten years.";
        assert!(alike(one, "Invoices must be kept for a period of ten years") > 0.7);
        assert!(alike(one, "Access to the archive must be logged") < 0.4);
        assert!((alike(one, one) - 1.0).abs() < 1e-9);
    }
}
