//! What all calls to one provider share: its health, and its wish for patience.
//!
//! A provider that says 429 says it to the key, not to the call. Whoever asks
//! next waits as well, and the wait grows until an answer comes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use selvedge_ledger::Time;

use super::breaker::{Admission, Breaker, BreakerOptions, Health};
use crate::error::ModelError;

/// The first wait after a rate limit without a Retry-After.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// No wait is longer, whatever a provider says.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// The pace of every provider, shared by all sessions of a process.
pub(super) struct Pacing {
    options: BreakerOptions,
    providers: Mutex<BTreeMap<String, Pace>>,
}

struct Pace {
    breaker: Breaker,
    hold_until: Option<Time>,
    limits_in_a_row: u32,
}

/// Whether a provider can be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    /// Ask.
    Now,
    /// It asked for patience until then.
    Patience(Time),
    /// It is down; not before then.
    Down(Time),
}

impl Pacing {
    pub(super) fn new(options: BreakerOptions) -> Self {
        Self {
            options,
            providers: Mutex::default(),
        }
    }

    fn providers(&self) -> MutexGuard<'_, BTreeMap<String, Pace>> {
        self.providers.lock().expect("no panic under this lock")
    }

    /// Whether `provider` can be asked now.
    pub(super) fn go(&self, provider: &str, now: Time) -> Go {
        let mut providers = self.providers();
        let pace = providers
            .entry(provider.to_owned())
            .or_insert_with(|| Pace {
                breaker: Breaker::new(self.options),
                hold_until: None,
                limits_in_a_row: 0,
            });
        if let Some(until) = pace.hold_until {
            // A wait longer than any that is asked for: the clock was set back.
            let left = until.millis_since(now);
            if left > 0 && left.unsigned_abs() <= 2 * WAIT_MAX.as_millis() as u64 {
                return Go::Patience(until);
            }
            pace.hold_until = None;
        }
        match pace.breaker.admit(now) {
            Admission::Ask | Admission::Probe => Go::Now,
            Admission::Wait(until) => Go::Down(until),
        }
    }

    /// When `provider` can be asked again, if it cannot now.
    pub(super) fn until(&self, provider: &str, now: Time) -> Option<Time> {
        let providers = self.providers();
        let pace = providers.get(provider)?;
        let until = pace.hold_until.max(pace.breaker.open_until());
        until.filter(|until| *until > now)
    }

    /// Notes how a call went. `random` spreads those who were told to wait.
    /// True if the provider counts as down from now on.
    pub(super) fn note<T>(
        &self,
        provider: &str,
        result: &Result<T, ModelError>,
        now: Time,
        random: u64,
    ) -> bool {
        let mut providers = self.providers();
        let Some(pace) = providers.get_mut(provider) else {
            return false;
        };
        let health = match result {
            Ok(_) => {
                pace.limits_in_a_row = 0;
                Health::Alive
            }
            Err(ModelError::Transient { .. } | ModelError::Degraded { .. }) => Health::Down,
            Err(ModelError::RateLimited { retry_after, .. }) => {
                let wait = wait(*retry_after, pace.limits_in_a_row, random);
                pace.limits_in_a_row = pace.limits_in_a_row.saturating_add(1);
                let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                let until = now.plus_millis(millis);
                pace.hold_until = pace.hold_until.max(Some(until));
                Health::Alive
            }
            Err(
                ModelError::Permanent { .. }
                | ModelError::UserFixable { .. }
                | ModelError::Overrun { .. },
            ) => Health::Alive,
            Err(ModelError::Cancelled) => Health::Unknown,
        };
        pace.breaker.record(health, now)
    }
}

/// How long everybody waits after a rate limit.
fn wait(asked: Option<Duration>, in_a_row: u32, random: u64) -> Duration {
    let base = asked.unwrap_or_else(|| WAIT_FIRST.saturating_mul(1 << in_a_row.min(16)));
    let base = base.min(WAIT_MAX);
    // Never sooner than asked; spread over a tenth beyond it.
    base + base.mul_f64(0.1 * (random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after: Option<u64>) -> Result<(), ModelError> {
        Err(ModelError::RateLimited {
            provider: "p".into(),
            what: "slow down".into(),
            retry_after: retry_after.map(Duration::from_secs),
        })
    }

    fn down() -> Result<(), ModelError> {
        Err(ModelError::Transient {
            provider: "p".into(),
            what: "reset".into(),
        })
    }

    #[test]
    fn a_rate_limit_holds_everybody_and_nobody_else() {
        let pacing = Pacing::new(BreakerOptions::default());
        assert_eq!(pacing.go("p", Time(0)), Go::Now);
        pacing.note("p", &limited(Some(7)), Time(0), 0);
        assert_eq!(pacing.go("p", Time(6_999)), Go::Patience(Time(7_000)));
        assert_eq!(pacing.go("q", Time(0)), Go::Now);
        assert_eq!(pacing.go("p", Time(7_000)), Go::Now);
    }

    #[test]
    fn waits_grow_until_an_answer_comes_and_have_an_end() {
        let pacing = Pacing::new(BreakerOptions::default());
        let mut now = Time(0);
        let mut waits = Vec::new();
        for _ in 0..40 {
            assert_eq!(pacing.go("p", now), Go::Now);
            pacing.note("p", &limited(None), now, 0);
            let Go::Patience(until) = pacing.go("p", now) else {
                panic!("no patience");
            };
            waits.push(until.millis_since(now));
            now = until;
        }
        assert_eq!(waits[..4], [1_000, 2_000, 4_000, 8_000]);
        assert_eq!(waits[39], 300_000);
        pacing.note("p", &Ok(()), now, 0);
        pacing.note("p", &limited(None), now, 0);
        assert_eq!(pacing.go("p", now), Go::Patience(now.plus_millis(1_000)));
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nobody_for_days() {
        let pacing = Pacing::new(BreakerOptions::default());
        let day = 86_400_000;
        assert_eq!(pacing.go("p", Time(day)), Go::Now);
        pacing.note("p", &limited(Some(7)), Time(day), 0);
        assert_eq!(pacing.go("p", Time(0)), Go::Now);
        for _ in 0..5 {
            pacing.note("p", &down(), Time(day), 0);
        }
        assert!(matches!(pacing.go("p", Time(day)), Go::Down(_)));
        assert_eq!(pacing.go("p", Time(0)), Go::Now);
    }

    #[test]
    fn a_wait_of_centuries_is_cut() {
        let pacing = Pacing::new(BreakerOptions::default());
        pacing.go("p", Time(0));
        pacing.note("p", &limited(Some(u64::MAX / 2)), Time(0), 0);
        assert_eq!(pacing.go("p", Time(0)), Go::Patience(Time(300_000)));
    }

    #[test]
    fn refusals_are_not_outages() {
        let pacing = Pacing::new(BreakerOptions::default());
        for _ in 0..20 {
            assert_eq!(pacing.go("p", Time(0)), Go::Now);
            let refused: Result<(), _> = Err(ModelError::Permanent {
                provider: "p".into(),
                what: "no".into(),
            });
            assert!(!pacing.note("p", &refused, Time(0), 0));
        }
        for n in 0..5 {
            assert_eq!(pacing.go("p", Time(0)), Go::Now);
            assert_eq!(pacing.note("p", &down(), Time(0), 0), n == 4);
        }
        assert!(matches!(pacing.go("p", Time(0)), Go::Down(_)));
    }
}
