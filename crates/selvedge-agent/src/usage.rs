//! What was spent, folded from events: the truth behind budgets and reports.

use std::collections::BTreeMap;
use std::ops::Add;

use selvedge_ledger::{Event, LedgerError, Time};
use selvedge_model::{Broken, Spend, Usage, Usd};
use selvedge_runtime::{BudgetRaised, EffectId, Finished, Started, Unfinished};
use serde::{Deserialize, Serialize};

use crate::call::{ModelOutcome, Reserved};
use crate::offers::SchemaTokens;

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
    /// The highest limit in tokens that somebody set later.
    pub raised_tokens: Option<u64>,
}

/// What one agent spent on one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Model calls that were answered.
    pub calls: u64,
    /// Attempts that broke off after they had begun to answer.
    pub broken: u64,
    /// Answers that were kept and given again, at no cost.
    pub cached: u64,
    /// Tokens, as providers count them, and as `estimated` where they did not get to.
    pub usage: Usage,
    /// Dollars, as far as prices are known.
    pub cost: Usd,
    /// Calls and broken attempts whose price is unknown.
    pub unpriced: u64,
    /// Calls whose provider counted no tokens: theirs, and so their cost, are estimated.
    pub uncounted: u64,
    /// Tokens of tool schemas, where not all tools were at hand.
    pub schemas: SchemaTokens,
    /// What of it is estimated.
    pub estimated: Estimated,
    /// How long answers took.
    pub latency: Latency,
}

/// What of a sum is estimated: attempts whose provider did not get to say what they
/// used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Estimated {
    /// So many attempts.
    pub attempts: u64,
    /// So much of the cost.
    pub cost: Usd,
    /// They may have cost so much more.
    pub more: Usd,
    /// They may have used so many tokens more.
    pub more_tokens: u64,
}

/// How long answers took, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Milliseconds to their first words.
    pub first_token_ms: u64,
    /// Milliseconds to their ends, waits included.
    pub total_ms: u64,
}

impl Row {
    /// Whether nothing of it has a known price.
    pub fn is_unpriced(&self) -> bool {
        self.unpriced > 0 && self.unpriced == self.calls + self.broken
    }

    /// Whether some of it is estimated and not counted.
    pub fn is_estimated(&self) -> bool {
        self.estimated.attempts > 0 || self.uncounted > 0
    }

    /// What a budget counts of it: where something is estimated, the most it can be.
    pub fn spend(&self) -> Spend {
        Spend {
            usd: self.cost + self.estimated.more,
            tokens: self.usage.total() + self.estimated.more_tokens,
            calls: self.calls,
            unpriced: self.unpriced,
        }
    }

    fn broken(broken: &Broken) -> Self {
        let cost = broken.cost.unwrap_or_default();
        let more = broken.spend().saturating_sub(broken.likely());
        let estimated = Estimated {
            attempts: 1,
            cost,
            more: more.usd,
            more_tokens: more.tokens,
        };
        Self {
            broken: 1,
            usage: broken.usage,
            cost,
            unpriced: u64::from(broken.cost.is_none()),
            estimated: match broken.is_counted {
                true => Estimated::default(),
                false => estimated,
            },
            ..Self::default()
        }
    }
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
    /// Tokens of the tool schemas it carried, where not all tools were at hand.
    pub schemas: SchemaTokens,
}

/// What one model call, or one attempt that broke off, cost.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Who asked.
    pub agent: String,
    /// Who answered.
    pub model: String,
    /// When it ended.
    pub time: Time,
    /// One call, or one attempt.
    pub row: Row,
}

#[derive(Default, Deserialize)]
struct What {
    #[serde(default)]
    agent: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    schema_tokens: SchemaTokens,
}

impl Add for Row {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            broken: self.broken + other.broken,
            cached: self.cached + other.cached,
            usage: self.usage + other.usage,
            cost: self.cost + other.cost,
            unpriced: self.unpriced + other.unpriced,
            uncounted: self.uncounted + other.uncounted,
            schemas: self.schemas + other.schemas,
            estimated: self.estimated + other.estimated,
            latency: self.latency + other.latency,
        }
    }
}

