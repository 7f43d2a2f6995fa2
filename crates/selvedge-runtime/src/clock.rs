//! Time and chance, as parameters.
//!
//! Machines never see these. The driver and the adapters around it do, through
//! one value, so that a simulated world can supply its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use selvedge_ledger::Time;

/// The time outside.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Wall-clock time, for people and for leases.
    fn now(&self) -> Time;

    /// Waits; wall-clock jumps do not shorten or lengthen it.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Where identifiers and jitter come from.
pub trait Chance: Send + Sync {
    /// The next 64 random bits.
    fn next(&self) -> u64;

    /// A short identifier that can be read aloud: `s_7f3k9a2b`.
    fn id(&self, prefix: &str) -> String {
        // Crockford's alphabet, lower case: no i, l, o or u to mistake.
        const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut bits = self.next();
        let mut id = String::with_capacity(prefix.len() + 11);
        id.push_str(prefix);
        id.push('_');
        for _ in 0..10 {
            id.push(char::from(ALPHABET[(bits & 31) as usize]));
            bits >>= 5;
        }
        id
    }
}

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemChance;

impl Chance for SystemChance {
    fn next(&self) -> u64 {
        getrandom::u64().expect("the operating system provides randomness")
    }
}

/// A fixed sequence, for tests and recorded demos.
#[derive(Debug)]
pub struct SeededChance(AtomicU64);

impl SeededChance {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Chance for SeededChance {
    fn next(&self) -> u64 {
        // SplitMix64: a counter and a mixer, so that one atomic add suffices.
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
