//! What an agent needs before and after its work: a copy to work on, what changed in it,
//! a merge.

use std::sync::Arc;

use selvedge_model::Message;
use selvedge_runtime::{Act, Effect, EffectId, Ending, Status};
use selvedge_tool::Surveyed;
use serde::{Deserialize, Serialize};

use super::{AgentMachine, Phase};
use crate::call::{AgentCall, ToolOutcome};
use crate::claims;
use crate::spec::RunSpec;
use crate::upkeep::{Chore, Upkeep, UpkeepOutcome};

/// What is kept up before and after the work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Keeping {
    /// The copy it works on is being made.
    Copying,
    /// The files are being looked at.
    Surveying,
    /// They are being looked at again, for a result that says what changed.
    Comparing(Ending),
    /// The copy is being merged; then it ends like this.
    Merging(Ending),
}

impl AgentMachine {
    /// Goes on to what must be there before the first model call.
    pub(super) fn prepare(&mut self) {
        let terms = &self.spec().terms;
        let keeping = match (&terms.copy, &terms.claims) {
            (Some(_), _) if self.base.is_none() => Keeping::Copying,
            (_, Some(_)) if self.turn == 0 => Keeping::Surveying,
            _ => return self.ask(),
        };
        self.phase = Phase::Keeping(keeping);
    }

    /// The copy is gone: whoever goes on begins with a new one, and is told so.
    pub(super) fn lose_copy(&mut self) {
        if self.base.take().is_some() {
            let told = "The copy of the directory that you worked on was removed, and everything \
                        that was changed in it is gone. You go on with a new copy of the user's \
                        directory as it is now.";
            self.context.push(Message::user(told));
        }
    }

    /// What the work needs is there, or cannot be had.
    pub(super) fn kept(&mut self, outcome: UpkeepOutcome) {
        let Phase::Keeping(keeping) = std::mem::take(&mut self.phase) else {
            return;
        };
        match (keeping, outcome) {
            (Keeping::Copying, UpkeepOutcome::Copied { base }) => {
                self.base = Some(base);
                self.prepare();
            }
            (Keeping::Copying, UpkeepOutcome::Failed { why }) => {
                self.fail(format!(
                    "there is no copy of the directory to work on: {why}"
                ));
            }
            (Keeping::Comparing(_), _) if self.is_spoken_to() => self.ask(),
            (Keeping::Comparing(ending), outcome) => {
                let changed = match &outcome {
                    UpkeepOutcome::Compared { changed } => Some(changed),
                    _ => None,
                };
                let ending = self.contradicted(ending, changed);
                self.close(ending);
            }
            (Keeping::Merging(ending), _) => {
                self.base = None;
                // Who speaks now speaks to a run without a place to work in.
                match self.is_spoken_to() {
                    true => self.prepare(),
                    false => self.phase = Phase::Ended(ending),
                }
            }
            (Keeping::Surveying | Keeping::Copying, _) => self.ask(),
        }
    }

    pub(super) fn upkeep(
        &self,
        keeping: &Keeping,
        spec: &Arc<RunSpec>,
    ) -> Option<Effect<AgentCall>> {
        let turn = self.turn;
        let (id, chore) = match keeping {
            Keeping::Copying => (format!("c{turn}"), Chore::Copy),
            Keeping::Surveying => (format!("v{turn}"), Chore::Survey),
            Keeping::Comparing(ending) => {
                let since = EffectId::new("v0");
                let (terms, data) = (&spec.terms, ending.data.as_ref());
                let claimed = terms.claims.as_ref().zip(data);
                let claimed = claimed.map(|(claims, data)| claims.files(data, &spec.workspace));
                let claimed = claimed.unwrap_or_default();
                (format!("v{turn}"), Chore::Compare { since, claimed })
            }
            Keeping::Merging(_) => {
                let base = self.base.clone()?;
                (format!("w{turn}"), Chore::Merge { base })
            }
        };
        let spec = spec.clone();
        let act = Act::Call(AgentCall::Upkeep(Upkeep { spec, chore }));
        let id = EffectId::new(id);
        Some(Effect { id, act })
    }

    /// The ending, with what it says and what is not so.
    fn contradicted(&self, mut ending: Ending, changed: Option<&Surveyed>) -> Ending {
        let spec = self.spec();
        if let (Some(claims), Some(data)) = (&spec.terms.claims, &mut ending.data) {
            let found = self
                .deeds
                .contradict(claims, data, changed, &spec.workspace);
            claims::annotate(data, found);
        }
        ending
    }

    /// Takes note of what a tool did, where that is wanted.
    pub(super) fn witness(&mut self, effect: &EffectId, outcome: &ToolOutcome) {
        if self.spec().terms.claims.is_some() {
            let spec = self.spec().clone();
            let command = self.pending(effect).and_then(|p| p.command(&spec));
            self.deeds.heed(outcome, command);
        }
    }

    /// Ends. What was done on a copy is merged first, unless it came to nothing.
    pub(super) fn close(&mut self, ending: Ending) {
        let is_to_merge = self.base.is_some() && ending.status == Status::Done;
        self.phase = match is_to_merge {
            true => Phase::Keeping(Keeping::Merging(ending)),
            false => Phase::Ended(ending),
        };
    }
}
