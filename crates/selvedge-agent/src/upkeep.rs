//! What a run does for its work, and no model asks for: the copy it works on, looking
//! at what changed, merging.
//!
//! Each is an effect like any other: on record before and after, and settled by a probe
//! when a process ended in it.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_runtime::{EffectId, Finished, Hold, Nature, Performed, Probe, Scene};
use selvedge_tool::{CopyError, Merged, StrayLink, Survey, Surveyed, WorkCopy};
use serde::{Deserialize, Serialize};

use crate::call::AgentOutcome;
use crate::performer::AgentPerformer;
use crate::spec::RunSpec;

/// The pause of a run whose work cannot be merged.
const MERGE: &str = "merge";

/// The event that says that the copy a run worked on is gone, and its work with it.
pub const COPY_REMOVED: &str = "CopyRemoved";

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Upkeep {
    /// What the run started with.
    pub spec: Arc<RunSpec>,
    /// What.
    pub chore: Chore,
}

/// One kind of upkeep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Makes the copy that is worked on.
    Copy,
    /// Looks which files there are.
    Survey,
    /// Looks again, and says what has changed since this survey.
    Compare {
        /// Which.
        since: EffectId,
        /// Files that a result claims to have changed: what became of them.
        claimed: Vec<String>,
    },
    /// Merges the copy into the user's directory.
    Merge {
        /// The commit that the copy began with.
        base: String,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "upkeep", rename_all = "snake_case")]
pub enum UpkeepOutcome {
    /// The copy is there.
    Copied {
        /// The commit that it began with.
        base: String,
    },
    /// The files were looked at.
    Surveyed {
        /// The survey, as JSON.
        files: Payload,
    },
    /// They were looked at again.
    Compared {
        /// What has changed.
        changed: Surveyed,
    },
    /// The work is in the user's directory.
    Merged {
        /// The files that were changed.
        files: Vec<String>,
        /// Links that lead out of the directory, and stayed out of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<StrayLink>,
    },
    /// It cannot be done.
    Failed {
        /// Why not.
        why: String,
    },
}

impl Chore {
    /// The noun in its events.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Copy => "Copy",
            Self::Survey | Self::Compare { .. } => "Survey",
            Self::Merge { .. } => "Merge",
        }
    }

    /// What repeating it would do.
    pub fn nature(&self) -> Nature {
        match self {
            Self::Copy | Self::Merge { .. } => Nature::Changes,
            Self::Survey | Self::Compare { .. } => Nature::Reads,
        }
    }
}

impl AgentPerformer {
    /// Does what is to be done.
    pub(crate) async fn keep_up(&self, scene: Scene, upkeep: Upkeep) -> Performed<AgentOutcome> {
        let done = match &upkeep.chore {
            Chore::Copy => self.copy(&scene, &upkeep.spec).await,
            Chore::Survey => self.survey(&scene, &upkeep.spec).await,
            Chore::Compare { since, claimed } => {
                self.compare(&scene, &upkeep.spec, since, claimed).await
            }
            Chore::Merge { base } => match self.merge(&scene, &upkeep.spec, base).await {
                Ok(done) => Ok(done),
                Err(_) if scene.cancel.is_cancelled() => return Performed::Interrupted(None),
                // Somebody can help: the work is kept, and merged when it goes on.
                Err(error) => return Performed::Held(hold(&upkeep.spec, &error), None),
            },
        };
        match done {
            Ok(done) => Performed::Finished(AgentOutcome::Upkeep(done)),
            Err(_) if scene.cancel.is_cancelled() => Performed::Interrupted(None),
            Err(CopyError(why)) => {
                Performed::Finished(AgentOutcome::Upkeep(UpkeepOutcome::Failed { why }))
            }
        }
    }

