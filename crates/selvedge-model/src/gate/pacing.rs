//! What all calls to one provider share: its health, and its wish for patience.
//!
//! A provider that says 429 says it to the key, not to the call. Whoever asks
//! next waits as well, and the wait grows until an answer comes.
//!
//! With a ledger at hand this is shared by all processes that use it: what changes
//! is appended to a stream. In good health nothing does, so nothing is written. Those
//! who ask look there first, if nobody here has for a moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use selvedge_ledger::{Event, Ledger, LedgerError, NewEvent, Time};
use selvedge_runtime::Clock;
use serde::{Deserialize, Serialize};

use super::breaker::{Admission, Breaker, BreakerOptions, Health, Permit, Recent};
use crate::error::ModelError;
use crate::shared::{Fold, Shared};

/// The first wait after a rate limit without a Retry-After.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// No wait is longer, whatever a provider says.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// What another process found out is known here after so many milliseconds.
const LOOK_EVERY_MILLIS: i64 = 100;

/// The pace of every provider.
pub(super) struct Pacing {
    options: BreakerOptions,
    /// Of accounts that nobody else uses, and of all where no ledger is at hand.
    own: Mutex<Paces>,
    recent: Mutex<BTreeMap<String, Recent>>,
    shared: Option<Shared<Paces>>,
    /// A name that no other process has.
    by: String,
}

/// Whom a provider's limits and troubles concern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    provider: String,
    /// Which place and key, where other processes may use them, too.
    place: Option<String>,
}

impl Account {
    pub(super) fn new(provider: &str, place: Option<&str>) -> Self {
        Self {
            provider: provider.to_owned(),
            place: place.map(str::to_owned),
        }
    }

    fn name(&self) -> String {
        match &self.place {
            Some(place) => format!("{} {place}", self.provider),
            None => self.provider.clone(),
        }
    }
}

/// The pace of every account, by its name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Paces(BTreeMap<String, Pace>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pace {
    breaker: Breaker,
    hold_until: Option<Time>,
    limits_in_a_row: u32,
}

/// `PaceChanged`: what is known of an account from now on.
#[derive(Serialize, Deserialize)]
struct PaceChanged {
    account: String,
    pace: Pace,
    /// Which process found out: what two of them find out at the same moment are two
    /// events, and only one of them is the first.
    by: String,
}

impl Fold for Paces {
    const STREAM: &'static str = "machine#pace";
    const KIND: &'static str = "pace";

    fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        if &*event.kind == "PaceChanged" {
            let PaceChanged { account, pace, .. } = event.decode()?;
            self.0.insert(account, pace);
        }
        Ok(())
    }
}

/// Whether a provider can be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    /// Ask.
    Now(Permit),
    /// It asked for patience until then.
    Patience(Time),
    /// It is down; not before then.
    Down(Time),
}

impl Pacing {
    pub(super) fn new(options: BreakerOptions) -> Self {
        Self {
            options,
            own: Mutex::default(),
            recent: Mutex::default(),
            shared: None,
            by: String::new(),
        }
    }

    /// The same with another idea of when a provider is down.
    pub(super) fn with_options(self, options: BreakerOptions) -> Self {
        Self { options, ..self }
    }

    /// The same, shared by all processes that have `ledger` open.
    pub(super) fn shared(self, ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>) -> Self {
        let mut name = [0; 8];
        getrandom::fill(&mut name).expect("the operating system has randomness");
        Self {
            shared: Some(Shared::new(ledger, clock)),
            by: format!("{:016x}", u64::from_ne_bytes(name)),
            ..self
        }
    }

    /// Whether `account` can be asked now.
    pub(super) async fn go(&self, account: &Account, now: Time) -> Go {
        if let Some(shared) = self.shared_by(account)
            && let Err(error) = shared.look(LOOK_EVERY_MILLIS).await
        {
            warn(&error);
        }
        self.change(account, now, |pace| {
            if let Some(until) = pace.hold_until {
                // A wait longer than any that is asked for: the clock was set back.
                let left = until.millis_since(now);
                if left > 0 && left.unsigned_abs() <= 2 * WAIT_MAX.as_millis() as u64 {
                    return Go::Patience(until);
                }
            }
            match pace.breaker.admit(&self.options, now) {
                Admission::Ask(permit) | Admission::Probe(permit) => Go::Now(permit),
                Admission::Wait(until) => Go::Down(until),
            }
        })
        .await
    }

