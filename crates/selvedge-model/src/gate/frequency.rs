//! When failures that heal by themselves are worth a word.
//!
//! One reset is nobody's business. Several within seconds are, once; after that a
//! while passes before it is said again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use selvedge_ledger::Time;

/// So many within the window are worth a word.
const FAILURES: usize = 3;
const WINDOW_MILLIS: i64 = 10_000;
/// Nothing more is said for so long.
const SILENCE_MILLIS: i64 = 60_000;

/// Failures that were got over, by all calls of a process.
#[derive(Default)]
pub(super) struct Frequency(Mutex<State>);

#[derive(Default)]
struct State {
    recent: VecDeque<Time>,
    said: Option<Time>,
}

impl Frequency {
    /// Notes a failure; true if people should hear of it.
    pub(super) fn note(&self, now: Time) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back makes the past look like the future.
        let is_within = |then: Time, millis: i64| (0..millis).contains(&now.millis_since(then));
        state.recent.retain(|then| is_within(*then, WINDOW_MILLIS));
        state.recent.push_back(now);
        let is_silent = state
            .said
            .is_some_and(|then| is_within(then, SILENCE_MILLIS));
        let says = state.recent.len() >= FAILURES && !is_silent;
        if says {
            state.said = Some(now);
        }
        says
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_within_ten_seconds_is_said_and_nothing_for_a_minute() {
        let frequency = Frequency::default();
        let said: Vec<i64> = [0, 4, 9, 10, 11, 30, 60, 65, 68, 69, 70]
            .into_iter()
            .filter(|second| frequency.note(Time(second * 1000)))
            .collect();
        assert_eq!(said, [9, 69]);
    }
}
