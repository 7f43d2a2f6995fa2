//! Text made into vectors, by whoever does it.
//!
//! The index records who made its vectors. Another embedder means that all of them are
//! made anew: vectors of two origins in one list would compare as nonsense does.

mod endpoint;
mod hashed;
#[cfg(feature = "minilm")]
mod minilm;

pub use endpoint::{Endpoint, Protocol, Send as SendRequest};
pub use hashed::Hashed;
#[cfg(feature = "minilm")]
pub use minilm::MiniLm;

use serde::{Deserialize, Serialize};

/// Who makes vectors, and of what shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its name, with a version that changes when its vectors do.
    pub name: String,
    /// How many dimensions its vectors have.
    pub dimensions: usize,
}

/// A text to be embedded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece<'a> {
    /// What it is called; it counts for more than the rest.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
    /// What was said before it in the same conversation, a line for each turn, the last
    /// one last. Sentence models do better without.
    pub before: &'a str,
}

/// A point in the space of meanings.
#[derive(Clone, Debug, PartialEq)]
pub enum Vector {
    /// A number for each dimension.
    Dense(Vec<f32>),
    /// The dimensions that are not zero, in order, and how much of each: the square
    /// root of a share of a vector of length one, in 255ths.
    Sparse(Vec<(u16, u8)>),
}

impl Vector {
    /// Whether it has nothing to compare.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Dense(values) => values.iter().all(|value| *value == 0.0),
            Self::Sparse(values) => values.is_empty(),
        }
    }

    /// The cosine of the angle between two of one origin; 0 if they are of two.
    pub(crate) fn likeness(&self, other: &Self) -> f32 {
        match (self, other) {
            (Self::Dense(a), Self::Dense(b)) if a.len() == b.len() => cosine(a, b),
            (Self::Sparse(a), Self::Sparse(b)) => {
                let of = |dim: u16| b.binary_search_by_key(&dim, |entry| entry.0).ok();
                let shared = a.iter().filter_map(|(dim, w)| Some((*w, b[of(*dim)?].1)));
                shared.map(|(a, b)| weight(a) * weight(b)).sum()
            }
            _ => 0.0,
        }
    }

    /// As it is stored: little-endian throughout.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Dense(values) => values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
            Self::Sparse(values) => {
                let entry = |(dim, weight): &(u16, u8)| {
                    let [low, high] = dim.to_le_bytes();
                    [low, high, *weight]
                };
                values.iter().flat_map(entry).collect()
            }
        }
    }

    /// From what is stored.
    pub(crate) fn sparse_from(bytes: &[u8]) -> Self {
        let entry = |entry: &[u8]| (u16::from_le_bytes([entry[0], entry[1]]), entry[2]);
        Self::Sparse(bytes.chunks_exact(3).map(entry).collect())
    }

    /// From what is stored.
    pub(crate) fn dense_from(bytes: &[u8]) -> Self {
        let value = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Self::Dense(bytes.chunks_exact(4).map(value).collect())
    }
}

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// Who it is.
    fn model(&self) -> Model;

    /// Whether its vectors are sparse.
    fn is_sparse(&self) -> bool {
        false
    }

    /// Whether a vector takes so long that files are stored without, and get theirs
    /// afterwards ([`crate::Index::make_vectors`]).
    fn is_slow(&self) -> bool {
        false
    }

    /// Why it cannot be asked at all. The vectors that are stored stay as they are.
    fn is_away(&self) -> Option<&str> {
        None
    }

    /// A vector for each text, in order; all of them or none.
    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String>;
}

/// Stands in for an embedder that cannot be reached: there is search by words, and what
/// the other one has made is kept for when it is back.
#[derive(Clone, Debug)]
pub struct Away {
    /// What is wrong with it.
    pub why: String,
}

impl Embedder for Away {
    fn model(&self) -> Model {
        Model {
            name: "away".into(),
            dimensions: 0,
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn is_away(&self) -> Option<&str> {
        Some(&self.why)
    }

    fn embed(&self, _: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        Err(self.why.clone())
    }
}

/// What a stored weight stands for.
pub(crate) fn weight(stored: u8) -> f32 {
    let root = f32::from(stored) / 255.0;
    root * root
}

/// The cosine of the angle between two vectors; 0 if one of them has no length.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    // Sums side by side, which a processor adds at once; a single sum has to wait for
    // each addition before the next, because the order of additions is observable.
    let (mut dots, mut aas, mut bbs) = ([0.0f32; LANES], [0.0f32; LANES], [0.0f32; LANES]);
    let whole = a.len().min(b.len()) / LANES * LANES;
    for (xs, ys) in a[..whole].chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            dots[lane] += xs[lane] * ys[lane];
            aas[lane] += xs[lane] * xs[lane];
            bbs[lane] += ys[lane] * ys[lane];
        }
    }
    let sum = |lanes: [f32; LANES]| lanes.iter().sum::<f32>();
    let (mut dot, mut aa, mut bb) = (sum(dots), sum(aas), sum(bbs));
    for (x, y) in a[whole..].iter().zip(&b[whole..]) {
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    match aa * bb {
        lengths if lengths > 0.0 => dot / lengths.sqrt(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_is_the_same_whatever_the_length() {
        for length in [1usize, 5, 16, 40, 384] {
            let a: Vec<f32> = (0..length).map(|n| (n % 7) as f32 + 0.5).collect();
            let b: Vec<f32> = (0..length).map(|n| 3.0 - (n % 5) as f32).collect();
            let exact = |f: &dyn Fn(f64, f64) -> f64| {
                let pairs = a.iter().zip(&b);
                pairs
                    .map(|(x, y)| f(f64::from(*x), f64::from(*y)))
                    .sum::<f64>()
            };
            let lengths = exact(&|x, _| x * x) * exact(&|_, y| y * y);
            let expected = exact(&|x, y| x * y) / lengths.sqrt();
            let found = f64::from(cosine(&a, &b));
            assert!(
                (found - expected).abs() < 1e-5,
                "{length}: {found} {expected}"
            );
        }
        assert!(cosine(&[0.0; 20], &[1.0; 20]).abs() < 1e-9);
    }
}
