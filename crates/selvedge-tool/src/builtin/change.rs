//! A change of files: planned in memory, put on record, then made all at once.
//!
//! The record holds a hash of each file before and after. It is what lets a probe
//! say, after a crash, whether the change was made, and what lets the act refuse
//! when somebody else has changed the file meanwhile.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::secrets;
use crate::tool::{ToolContext, ToolOutput, ToolProbe};
use crate::workspace::{FILE_BYTES_MAX, PathError, Place, Workspace};

/// One file's change, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Change {
    /// Where the file is, from the workspace root.
    pub(super) path: String,
    /// BLAKE3 of its content before; absent if there is no file yet.
    pub(super) before: Option<String>,
    /// BLAKE3 of its content after.
    pub(super) after: String,
}

/// One file's change, with everything needed to make and to undo it.
pub(super) struct Planned {
    pub(super) change: Change,
    resolved: PathBuf,
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

/// What a file has now, compared to its record.
#[derive(Debug, PartialEq)]
enum State {
    Before,
    After,
    Other,
}

impl Planned {
    /// Plans new content for a file that [`Workspace::destination`] has resolved.
    pub(super) fn new(resolved: PathBuf, old: Option<Vec<u8>>, new: Vec<u8>) -> Self {
        let change = Change {
            path: resolved.to_string_lossy().into_owned(),
            before: old.as_deref().map(hash),
            after: hash(&new),
        };
        Self {
            change,
            resolved,
            old,
            new,
        }
    }

    /// Plans the replacement of a whole file, which need not exist.
    pub(super) fn whole(
        workspace: &Workspace,
        path: &str,
        new: Vec<u8>,
    ) -> Result<Self, PathError> {
        if new.len() as u64 > FILE_BYTES_MAX {
            return Err(PathError::TooLarge {
                path: path.into(),
                bytes: new.len() as u64,
                bytes_max: FILE_BYTES_MAX,
            });
        }
        let resolved = workspace.destination(path)?;
        let old = match workspace.read_whole(path) {
            Ok((content, _)) => Some(content),
            Err(PathError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Self::new(resolved, old, new))
    }

    pub(super) fn is_new(&self) -> bool {
        self.old.is_none()
    }

    pub(super) fn bytes(&self) -> usize {
        self.new.len()
    }
}

/// The writing of one whole file whose content a tool makes itself.
pub(super) struct Writing {
    path: String,
    content: String,
}

impl Writing {
    pub(super) fn new(path: impl Into<String>, content: String) -> Self {
        let path = path.into();
        Self { path, content }
    }

    async fn plan(&self, context: &ToolContext) -> Result<Planned, ToolOutput> {
        let (path, content) = (self.path.clone(), self.content.clone().into_bytes());
        let workspace = std::sync::Arc::clone(&context.workspace);
        let planned = super::blocking(move || Planned::whole(&workspace, &path, content)).await?;
        spare_secrets(context, &planned)?;
        Ok(planned)
    }

    /// What must be on record before it is written: an object, so that more can be added.
    pub(super) async fn prepare(&self, context: &ToolContext) -> Result<Value, ToolOutput> {
        Ok(json!({ "change": self.plan(context).await?.change }))
    }

    /// Writes it; the facts of that.
    pub(super) async fn run(
        &self,
        context: &ToolContext,
        evidence: &Value,
    ) -> Result<Value, ToolOutput> {
        let planned = self.plan(context).await?;
        let recorded = Change::deserialize(&evidence["change"]).ok();
        let workspace = std::sync::Arc::clone(&context.workspace);
        super::blocking(move || {
            unchanged(&workspace, recorded.as_slice())?;
            make(&workspace, std::slice::from_ref(&planned))?;
            Ok(facts(std::slice::from_ref(&planned.change)))
        })
        .await
    }

