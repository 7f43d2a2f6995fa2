//! Where a question stands that is asked more than once: of whom next, and when.
//!
//! Plain data and plain decisions. A course outlives the attempt that broke off,
//! so that what broke off can be put on record before the next attempt begins.

use std::time::Duration;

use selvedge_ledger::Time;

use super::ask::{Broken, Failed};
use super::queue::{Queue, Ticket, Urgency};
use super::retry::Retry;
use crate::error::ModelError;

/// Where a question stands.
#[derive(Clone, Debug)]
pub struct Course {
    begun: Time,
    attempts: u32,
    /// 0 is the request's own model, `n` its `n`-th fallback.
    candidate: usize,
    /// Attempts at this candidate.
    tries: u32,
    not_before: Option<Time>,
    ticket: Option<Ticket>,
    because: Option<String>,
    /// A failure that time may cure, and when.
    curable: Option<(ModelError, Option<Time>)>,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct Stumble {
    pub(super) error: ModelError,
    /// What it left behind.
    pub(super) broken: Option<Box<Broken>>,
    /// When the provider can be asked again, if that is known.
    pub(super) again_at: Option<Time>,
    /// Whether the provider was not even asked, because it is known not to answer.
    pub(super) is_refused: bool,
    /// Whether the call only gave way to one that somebody waits for.
    pub(super) gave_way: bool,
}

impl From<ModelError> for Stumble {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            broken: None,
            again_at: None,
            is_refused: false,
            gave_way: false,
        }
    }
}

/// What follows from a stumble.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The same model, after this long; a rate limit is waited for by everybody.
    Again(Duration),
    /// The next model.
    Instead,
}

impl Course {
    pub(super) fn new(now: Time) -> Self {
        Self {
            begun: now,
            attempts: 0,
            candidate: 0,
            tries: 0,
            not_before: None,
            ticket: None,
            because: None,
            curable: None,
        }
    }

    pub(super) fn candidate(&self) -> usize {
        self.candidate
    }

    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn tries(&self) -> u32 {
        self.tries
    }

    pub(super) fn because(&self) -> Option<String> {
        self.because.clone()
    }

    /// The wait before the next attempt, once.
    pub(super) fn take_wait(&mut self) -> Option<Time> {
        self.not_before.take()
    }

    /// The place in the queue that this question keeps.
    pub(super) fn ticket(
        &mut self,
        queue: &Queue,
        provider: &str,
        urgency: Urgency,
        now: Time,
    ) -> Ticket {
        let ticket = self.ticket.take();
        let ticket = ticket.unwrap_or_else(|| queue.ticket(provider, urgency, now.0));
        self.ticket = Some(ticket.clone());
        ticket
    }

    pub(super) fn begin(&mut self) {
        self.attempts += 1;
        self.tries += 1;
    }

    /// The attempt had to give way, and does not count.
    pub(super) fn give_way(&mut self) {
        self.attempts -= 1;
        self.tries -= 1;
        self.ticket = self.ticket.take().map(Ticket::again);
    }

    /// Decides what follows, and takes that course. `None` if nothing does.
    pub(super) fn after(
        &mut self,
        stumble: &Stumble,
        retry: &Retry,
        fallbacks: &[String],
        now: Time,
        random: u64,
    ) -> Option<Step> {
        let error = &stumble.error;
        if is_curable(error) {
            self.curable = Some((error.clone(), stumble.again_at));
        }
        let wait = retry.wait(error, self.tries, random);
        if let Some(wait) = wait.filter(|_| !stumble.is_refused) {
            // The provider's wish holds for everybody, this call included.
            let is_shared = matches!(error, ModelError::RateLimited { .. });
            let wait = if is_shared { Duration::ZERO } else { wait };
            let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            self.not_before = Some(now.plus_millis(millis));
            return Some(Step::Again(wait));
        }
        if self.candidate >= fallbacks.len() || !another_may_help(error) {
            return None;
        }
        self.because.get_or_insert_with(|| error.to_string());
        self.candidate += 1;
        (self.tries, self.ticket, self.not_before) = (0, None, None);
        Some(Step::Instead)
    }