    /// Whether it happened. A copy that nobody has worked on yet is made again, and so
    /// is a merge that is not known to be complete: what is there already stays.
    pub(crate) fn upkeep_happened(&self, upkeep: &Upkeep) -> Probe<AgentOutcome> {
        let copy = upkeep.spec.terms.copy.as_ref();
        match (&upkeep.chore, copy.and_then(WorkCopy::merged)) {
            (Chore::Merge { .. }, Some(Merged::Done { files, left_out })) => {
                let merged = UpkeepOutcome::Merged { files, left_out };
                Probe::Happened(AgentOutcome::Upkeep(merged))
            }
            _ => Probe::DidNotHappen,
        }
    }

    async fn copy(&self, scene: &Scene, spec: &RunSpec) -> Result<UpkeepOutcome, CopyError> {
        let copy = copy_of(spec)?;
        let base = copy.make(&scene.cancel).await?;
        Ok(UpkeepOutcome::Copied { base })
    }

    async fn survey(&self, scene: &Scene, spec: &RunSpec) -> Result<UpkeepOutcome, CopyError> {
        let survey = Survey::take(&spec.workspace, &scene.cancel).await?;
        let files = serde_json::to_string(&survey).expect("plain data");
        Ok(UpkeepOutcome::Surveyed {
            files: Payload::new(files),
        })
    }

    async fn compare(
        &self,
        scene: &Scene,
        spec: &RunSpec,
        since: &EffectId,
        claimed: &[String],
    ) -> Result<UpkeepOutcome, CopyError> {
        let gone = |why: String| CopyError(format!("the survey before cannot be read: {why}"));
        let events = self.ledger.read(&scene.stream, 0).await;
        let events = events.map_err(|error| gone(error.to_string()))?;
        let before = events
            .iter()
            .filter(|event| &*event.kind == "SurveyFinished")
            .filter_map(|event| event.decode::<Finished<UpkeepOutcome>>().ok())
            .find(|finished| finished.effect == *since);
        let Some(UpkeepOutcome::Surveyed { files }) = before.map(|finished| finished.outcome)
        else {
            return Err(gone("there is none".into()));
        };
        let text = self.ledger.text(&files).await;
        let text = text.map_err(|error| gone(error.to_string()))?;
        let before: Survey = serde_json::from_str(&text).map_err(|e| gone(e.to_string()))?;
        let after = Survey::take(&spec.workspace, &scene.cancel).await?;
        Ok(UpkeepOutcome::Compared {
            changed: before.compare_claimed(&after, &spec.workspace, claimed),
        })
    }

    async fn merge(
        &self,
        scene: &Scene,
        spec: &RunSpec,
        base: &str,
    ) -> Result<UpkeepOutcome, CopyError> {
        match copy_of(spec)?.merge(base, &scene.cancel).await? {
            Merged::Done { files, left_out } => Ok(UpkeepOutcome::Merged { files, left_out }),
            Merged::Conflict { files } => Err(CopyError(format!(
                "you and the agents changed the same in {}",
                files.join(", ")
            ))),
        }
    }
}

fn copy_of(spec: &RunSpec) -> Result<&WorkCopy, CopyError> {
    let copy = spec.terms.copy.as_ref();
    copy.ok_or_else(|| CopyError("the run does not work on a copy".into()))
}

fn hold(spec: &RunSpec, error: &CopyError) -> Hold {
    let copy = spec.terms.copy.as_ref();
    let work = copy.map(WorkCopy::work).unwrap_or_default();
    let touched = copy.map(WorkCopy::touched).unwrap_or_default();
    Hold {
        reason: MERGE.into(),
        detail: format!(
            "{error}. {}; the work is in {}. Undo or move your own change, then go on, and it is \
             merged",
            untouched(&touched),
            work.display()
        ),
        until: None,
    }
}

/// What became of the user's files, when nothing was merged.
fn untouched(but: &[String]) -> String {
    match but {
        [] => "None of your files was changed".into(),
        names => format!(
            "An earlier attempt was stopped while it wrote, and all was put back but {}, which had \
             been changed meanwhile: look at what is there",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_could_not_be_put_back_is_named() {
        assert_eq!(untouched(&[]), "None of your files was changed");
        let named = untouched(&["a.txt".into(), "b.txt".into()]);
        assert!(named.contains("but a.txt, b.txt, which"), "{named}");
    }
}
