//! Lists joined: each gives its members a share of what its first one has.
//!
//! Places alone would lose what the lists know: a first that is far ahead of its second
//! is another thing than one of a hundred that are nearly as good. The scores of two
//! lists cannot be compared, but the parts of their own best can.

use std::collections::HashMap;

use crate::store::Row;

/// A list, and what its vote counts for.
pub(super) struct List {
    /// The best first.
    rows: Vec<(Row, f32)>,
    weight: f64,
}

impl List {
    pub fn words(rows: Vec<(Row, f32)>) -> Self {
        Self { rows, weight: 1.0 }
    }

    /// Little beside words: a sentence that names a type is rarely about the type itself,
    /// and one that is nothing but the name has its definition first anyway.
    pub fn identifiers(rows: Vec<(Row, f32)>) -> Self {
        Self { rows, weight: 0.2 }
    }

    /// A little more than words: the best on the sources to tune by in
    /// `tests/it/quality.rs`, and hardly less a third to either side.
    pub fn likeness(rows: Vec<(Row, f32)>) -> Self {
        Self { rows, weight: 1.3 }
    }
}

/// All members of the lists with their shares, the greatest first. What is exact comes
/// before all of them, in its own order.
pub(super) fn fuse(exact: &[Row], lists: &[List]) -> Vec<(Row, f64)> {
    let mut shares: HashMap<Row, f64> = HashMap::new();
    let mut most = 0.0;
    for list in lists {
        most += list.weight;
        let best = list.rows.first().map_or(1.0, |(_, score)| *score);
        let best = f64::from(best.max(f32::MIN_POSITIVE));
        for (row, score) in &list.rows {
            *shares.entry(*row).or_default() += list.weight * f64::from(*score) / best;
        }
    }
    for (place, row) in exact.iter().enumerate() {
        // More than all lists together could give, and less with every place.
        *shares.entry(*row).or_default() += most * (2.0 + (exact.len() - place) as f64);
    }
    let mut ranked: Vec<(Row, f64)> = shares.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_lists_agree_upon_comes_before_the_first_of_one() {
        let words = List::words(vec![(1, 9.0), (2, 8.0), (3, 1.0)]);
        let likeness = List::likeness(vec![(4, 0.6), (2, 0.5), (5, 0.4)]);
        assert_eq!(fuse(&[], &[words, likeness])[0].0, 2);
    }

    #[test]
    fn a_first_that_is_far_ahead_stays_ahead() {
        let words = List::words(vec![(1, 9.0), (2, 2.0)]);
        let likeness = List::likeness(vec![(2, 0.50), (1, 0.40)]);
        assert_eq!(fuse(&[], &[words, likeness])[0].0, 1);
    }

    #[test]
    fn what_is_exact_comes_first_in_its_order() {
        let rows = || vec![(1, 2.0), (2, 1.0)];
        let lists = [List::words(rows()), List::likeness(rows())];
        let order: Vec<Row> = fuse(&[9, 2], &lists).iter().map(|(row, _)| *row).collect();
        assert_eq!(order, [9, 2, 1]);
    }
}
