//! The circuit breaker: a provider that is down is not asked again and again.
//!
//! A plain state machine; the time is a parameter. It trips on failures in a
//! row or on half of the last calls failing, waits, lets one probe through, and
//! closes after a few successes. Only what says that the provider is down
//! counts: a wrong request or a rate limit does not.
//!
//! What all processes share is plain data, written only when it changes, which no
//! success in good health does. So the look back on the last calls, which every
//! success is part of, is each process's own.

use std::collections::VecDeque;

use selvedge_ledger::Time;
use serde::{Deserialize, Serialize};

/// When a breaker trips and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Failures in a row that open it. Default: 5.
    pub failures_in_a_row: u32,
    /// Calls that are looked back on; half of them failing opens it. Default: 20.
    pub window: usize,
    /// Milliseconds until a probe is let through. Default: 30,000.
    pub cooldown_millis: i64,
    /// Successes in a row that close it again. Default: 3.
    pub successes_to_close: u32,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self {
            failures_in_a_row: 5,
            window: 20,
            cooldown_millis: 30_000,
            successes_to_close: 3,
        }
    }
}

/// Whether a provider may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Ask(Permit),
    /// It may, and the answer decides: nobody else asks meanwhile.
    Probe(Permit),
    /// It is not asked before this time.
    Wait(Time),
}

/// When a call was let through: a result counts only while nothing was decided since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit(u64);

/// How a call went, as far as the provider's health is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answered, if only to refuse.
    Alive,
    /// It did not.
    Down,
    /// The call was given up before it could tell.
    Unknown,
}

/// The health of one provider, as all processes know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    in_a_row: u32,
    /// Goes up when it opens, and with every probe.
    decisions: u64,
    state: State,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    #[default]
    Closed,
    Open {
        until: Time,
    },
    HalfOpen {
        /// Since when somebody probes.
        probing: Option<Time>,
        successes: u32,
    },
}

/// The last calls of one process: true for a failure, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Recent(VecDeque<bool>);

impl Recent {
    /// Notes a call. True if half of a full window failed.
    fn note(&mut self, down: bool, window: usize) -> bool {
        self.0.push_back(down);
        if self.0.len() > window {
            self.0.pop_front();
        }
        let failed = self.0.iter().filter(|down| **down).count();
        self.0.len() == window && failed * 2 >= window
    }
}

impl Breaker {
    /// Whether the provider may be asked now. `Probe` reserves the probe.
    pub fn admit(&mut self, options: &BreakerOptions, now: Time) -> Admission {
        let successes = match self.state {
            State::Closed => return Admission::Ask(Permit(self.decisions)),
            // More than the cooldown left means that the clock was set back.
            State::Open { until }
                if now < until && until.millis_since(now) <= options.cooldown_millis =>
            {
                return Admission::Wait(until);
            }
            State::Open { .. } => 0,
            // A probe that is never heard of again must not keep the door shut.
            State::HalfOpen {
                probing: Some(since),
                ..
            } if (0..options.cooldown_millis).contains(&now.millis_since(since)) => {
                // Its end is not known; look again soon.
                return Admission::Wait(now.plus_millis(options.cooldown_millis / 30));
            }
            State::HalfOpen { successes, .. } => successes,
        };
        self.decisions += 1;
        self.state = State::HalfOpen {
            probing: Some(now),
            successes,
        };
        Admission::Probe(Permit(self.decisions))
    }

    /// Notes how a call that `admit` let through went. True if it opened.
    pub fn record(
        &mut self,
        options: &BreakerOptions,
        recent: &mut Recent,
        permit: Permit,
        health: Health,
        now: Time,
    ) -> bool {
        // It began before something was decided, and says nothing about what is now.
        if permit.0 != self.decisions || health == Health::Unknown {
            self.give_up(permit);
            return false;
        }
        let down = health == Health::Down;
        let opens = match &mut self.state {
            State::Closed => {
                let half = recent.note(down, options.window);
                self.in_a_row = if down { self.in_a_row + 1 } else { 0 };
                down && (half || self.in_a_row >= options.failures_in_a_row)
            }
            State::HalfOpen { .. } if down => true,
            State::HalfOpen { probing, successes } => {
                *probing = None;
                *successes += 1;
                if *successes >= options.successes_to_close {
                    (self.state, self.in_a_row) = (State::Closed, 0);
                }
                false
            }
            State::Open { .. } => false,
        };
        if opens {
            *recent = Recent::default();
            self.decisions += 1;
            let until = now.plus_millis(options.cooldown_millis);
            self.state = State::Open { until };
        }
        opens
    }

    /// A probe that could not tell makes room for another.
    fn give_up(&mut self, permit: Permit) {
        if let State::HalfOpen { probing, .. } = &mut self.state
            && permit.0 == self.decisions
        {
            *probing = None;
        }
    }

