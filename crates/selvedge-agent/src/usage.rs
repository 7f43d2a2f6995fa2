//! What was spent, folded from events: the truth behind budgets and reports.

use std::collections::BTreeMap;

use selvedge_ledger::{Event, LedgerError};
use selvedge_model::{Spend, Usage, Usd};
use selvedge_runtime::{BudgetRaised, EffectId, Finished, Started, Unfinished};
use serde::{Deserialize, Serialize};

use crate::call::{ModelOutcome, Reserved};

/// What was spent, by agent and model.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    /// By agent and model.
    pub rows: BTreeMap<(String, String), Row>,
    /// Reserved for calls that were begun and whose end is not on record.
    open: BTreeMap<(String, EffectId), (Spend, String)>,
    /// What such calls may have cost: counted until the truth is known.
    lost: Spend,
    /// The highest limit in dollars that somebody set later.
    pub raised_usd: Option<f64>,
}

/// What one agent spent on one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Model calls.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Dollars, as far as prices are known.
    pub cost: Usd,
    /// Calls whose price is unknown.
    pub unpriced: u64,
}

#[derive(Deserialize)]
struct What {
    agent: String,
}

impl Spending {
    /// Folds an event of any stream in.
    pub fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        let key = |effect: &EffectId| (event.stream.to_string(), effect.clone());
        match &*event.kind {
            "ModelCallStarted" => {
                let started: Started = event.decode()?;
                let reserved: Reserved =
                    serde_json::from_value(started.evidence).unwrap_or_default();
                let what: Option<What> = serde_json::from_value(started.what).ok();
                let agent = what.map(|w| w.agent).unwrap_or_default();
                let opened = self
                    .open
                    .insert(key(&started.effect), (reserved.reserved, agent));
                // An attempt that a crash cut off may have been paid for.
                if let Some((reserved, _)) = opened {
                    self.lost = self.lost + reserved;
                }
            }
            "ModelCallInterrupted" => {
                self.open
                    .remove(&key(&event.decode::<Unfinished>()?.effect));
            }
            "ModelCallFinished" => {
                let finished: Finished<ModelOutcome> = event.decode()?;
                let opened = self.open.remove(&key(&finished.effect));
                if let ModelOutcome::Answered { response, cost, .. } = finished.outcome {
                    let agent = opened.map(|(_, agent)| agent).unwrap_or_default();
                    let row = self.rows.entry((agent, response.model)).or_default();
                    row.calls += 1;
                    row.usage = row.usage + response.usage;
                    row.cost = row.cost + cost.unwrap_or_default();
                    row.unpriced += u64::from(cost.is_none());
                }
            }
            "BudgetRaised" => {
                let usd = event.decode::<BudgetRaised>()?.usd;
                self.raised_usd = [usd, self.raised_usd]
                    .into_iter()
                    .flatten()
                    .reduce(f64::max);
            }
            _ => {}
        }
        Ok(())
    }

    /// Everything spent on record.
    pub fn total(&self) -> Row {
        self.rows.values().fold(Row::default(), |a, b| Row {
            calls: a.calls + b.calls,
            usage: a.usage + b.usage,
            cost: a.cost + b.cost,
            unpriced: a.unpriced + b.unpriced,
        })
    }

    /// What a budget must count: what is on record, and the reservations of
    /// calls whose end is not.
    pub fn worst(&self) -> Spend {
        let spent = self.rows.values().fold(Spend::default(), |sum, row| {
            sum + Spend {
                usd: row.cost,
                tokens: row.usage.input + row.usage.output,
                calls: row.calls,
                unpriced: row.unpriced,
            }
        });
        self.open
            .values()
            .fold(spent + self.lost, |sum, (reserved, _)| sum + *reserved)
    }

    /// Dollars that calls without a recorded end may have cost.
    pub fn in_doubt(&self) -> Usd {
        self.open
            .values()
            .fold(self.lost, |sum, (reserved, _)| sum + *reserved)
            .usd
    }
}
