//! What was spent, folded from events: the truth behind budgets and reports.

use std::collections::BTreeMap;
use std::ops::Add;

use selvedge_ledger::{Event, LedgerError, Time};
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
    open: BTreeMap<(String, EffectId), Begun>,
    /// Attempts that a crash cut off: counted until the truth is known.
    lost: Vec<Begun>,
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

/// A model call that began.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Who asked.
    pub agent: String,
    /// Whom.
    pub model: String,
    /// When.
    pub time: Time,
    /// What was reserved for it.
    pub reserved: Spend,
}

/// What one model call cost.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Who asked.
    pub agent: String,
    /// Who answered.
    pub model: String,
    /// When it ended.
    pub time: Time,
    /// One call.
    pub row: Row,
}

#[derive(Default, Deserialize)]
struct What {
    #[serde(default)]
    agent: String,
    #[serde(default)]
    model: String,
}

impl Add for Row {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            usage: self.usage + other.usage,
            cost: self.cost + other.cost,
            unpriced: self.unpriced + other.unpriced,
        }
    }
}

impl Spending {
    /// Folds an event of any stream in.
    pub fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        self.charge(event).map(drop)
    }

    /// Folds an event in; returns what it charged for.
    pub fn charge(&mut self, event: &Event) -> Result<Option<Charge>, LedgerError> {
        let key = |effect: &EffectId| (event.stream.to_string(), effect.clone());
        match &*event.kind {
            "ModelCallStarted" => {
                let started: Started = event.decode()?;
                let reserved: Reserved =
                    serde_json::from_value(started.evidence).unwrap_or_default();
                let what: What = serde_json::from_value(started.what).unwrap_or_default();
                let begun = Begun {
                    agent: what.agent,
                    model: what.model,
                    time: event.time,
                    reserved: reserved.reserved,
                };
                // An attempt that a crash cut off may have been paid for.
                let cut_off = self.open.insert(key(&started.effect), begun);
                self.lost.extend(cut_off);
            }
            "ModelCallInterrupted" => {
                self.open
                    .remove(&key(&event.decode::<Unfinished>()?.effect));
            }
            "ModelCallFinished" => {
                let finished: Finished<ModelOutcome> = event.decode()?;
                let opened = self.open.remove(&key(&finished.effect));
                if let ModelOutcome::Answered { response, cost, .. } = finished.outcome {
                    let agent = opened.map(|begun| begun.agent).unwrap_or_default();
                    let model = response.model;
                    let row = Row {
                        calls: 1,
                        usage: response.usage,
                        cost: cost.unwrap_or_default(),
                        unpriced: u64::from(cost.is_none()),
                    };
                    let sum = self.rows.entry((agent.clone(), model.clone())).or_default();
                    *sum = *sum + row;
                    let time = event.time;
                    return Ok(Some(Charge {
                        agent,
                        model,
                        time,
                        row,
                    }));
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
        Ok(None)
    }

    /// Everything spent on record.
    pub fn total(&self) -> Row {
        self.rows.values().fold(Row::default(), |a, b| a + *b)
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
        let in_doubt = self.in_doubt();
        in_doubt.fold(spent, |sum, begun| sum + begun.reserved)
    }

    /// The calls without a recorded end: they may have cost what was reserved.
    pub fn in_doubt(&self) -> impl Iterator<Item = &Begun> {
        self.lost.iter().chain(self.open.values())
    }
}
