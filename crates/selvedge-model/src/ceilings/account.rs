//! What is held and spent, folded from the events of the shared stream.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_ledger::{Event, LedgerError, Time};
use serde::{Deserialize, Serialize};

use super::rule::{Level, Rule};
use crate::gate::Spend;
use crate::shared::Fold;

/// Spending is summed by the quarter of an hour: every time zone's midnight is at
/// the end of one.
const BUCKET_MILLIS: i64 = 15 * 60 * 1000;
/// No period is longer.
const KEPT_MILLIS: i64 = 32 * 24 * 60 * 60 * 1000;

/// Names one attempt at one call, the same in every process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallName {
    /// The call: its stream and its effect.
    pub call: String,
    /// Which attempt.
    pub attempt: u32,
}

/// `SpendingBrought`: something that was spent before it was counted here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Past {
    /// At which provider.
    pub provider: String,
    /// When.
    pub time: Time,
    /// How much.
    pub spend: Spend,
}

/// `SpendingHeld`: the worst case of a call that begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SpendingHeld {
    pub(super) call: CallName,
    /// Those that may answer.
    pub(super) providers: Vec<String>,
    pub(super) amount: Spend,
}

/// `SpendingSettled`: what it came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SpendingSettled {
    pub(super) call: CallName,
    pub(super) provider: String,
    pub(super) spend: Spend,
}

/// `AllowanceReached`: people have to be told of a soft limit, once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct AllowanceReached {
    pub(super) rule: String,
    pub(super) since: Time,
    pub(super) level: Level,
}

/// The fold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Account {
    /// By provider, then by time.
    spent: BTreeMap<String, BTreeMap<i64, Spend>>,
    open: Vec<Open>,
    told: BTreeSet<AllowanceReached>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    held: SpendingHeld,
    time: Time,
}

impl Fold for Account {
    const STREAM: &'static str = "machine#ceilings";
    const KIND: &'static str = "ceilings";

    fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "SpendingHeld" => {
                let held = event.decode()?;
                let time = event.time;
                self.open.push(Open { held, time });
            }
            "SpendingSettled" => self.settle(&event.decode()?),
            "SpendingBrought" => {
                let past: Past = event.decode()?;
                self.spend(&past.provider, past.time, past.spend);
            }
            "AllowanceReached" => drop(self.told.insert(event.decode()?)),
            _ => {}
        }
        Ok(())
    }
}

impl Account {
    /// Counts what a call came to, in the period in which it began: that is the
    /// one it was admitted to.
    pub(super) fn settle(&mut self, settled: &SpendingSettled) {
        let at = self.open.iter().position(|o| o.held.call == settled.call);
        if let Some(at) = at {
            let open = self.open.swap_remove(at);
            self.spend(&settled.provider, open.time, settled.spend);
        }
    }

    fn spend(&mut self, provider: &str, time: Time, spend: Spend) {
        if spend == Spend::default() {
            return;
        }
        let oldest = bucket(time.plus_millis(-KEPT_MILLIS));
        self.told.retain(|told| told.since.0 >= oldest);
        self.open.retain(|open| open.time.0 >= oldest);
        let buckets = self.spent.entry(provider.to_owned()).or_default();
        while buckets
            .first_key_value()
            .is_some_and(|(at, _)| *at < oldest)
        {
            buckets.pop_first();
        }
        let sum = buckets.entry(bucket(time)).or_default();
        *sum = *sum + spend;
    }

    /// Attempts at the same call that nobody heard of again: they count in full.
    pub(super) fn lost_before(&self, call: &CallName) -> impl Iterator<Item = SpendingSettled> {
        let lost = self.open.iter().filter(|open| {
            let other = &open.held.call;
            other.call == call.call && other.attempt <= call.attempt
        });
        lost.map(|open| SpendingSettled {
            call: open.held.call.clone(),
            provider: open.held.providers.first().cloned().unwrap_or_default(),
            spend: open.held.amount,
        })
    }

    /// When a call began that is under way.
    pub(super) fn begun(&self, call: &CallName) -> Option<Time> {
        let open = self.open.iter().find(|open| open.held.call == *call);
        open.map(|open| open.time)
    }

    /// What was spent under a rule since a moment.
    pub(super) fn spent(&self, rule: &Rule, since: Time) -> Spend {
        let buckets = self.spent.iter().filter(|(p, _)| rule.covers(p));
        let since = buckets.flat_map(|(_, buckets)| buckets.range(since.0..));
        since.fold(Spend::default(), |sum, (_, spend)| sum + *spend)
    }

    /// What calls that began since a moment, and whose end is not known, may come
    /// to under a rule.
    pub(super) fn held(&self, rule: &Rule, since: Time) -> Spend {
        let open = self
            .open
            .iter()
            .filter(|o| o.time >= since && rule.concerns(&o.held.providers));
        open.fold(Spend::default(), |sum, open| sum + open.held.amount)
    }

    pub(super) fn is_told(&self, reached: &AllowanceReached) -> bool {
        self.told.contains(reached)
    }

    pub(super) fn told(&self) -> impl Iterator<Item = &AllowanceReached> {
        self.told.iter()
    }
}

fn bucket(time: Time) -> i64 {
    time.0.div_euclid(BUCKET_MILLIS) * BUCKET_MILLIS
}
