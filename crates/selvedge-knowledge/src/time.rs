//! Moments, as they are stored. Nothing in this crate reads a clock by itself.

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// Milliseconds of a day.
pub(crate) const DAY: i64 = 24 * 60 * 60 * 1000;

impl Time {
    /// The days from `earlier` until this, with fractions; none if it lies ahead.
    pub fn days_since(self, earlier: Self) -> f64 {
        ((self.0 - earlier.0) as f64 / DAY as f64).max(0.0)
    }

    /// The moment so many days before.
    pub fn days_before(self, days: i64) -> Self {
        Self(self.0 - days * DAY)
    }

    /// The moment so many minutes later.
    pub fn minutes_after(self, minutes: i64) -> Self {
        Self(self.0 + minutes * 60_000)
    }
}

/// Tells the time.
pub type Clock = std::sync::Arc<dyn Fn() -> Time + Send + Sync>;
