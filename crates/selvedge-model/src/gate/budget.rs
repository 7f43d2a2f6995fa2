//! Budgets: what may be spent, held before a call and settled after it.
//!
//! A call is admitted only if its worst case fits, so calls that run at the
//! same time cannot overshoot together. Budgets form a tree; a child's call is
//! held against every budget above it at once. Locks are taken from the leaf
//! upward and kept until the whole path has agreed, so two calls never pass on
//! the same remainder. What cuts across the tree, such as everything that one
//! agent spends in all its runs, stands beside it (`Budget::beside`), and is
//! locked first, so that nobody waits in a circle.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reservation::Reservation;
use super::shortfall::{BudgetError, Unit};
use super::spend::{Limits, Spend};
use crate::money::Usd;

/// A node in the tree of budgets. Clones are the same budget.
#[derive(Clone)]
pub struct Budget(Arc<Node>);

struct Node {
    name: String,
    parent: Option<Budget>,
    /// A budget without a parent that counts the same calls.
    beside: Option<Budget>,
    account: Mutex<Account>,
}

#[derive(Clone, Copy, Default)]
struct Account {
    limits: Limits,
    spent: Spend,
    held: Spend,
}

impl Budget {
    /// A budget of its own.
    pub fn new(name: impl Into<String>, limits: Limits) -> Self {
        Self::node(name.into(), limits, None, None)
    }

    /// A budget within this one: what it spends, this one spends too.
    pub fn child(&self, name: impl Into<String>, limits: Limits) -> Self {
        Self::node(name.into(), limits, Some(self.clone()), None)
    }

    /// This budget for calls that `other` counts as well. `other` has no budget
    /// above it.
    pub fn beside(&self, other: &Self) -> Self {
        let (name, limits) = (self.name().to_owned(), Limits::default());
        Self::node(name, limits, Some(self.clone()), Some(other.clone()))
    }

    fn node(name: String, limits: Limits, parent: Option<Self>, beside: Option<Self>) -> Self {
        let account = Mutex::new(Account {
            limits,
            ..Account::default()
        });
        Self(Arc::new(Node {
            name,
            parent,
            beside,
            account,
        }))
    }

    /// Holds `amount` here and in every budget above, or nowhere.
    pub fn hold(&self, amount: Spend) -> Result<Reservation, BudgetError> {
        self.admit(amount)?;
        Ok(Reservation::new(self.clone(), amount))
    }

    /// Takes charge of an amount that is already held, from `Reservation::record`.
    pub fn adopt(&self, amount: Spend) -> Reservation {
        Reservation::new(self.clone(), amount)
    }

    /// Counts what was spent before this process began, here and above.
    pub fn restore(&self, spent: Spend) {
        self.each_upward(|account| account.spent = account.spent + spent);
    }

    /// Lifts limits: each that is given and higher replaces the present one.
    pub fn raise(&self, limits: Limits) {
        let mut account = self.account();
        let present = &mut account.limits;
        present.usd = higher(present.usd, limits.usd);
        present.tokens = higher(present.tokens, limits.tokens);
        present.calls = higher(present.calls, limits.calls);
    }

    /// Sets limits, whatever they were.
    pub fn limit(&self, limits: Limits) {
        self.account().limits = limits;
    }

