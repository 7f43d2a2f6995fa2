//! The best evidence that fits into so many tokens, each piece with its reasons.

use serde::Serialize;

use super::freshness::freshness;
use super::trust::trust;
use crate::node::{Node, cut};
use crate::time::Time;

/// What counts for how much, and how much may be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The most tokens of all pieces together.
    pub tokens_max: usize,
    /// Pieces of less quality are left out.
    pub quality_min: f64,
    /// Pieces that are less like the question are left out, however good they are.
    pub similarity_min: f64,
    /// Characters of one piece.
    pub chars_max: usize,
    /// Whether to take what was superseded.
    pub with_superseded: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            tokens_max: 8_000,
            quality_min: 0.3,
            similarity_min: 0.05,
            chars_max: 1_000,
            with_superseded: false,
        }
    }
}

const SIMILARITY_WEIGHT: f64 = 0.35;
const TRUST_WEIGHT: f64 = 0.25;
const FRESHNESS_WEIGHT: f64 = 0.25;
const VERIFIED_BONUS: f64 = 0.15;

/// Something that could be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What.
    pub node: Node,
    /// How like the question it is, from 0 to 1.
    pub similarity: f64,
}

/// Something that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picked {
    /// What.
    pub node: Node,
    /// Its text, cut.
    pub text: String,
    /// How like the question it is.
    pub similarity: f64,
    /// How far it can be trusted.
    pub trust: u8,
    /// What that means.
    pub label: &'static str,
    /// How current it is.
    pub freshness: f64,
    /// All of these as one number.
    pub quality: f64,
    /// The tokens of its text.
    pub tokens: usize,
    /// What to keep in mind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Likeness, trust (0 to 100), freshness and verification as one number from 0 to 1.
pub fn quality(similarity: f64, trust: u8, freshness: f64, verified: bool) -> f64 {
    let sum = SIMILARITY_WEIGHT * similarity
        + TRUST_WEIGHT * f64::from(trust) / 100.0
        + FRESHNESS_WEIGHT * freshness
        + if verified { VERIFIED_BONUS } else { 0.0 };
    sum.min(1.0)
}

/// How many tokens a text is, roughly.
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

/// Chooses the best that fits. What is too large is passed over, and smaller pieces
/// after it still have their chance.
pub fn select(candidates: &[Candidate], budget: &Budget, now: Time) -> Vec<Picked> {
    let mut judged: Vec<Picked> = candidates
        .iter()
        .filter(|one| one.similarity >= budget.similarity_min)
        .filter(|one| budget.with_superseded || one.node.superseded_by.is_none())
        .map(|one| judge(one, budget, now))
        .filter(|picked| picked.quality >= budget.quality_min)
        .collect();
    judged.sort_by(|a, b| {
        b.quality
            .total_cmp(&a.quality)
            .then(a.node.id.cmp(&b.node.id))
    });
    let mut left = budget.tokens_max;
    let fits = |picked: &Picked| {
        let fits = picked.tokens <= left;
        if fits {
            left -= picked.tokens;
        }
        fits
    };
    judged.into_iter().filter(fits).collect()
}

fn judge(one: &Candidate, budget: &Budget, now: Time) -> Picked {
    let trust = trust(&one.node, now);
    let fresh = freshness(&one.node, now);
    let whole = match one.node.content.is_empty() {
        true => format!("{} {}", one.node.signature, one.node.doc),
        false => one.node.content.clone(),
    };
    let text = cut(whole.trim(), budget.chars_max).to_owned();
    Picked {
        tokens: tokens(&text),
        text,
        similarity: one.similarity,
        trust: trust.level,
        label: trust.label,
        freshness: fresh.score,
        quality: quality(one.similarity, trust.level, fresh.score, one.node.verified),
        warning: fresh.warning.or_else(|| trust.warning.map(str::to_owned)),
        node: one.node.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::NodeType;

    fn candidate(id: &str, chars: usize, similarity: f64) -> Candidate {
        let node = Node::new(id, NodeType::Function, id).verified();
        Candidate {
            node: node.with_content("日".repeat(chars)),
            similarity,
        }
    }

    #[test]
    fn quality_is_the_weighted_sum() {
        assert!((quality(0.9, 80, 1.0, true) - 0.915).abs() < 1e-9);
        assert!((quality(1.0, 100, 1.0, true) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_large_piece_does_not_keep_out_the_small_ones_after_it() {
        let all = [
            candidate("large", 900, 0.9),
            candidate("small", 40, 0.5),
            candidate("tiny", 20, 0.4),
        ];
        let budget = Budget {
            tokens_max: 16,
            ..Budget::default()
        };
        let picked = select(&all, &budget, Time(0));
        let ids: Vec<&str> = picked.iter().map(|p| p.node.id.as_str()).collect();
        assert_eq!(ids, ["small", "tiny"]);
        assert!(picked.iter().map(|p| p.tokens).sum::<usize>() <= 16);
    }

    #[test]
    fn no_selection_exceeds_its_budget() {
        let sizes = [900, 1, 40, 333, 7, 120, 64, 2_000, 15];
        let all: Vec<Candidate> = (0..)
            .zip(sizes)
            .map(|(n, chars)| candidate(&format!("c{n}"), chars, 0.9 - 0.05 * f64::from(n)))
            .collect();
        for tokens_max in 0..700 {
            let budget = Budget {
                tokens_max,
                ..Budget::default()
            };
            let picked = select(&all, &budget, Time(0));
            let used: usize = picked.iter().map(|p| p.tokens).sum();
            assert!(used <= tokens_max, "{used} of {tokens_max}");
            // What was left out would not have fitted any more.
            let is_in = |one: &&Candidate| picked.iter().any(|p| p.node.id == one.node.id);
            let least = select(&all, &Budget::default(), Time(0));
            let left = least
                .iter()
                .filter(|p| !all.iter().filter(is_in).any(|one| one.node.id == p.node.id));
            for one in left {
                assert!(
                    used + one.tokens > tokens_max,
                    "{} at {tokens_max}",
                    one.node.id
                );
            }
        }
    }

    #[test]
    fn the_cut_text_is_what_counts_and_no_character_is_broken() {
        let budget = Budget {
            tokens_max: 30,
            chars_max: 99,
            ..Budget::default()
        };
        let picked = select(&[candidate("long", 5_000, 0.9)], &budget, Time(0));
        assert_eq!(picked[0].text.chars().count(), 99);
        assert_eq!(picked[0].tokens, 25);
    }

    #[test]
    fn verified_code_that_has_nothing_to_do_with_it_is_left_out() {
        let all = [candidate("other", 10, 0.0)];
        assert!(select(&all, &Budget::default(), Time(0)).is_empty());
    }

    #[test]
    fn what_was_superseded_is_left_out_unless_asked_for() {
        let mut one = candidate("old", 10, 0.9);
        one.node.superseded_by = Some("new".into());
        let all = [one];
        assert!(select(&all, &Budget::default(), Time(0)).is_empty());
        let budget = Budget {
            with_superseded: true,
            ..Budget::default()
        };
        assert_eq!(select(&all, &budget, Time(0)).len(), 1);
    }
}
