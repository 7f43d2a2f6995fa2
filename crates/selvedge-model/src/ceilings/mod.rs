//! Ceilings: what all sessions of a machine may spend together, by the day, the
//! week or the month.
//!
//! Processes do not know one another, so what is held and spent is a stream of
//! the ledger they share. A call is held by appending to it at the place where the
//! decision was made: if another process came first, the append is refused and the
//! decision made anew. That is exact however many processes there are, and works
//! on every ledger. Nothing of it happens unless a limit is set.
//!
//! A crash leaves its reservation held. When its call is made again, the attempt
//! that nobody heard of counts as spent in full.

mod account;
mod period;
mod rule;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use selvedge_ledger::{
    Event, Hash, Ledger, LedgerError, NewEvent, NewStream, Pen, Seq, Snapshot, StreamId, Sync, Time,
};
use selvedge_runtime::Clock;
use tokio::sync::Mutex;

pub use account::{CallName, Past};
pub use period::Period;
pub use rule::{Allowance, Rule, Strength};

use self::account::{Account, AllowanceReached, SpendingHeld, SpendingSettled};
use crate::gate::{BudgetError, Spend};

const STREAM: &str = "machine#ceilings";
/// The stream is nobody's child and no session either.
const PARENT: &str = "machine";
/// A snapshot is worth its bytes after this many events.
const SNAPSHOT_EVERY: Seq = 1000;
/// A crowd in which everybody else comes first this often is not to be waited for.
const TRIES_MAX: u32 = 1000;

/// What all sessions may spend together.
pub struct Ceilings {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    zone: TimeZone,
    rules: Vec<Rule>,
    state: Mutex<Option<State>>,
}

/// The stream as far as it is known here.
struct State {
    account: Account,
    head: (Seq, Hash),
    snapshot_at: Seq,
    /// What people here have been told, or need not be.
    told: BTreeSet<AllowanceReached>,
}