    /// Whether money or tokens are limited, here or above.
    pub fn is_limited(&self) -> bool {
        let Limits { usd, tokens, .. } = self.limits();
        usd.is_some() || tokens.is_some() || self.others().any(Self::is_limited)
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What may be spent.
    pub fn limits(&self) -> Limits {
        self.account().limits
    }

    /// What calls have cost so far.
    pub fn spent(&self) -> Spend {
        self.account().spent
    }

    /// What calls under way may cost at most.
    pub fn held(&self) -> Spend {
        self.account().held
    }

    /// The first budget, from here upward, that limits money.
    pub(crate) fn money_limited(&self) -> Option<&Self> {
        let others = || self.others().find_map(Self::money_limited);
        self.account().limits.usd.map(|_| self).or_else(others)
    }

    /// The budgets that count the same calls: the one beside this, the one above.
    fn others(&self) -> impl Iterator<Item = &Self> {
        self.0.beside.iter().chain(&self.0.parent)
    }

    fn admit(&self, amount: Spend) -> Result<(), BudgetError> {
        let account = self.account();
        account.check(&self.0.name, &amount)?;
        let beside = match &self.0.beside {
            None => None,
            Some(beside) => {
                let other = beside.account();
                other.check(beside.name(), &amount)?;
                Some(other)
            }
        };
        if let Some(parent) = &self.0.parent {
            parent.admit(amount)?;
        }
        for account in [Some(account), beside].iter_mut().flatten() {
            account.held = account.held + amount;
        }
        Ok(())
    }

    /// Gives back what was held, and counts what it came to.
    pub(super) fn settle(&self, held: Spend, actual: Spend) {
        self.each_upward(|account| {
            account.held = account.held.saturating_sub(held);
            account.spent = account.spent + actual;
        });
    }

    fn each_upward(&self, change: impl Fn(&mut Account)) {
        let mut next = Some(self);
        while let Some(budget) = next {
            change(&mut budget.account());
            if let Some(beside) = &budget.0.beside {
                change(&mut beside.account());
            }
            next = budget.0.parent.as_ref();
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        // Every change is a few assignments of plain numbers that cannot panic
        // halfway, so a poisoned account is still a whole one.
        self.0
            .account
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Account {
            limits,
            spent,
            held,
        } = *self.account();
        let mut shown = f.debug_struct("Budget");
        shown.field("name", &self.0.name).field("limits", &limits);
        shown.field("spent", &spent).field("held", &held).finish()
    }
}

impl Account {
    fn check(&self, budget: &str, amount: &Spend) -> Result<(), BudgetError> {
        let money = |usd: Usd| usd.nanos();
        let usd = (
            self.limits.usd.map(money),
            money(self.spent.usd),
            money(self.held.usd),
            money(amount.usd),
        );
        let tokens = (
            self.limits.tokens,
            self.spent.tokens,
            self.held.tokens,
            amount.tokens,
        );
        let calls = (
            self.limits.calls,
            self.spent.calls,
            self.held.calls,
            amount.calls,
        );
        let units = [
            (Unit::Usd, usd),
            (Unit::Tokens, tokens),
            (Unit::Calls, calls),
        ];
        for (unit, (limit, spent, held, needed)) in units {
            let total = spent.saturating_add(held).saturating_add(needed);
            if let Some(limit) = limit.filter(|limit| total > *limit) {
                let budget = budget.to_owned();
                return Err(BudgetError::Exhausted {
                    budget,
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
}

/// The higher of two limits; an absent present limit is the highest there is.
fn higher<T: Ord>(present: Option<T>, new: Option<T>) -> Option<T> {
    match (present, new) {
        (Some(present), Some(new)) => Some(present.max(new)),
        (present, _) => present,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars).unwrap()
    }

    fn call(dollars: f64) -> Spend {
        Spend::one(100, Some(usd(dollars)))
    }

    fn money(dollars: f64) -> Limits {
        Limits {
            usd: Some(usd(dollars)),
            ..Limits::default()
        }
    }

    /// Many threads, each making calls as long as they are admitted; every call
    /// costs what it reserved. Returns what was spent.
    fn stampede(root: &Budget, threads: usize) -> Spend {
        let admitted = AtomicU64::new(0);
        thread::scope(|scope| {
            for i in 0..threads {
                let budget = root.child(format!("agent {i}"), Limits::default());
                let admitted = &admitted;
                scope.spawn(move || {
                    while let Ok(reservation) = budget.hold(call(0.01)) {
                        admitted.fetch_add(1, Ordering::Relaxed);
                        thread::yield_now();
                        let amount = reservation.amount();
                        reservation.settle(amount);
                    }
                });
            }
        });
        assert_eq!(root.spent().calls, admitted.into_inner());
        root.spent()
    }

    #[test]
    fn concurrent_calls_fill_a_budget_to_the_edge_and_not_beyond() {
        for threads in [20, 64] {
            let by_money = Budget::new("run", money(1.0));
            assert_eq!(stampede(&by_money, threads).usd, usd(1.0));
            let by_calls = Budget::new(
                "run",
                Limits {
                    calls: Some(333),
                    ..Limits::default()
                },
            );
            assert_eq!(stampede(&by_calls, threads).calls, 333);
            let by_tokens = Budget::new(
                "run",
                Limits {
                    tokens: Some(33_350),
                    ..Limits::default()
                },
            );
            assert_eq!(stampede(&by_tokens, threads).tokens, 33_300);
            assert_eq!(by_tokens.held(), Spend::default());
        }
    }

    #[test]
    fn a_childs_call_is_held_against_every_budget_above() {
        let session = Budget::new("session", money(1.0));
        let run = session.child("run", money(5.0));
        let held = run.hold(call(0.75)).unwrap();
        assert_eq!(session.held().usd, usd(0.75));
        let error = run
            .child("agent", Limits::default())
            .hold(call(0.5))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("budget `session` allows $1.00: $0.00 spent"),
            "{error}"
        );
        assert!(error.would_fit_later());
        assert_eq!(
            run.held().usd,
            usd(0.75),
            "a refused call leaves nothing held"
        );
        held.settle(call(0.25));
        assert_eq!(
            (session.spent().usd, session.held().usd),
            (usd(0.25), Usd::ZERO)
        );
    }

    #[test]
    fn an_agents_calls_count_beside_the_runs_they_are_made_in() {
        let session = Budget::new("session", money(10.0));
        let agent = Budget::new("agent", money(1.0));
        let (one, two) = (
            session.child("one", money(5.0)),
            session.child("two", money(0.5)),
        );
        let (mine, helped) = (one.beside(&agent), two.beside(&agent));
        assert!(mine.is_limited() && mine.money_limited().is_some());
        mine.hold(call(0.7)).unwrap().settle(call(0.6));
        let error = helped.hold(call(0.6)).unwrap_err().to_string();
        assert!(
            error.starts_with("budget `agent` allows $1.00: $0.60 spent"),
            "{error}"
        );
        // What another refuses is not held here either.
        let error = two
            .beside(&Budget::new("other", money(9.0)))
            .hold(call(0.6));
        assert!(error.unwrap_err().to_string().starts_with("budget `two`"));
        helped.hold(call(0.4)).unwrap().settle(call(0.4));
        assert_eq!(agent.spent().usd, usd(1.0));
        assert_eq!((one.spent().usd, two.spent().usd), (usd(0.6), usd(0.4)));
        assert_eq!(
            (session.spent().usd, session.held().usd),
            (usd(1.0), Usd::ZERO)
        );
    }

    #[test]
    fn a_dropped_reservation_is_given_back() {
        let budget = Budget::new("run", money(1.0));
        drop(budget.hold(call(1.0)).unwrap());
        assert_eq!(
            (budget.spent(), budget.held()),
            (Spend::default(), Spend::default())
        );
    }

    #[test]
    fn a_recorded_reservation_stays_held_until_it_is_adopted() {
        let budget = Budget::new("run", money(1.0));
        let recorded = budget.hold(call(0.6)).unwrap().record();
        let text = serde_json::to_string(&recorded).unwrap();
        assert_eq!(text, r#"{"usd":0.6,"tokens":100,"calls":1,"unpriced":0}"#);
        assert!(budget.hold(call(0.6)).is_err());
        budget
            .adopt(serde_json::from_str(&text).unwrap())
            .settle(call(0.1));
        assert_eq!(budget.held(), Spend::default());
        assert!(budget.hold(call(0.6)).is_ok());
    }

    #[test]
    fn an_exhausted_budget_says_what_would_be_enough_and_can_be_raised() {
        let budget = Budget::new(
            "run",
            Limits {
                calls: Some(40),
                ..Limits::default()
            },
        );
        budget.restore(Spend {
            calls: 40,
            ..Spend::default()
        });
        let error = budget.hold(call(0.0)).unwrap_err();
        assert!(!error.would_fit_later());
        assert_eq!(error.hint(), "raise the limit to at least 41 model calls");
        budget.raise(Limits {
            calls: Some(20),
            ..Limits::default()
        });
        assert_eq!(budget.limits().calls, Some(40), "raising never lowers");
        budget.raise(Limits {
            calls: Some(80),
            ..Limits::default()
        });
        assert!(budget.hold(call(0.0)).is_ok());
    }
}
