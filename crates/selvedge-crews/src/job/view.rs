//! How far a job is, folded from its events.

use std::collections::BTreeMap;
use std::path::PathBuf;

use selvedge_agent::{RunSpec, Spending, ToolOutcome};
use selvedge_ledger::{Event, LedgerError, StreamId, Time};
use selvedge_runtime::{
    BudgetRaised, Ending, Finished, RunFinished, RunPaused, RunResumed, RunStarted, Started, Status,
};
use selvedge_tool::{TodoChange, Todos};

use super::terms::{JobPart, JobTerms, PhaseKind};

/// How far a job is.
#[derive(Default)]
pub struct JobView {
    /// The session.
    pub session: Option<StreamId>,
    /// What it started with.
    pub terms: Option<JobTerms>,
    /// Its folder.
    pub folder: PathBuf,
    /// The phase, from 1; 0 before the first.
    pub phase: u32,
    /// What the phase is for.
    pub kind: Option<PhaseKind>,
    /// The todos of the phase.
    pub todos: Todos,
    /// Todos completed in all phases.
    pub completed: usize,
    /// What was spent.
    pub spending: Spending,
    /// Why it stands still: where, the reason, what happened, and until when.
    pub pauses: BTreeMap<(StreamId, String), (String, Option<Time>)>,
    /// The tool that was used last.
    pub tool: String,
    /// How it ended.
    pub ended: Option<Ending>,
    /// The tools whose facts the phase heeds.
    heeds: Vec<String>,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It waits for a worker.
    Queued,
    /// It is under way, or could be.
    Open,
    /// It stands still until somebody lets it go on.
    Stopped,
    /// It did what it was for.
    Done,
    /// It did not.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl JobView {
    /// Folds an event of any of the session's streams in.
    pub fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        self.spending.apply(event)?;
        let is_root = event.stream == event.stream.session();
        match &*event.kind {
            "RunStarted" if is_root => {
                self.session = Some(event.stream.clone());
                self.folder = event.decode::<RunStarted<RunSpec>>()?.spec.workspace;
                self.terms = event
                    .decode::<RunStarted<JobPart>>()
                    .ok()
                    .map(|s| s.spec.job);
            }
            "RunStarted" => {
                let spec = event.decode::<RunStarted<RunSpec>>()?.spec;
                let kinds = [PhaseKind::Strategic, PhaseKind::Tactical, PhaseKind::Free];
                let kind = kinds.into_iter().find(|kind| kind.agent() == spec.agent);
                if let (Some(kind), Some(todos)) = (kind, spec.terms.todos) {
                    (self.phase, self.kind) = (spec.terms.task, Some(kind));
                    (self.todos, self.heeds) = (todos.list, spec.terms.heeds);
                }
            }
            "ToolCallStarted" => {
                let started: Started = event.decode()?;
                self.tool = started.what["tool"].as_str().unwrap_or_default().to_owned();
            }
            "ToolCallFinished" if !is_root => {
                let outcome = event.decode::<Finished<ToolOutcome>>()?.outcome;
                let change = TodoChange::in_facts(&outcome.facts);
                if let Some(change) = change.filter(|_| self.heeds.contains(&outcome.tool)) {
                    let is_done = matches!(change, TodoChange::Completed { .. });
                    self.completed += usize::from(is_done);
                    self.todos.apply(&change);
                }
            }
            "RunPaused" => {
                let RunPaused {
                    reason,
                    detail,
                    until,
                    ..
                } = event.decode()?;
                let place = (event.stream.clone(), reason);
                self.pauses.insert(place, (detail, until));
            }
            "RunResumed" => {
                let reason = event.decode::<RunResumed>()?.reason;
                self.pauses.remove(&(event.stream.clone(), reason));
            }
            "BudgetRaised" if is_root => {
                let most = event.decode::<BudgetRaised>()?.model_calls;
                if let (Some(terms), Some(most)) = (&mut self.terms, most) {
                    terms.iterations_max = most;
                }
            }
            "RunFinished" if is_root => {
                self.ended = Some(event.decode::<RunFinished>()?.ending);
                self.pauses.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// How it stands.
    pub fn stand(&self) -> Stand {
        if let Some(ending) = &self.ended {
            return match ending.status {
                Status::Done => Stand::Done,
                Status::Failed => Stand::Failed,
                Status::Cancelled => Stand::Cancelled,
            };
        }
        let is_queued = self.terms.as_ref().is_some_and(|terms| terms.queued);
        let stands_still = self.pauses.values().any(|(_, until)| until.is_none());
        match (stands_still, self.phase) {
            (true, _) => Stand::Stopped,
            (false, 0) if is_queued => Stand::Queued,
            _ => Stand::Open,
        }
    }

    /// The phase and the todos of it, in a line; of a job that is done, what it took.
    pub fn progress(&self) -> String {
        let Some(kind) = self.kind else {
            return "not begun".into();
        };
        if self.stand() == Stand::Done {
            let (done, phases) = (self.completed, self.phase);
            return match kind {
                PhaseKind::Free => format!("{done} todos"),
                _ => format!("{done} todos in {phases} phases"),
            };
        }
        let (done, all) = (self.todos.done(), self.todos.items.len());
        match kind {
            PhaseKind::Free => format!("{done} of {all} todos"),
            _ => format!(
                "phase {} ({}), {done} of {all} todos",
                self.phase,
                kind.word()
            ),
        }
    }

    /// Model calls that were answered.
    pub fn iterations(&self) -> u64 {
        let total = self.spending.total();
        total.calls + total.cached
    }
}
