//! Chance that can be repeated.

use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of random numbers that belongs to a seed and a name.
#[derive(Debug)]
pub struct Dice(AtomicU64);

impl Dice {
    /// The stream of `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        let mixed = name
            .bytes()
            .fold(seed ^ 0x51_7c_c1_b7_27_22_0a_95, |hash, byte| {
                mix(hash ^ u64::from(byte))
            });
        Self(AtomicU64::new(mix(mixed)))
    }

    /// The next 64 bits.
    pub fn next(&self) -> u64 {
        mix(self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Whether something happens that does so `percent` times in a hundred.
    pub fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// SplitMix64's finisher.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
