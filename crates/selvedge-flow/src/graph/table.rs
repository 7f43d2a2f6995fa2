//! The table of a graph: its states, its transitions, and what is wrong with it.

use std::collections::BTreeSet;

use super::{Flow, State};

/// The states and transitions of a flow.
pub struct Table<F: Flow> {
    /// Where it begins.
    pub start: F::State,
    /// Where it ends.
    pub end: F::State,
    /// The states.
    pub rows: &'static [Row<F::State>],
    /// The transitions. Of one state they are judged in this order.
    pub transitions: &'static [Transition<F>],
}

/// A state, declared.
pub struct Row<S: 'static> {
    /// Which.
    pub state: S,
    /// What it is for, in a sentence.
    pub purpose: &'static str,
    /// It does not begin while one of these is active.
    pub waits_for: &'static [S],
    /// Whether every transition that holds is taken, instead of the first.
    pub forks: bool,
    /// Whether a person is waited for.
    pub human: bool,
}

/// What may follow a state.
pub struct Transition<F: Flow> {
    /// From where.
    pub from: F::State,
    /// To where.
    pub to: F::State,
    /// When, in words.
    pub when: &'static str,
    /// When.
    pub guard: fn(&F) -> bool,
    /// How often it is taken at most; then the next one is judged.
    pub limit: Option<u32>,
}

impl<F: Flow> Table<F> {
    /// The row of a state.
    pub fn row(&self, state: F::State) -> Option<&'static Row<F::State>> {
        self.rows.iter().find(|row| row.state == state)
    }

    /// Everything that is wrong with the table: states that lead nowhere or are not
    /// reached, that stand in it twice or not at all, and circles without a limit.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let known: BTreeSet<F::State> = self.rows.iter().map(|row| row.state).collect();
        if known.len() != self.rows.len() {
            faults.push("a state stands in it twice".to_owned());
        }
        for transition in self.transitions {
            for state in [transition.from, transition.to] {
                if !known.contains(&state) {
                    faults.push(format!("`{}` has no row", state.name()));
                }
            }
        }
        let reached = self.reached(self.start, |_| true);
        for state in known {
            if !reached.contains(&state) {
                faults.push(format!("`{}` is never reached", state.name()));
            }
            let leads_on = self.transitions.iter().any(|t| t.from == state);
            if leads_on == (state == self.end) {
                faults.push(format!(
                    "`{}` leads nowhere, or on from the end",
                    state.name()
                ));
            }
            let next = self.transitions.iter().filter(|t| t.from == state);
            let unlimited: Vec<F::State> =
                next.filter(|t| t.limit.is_none()).map(|t| t.to).collect();
            let comes_back = unlimited.iter().any(|to| {
                *to == state || self.reached(*to, |t| t.limit.is_none()).contains(&state)
            });
            if comes_back {
                faults.push(format!("`{}` is on a circle without a limit", state.name()));
            }
        }
        faults
    }

    /// The states that can be reached from one by some of the transitions, itself included.
    fn reached(&self, from: F::State, by: impl Fn(&Transition<F>) -> bool) -> BTreeSet<F::State> {
        let mut reached = BTreeSet::from([from]);
        let mut last = 0;
        while last < reached.len() {
            last = reached.len();
            for transition in self.transitions.iter().filter(|t| by(t)) {
                if reached.contains(&transition.from) {
                    reached.insert(transition.to);
                }
            }
        }
        reached
    }

    /// The table as text, a line for each transition.
    pub fn draw(&self) -> String {
        let mut lines = Vec::new();
        for row in self.rows {
            let mark = if row.human { " (a person answers)" } else { "" };
            lines.push(format!("{}{mark}: {}", row.state.name(), row.purpose));
            if !row.waits_for.is_empty() {
                let names: Vec<&str> = row.waits_for.iter().map(|s| s.name()).collect();
                lines.push(format!("  after {}", names.join(", ")));
            }
            for transition in self.transitions.iter().filter(|t| t.from == row.state) {
                let limit = match transition.limit {
                    Some(limit) => format!(", at most {limit} times"),
                    None => String::new(),
                };
                let (to, when) = (transition.to.name(), transition.when);
                lines.push(format!("  → {to}: {when}{limit}"));
            }
        }
        lines.join("\n")
    }
}
