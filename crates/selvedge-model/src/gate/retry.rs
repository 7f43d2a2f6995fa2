//! When a failed call is tried again, and after how long.
//!
//! The decision is a plain function of the error, the attempts made and some
//! random bits. A wait that a provider asks for is kept to; one that is longer
//! than a person would sit through is handed back, so that the run can be
//! parked until then instead of holding a slot.

use std::time::Duration;

use crate::error::ModelError;

/// When a failed call is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, the first one included.
    ///
    /// Default: 3. A provider that fails three times within seconds is down,
    /// and a fourth try only delays what the caller can do about it.
    pub attempts_max: u32,
    /// The shortest wait before a second attempt.
    ///
    /// Each further wait is twice as long. Default: 0.5 s.
    pub wait_min: Duration,
    /// The longest wait, unless the provider asks for more.
    ///
    /// Default: 8 s.
    pub wait_max: Duration,
    /// The shortest wait before a provider in trouble is asked again.
    ///
    /// Each further wait is twice as long. Default: 5 s.
    pub trouble_wait_min: Duration,
    /// The longest wait for a provider in trouble.
    ///
    /// Default: 30 s.
    pub trouble_wait_max: Duration,
    /// The longest wait that a provider may ask for and get.
    ///
    /// A longer one is returned to the caller. Default: 60 s.
    pub retry_after_max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            wait_min: Duration::from_millis(500),
            wait_max: Duration::from_secs(8),
            trouble_wait_min: Duration::from_secs(5),
            trouble_wait_max: Duration::from_secs(30),
            retry_after_max: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// How long to wait before trying again after `attempts` failed; `None` to give up.
    pub fn wait(&self, error: &ModelError, attempts: u32, random: u64) -> Option<Duration> {
        if attempts >= self.attempts_max {
            return None;
        }
        let soon = || back_off(self.wait_min, self.wait_max, attempts, random);
        match error {
            ModelError::Transient { .. } => Some(soon()),
            ModelError::Degraded { .. } => Some(back_off(
                self.trouble_wait_min,
                self.trouble_wait_max,
                attempts,
                random,
            )),
            ModelError::RateLimited {
                retry_after: None, ..
            } => Some(soon()),
            ModelError::RateLimited {
                retry_after: Some(asked),
                ..
            } => {
                // Never sooner than asked, and spread a little beyond it:
                // everyone who was turned away was told the same moment.
                (*asked <= self.retry_after_max).then(|| *asked + spread(*asked / 10, random))
            }
            ModelError::Permanent { .. }
            | ModelError::UserFixable { .. }
            | ModelError::Overrun { .. }
            | ModelError::Cancelled => None,
        }
    }
}

/// Between one and two times the shortest wait, doubled with each attempt.
fn back_off(min: Duration, max: Duration, attempts: u32, random: u64) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    let base = min.saturating_mul(1 << doublings);
    (base + spread(base, random)).min(max)
}

/// A random part of `range`.
fn spread(range: Duration, random: u64) -> Duration {
    // 53 bits are what a float holds exactly.
    range.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn transient() -> ModelError {
        ModelError::Transient {
            provider: "p".into(),
            what: "reset".into(),
        }
    }

    fn limited(retry_after: Option<u64>) -> ModelError {
        let retry_after = retry_after.map(Duration::from_secs);
        ModelError::RateLimited {
            provider: "p".into(),
            what: "slow down".into(),
            retry_after,
        }
    }

    #[test]
    fn waits_double_within_their_bounds() {
        let retry = Retry {
            attempts_max: 100,
            ..Retry::default()
        };
        let range = |attempts| {
            let wait = |random| retry.wait(&transient(), attempts, random).unwrap();
            (wait(0), wait(u64::MAX))
        };
        assert_eq!(range(1).0, MS(500));
        assert!(range(1).1 > MS(999) && range(1).1 <= MS(1000));
        assert_eq!(range(2).0, MS(1000));
        assert_eq!(range(5).0, MS(8000));
        assert_eq!(range(50), (MS(8000), MS(8000)));
    }

    #[test]
    fn a_provider_in_trouble_is_given_more_time() {
        let degraded = ModelError::Degraded {
            provider: "p".into(),
            what: "overloaded".into(),
        };
        let wait = |attempts| Retry::default().wait(&degraded, attempts, 0);
        assert_eq!(wait(1), Some(MS(5000)));
        assert_eq!(wait(2), Some(MS(10_000)));
        assert_eq!(wait(3), None);
    }

    #[test]
    fn a_call_is_tried_three_times_and_no_more() {
        let retry = Retry::default();
        assert!(retry.wait(&transient(), 2, 0).is_some());
        assert_eq!(retry.wait(&transient(), 3, 0), None);
        assert_eq!(retry.wait(&limited(Some(1)), 3, 0), None);
    }

    #[test]
    fn the_providers_wish_is_honoured_up_to_a_minute() {
        let retry = Retry::default();
        assert_eq!(retry.wait(&limited(Some(7)), 1, 0), Some(MS(7000)));
        assert!(retry.wait(&limited(Some(60)), 1, u64::MAX).unwrap() >= MS(60_000));
        assert_eq!(retry.wait(&limited(Some(61)), 1, 0), None);
        assert_eq!(retry.wait(&limited(None), 1, 0), Some(MS(500)));
    }

    #[test]
    fn what_cannot_succeed_is_not_tried_again() {
        let retry = Retry::default();
        let permanent = ModelError::Permanent {
            provider: "p".into(),
            what: "no".into(),
        };
        let fixable = ModelError::UserFixable {
            provider: "p".into(),
            what: "key".into(),
            hint: "set it".into(),
        };
        for error in [permanent, fixable, ModelError::Cancelled] {
            assert_eq!(retry.wait(&error, 1, 0), None);
        }
    }
}