    /// When `account` can be asked again, if it cannot now.
    pub(super) async fn until(&self, account: &Account, now: Time) -> Option<Time> {
        let until = |pace: &mut Pace| pace.hold_until.max(pace.breaker.open_until());
        let until = self.change(account, now, until).await;
        until.filter(|until| *until > now)
    }

    /// Notes how a call went that was let through. `random` spreads those who were
    /// told to wait. True if the provider counts as down from now on.
    pub(super) async fn note<T>(
        &self,
        account: &Account,
        permit: Permit,
        result: &Result<T, ModelError>,
        now: Time,
        random: u64,
    ) -> bool {
        let (health, limited) = match result {
            Err(ModelError::Transient { .. } | ModelError::Degraded { .. }) => (Health::Down, None),
            Err(ModelError::RateLimited { retry_after, .. }) => (Health::Alive, Some(*retry_after)),
            Ok(_)
            | Err(
                ModelError::Permanent { .. }
                | ModelError::UserFixable { .. }
                | ModelError::Overrun { .. },
            ) => (Health::Alive, None),
            Err(ModelError::Cancelled) => (Health::Unknown, None),
        };
        let is_answer = result.is_ok();
        // Decided anew where another process came first: the call is one call still.
        let mut before = None;
        self.change(account, now, |pace| {
            if is_answer {
                pace.limits_in_a_row = 0;
                pace.hold_until = pace.hold_until.filter(|until| *until > now);
            }
            if let Some(retry_after) = limited {
                let wait = wait(retry_after, pace.limits_in_a_row, random);
                pace.limits_in_a_row = pace.limits_in_a_row.saturating_add(1);
                let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                pace.hold_until = pace.hold_until.max(Some(now.plus_millis(millis)));
            }
            let mut recent = locked(&self.recent);
            let recent = recent.entry(account.name()).or_default();
            *recent = before.get_or_insert_with(|| recent.clone()).clone();
            let Pace { breaker, .. } = pace;
            breaker.record(&self.options, recent, permit, health, now)
        })
        .await
    }

    fn shared_by(&self, account: &Account) -> Option<&Shared<Paces>> {
        self.shared.as_ref().filter(|_| account.place.is_some())
    }

    /// Looks at the pace of an account, and changes it for all who use it.
    async fn change<T: Send>(
        &self,
        account: &Account,
        now: Time,
        mut decide: impl FnMut(&mut Pace) -> T + Send,
    ) -> T {
        let name = account.name();
        if let Some(shared) = self.shared_by(account) {
            let mut decided = None;
            let changed = shared.write(|paces: &Paces| {
                let before = paces.0.get(&name).cloned().unwrap_or_default();
                let mut pace = before.clone();
                decided = Some(decide(&mut pace));
                let changed = (pace != before).then(|| PaceChanged {
                    account: name.clone(),
                    pace,
                    by: self.by.clone(),
                });
                let event = |changed| NewEvent::new("PaceChanged", "gate", now, &changed);
                Ok::<_, LedgerError>(changed.map(event).into_iter().collect())
            });
            match (changed.await, decided) {
                (Ok(()), Some(decided)) => return decided,
                // Better a pace of one's own than no call at all.
                (changed, _) => changed.err().iter().for_each(warn),
            }
        }
        decide(locked(&self.own).0.entry(name).or_default())
    }
}

fn warn(error: &LedgerError) {
    tracing::warn!(%error, "what other processes know of a provider cannot be looked up");
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long everybody waits after a rate limit.
fn wait(asked: Option<Duration>, in_a_row: u32, random: u64) -> Duration {
    let base = asked.unwrap_or_else(|| WAIT_FIRST.saturating_mul(1 << in_a_row.min(16)));
    let base = base.min(WAIT_MAX);
    // Never sooner than asked; spread over a tenth beyond it.
    base + base.mul_f64(0.1 * (random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
#[path = "pacing_tests.rs"]
mod tests;
