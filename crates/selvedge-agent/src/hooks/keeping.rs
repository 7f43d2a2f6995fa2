//! Keeps what files were before a call changes them, and puts them back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use selvedge_ledger::StreamId;
use selvedge_runtime::Scene;
use selvedge_tool::{
    Checked, Checkpoint, Coverage, Secrets, ToolContext, ToolOutput, Touch, Workspace,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hooked::Hooked;
use super::strikes::{Restore, RestoreOutcome};
use crate::call::ToolUse;
use crate::performer::AgentPerformer;

/// Where checkpoints are kept: in a private folder of each session.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    sessions: Option<PathBuf>,
    /// The latest of each stream, at hand: what it holds is read once.
    latest: Mutex<HashMap<StreamId, (u32, Checkpoint)>>,
}

/// The evidence of a call that hooks had a hand in, or that files were kept for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Readied {
    /// What the tool itself wants on record.
    tool_evidence: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hooked: Option<Hooked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Coverage>,
}

impl Readied {
    /// The evidence to record; that of the tool alone, if there is nothing else.
    pub(crate) fn evidence(tool: Value, hooked: Hooked, kept: Option<Coverage>) -> Value {
        let readied = Self {
            tool_evidence: tool,
            hooked: hooked.if_any(),
            kept,
        };
        match (&readied.hooked, &readied.kept) {
            (None, None) => readied.tool_evidence,
            _ => serde_json::to_value(readied).expect("plain data"),
        }
    }

    /// The tool's own evidence, and what hooks did.
    pub(crate) fn read(evidence: Value) -> (Value, Hooked) {
        if evidence.get("tool_evidence").is_none() {
            return (evidence, Hooked::default());
        }
        let readied = Self::deserialize(evidence).unwrap_or_default();
        (readied.tool_evidence, readied.hooked.unwrap_or_default())
    }
}

impl Keeper {
    /// Keeps them below the folder of each session in `sessions`.
    pub(crate) fn at(sessions: PathBuf) -> Self {
        Self {
            sessions: Some(sessions),
            ..Self::default()
        }
    }

    fn checkpoint(&self, scene: &Scene, task: u32, secrets: &Secrets) -> Option<Checkpoint> {
        let stream = &scene.stream;
        let session = self.sessions.as_ref()?.join(stream.session().as_str());
        let mut latest = self.latest.lock().expect("no panic under this lock");
        match latest.get(stream) {
            Some((at, checkpoint)) if *at == task => Some(checkpoint.clone()),
            _ => {
                let name = format!("{}-{task}", stream.as_str().replace('/', "+"));
                let checkpoint =
                    Checkpoint::at(session.join("checkpoints").join(name), secrets.clone());
                latest.insert(stream.clone(), (task, checkpoint.clone()));
                Some(checkpoint)
            }
        }
    }
}

impl AgentPerformer {
    /// Keeps what the call may change, once for each stretch of work. A call whose
    /// files cannot be kept is not begun.
    pub(crate) async fn keep(
        &self,
        scene: &Scene,
        used: &ToolUse,
        context: &ToolContext,
        checked: &Checked,
    ) -> Result<Option<Coverage>, ToolOutput> {
        if used.spec.limits.strikes_max == 0 {
            return Ok(None);
        }
        let touch = self.toolbox.touch(&context.workspace, checked);
        if touch == Touch::Nothing {
            return Ok(None);
        }
        let Some(checkpoint) = self
            .keeper
            .checkpoint(scene, used.task, self.toolbox.secrets())
        else {
            return Ok(None);
        };
        let (workspace, cancel) = (context.workspace.clone(), context.cancel.clone());
        let kept = tokio::task::spawn_blocking(move || match touch {
            Touch::Nothing => Ok(None),
            Touch::Files(paths) => {
                let count = checkpoint.keep(&workspace, &paths)?;
                Ok((count > 0).then_some(Coverage::Named))
            }
            Touch::Anything => checkpoint.keep_all(&workspace, &cancel).map(Some),
        });
        let kept: std::io::Result<_> = kept.await.expect("keeping files does not panic");
        kept.map_err(|error| {
            ToolOutput::error(format!(
                "Not done: what it would change cannot be kept first ({error}), so it could not \
                 be undone. Tell the user."
            ))
        })
    }

    /// Puts the files of a stretch of work back.
    pub(crate) async fn restore(&self, scene: Scene, restore: Restore) -> RestoreOutcome {
        let mut outcome = RestoreOutcome {
            failures: restore.failures,
            ..RestoreOutcome::default()
        };
        let Some(checkpoint) = self
            .keeper
            .checkpoint(&scene, restore.task, self.toolbox.secrets())
        else {
            outcome.error = Some("nothing was kept".into());
            return outcome;
        };
        let (root, cancel) = (restore.spec.workspace.clone(), scene.cancel.clone());
        let restored = tokio::task::spawn_blocking(move || {
            checkpoint.restore(&Workspace::open(&root)?, &cancel)
        });
        match restored.await.expect("putting files back does not panic") {
            Ok(files) => outcome.files = files,
            Err(error) => outcome.error = Some(error.to_string()),
        }
        outcome
    }
}