/// Why a call was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum CeilingError {
    /// A ceiling is in the way; it is lifted at `until`.
    #[error("{error}")]
    Reached {
        /// Which, and by how much.
        #[source]
        error: BudgetError,
        /// When the period ends.
        until: Time,
    },
    /// What is spent cannot be looked up.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Ceilings {
    /// The limits that `rules` set, in days of `zone`; `None` if they set none.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
        zone: TimeZone,
        rules: Vec<Rule>,
    ) -> Option<Self> {
        let rules: Vec<Rule> = rules.into_iter().filter(Rule::limits).collect();
        (!rules.is_empty()).then(|| Self {
            ledger,
            clock,
            zone,
            rules,
            state: Mutex::default(),
        })
    }

    /// From when on past spending matters to a limit; `None` once it is counted.
    pub async fn past_wanted(&self) -> Result<Option<Time>, LedgerError> {
        let mut state = self.state.lock().await;
        let is_new = self.known(&mut state).await?.head.0 == 0;
        let now = self.clock.now();
        let starts = self
            .rules
            .iter()
            .map(|rule| rule.period.span(now, &self.zone).0);
        Ok(starts.min().filter(|_| is_new))
    }

    /// Counts what was spent before any limit was set.
    pub async fn begin(&self, past: &[Past]) -> Result<(), LedgerError> {
        let mut state = self.state.lock().await;
        let begun = self.write(&mut state, |state| {
            // Somebody else may have begun it meanwhile.
            let is_new = state.head.0 == 0;
            let past = past.iter().filter(|_| is_new);
            Ok::<_, LedgerError>(
                past.map(|past| self.event("SpendingBrought", past))
                    .collect(),
            )
        });
        begun.await
    }

    /// Holds `amount` for a call that one of `providers` will answer. Returns what
    /// people should be told.
    pub async fn hold(
        &self,
        call: &CallName,
        providers: &[String],
        amount: Spend,
    ) -> Result<Vec<String>, CeilingError> {
        let mut state = self.state.lock().await;
        let decide = |state: &State| {
            let (now, account) = (self.clock.now(), &state.account);
            let hard = self.rules.iter().filter(|rule| rule.is_hard());
            for rule in hard.filter(|rule| rule.concerns(providers)) {
                let (since, until) = rule.period.span(now, &self.zone);
                rule.check(
                    account.spent(rule, since),
                    account.held(rule, since),
                    amount,
                )
                .map_err(|error| CeilingError::Reached { error, until })?;
            }
            let lost = account.lost_before(call);
            let lost = lost.map(|lost| self.event("SpendingSettled", &lost));
            let held = SpendingHeld {
                call: call.clone(),
                providers: providers.to_vec(),
                amount,
            };
            let held = self.event("SpendingHeld", &held);
            Ok::<_, CeilingError>(lost.chain([held]).collect())
        };
        self.write(&mut state, decide).await?;
        Ok(self.warnings(&mut state))
    }

    /// The call is over: `provider` answered, and it cost `spend`. Returns what
    /// people should be told.
    pub async fn settle(
        &self,
        call: &CallName,
        provider: &str,
        spend: Spend,
    ) -> Result<Vec<String>, LedgerError> {
        let mut state = self.state.lock().await;
        self.write(&mut state, |state| {
            let Some(begun) = state.account.begun(call) else {
                return Ok::<_, LedgerError>(Vec::new());
            };
            let settled = SpendingSettled {
                call: call.clone(),
                provider: provider.to_owned(),
                spend,
            };
            let reached = self.reached(&state.account, begun, provider, spend);
            let reached = reached.map(|reached| self.event("AllowanceReached", &reached));
            let settled = self.event("SpendingSettled", &settled);
            Ok([settled].into_iter().chain(reached).collect())
        })
        .await?;
        Ok(self.warnings(&mut state))
    }

    /// The soft limits that come near or are over with what was just spent, and
    /// that nobody was told of.
    fn reached<'a>(
        &'a self,
        account: &'a Account,
        begun: Time,
        provider: &'a str,
        spend: Spend,
    ) -> impl Iterator<Item = AllowanceReached> + 'a {
        let now = self.clock.now();
        let soft = self.rules.iter().filter_map(move |rule| {
            let (since, _) = rule.period.span(now, &self.zone);
            let counts = begun >= since && rule.covers(provider);
            let new = if counts { spend } else { Spend::default() };
            Some(AllowanceReached {
                rule: rule.name(),
                since,
                level: rule.level(account.spent(rule, since) + new)?,
            })
        });
        soft.filter(|reached| !account.is_told(reached))
    }

    /// What was reached since somebody here was last told.
    fn warnings(&self, state: &mut Option<State>) -> Vec<String> {
        let Some(state) = state else {
            return Vec::new();
        };
        let mut warnings = Vec::new();
        for reached in state.account.told() {
            if state.told.insert(reached.clone()) {
                let rule = self.rules.iter().find(|rule| rule.name() == reached.rule);
                let spent = |rule: &Rule| state.account.spent(rule, reached.since);
                warnings.extend(rule.map(|rule| rule.warning(reached.level, spent(rule))));
            }
        }
        warnings
    }

    fn event<T: serde::Serialize>(&self, kind: &'static str, data: &T) -> NewEvent {
        NewEvent::new(kind, "gate", self.clock.now(), data)
    }

    /// Appends what `decide` makes of the stream as it is. Decides again when
    /// another process came first.
    async fn write<E: From<LedgerError>>(
        &self,
        known: &mut Option<State>,
        decide: impl Fn(&State) -> Result<Vec<NewEvent>, E>,
    ) -> Result<(), E> {
        for _ in 0..TRIES_MAX {
            let state = self.known(known).await?;
            let events = decide(state)?;
            if events.is_empty() && state.head.0 > 0 {
                return Ok(());
            }
            let mut pen = self.pen(state.head);
            // Nothing of it can be lost that the call itself would not be.
            let written = events.into_iter().map(|e| pen.write(e, Sync::Later));
            let written: Vec<Event> = written.collect();
            match pen.flush(&*self.ledger).await {
                Ok(()) => {
                    written.iter().try_for_each(|e| state.account.apply(e))?;
                    state.head = pen.head();
                    self.keep(state).await;
                    return Ok(());
                }
                Err(LedgerError::Conflict { .. }) => self.catch_up(state).await?,
                Err(error) => {
                    // Whether it happened is unknown: look again next time.
                    *known = None;
                    return Err(error.into());
                }
            }
        }
        let why = format!("{TRIES_MAX} other writers came first");
        Err(LedgerError::Unavailable { why }.into())
    }

    fn pen(&self, head: (Seq, Hash)) -> Pen {
        let stream = StreamId::new(STREAM);
        if head.0 > 0 {
            return Pen::at(stream, head.0, head.1, None);
        }
        let new = NewStream {
            kind: "ceilings".into(),
            parent: Some(StreamId::new(PARENT)),
        };
        Pen::open(stream, new, "gate", self.clock.now(), None)
    }

    /// The stream as it was when somebody last looked.
    async fn known<'a>(&self, known: &'a mut Option<State>) -> Result<&'a mut State, LedgerError> {
        if known.is_none() {
            let mut state = State {
                account: Account::default(),
                head: (0, Hash::ZERO),
                snapshot_at: 0,
                told: BTreeSet::new(),
            };
            let stream = StreamId::new(STREAM);
            if let Some(kept) = self.ledger.snapshot(&stream).await?
                && let Ok(account) = serde_json::from_str(kept.state.get())
            {
                let Snapshot { seq, hash, .. } = kept;
                (state.account, state.head, state.snapshot_at) = (account, (seq, hash), seq);
            }
            if self.catch_up(&mut state).await.is_err() {
                // A snapshot of another history.
                (state.account, state.head) = (Account::default(), (0, Hash::ZERO));
                self.catch_up(&mut state).await?;
            }
            // What was reached before is no news.
            state.told.extend(state.account.told().cloned());
            *known = Some(state);
        }
        Ok(known.as_mut().expect("just filled"))
    }

    /// Folds what others have appended.
    async fn catch_up(&self, state: &mut State) -> Result<(), LedgerError> {
        let stream = StreamId::new(STREAM);
        if self.ledger.stream(&stream).await?.is_none() {
            return Ok(());
        }
        for event in self.ledger.read(&stream, state.head.0).await? {
            state.account.apply(&event)?;
            state.head = (event.seq, event.hash);
        }
        Ok(())
    }

    async fn keep(&self, state: &mut State) {
        if state.head.0 < state.snapshot_at + SNAPSHOT_EVERY {
            return;
        }
        state.snapshot_at = state.head.0;
        let account = serde_json::value::to_raw_value(&state.account).expect("plain data");
        let snapshot = Snapshot {
            seq: state.head.0,
            hash: state.head.1,
            state: Arc::from(account),
        };
        // A cache that cannot be written costs time later, and nothing now.
        let _ = self
            .ledger
            .put_snapshot(&StreamId::new(STREAM), snapshot)
            .await;
    }
}

#[cfg(test)]
mod tests;
