//! Lists joined: each gives its members a share of what its first one has.
//!
//! Places alone would lose what the lists know: a first that is far ahead of its second
//! is another thing than one of a hundred that are nearly as good. The scores of two
//! lists cannot be compared, but the parts of their own best can. They are squared, so
//! that half as good counts for a quarter: the tail of a list is mostly chance.
//!
//! Weights and square were chosen on the sets that `tests/it/quality.rs` calls those to
//! tune by, and lie in the middle of a plateau.

use std::collections::HashMap;

use crate::kind::Domain;
use crate::store::Row;

/// What a list knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Words,
    Identifiers,
    Likeness { is_sparse: bool },
}

/// A list.
pub(super) struct List {
    /// The best first.
    rows: Vec<(Row, f32)>,
    kind: Kind,
}

impl List {
    pub fn words(rows: Vec<(Row, f32)>) -> Self {
        let kind = Kind::Words;
        Self { rows, kind }
    }

    pub fn identifiers(rows: Vec<(Row, f32)>) -> Self {
        let kind = Kind::Identifiers;
        Self { rows, kind }
    }

    pub fn likeness(rows: Vec<(Row, f32)>, is_sparse: bool) -> Self {
        let kind = Kind::Likeness { is_sparse };
        Self { rows, kind }
    }

    /// What the vote counts for on something of a domain, beside one for words.
    fn weight(&self, domain: Domain) -> f64 {
        match (self.kind, domain) {
            (Kind::Words, _) => 1.0,
            // A sentence that names a type is rarely about the type itself, and one that
            // is nothing but the name has its definition first anyway.
            (Kind::Identifiers, _) => 0.2,
            // Code says things in pieces of words: `retries`, `RetryPolicy`, `do_retry`.
            (Kind::Likeness { is_sparse: true }, Domain::Code) => 2.5,
            // Prose says them in words, and its pieces mislead.
            (Kind::Likeness { is_sparse: true }, _) => 0.35,
            (Kind::Likeness { is_sparse: false }, _) => 1.3,
        }
    }
}

/// What is known of a row: its domain, and what is left of its share.
pub(super) type Standing = (Domain, f64);

/// All members of the lists with their shares, the greatest first. What is exact comes
/// before all of them, in its own order.
pub(super) fn fuse(
    exact: &[Row],
    lists: &[List],
    standing: &HashMap<Row, Standing>,
) -> Vec<(Row, f64)> {
    let mut shares: HashMap<Row, f64> = HashMap::new();
    let of = |row: &Row| standing.get(row).copied().unwrap_or((Domain::Code, 1.0));
    for list in lists {
        let best = list.rows.first().map_or(1.0, |(_, score)| *score);
        let best = f64::from(best.max(f32::MIN_POSITIVE));
        for (row, score) in &list.rows {
            let (domain, left) = of(row);
            // A mean, so that domains with other weights can be compared.
            let most: f64 = lists.iter().map(|list| list.weight(domain)).sum();
            let part = f64::from(*score) / best;
            let share = left * list.weight(domain) * part * part / most;
            *shares.entry(*row).or_default() += share;
        }
    }
    for (place, row) in exact.iter().enumerate() {
        // More than all lists together could give, and less with every place.
        *shares.entry(*row).or_default() += of(row).1 * (2.0 + (exact.len() - place) as f64);
    }
    let mut ranked: Vec<(Row, f64)> = shares.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

/// All rows of some lists, each once.
pub(super) fn members(exact: &[Row], lists: &[List]) -> Vec<Row> {
    let listed = lists
        .iter()
        .flat_map(|list| &list.rows)
        .map(|(row, _)| *row);
    let mut rows: Vec<Row> = listed.chain(exact.iter().copied()).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(exact: &[Row], lists: &[List], domain: Domain) -> Vec<Row> {
        let rows = members(exact, lists);
        let standing = rows.into_iter().map(|row| (row, (domain, 1.0))).collect();
        let ranked = fuse(exact, lists, &standing);
        ranked.into_iter().map(|(row, _)| row).collect()
    }

    #[test]
    fn what_two_lists_agree_upon_comes_before_the_first_of_one() {
        let words = List::words(vec![(1, 9.0), (2, 8.0), (3, 1.0)]);
        let likeness = List::likeness(vec![(4, 0.6), (2, 0.5), (5, 0.4)], true);
        assert_eq!(order(&[], &[words, likeness], Domain::Code)[0], 2);
    }

    #[test]
    fn a_first_that_is_far_ahead_stays_ahead() {
        let words = List::words(vec![(1, 9.0), (2, 2.0)]);
        let likeness = List::likeness(vec![(2, 0.50), (1, 0.45)], true);
        assert_eq!(order(&[], &[words, likeness], Domain::Code)[0], 1);
    }

    #[test]
    fn words_count_for_more_in_prose_than_in_code() {
        let lists = || {
            [
                List::words(vec![(1, 9.0), (2, 3.0)]),
                List::likeness(vec![(2, 0.5), (1, 0.2)], true),
            ]
        };
        assert_eq!(order(&[], &lists(), Domain::Code)[0], 2);
        assert_eq!(order(&[], &lists(), Domain::History)[0], 1);
    }

    #[test]
    fn the_first_of_every_domain_has_the_same_share() {
        let lists = [
            List::words(vec![(1, 9.0), (2, 9.0)]),
            List::likeness(vec![(1, 0.5), (2, 0.5)], true),
        ];
        let standing = HashMap::from([(1, (Domain::Code, 1.0)), (2, (Domain::Academic, 1.0))]);
        let ranked = fuse(&[], &lists, &standing);
        assert!((ranked[0].1 - ranked[1].1).abs() < 1e-9, "{ranked:?}");
    }

    #[test]
    fn what_is_exact_comes_first_in_its_order() {
        let rows = || vec![(1, 2.0), (2, 1.0)];
        let lists = [List::words(rows()), List::likeness(rows(), true)];
        assert_eq!(order(&[9, 2], &lists, Domain::Code), [9, 2, 1]);
    }
}
