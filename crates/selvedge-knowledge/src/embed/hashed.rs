//! The embedder that is always there: hashed words and pieces of words.
//!
//! It needs no download and no network, so search is hybrid from the first minute. What
//! it adds to the search for words is kinship of form: `retried`, `retries` and
//! `RetryPolicy` share most of their pieces. The vectors are sparse: 16,384 dimensions
//! cost no more than 4,096 would, and fewer things collide.

use std::cell::RefCell;

use super::{Embedder, Model, Piece, Vector};
use crate::words::{identifiers, is_empty, parts, stem};

/// Dimensions; a power of two, so that a hash is cut by a mask.
const DIMENSIONS: usize = 1 << 14;
/// The most text that is looked at: what comes later repeats what came before.
const TEXT_BYTES_MAX: usize = 6_000;
/// Letters of a piece of a word.
const PIECE_CHARS: usize = 4;
/// What a piece counts for beside its whole word.
const PIECE_WEIGHT: f32 = 0.7;
/// What the words of a turn count for beside those of the turns before it.
const TURN_WEIGHT: f32 = 2.0;
/// What is left of a turn's weight by each turn that came after it.
const FADING: f32 = 0.9;
/// What a word counts for when it is part of the name.
const NAME_WEIGHT: f32 = 6.0;

/// Hashed words and character n-grams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed;

impl Embedder for Hashed {
    fn model(&self) -> Model {
        Model {
            name: "hashed-n-grams-4".into(),
            dimensions: DIMENSIONS,
        }
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        Ok(pieces.iter().map(embed).collect())
    }
}

/// Counts by dimension, and which of them are not zero.
struct Tally {
    counts: Vec<f32>,
    touched: Vec<u16>,
}

thread_local! {
    // Cleared after each use by what was touched: a vector costs no allocation of its
    // own size, which would be most of the time it takes.
    static TALLY: RefCell<Tally> = RefCell::new(Tally {
        counts: vec![0.0; DIMENSIONS],
        touched: Vec::new(),
    });
}

fn embed(piece: &Piece<'_>) -> Vector {
    TALLY.with_borrow_mut(|tally| {
        tally.add_text(piece.name, NAME_WEIGHT);
        let text = piece.text;
        let end = (0..=TEXT_BYTES_MAX.min(text.len()))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        let weight = match piece.before.is_empty() {
            true => 1.0,
            false => TURN_WEIGHT,
        };
        tally.add_text(&text[..end.unwrap_or(0)], weight);
        let mut left = 1.0;
        for turn in piece.before.lines().rev() {
            tally.add_text(turn, left);
            left *= FADING;
        }
        tally.take()
    })
}

impl Tally {
    fn add_text(&mut self, text: &str, weight: f32) {
        let mut word = String::new();
        for part in identifiers(text).flat_map(parts) {
            word.clear();
            word.extend(part.chars().flat_map(char::to_lowercase));
            if !is_empty(&word) {
                self.add_word(&word, weight);
            }
        }
    }

    fn add_word(&mut self, word: &str, weight: f32) {
        let stem = stem(word);
        self.add(hash(b'w', stem.as_bytes()), weight);
        // Marks at both ends tell a beginning from a middle.
        let mut marked = [0u8; 64];
        let bytes = word.as_bytes();
        if !word.is_ascii() || bytes.len() < PIECE_CHARS - 1 || bytes.len() > marked.len() - 2 {
            return;
        }
        marked[0] = b'^';
        marked[1..=bytes.len()].copy_from_slice(bytes);
        marked[bytes.len() + 1] = b'$';
        for window in marked[..bytes.len() + 2].windows(PIECE_CHARS) {
            self.add(hash(b'p', window), weight * PIECE_WEIGHT);
        }
    }

    fn add(&mut self, dimension: u16, weight: f32) {
        let count = &mut self.counts[usize::from(dimension)];
        if *count == 0.0 {
            self.touched.push(dimension);
        }
        *count += weight;
    }

    /// The vector, of length one; the tally is empty again.
    fn take(&mut self) -> Vector {
        self.touched.sort_unstable();
        let mut weights = Vec::with_capacity(self.touched.len());
        let mut squares = 0.0f32;
        for dimension in self.touched.drain(..) {
            let count = std::mem::take(&mut self.counts[usize::from(dimension)]);
            // The tenth occurrence says less than the first.
            let weight = match count > 1.0 {
                true => 1.0 + count.ln(),
                false => count,
            };
            squares += weight * weight;
            weights.push((dimension, weight));
        }
        let length = squares.sqrt().max(f32::MIN_POSITIVE);
        let stored = |weight: f32| ((weight / length).sqrt() * 255.0).round().clamp(1.0, 255.0);
        let entries = weights.into_iter();
        Vector::Sparse(entries.map(|(dim, w)| (dim, stored(w) as u8)).collect())
    }
}

/// FNV-1a, which is short and the same everywhere for ever.
fn hash(kind: u8, bytes: &[u8]) -> u16 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in std::iter::once(&kind).chain(bytes) {
        hash ^= u64::from(*byte);
        hash = hash.wrapping_mul(0x0100_0000_01b3);
    }
    // The low bits of FNV are its weakest.
    ((hash >> 32) as usize & (DIMENSIONS - 1)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::weight;

    fn of(text: &str) -> Vec<(u16, u8)> {
        let piece = Piece {
            text,
            ..Piece::default()
        };
        match embed(&piece) {
            Vector::Sparse(entries) => entries,
            Vector::Dense(_) => unreachable!("this embedder makes sparse vectors"),
        }
    }

    fn likeness(a: &str, b: &str) -> f32 {
        let (a, b) = (of(a), of(b));
        let other = |dim| {
            b.iter()
                .find(|(d, _)| *d == dim)
                .map_or(0.0, |e| weight(e.1))
        };
        a.iter().map(|(dim, w)| weight(*w) * other(*dim)).sum()
    }

    #[test]
    fn kin_words_are_nearer_than_strangers() {
        let kin = likeness("retries", "retry policy");
        let stranger = likeness("retries", "colour palette");
        assert!(kin > stranger + 0.1, "{kin} {stranger}");
    }

    #[test]
    fn a_vector_has_length_one_and_is_the_same_every_time() {
        let text = "Waits before the request is sent again, a little longer each time.";
        let length: f32 = of(text).iter().map(|(_, w)| weight(*w).powi(2)).sum();
        assert!((length - 1.0).abs() < 0.02, "{length}");
        assert_eq!(of(text), of(text));
        assert!(of("").is_empty());
    }

    #[test]
    fn text_is_cut_between_characters() {
        let long = "ß".repeat(TEXT_BYTES_MAX);
        of(&format!("x{long}"));
    }
}
