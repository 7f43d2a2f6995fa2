//! The graph as a machine: where it stands, and what that makes due.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_agent::{AgentCall, ToolOutcome};
use selvedge_ledger::{Event, LedgerError, Payload};
use selvedge_runtime::{
    ChildFinished, Due, Effect, EffectId, Ending, Finished, Machine, MessageTaken,
    QuestionAnswered, Status, Unfinished,
};

use super::{Came, Flow, State, Step, Visit};

/// A flow being driven.
pub struct Graph<F: Flow> {
    flow: F,
    active: Vec<Active<F::State>>,
    /// How often each transition was taken, by its place in the table.
    taken: BTreeMap<usize, u32>,
    visits: BTreeMap<F::State, u32>,
    path: Vec<Walked<F::State>>,
    ended: Option<Ending>,
}

/// A state that is active, and what of it is done.
struct Active<S> {
    visit: Visit<S>,
    done: BTreeSet<String>,
}

/// A state that was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked<S> {
    /// From where; none for the first.
    pub from: Option<S>,
    /// Which, and for the how many-th time.
    pub visit: Visit<S>,
    /// Why, in the words of the table.
    pub when: &'static str,
}

impl<F: Flow> Default for Graph<F> {
    fn default() -> Self {
        Self {
            flow: F::default(),
            active: Vec::new(),
            taken: BTreeMap::new(),
            visits: BTreeMap::new(),
            path: Vec::new(),
            ended: None,
        }
    }
}

impl<F: Flow> Machine for Graph<F> {
    type Call = AgentCall;

    fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "RunStarted" => {
                self.flow.begin(&event.stream, event.data.get())?;
                self.enter(None, F::table().start, "the beginning");
            }
            "ChildFinished" => {
                let child: ChildFinished = event.decode()?;
                self.came(&child.effect, Came::Ended(child.ending));
            }
            "ToolCallFinished" => {
                let finished: Finished<ToolOutcome> = event.decode()?;
                self.came(&finished.effect, Came::Tool(Box::new(finished.outcome)));
            }
            "ToolCallInDoubt" => {
                let effect = event.decode::<Unfinished>()?.effect;
                self.came(&effect, Came::InDoubt);
            }
            "QuestionAnswered" => {
                let answered: QuestionAnswered = event.decode()?;
                self.came(&answered.effect, Came::Answered(answered.answer));
            }
            "MessageTaken" => self.flow.told(&event.decode::<MessageTaken>()?.text),
            _ => return Ok(()),
        }
        self.advance();
        Ok(())
    }

    fn due(&self) -> Due<AgentCall> {
        if let Some(ending) = &self.ended {
            return Due::Ended(ending.clone());
        }
        if self.active.is_empty() {
            return Due::Idle;
        }
        let mut effects = Vec::new();
        for active in self.active.iter().filter(|active| !self.is_held(active)) {
            let steps = self.open(active).into_iter();
            effects.extend(steps.map(|step| Effect {
                id: id(active.visit, &step.name),
                act: step.act,
            }));
        }
        Due::Effects(effects)
    }
}

impl<F: Flow> Graph<F> {
    /// The states that were entered, in their order.
    pub fn path(&self) -> &[Walked<F::State>] {
        &self.path
    }

    /// What the flow knows.
    pub fn flow(&self) -> &F {
        &self.flow
    }

    fn came(&mut self, effect: &EffectId, came: Came) {
        let found = self.active.iter_mut().find_map(|active| {
            let step = step_of(active.visit, effect)?;
            active.done.insert(step.clone());
            Some((active.visit, step))
        });
        // What comes from a state that was left does not count any more.
        if let Some((visit, step)) = found {
            self.flow.came(visit, &step, came);
        }
    }

    /// What is left to be done in a state.
    fn open(&self, active: &Active<F::State>) -> Vec<Step> {
        let mut steps = self.flow.steps(active.visit);
        steps.retain(|step| !active.done.contains(&step.name));
        steps
    }

    /// Whether a state waits for another that is active.
    fn is_held(&self, active: &Active<F::State>) -> bool {
        let row = F::table().row(active.visit.state);
        row.is_some_and(|row| {
            let is_active = |s: &F::State| self.active.iter().any(|other| other.visit.state == *s);
            row.waits_for.iter().any(is_active)
        })
    }

    /// Moves on from every state in which nothing is left to be done.
    fn advance(&mut self) {
        while self.ended.is_none() {
            let is_over =
                |active: &Active<F::State>| !self.is_held(active) && self.open(active).is_empty();
            let Some(at) = self.active.iter().position(is_over) else {
                return;
            };
            let visit = self.active.remove(at).visit;
            self.flow.leave(visit);
            self.follow(visit.state);
        }
    }

    /// Takes the transitions that hold.
    fn follow(&mut self, from: F::State) {
        let table = F::table();
        let forks = table.row(from).is_some_and(|row| row.forks);
        let mut is_followed = false;
        for (at, transition) in table.transitions.iter().enumerate() {
            let taken = self.taken.get(&at).copied().unwrap_or(0);
            let is_left = transition.limit.is_none_or(|limit| taken < limit);
            if transition.from != from || !is_left || !(transition.guard)(&self.flow) {
                continue;
            }
            *self.taken.entry(at).or_default() += 1;
            self.enter(Some(from), transition.to, transition.when);
            is_followed = true;
            if !forks || self.ended.is_some() {
                break;
            }
        }
        // Another branch that is still active goes on without this one.
        if !is_followed && self.active.is_empty() && self.ended.is_none() {
            self.ended = Some(Ending {
                status: Status::Failed,
                result: Payload::inline(format!("nothing follows the state `{}`", from.name())),
                data: None,
            });
        }
    }

    fn enter(&mut self, from: Option<F::State>, state: F::State, when: &'static str) {
        // Branches that meet in a state go on as one.
        if self.active.iter().any(|active| active.visit.state == state) {
            return;
        }
        let number = self.visits.entry(state).or_default();
        *number += 1;
        let visit = Visit {
            state,
            number: *number,
        };
        self.path.push(Walked { from, visit, when });
        self.flow.enter(visit);
        if state == F::table().end {
            self.ended = Some(self.flow.ending());
            return;
        }
        self.active.push(Active {
            visit,
            done: BTreeSet::new(),
        });
    }
}

/// `plan2`, or `analyze1.q2` for a step with a name.
fn id<S: State>(visit: Visit<S>, step: &str) -> EffectId {
    let prefix = format!("{}{}", visit.state.name(), visit.number);
    EffectId::new(match step {
        "" => prefix,
        step => format!("{prefix}.{step}"),
    })
}

/// The step of a visit that an effect is.
fn step_of<S: State>(visit: Visit<S>, effect: &EffectId) -> Option<String> {
    let prefix = format!("{}{}", visit.state.name(), visit.number);
    let rest = effect.as_str().strip_prefix(&prefix)?;
    match rest.is_empty() {
        true => Some(String::new()),
        false => rest.strip_prefix('.').map(str::to_owned),
    }
}
