//! What is held for one call: settled after it, or given back.

use super::budget::Budget;
use super::spend::Spend;

/// Money, tokens and a call held for one call.
///
/// Dropped without being settled, it is given back and nothing counts as spent.
#[must_use = "a reservation that is dropped is given back"]
#[derive(Debug)]
pub struct Reservation {
    // Empty once settled or recorded.
    budget: Option<Budget>,
    amount: Spend,
}

impl Reservation {
    /// That `budget` holds `amount`.
    pub(super) fn new(budget: Budget, amount: Spend) -> Self {
        let budget = Some(budget);
        Self { budget, amount }
    }

    /// What is held.
    pub fn amount(&self) -> Spend {
        self.amount
    }

    /// The call is over and cost `actual`.
    pub fn settle(mut self, actual: Spend) {
        if let Some(budget) = self.budget.take() {
            budget.settle(self.amount, actual);
        }
    }

    /// Leaves the amount held and turns it into data, for an event;
    /// `Budget::adopt` takes it up again.
    pub fn record(mut self) -> Spend {
        self.budget = None;
        self.amount
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.take() {
            budget.settle(self.amount, Spend::default());
        }
    }
}
