//! Why a call was not admitted, in numbers and in words.

use serde::{Deserialize, Serialize};

use crate::money::Usd;

/// Why a call was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// Its worst case does not fit: raise the limit, or wait if `would_fit_later`.
    #[error(
        "budget `{budget}` allows {}: {} spent, {} held by calls under way, and this call may take {}",
        unit.show(*limit), unit.show(*spent), unit.show(*held), unit.show(*needed)
    )]
    Exhausted {
        /// Which budget.
        budget: String,
        /// Which of its limits.
        unit: Unit,
        /// The limit.
        limit: u64,
        /// Spent of it.
        spent: u64,
        /// Held of it by calls under way.
        held: u64,
        /// What this call may take at most.
        needed: u64,
    },
    /// Money is limited and the model's price is not known.
    #[error("budget `{budget}` limits money, and the price of `{model}` is not known")]
    PriceUnknown {
        /// Which budget.
        budget: String,
        /// Which model.
        model: String,
    },
}

impl BudgetError {
    /// Whether the call would fit if the calls under way cost nothing: then it
    /// is worth waiting for them, since their worst case seldom happens.
    pub fn would_fit_later(&self) -> bool {
        match self {
            Self::Exhausted {
                limit,
                spent,
                needed,
                ..
            } => spent.saturating_add(*needed) <= *limit,
            Self::PriceUnknown { .. } => false,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Exhausted {
                unit,
                spent,
                held,
                needed,
                ..
            } => {
                let enough = spent.saturating_add(*held).saturating_add(*needed);
                format!("raise the limit to at least {}", unit.show(enough))
            }
            Self::PriceUnknown { model, .. } => {
                format!(
                    "set a price for `{model}` in the configuration, or limit tokens instead of money"
                )
            }
        }
    }
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Money; amounts are billionths of a dollar.
    Usd,
    /// Tokens.
    Tokens,
    /// Model calls.
    Calls,
}

impl Unit {
    pub(super) fn show(self, amount: u64) -> String {
        match self {
            Self::Usd => Usd::from_nanos(amount).to_string(),
            Self::Tokens => format!("{amount} tokens"),
            Self::Calls if amount == 1 => "1 model call".to_owned(),
            Self::Calls => format!("{amount} model calls"),
        }
    }
}