impl Add for Estimated {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            attempts: self.attempts + other.attempts,
            cost: self.cost + other.cost,
            more: self.more + other.more,
            more_tokens: self.more_tokens + other.more_tokens,
        }
    }
}

impl Add for Latency {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            first_token_ms: self.first_token_ms + other.first_token_ms,
            total_ms: self.total_ms + other.total_ms,
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
                    schemas: what.schema_tokens,
                };
                // An attempt that a crash cut off may have been paid for.
                let cut_off = self.open.insert(key(&started.effect), begun);
                self.lost.extend(cut_off);
            }
            "ModelCallInterrupted" => {
                let ended: Unfinished<ModelOutcome> = event.decode()?;
                let begun = self.open.remove(&key(&ended.effect));
                return Ok(ended.left.and_then(|left| self.book(event, begun, left)));
            }
            "ModelCallFinished" => {
                let ended: Finished<ModelOutcome> = event.decode()?;
                let begun = self.open.remove(&key(&ended.effect));
                return Ok(self.book(event, begun, ended.outcome));
            }
            "BudgetRaised" => {
                let BudgetRaised { usd, tokens, .. } = event.decode()?;
                self.raised_tokens = self.raised_tokens.max(tokens);
                self.raised_usd = [usd, self.raised_usd]
                    .into_iter()
                    .flatten()
                    .reduce(f64::max);
            }
            _ => {}
        }
        Ok(None)
    }

    /// Puts what came of a call under who asked and who answered.
    fn book(
        &mut self,
        event: &Event,
        begun: Option<Begun>,
        outcome: ModelOutcome,
    ) -> Option<Charge> {
        let (model, mut row) = match outcome {
            ModelOutcome::Answered {
                response,
                cached: true,
                ..
            } => {
                let row = Row {
                    cached: 1,
                    ..Row::default()
                };
                (response.model, row)
            }
            ModelOutcome::Answered {
                response,
                cost,
                first_token_ms,
                total_ms,
                ..
            } => {
                let row = Row {
                    calls: 1,
                    usage: response.usage,
                    cost: cost.unwrap_or_default(),
                    unpriced: u64::from(cost.is_none()),
                    uncounted: u64::from(response.usage.is_estimated),
                    latency: Latency {
                        first_token_ms,
                        total_ms,
                    },
                    ..Row::default()
                };
                (response.model, row)
            }
            ModelOutcome::BrokenOff(broken) => (broken.model.clone(), Row::broken(&broken)),
            ModelOutcome::Failed { broken, .. } => {
                let broken = broken?;
                (broken.model.clone(), Row::broken(&broken))
            }
        };
        let (agent, schemas) = begun.map(|b| (b.agent, b.schemas)).unwrap_or_default();
        // What was given again was not sent.
        if row.cached == 0 {
            row.schemas = schemas;
        }
        let sum = self.rows.entry((agent.clone(), model.clone())).or_default();
        *sum = *sum + row;
        Some(Charge {
            agent,
            model,
            time: event.time,
            row,
        })
    }

    /// Everything spent on record.
    pub fn total(&self) -> Row {
        self.rows.values().fold(Row::default(), |a, b| a + *b)
    }

    /// What a budget must count: what is on record, and the reservations of
    /// calls whose end is not.
    pub fn worst(&self) -> Spend {
        let rows = self.rows.values();
        let spent = rows.fold(Spend::default(), |sum, row| sum + row.spend());
        let in_doubt = self.in_doubt();
        in_doubt.fold(spent, |sum, begun| sum + begun.reserved)
    }

    /// The calls without a recorded end: they may have cost what was reserved.
    pub fn in_doubt(&self) -> impl Iterator<Item = &Begun> {
        self.lost.iter().chain(self.open.values())
    }
}
