//! A limit: on whom, for how long, how much, and how firmly.

use serde::{Deserialize, Serialize};

use super::period::Period;
use crate::gate::{BudgetError, Spend, Unit};
use crate::money::Usd;

/// What may be spent in a period. `None` is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Money.
    pub usd: Option<Usd>,
    /// Tokens of requests and answers together.
    pub tokens: Option<u64>,
    /// Requests that were answered, if only in part.
    pub requests: Option<u64>,
}

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Which provider; `None` for all of them together.
    pub provider: Option<String>,
    /// For how long.
    pub period: Period,
    /// How much.
    pub allowance: Allowance,
    /// How firmly.
    pub strength: Strength,
}

/// How firmly a limit holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strength {
    /// No call begins that may exceed it.
    Hard,
    /// People are told when this part of it is spent, and when all of it is.
    Soft {
        /// Such as 0.8.
        warn_at: f64,
    },
}

/// How near a soft limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Near,
    Over,
}

impl Rule {
    /// Whether it limits anything. Nothing and zero are no limits.
    pub(super) fn limits(&self) -> bool {
        self.units(Spend::default()).next().is_some()
    }

    /// Whether it limits how much a call may use, and not only how many there are.
    pub(super) fn limits_amounts(&self) -> bool {
        let mut units = self.units(Spend::default());
        units.any(|(unit, ..)| unit != Unit::Calls)
    }

    pub(super) fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }

    /// Whether a call that one of `providers` answers falls under it.
    pub(super) fn concerns(&self, providers: &[String]) -> bool {
        self.provider.as_ref().is_none_or(|p| providers.contains(p))
    }

    /// Whether what is spent at `provider` counts.
    pub(super) fn covers(&self, provider: &str) -> bool {
        self.provider.as_deref().is_none_or(|p| p == provider)
    }

    /// Its name, the same in every process.
    pub(super) fn name(&self) -> String {
        let who = self.provider.as_deref().unwrap_or("all providers");
        format!("{who}, per {}", self.period.noun())
    }

    /// Whether `amount` still fits. At exactly the limit it does.
    pub(super) fn check(
        &self,
        spent: Spend,
        held: Spend,
        amount: Spend,
    ) -> Result<(), BudgetError> {
        let budget = || format!("all sessions: {}", self.name());
        if self.allowance.usd.is_some_and(|usd| usd > Usd::ZERO) && amount.unpriced > 0 {
            return Err(BudgetError::PriceUnknown {
                budget: budget(),
                model: self.provider.clone().unwrap_or_else(|| "the model".into()),
            });
        }
        let held: Vec<u64> = self.units(held).map(|(_, _, held)| held).collect();
        let needed: Vec<u64> = self.units(amount).map(|(_, _, needed)| needed).collect();
        for (n, (unit, limit, spent)) in self.units(spent).enumerate() {
            let (held, needed) = (held[n], needed[n]);
            if spent.saturating_add(held).saturating_add(needed) > limit {
                return Err(BudgetError::Exhausted {
                    budget: budget(),
                    unit,
                    limit,
                    spent,
                    held,
                    needed,
                });
            }
        }
        Ok(())
    }

    /// How near a soft limit is, if it is near.
    pub(super) fn level(&self, spent: Spend) -> Option<Level> {
        let Strength::Soft { warn_at } = self.strength else {
            return None;
        };
        let part = self.part(spent);
        match () {
            () if part >= 1.0 => Some(Level::Over),
            () if part >= warn_at => Some(Level::Near),
            () => None,
        }
    }

    /// What people are told.
    pub(super) fn warning(&self, level: Level, spent: Spend) -> String {
        let name = self.name();
        let percent = (self.part(spent) * 100.0).floor();
        match level {
            Level::Near => format!("{percent}% of the soft limit of {name} is spent"),
            Level::Over => format!("the soft limit of {name} is spent ({percent}%)"),
        }
    }

    /// The largest part of any of its units that is spent.
    fn part(&self, spent: Spend) -> f64 {
        let part = |(_, limit, spent): (Unit, u64, u64)| spent as f64 / limit as f64;
        self.units(spent).map(part).fold(0.0, f64::max)
    }

    /// Each unit that is limited, with its limit and what of it `spend` is.
    fn units(&self, spend: Spend) -> impl Iterator<Item = (Unit, u64, u64)> {
        let Allowance {
            usd,
            tokens,
            requests,
        } = self.allowance;
        let units = [
            (Unit::Usd, usd.map(Usd::nanos), spend.usd.nanos()),
            (Unit::Tokens, tokens, spend.tokens),
            (Unit::Calls, requests, spend.calls),
        ];
        units.into_iter().filter_map(|(unit, limit, spent)| {
            let limit = limit.filter(|limit| *limit > 0)?;
            Some((unit, limit, spent))
        })
    }
}
