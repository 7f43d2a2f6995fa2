//! Lists joined by rank: each gives its members a share that falls with their place.

use std::collections::HashMap;

use crate::store::Row;

/// How slowly a share falls. The usual 60 was found on long lists of the web; here the
/// first places say more.
const SLOWNESS: f64 = 20.0;

/// A list, and what its vote counts for.
pub(super) struct List {
    rows: Vec<Row>,
    weight: f64,
}

impl List {
    pub fn words(rows: Vec<Row>) -> Self {
        Self { rows, weight: 1.0 }
    }

    pub fn identifiers(rows: Vec<Row>) -> Self {
        Self { rows, weight: 0.8 }
    }

    /// The hashed vectors of the built-in embedder find less by themselves than words
    /// do, so they count for half; measured on both sets of `tests/it/quality.rs`.
    pub fn likeness(rows: Vec<Row>) -> Self {
        Self { rows, weight: 0.5 }
    }
}

/// All members of the lists with their shares, the greatest first. What is exact comes
/// before all of them, in its own order.
pub(super) fn fuse(exact: &[Row], lists: &[List]) -> Vec<(Row, f64)> {
    let mut shares: HashMap<Row, f64> = HashMap::new();
    let mut most = 0.0;
    for list in lists {
        most += list.weight / (SLOWNESS + 1.0);
        for (place, row) in (1u32..).zip(&list.rows) {
            *shares.entry(*row).or_default() += list.weight / (SLOWNESS + f64::from(place));
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
        let lists = [List::words(vec![1, 2, 3]), List::likeness(vec![4, 2, 5])];
        assert_eq!(fuse(&[], &lists)[0].0, 2);
    }

    #[test]
    fn what_is_exact_comes_first_in_its_order() {
        let lists = [List::words(vec![1, 2]), List::likeness(vec![1, 2])];
        let order: Vec<Row> = fuse(&[9, 2], &lists).iter().map(|(row, _)| *row).collect();
        assert_eq!(order, [9, 2, 1]);
    }
}