    /// What broke off has to be put on record before the question goes on.
    pub(super) fn interrupted(self, stumble: Stumble, now: Time) -> Failed {
        Failed {
            error: stumble.error,
            attempts: self.attempts,
            total_ms: self.millis(now),
            broken: stumble.broken.map(|broken| *broken),
            go_on: Some(self),
            again_at: None,
        }
    }

    /// The question is given up, at least for now.
    ///
    /// What time may cure is reported before what only a person can: a run goes
    /// on by itself when the first provider is back, whatever is wrong with the
    /// others.
    pub(super) fn failed(self, stumble: Stumble, now: Time) -> Failed {
        let total_ms = self.millis(now);
        let broken = stumble.broken.map(|broken| *broken);
        let attempts = self.attempts;
        let is_final = self.candidate == 0 || stumble.error == ModelError::Cancelled;
        let (error, again_at) = match self.curable {
            Some((error, again_at)) if !is_final => (error, again_at),
            _ => (stumble.error, stumble.again_at),
        };
        Failed {
            error,
            attempts,
            total_ms,
            broken,
            go_on: None,
            again_at,
        }
    }

    /// Milliseconds since the question was first asked.
    pub(super) fn millis(&self, now: Time) -> u64 {
        now.millis_since(self.begun).max(0).unsigned_abs()
    }
}

/// Whether waiting may help.
fn is_curable(error: &ModelError) -> bool {
    match error {
        ModelError::Transient { .. }
        | ModelError::RateLimited { .. }
        | ModelError::Degraded { .. } => true,
        ModelError::Permanent { .. }
        | ModelError::UserFixable { .. }
        | ModelError::Overrun { .. }
        | ModelError::Cancelled => false,
    }
}

/// Whether another model may answer where this error came from one.
fn another_may_help(error: &ModelError) -> bool {
    is_curable(error) || matches!(error, ModelError::UserFixable { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transient() -> ModelError {
        ModelError::Transient {
            provider: "a".into(),
            what: "reset".into(),
        }
    }

    fn fixable() -> ModelError {
        ModelError::UserFixable {
            provider: "b".into(),
            what: "no key".into(),
            hint: "set it".into(),
        }
    }

    fn step(course: &mut Course, error: ModelError, fallbacks: &[String]) -> Option<Step> {
        course.begin();
        course.after(&error.into(), &Retry::default(), fallbacks, Time(0), 0)
    }

    #[test]
    fn three_tries_at_one_model_then_the_next_and_then_nothing() {
        let mut course = Course::new(Time(0));
        let fallbacks = ["b/two".to_owned()];
        let mut steps = Vec::new();
        while let Some(step) = step(&mut course, transient(), &fallbacks) {
            steps.push((step, course.candidate()));
        }
        let again = |millis| Step::Again(Duration::from_millis(millis));
        assert_eq!(
            steps,
            [
                (again(500), 0),
                (again(1000), 0),
                (Step::Instead, 1),
                (again(500), 1),
                (again(1000), 1),
            ]
        );
        assert_eq!(course.attempts(), 6);
        assert_eq!(course.because(), Some("a: reset".into()));
    }

    #[test]
    fn a_provider_that_is_known_to_be_down_is_not_tried_again() {
        let mut course = Course::new(Time(0));
        let stumble = Stumble {
            is_refused: true,
            ..transient().into()
        };
        let after = course.after(&stumble, &Retry::default(), &[], Time(0), 0);
        assert_eq!(after, None);
    }

    #[test]
    fn what_time_may_cure_is_reported_before_what_only_a_person_can() {
        let mut course = Course::new(Time(0));
        let fallbacks = ["b/two".to_owned()];
        let down = Stumble {
            again_at: Some(Time(30_000)),
            is_refused: true,
            ..transient().into()
        };
        let after = course.after(&down, &Retry::default(), &fallbacks, Time(0), 0);
        assert_eq!(after, Some(Step::Instead));
        assert_eq!(step(&mut course, fixable(), &fallbacks), None);
        let failed = course.failed(fixable().into(), Time(5));
        assert_eq!(
            (failed.error, failed.again_at),
            (transient(), Some(Time(30_000)))
        );
        // Alone, it is reported as it is.
        let mut alone = Course::new(Time(0));
        assert_eq!(step(&mut alone, fixable(), &[]), None);
        assert_eq!(alone.failed(fixable().into(), Time(5)).error, fixable());
    }
}
