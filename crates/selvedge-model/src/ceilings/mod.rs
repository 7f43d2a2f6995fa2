//! Ceilings: what all sessions of a machine may spend together, by the day, the
//! week or the month.
//!
//! What is held and spent is a stream of the ledger that all processes share
//! (`shared`), and a call is admitted by appending to it: two processes never pass on
//! the same remainder. Nothing of it happens unless a limit is set.
//!
//! A crash leaves its reservation held. When its call is made again, the attempt
//! that nobody heard of counts as spent in full.

mod account;
mod period;
mod rule;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use selvedge_ledger::{Ledger, LedgerError, NewEvent, Time};
use selvedge_runtime::Clock;

pub use account::{CallName, Past};
pub use period::Period;
pub use rule::{Allowance, Rule, Strength};

use self::account::{Account, AllowanceReached, SpendingHeld, SpendingSettled};
use crate::gate::{BudgetError, Spend};
use crate::shared::Shared;

/// What all sessions may spend together.
pub struct Ceilings {
    clock: Arc<dyn Clock>,
    zone: TimeZone,
    rules: Vec<Rule>,
    account: Shared<Account>,
    /// What people here have been told, or need not be; absent until it was looked up.
    told: Mutex<Option<BTreeSet<AllowanceReached>>>,
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
            account: Shared::new(ledger, clock.clone()),
            clock,
            zone,
            rules,
            told: Mutex::default(),
        })
    }

    /// Whether a call that one of `providers` answers must not grow beyond what was
    /// set aside for it.
    pub fn bound(&self, providers: &[String]) -> bool {
        let hard = self.rules.iter().filter(|rule| rule.is_hard());
        let mut concerned = hard.filter(|rule| rule.concerns(providers));
        concerned.any(Rule::limits_amounts)
    }

    /// From when on past spending matters to a limit; `None` once it is counted.
    pub async fn past_wanted(&self) -> Result<Option<Time>, LedgerError> {
        let is_new = self.account.with(|_, is_new| is_new).await?;
        let now = self.clock.now();
        let starts = self
            .rules
            .iter()
            .map(|rule| rule.period.span(now, &self.zone).0);
        Ok(starts.min().filter(|_| is_new))
    }

    /// Counts what was spent before any limit was set.
    pub async fn begin(&self, past: &[Past]) -> Result<(), LedgerError> {
        let brought = || {
            let past = past.iter();
            past.map(|past| self.event("SpendingBrought", past))
                .collect()
        };
        self.account.begin(brought).await
    }

    /// Holds `amount` for a call that one of `providers` will answer. Returns what
    /// people should be told.
    pub async fn hold(
        &self,
        call: &CallName,
        providers: &[String],
        amount: Spend,
    ) -> Result<Vec<String>, CeilingError> {
        self.remember().await?;
        let decide = |account: &Account| {
            let now = self.clock.now();
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
        self.account.write(decide).await?;
        Ok(self.warnings().await?)
    }

    /// The call is over: `provider` answered, and it cost `spend`. Returns what
    /// people should be told.
    pub async fn settle(
        &self,
        call: &CallName,
        provider: &str,
        spend: Spend,
    ) -> Result<Vec<String>, LedgerError> {
        self.remember().await?;
        let decide = |account: &Account| {
            let Some(begun) = account.begun(call) else {
                return Ok::<_, LedgerError>(Vec::new());
            };
            let settled = SpendingSettled {
                call: call.clone(),
                provider: provider.to_owned(),
                spend,
            };
            let reached = self.reached(account, begun, provider, spend);
            let reached = reached.map(|reached| self.event("AllowanceReached", &reached));
            let settled = self.event("SpendingSettled", &settled);
            Ok([settled].into_iter().chain(reached).collect())
        };
        self.account.write(decide).await?;
        self.warnings().await
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

    /// What was reached before this process looked is no news to anybody here.
    async fn remember(&self) -> Result<(), LedgerError> {
        let account = &self.account;
        account
            .with(|account, _| {
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                told.get_or_insert_with(|| account.told().cloned().collect());
            })
            .await
    }

    /// What was reached since somebody here was last told.
    async fn warnings(&self) -> Result<Vec<String>, LedgerError> {
        let tell = |account: &Account, _| {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let told = told.get_or_insert_default();
            let news = account
                .told()
                .filter(|reached| told.insert((*reached).clone()));
            let warnings = news.filter_map(|reached| {
                let rule = self.rules.iter().find(|rule| rule.name() == reached.rule)?;
                Some(rule.warning(reached.level, account.spent(rule, reached.since)))
            });
            warnings.collect()
        };
        self.account.with(tell).await
    }

    fn event<T: serde::Serialize>(&self, kind: &'static str, data: &T) -> NewEvent {
        NewEvent::new(kind, "gate", self.clock.now(), data)
    }
}

#[cfg(test)]
mod tests;