    /// When the provider may be asked again, if calls are refused at the moment.
    pub fn open_until(&self) -> Option<Time> {
        match self.state {
            State::Open { until } => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: BreakerOptions = BreakerOptions {
        failures_in_a_row: 5,
        window: 20,
        cooldown_millis: 30_000,
        successes_to_close: 3,
    };

    fn at(seconds: i64) -> Time {
        Time(seconds * 1000)
    }

    /// One process and its breaker.
    #[derive(Default)]
    struct One {
        breaker: Breaker,
        recent: Recent,
    }

    impl One {
        fn tripped() -> Self {
            let mut one = Self::default();
            for n in 0..5 {
                assert_eq!(one.call(Health::Down, 0), n == 4);
            }
            one
        }

        fn admit(&mut self, seconds: i64) -> Admission {
            self.breaker.admit(&OPTIONS, at(seconds))
        }

        fn record(&mut self, permit: Permit, health: Health, seconds: i64) -> bool {
            let Self { breaker, recent } = self;
            breaker.record(&OPTIONS, recent, permit, health, at(seconds))
        }

        fn permit(&mut self, seconds: i64) -> Permit {
            match self.admit(seconds) {
                Admission::Ask(permit) | Admission::Probe(permit) => permit,
                Admission::Wait(until) => panic!("not before {until:?}"),
            }
        }

        fn call(&mut self, health: Health, seconds: i64) -> bool {
            let permit = self.permit(seconds);
            self.record(permit, health, seconds)
        }
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_half_a_minute() {
        let mut one = One::tripped();
        assert_eq!(one.admit(1), Admission::Wait(at(30)));
        assert_eq!(one.admit(29), Admission::Wait(at(30)));
        assert!(matches!(one.admit(30), Admission::Probe(_)));
    }

    #[test]
    fn half_of_the_last_twenty_failing_opens_it() {
        let mut one = One::default();
        let mut opened = 0;
        for n in 0..20 {
            let health = match n % 2 {
                0 => Health::Alive,
                _ => Health::Down,
            };
            opened += u32::from(one.call(health, 0));
            assert_eq!(one.breaker.open_until().is_some(), n == 19, "call {n}");
        }
        assert_eq!(opened, 1);
    }

    #[test]
    fn one_probe_at_a_time_and_three_successes_close_it() {
        let mut one = One::tripped();
        for _ in 0..3 {
            let Admission::Probe(probe) = one.admit(31) else {
                panic!("no probe");
            };
            assert!(matches!(one.admit(31), Admission::Wait(_)));
            assert!(!one.record(probe, Health::Alive, 31));
        }
        assert!(matches!(one.admit(31), Admission::Ask(_)));
        assert!(matches!(one.admit(31), Admission::Ask(_)));
        // The window begins anew: old failures do not trip it again.
        assert!(!one.call(Health::Down, 31));
    }

    #[test]
    fn a_failed_probe_opens_it_again() {
        let mut one = One::tripped();
        let probe = one.permit(30);
        assert!(one.record(probe, Health::Down, 31));
        assert_eq!(one.admit(32), Admission::Wait(at(61)));
    }

    #[test]
    fn a_probe_that_was_given_up_makes_room_for_another() {
        let mut one = One::tripped();
        one.call(Health::Unknown, 30);
        assert!(matches!(one.admit(31), Admission::Probe(_)));
    }

    #[test]
    fn a_probe_that_is_never_heard_of_again_makes_room_after_a_while() {
        let mut one = One::tripped();
        let lost = one.permit(30);
        assert!(matches!(one.admit(59), Admission::Wait(_)));
        let probe = one.permit(60);
        // When it is heard of after all, another has taken its place.
        assert!(!one.record(lost, Health::Down, 61));
        assert!(matches!(one.admit(61), Admission::Wait(_)));
        assert!(!one.record(probe, Health::Alive, 61));
        assert!(matches!(one.admit(61), Admission::Probe(_)));
    }

    #[test]
    fn a_late_result_is_not_the_probes() {
        for health in [Health::Alive, Health::Down, Health::Unknown] {
            let mut one = One::default();
            let late = one.permit(0);
            for _ in 0..5 {
                one.call(Health::Down, 0);
            }
            let probe = one.permit(30);
            for _ in 0..3 {
                assert!(!one.record(late, health, 31), "{health:?}");
            }
            assert!(
                matches!(one.admit(31), Admission::Wait(_)),
                "{health:?}: somebody probes still"
            );
            assert!(one.record(probe, Health::Down, 32), "the probe decides");
            // Nor does it count once the provider is well again.
            for _ in 0..3 {
                one.call(Health::Alive, 62);
            }
            for _ in 0..20 {
                assert!(!one.record(late, Health::Down, 63));
            }
            assert!(matches!(one.admit(63), Admission::Ask(_)));
        }
    }

    #[test]
    fn a_success_between_failures_starts_the_count_again() {
        let mut one = One::default();
        for n in 0..12 {
            let health = match n % 4 {
                3 => Health::Alive,
                _ => Health::Down,
            };
            assert!(!one.call(health, 0));
        }
    }
}
