//! The circuit breaker: a provider that is down is not asked again and again.
//!
//! A plain state machine; the time is a parameter. It trips on failures in a
//! row or on half of the last calls failing, waits, lets one probe through, and
//! closes after a few successes. Only what says that the provider is down
//! counts: a wrong request or a rate limit does not.

use std::collections::VecDeque;

use selvedge_ledger::Time;

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
    Ask,
    /// It may, and the answer decides: nobody else asks meanwhile.
    Probe,
    /// It is not asked before this time.
    Wait(Time),
}

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

/// The health of one provider.
#[derive(Clone, Debug)]
pub struct Breaker {
    options: BreakerOptions,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Closed {
        in_a_row: u32,
        // True for a failure, the newest last.
        recent: VecDeque<bool>,
    },
    Open {
        until: Time,
    },
    HalfOpen {
        // Since when somebody probes.
        probing: Option<Time>,
        successes: u32,
    },
}

impl State {
    fn closed() -> Self {
        Self::Closed {
            in_a_row: 0,
            recent: VecDeque::new(),
        }
    }
}

impl Breaker {
    /// A breaker that is closed.
    pub fn new(options: BreakerOptions) -> Self {
        let state = State::closed();
        Self { options, state }
    }

    /// Whether the provider may be asked now. `Probe` reserves the probe.
    pub fn admit(&mut self, now: Time) -> Admission {
        // More than the cooldown left means that the clock was set back.
        if let State::Open { until } = self.state
            && (now >= until || until.millis_since(now) > self.options.cooldown_millis)
        {
            self.state = State::HalfOpen {
                probing: None,
                successes: 0,
            };
        }
        match &mut self.state {
            State::Closed { .. } => Admission::Ask,
            State::Open { until } => Admission::Wait(*until),
            // A probe that is never heard of again must not keep the door shut.
            State::HalfOpen {
                probing: Some(since),
                ..
            } if (0..self.options.cooldown_millis).contains(&now.millis_since(*since)) => {
                // Its end is not known; look again soon.
                Admission::Wait(now.plus_millis(self.options.cooldown_millis / 30))
            }
            State::HalfOpen { probing, .. } => {
                *probing = Some(now);
                Admission::Probe
            }
        }
    }

    /// Notes how a call that `admit` let through went. True if it opened.
    pub fn record(&mut self, health: Health, now: Time) -> bool {
        let opens = match &mut self.state {
            State::Closed { in_a_row, recent } => match health {
                Health::Unknown => false,
                Health::Alive | Health::Down => {
                    let down = health == Health::Down;
                    *in_a_row = if down { *in_a_row + 1 } else { 0 };
                    recent.push_back(down);
                    if recent.len() > self.options.window {
                        recent.pop_front();
                    }
                    let failed = recent.iter().filter(|d| **d).count();
                    let full = recent.len() == self.options.window;
                    down && (*in_a_row >= self.options.failures_in_a_row
                        || full && failed * 2 >= self.options.window)
                }
            },
            State::HalfOpen { probing, successes } => {
                *probing = None;
                match health {
                    Health::Down => true,
                    Health::Unknown => false,
                    Health::Alive => {
                        *successes += 1;
                        if *successes >= self.options.successes_to_close {
                            self.state = State::closed();
                        }
                        false
                    }
                }
            }
            // A call that began before it opened changes nothing.
            State::Open { .. } => false,
        };
        if opens {
            let until = now.plus_millis(self.options.cooldown_millis);
            self.state = State::Open { until };
        }
        opens
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

    fn at(seconds: i64) -> Time {
        Time(seconds * 1000)
    }

    fn tripped() -> Breaker {
        let mut breaker = Breaker::new(BreakerOptions::default());
        for n in 0..5 {
            assert_eq!(breaker.admit(at(0)), Admission::Ask);
            assert_eq!(breaker.record(Health::Down, at(0)), n == 4);
        }
        breaker
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_half_a_minute() {
        let mut breaker = tripped();
        assert_eq!(breaker.admit(at(1)), Admission::Wait(at(30)));
        assert_eq!(breaker.admit(at(29)), Admission::Wait(at(30)));
        assert_eq!(breaker.admit(at(30)), Admission::Probe);
    }

    #[test]
    fn half_of_the_last_twenty_failing_opens_it() {
        let mut breaker = Breaker::new(BreakerOptions::default());
        let mut opened = 0;
        for n in 0..20 {
            let health = if n % 2 == 0 {
                Health::Alive
            } else {
                Health::Down
            };
            opened += u32::from(breaker.record(health, at(0)));
            assert_eq!(breaker.open_until().is_some(), n == 19, "call {n}");
        }
        assert_eq!(opened, 1);
    }

    #[test]
    fn one_probe_at_a_time_and_three_successes_close_it() {
        let mut breaker = tripped();
        for _ in 0..3 {
            assert_eq!(breaker.admit(at(31)), Admission::Probe);
            assert!(matches!(breaker.admit(at(31)), Admission::Wait(_)));
            assert!(!breaker.record(Health::Alive, at(31)));
        }
        assert_eq!(breaker.admit(at(31)), Admission::Ask);
        assert_eq!(breaker.admit(at(31)), Admission::Ask);
        // The window begins anew: old failures do not trip it again.
        assert!(!breaker.record(Health::Down, at(31)));
    }

    #[test]
    fn a_failed_probe_opens_it_again() {
        let mut breaker = tripped();
        assert_eq!(breaker.admit(at(30)), Admission::Probe);
        assert!(breaker.record(Health::Down, at(31)));
        assert_eq!(breaker.admit(at(32)), Admission::Wait(at(61)));
    }

    #[test]
    fn a_probe_that_was_given_up_makes_room_for_another() {
        let mut breaker = tripped();
        assert_eq!(breaker.admit(at(30)), Admission::Probe);
        breaker.record(Health::Unknown, at(31));
        assert_eq!(breaker.admit(at(31)), Admission::Probe);
    }

    #[test]
    fn a_probe_that_is_never_heard_of_again_makes_room_after_a_while() {
        let mut breaker = tripped();
        assert_eq!(breaker.admit(at(30)), Admission::Probe);
        assert!(matches!(breaker.admit(at(59)), Admission::Wait(_)));
        assert_eq!(breaker.admit(at(60)), Admission::Probe);
    }

    #[test]
    fn a_success_between_failures_starts_the_count_again() {
        let mut breaker = Breaker::new(BreakerOptions::default());
        for n in 0..12 {
            let health = if n % 4 == 3 {
                Health::Alive
            } else {
                Health::Down
            };
            assert!(!breaker.record(health, at(0)));
        }
    }
}