    /// Whether it was written.
    pub(super) async fn probe(
        &self,
        context: &ToolContext,
        evidence: &Value,
        words: &str,
    ) -> ToolProbe {
        let Ok(recorded) = Change::deserialize(&evidence["change"]) else {
            return ToolProbe::Unknown;
        };
        let (workspace, words) = (std::sync::Arc::clone(&context.workspace), words.to_owned());
        super::blocking(move || {
            let recorded = std::slice::from_ref(&recorded);
            probe(&workspace, recorded, || {
                ToolOutput::ok(words).with_facts(facts(recorded))
            })
        })
        .await
    }
}

/// Refuses a change that would put a marker in the place of a secret, and takes note
/// of a file that will hold secrets.
pub(super) fn spare_secrets(context: &ToolContext, planned: &Planned) -> Result<(), ToolOutput> {
    let Planned {
        resolved, old, new, ..
    } = planned;
    if context.secrets.is_sensitive(resolved) {
        context.secrets.note(&context.workspace, resolved);
    }
    match secrets::loses_secrets(&context.secrets, resolved, old.as_deref(), new) {
        Some(refusal) => Err(refusal),
        None => Ok(()),
    }
}

/// Makes the planned changes, all of them or none.
pub(super) fn make(workspace: &Workspace, planned: &[Planned]) -> Result<(), ToolOutput> {
    let failed = |item: &Planned, error: std::io::Error| {
        ToolOutput::from(PathError::from_io(&item.change.path, error))
    };
    let mut places = Vec::new();
    for item in planned {
        let place = Place::create(workspace, &item.resolved).map_err(|e| failed(item, e))?;
        places.push(place);
    }
    // Everything that can fail for want of space or rights fails here, before the
    // first file has changed.
    let mut staged = Vec::new();
    for (item, place) in planned.iter().zip(&places) {
        staged.push(place.stage(&item.new).map_err(|e| failed(item, e))?);
    }
    for (index, stage) in staged.into_iter().enumerate() {
        if let Err(error) = stage.commit() {
            let mut output = failed(&planned[index], error);
            output
                .text
                .push_str(&undo(&planned[..index], &places[..index]));
            return Err(output);
        }
    }
    Ok(())
}

/// Puts back what was there; says what could not be.
fn undo(planned: &[Planned], places: &[Place]) -> String {
    let mut left = Vec::new();
    for (item, place) in planned.iter().zip(places) {
        let restored = match &item.old {
            Some(old) => place.stage(old).and_then(|stage| stage.commit()),
            None => place.remove(),
        };
        if restored.is_err() {
            left.push(format!("`{}`", item.change.path));
        }
    }
    match left.is_empty() {
        true => "; nothing was changed".into(),
        false => format!("; changed nevertheless: {}", left.join(", ")),
    }
}

/// Refuses if a file no longer has what it had when the change was planned.
pub(super) fn unchanged(workspace: &Workspace, recorded: &[Change]) -> Result<(), ToolOutput> {
    for change in recorded {
        let as_before = match state(workspace, change) {
            State::Before => true,
            State::After => change.before.as_ref() == Some(&change.after),
            State::Other => false,
        };
        if !as_before {
            return Err(ToolOutput::error(format!(
                "`{}` was changed by somebody else meanwhile; nothing was written: \
                 read it again, then decide",
                change.path
            )));
        }
    }
    Ok(())
}

/// Whether recorded changes were made.
///
/// Where each file is known to have either its old or its new content, the answer
/// is known too, even if it is "half of them": that is told as a failure.
pub(super) fn probe(
    workspace: &Workspace,
    recorded: &[Change],
    success: impl FnOnce() -> ToolOutput,
) -> ToolProbe {
    let states: Vec<State> = recorded
        .iter()
        .map(|change| state(workspace, change))
        .collect();
    if recorded.is_empty() || states.contains(&State::Other) {
        return ToolProbe::Unknown;
    }
    if states.iter().all(|state| *state == State::After) {
        return ToolProbe::Happened(success());
    }
    if states.iter().all(|state| *state == State::Before) {
        return ToolProbe::DidNotHappen;
    }
    let of = |wanted: State| {
        let paths = recorded.iter().zip(&states);
        let paths = paths.filter(|(_, state)| **state == wanted);
        let paths: Vec<_> = paths
            .map(|(change, _)| format!("`{}`", change.path))
            .collect();
        paths.join(", ")
    };
    let (after, before) = (of(State::After), of(State::Before));
    ToolProbe::Happened(
        ToolOutput::error(format!(
            "the change stopped half way: {after} have the new content, {before} still the old; \
             read them, then finish or undo it"
        ))
        .with_facts(facts(recorded)),
    )
}

/// What a program can rely on after a change.
pub(super) fn facts(changes: &[Change]) -> Value {
    match changes {
        [change] => json!(change),
        changes => json!({ "files": changes }),
    }
}

fn state(workspace: &Workspace, change: &Change) -> State {
    let now = match workspace.read_whole(&change.path) {
        Ok((content, _)) => Some(hash(&content)),
        Err(PathError::Missing { .. }) => None,
        Err(_) => return State::Other,
    };
    if now.as_ref() == Some(&change.after) {
        State::After
    } else if now == change.before {
        State::Before
    } else {
        State::Other
    }
}

fn hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}
