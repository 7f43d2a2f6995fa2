//! What is spent and what may be: the plain data of a budget.

use serde::{Deserialize, Serialize};

use crate::money::Usd;
use crate::types::Usage;

/// What may be spent; what is `None` is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    /// Tokens of requests and answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

/// What was or may be spent. Plain data, for events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Money, as far as prices are known.
    pub usd: Usd,
    /// Tokens of requests and answers together.
    pub tokens: u64,
    /// Model calls.
    pub calls: u64,
    /// Those of them whose price is not known, so that `usd` lacks them.
    #[serde(default)]
    pub unpriced: u64,
}

impl Spend {
    /// One call that used `usage` and cost `cost`.
    pub fn call(usage: &Usage, cost: Option<Usd>) -> Self {
        Self::one(usage.total(), cost)
    }

    pub(crate) fn one(tokens: u64, cost: Option<Usd>) -> Self {
        Self {
            usd: cost.unwrap_or_default(),
            tokens,
            calls: 1,
            unpriced: u64::from(cost.is_none()),
        }
    }

    /// What is left of it without `other`.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            usd: self.usd.saturating_sub(other.usd),
            tokens: self.tokens.saturating_sub(other.tokens),
            calls: self.calls.saturating_sub(other.calls),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
        }
    }
}

impl std::ops::Add for Spend {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            usd: self.usd.saturating_add(other.usd),
            tokens: self.tokens.saturating_add(other.tokens),
            calls: self.calls.saturating_add(other.calls),
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }
}
