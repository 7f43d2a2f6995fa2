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

    fn store() -> (tempfile::TempDir, crate::Index) {
        let folder = tempfile::tempdir().unwrap();
        let clock: crate::Clock = std::sync::Arc::new(|| crate::Time(7));
        let embedder = std::sync::Arc::new(crate::Hashed);
        let index = crate::Index::open(&folder.path().join("i.db"), embedder, clock).unwrap();
        (folder, index)
    }

    #[test]
    fn a_requirement_needs_a_citation_and_is_stored_once() {
        let (_folder, index) = store();
        let requirement = Requirement {
            text: "Invoices must be kept.".into(),
            ..Requirement::default()
        };
        let refused = index.add_requirement(&requirement, &[]).unwrap_err();
        assert!(
            refused.to_string().contains("without a citation"),
            "{refused}"
        );
        let citation = Citation {
            source: "a.pdf".into(),
            page: Some(2),
            quote: "must be kept".into(),
            ..Citation::default()
        };
        let cited = [index.cite(&citation, "s_1").unwrap()];
        assert_eq!(index.cite(&citation, "s_1").unwrap(), cited[0]);
        let id = index.add_requirement(&requirement, &cited).unwrap();
        index.set_requirement_status(&id, "accepted").unwrap();
        assert_eq!(index.add_requirement(&requirement, &cited).unwrap(), id);
        let all = index.requirements(Some("accepted")).unwrap();
        assert_eq!(
            all.len(),
            1,
            "storing it again does not put it back to pending"
        );
        assert_eq!(all[0].citations[0].page, Some(2));
        let similar = index.similar_requirements("invoices are kept", 5).unwrap();
        assert_eq!(similar.len(), 1);
    }

    #[test]
    fn a_graph_has_a_schema_and_says_what_does_not_comply() {
        let (_folder, index) = store();
        let entity = |id: &str, label: &str| Entity {
            id: id.into(),
            label: label.into(),
            properties: serde_json::Map::new(),
        };
        assert!(index.put_entity(&entity("x", "Animal")).is_err());
        index.put_entity(&entity("R-1", "Requirement")).unwrap();
        index
            .put_entity(&entity("archive", "BusinessObject"))
            .unwrap();
        let relation = |kind: &str, target: &str| Relation {
            source: "R-1".into(),
            target: target.into(),
            kind: kind.into(),
            properties: serde_json::Map::new(),
        };
        assert!(index.relate(&relation("LIKES", "archive")).is_err());
        assert!(index.relate(&relation("FULFILLED_BY", "nobody")).is_err());
        index.relate(&relation("FULFILLED_BY", "archive")).unwrap();
        index.relate(&relation("FULFILLED_BY", "archive")).unwrap();
        let counted = index.graph_statistics().unwrap();
        assert_eq!(counted.relations["FULFILLED_BY"], 1);
        assert_eq!(index.violations().unwrap().len(), 3);
    }

    #[test]
    fn the_same_statement_in_other_words_is_alike_and_another_is_not() {
        let one = "Invoices must be kept for ten years.";
        assert!(alike(one, "Invoices must be kept for a period of ten years") > 0.7);
        assert!(alike(one, "Access to the archive must be logged") < 0.4);
        assert!((alike(one, one) - 1.0).abs() < 1e-9);
    }
}
