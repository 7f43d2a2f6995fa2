//! A working tree of its own for a branch, so that work does not disturb the user's.
//!
//! It is kept below `.selvedge/worktrees`, on a branch of the same name.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::git::{GIT, Git, words};
use super::git_branch::{commit, own_branch, tip};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

pub(super) struct GitWorktree;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Whether to make it or to remove it.
    action: Action,
    /// Its name, such as `faster-search`.
    name: String,
}

#[derive(Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Add,
    Remove,
}

/// What is on record before a working tree is made or removed.
#[derive(Serialize, Deserialize)]
struct Evidence {
    action: Action,
    branch: String,
    path: PathBuf,
    commit: String,
}

#[async_trait]
impl Tool for GitWorktree {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_worktree".into(),
            description:
                "Make a separate working tree on a branch of its own, or remove one whose \
                          work is committed."
                    .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    fn deed(&self, _: &Value) -> Deed {
        Deed::Git {
            operation: Operation::BranchCreate,
            paths: Vec::new(),
        }
    }

    fn bundle(&self) -> Option<&str> {
        Some(GIT)
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let Arguments { action, name } = schema::arguments(input)?;
        let branch = own_branch(&name)?;
        if name.contains('/') {
            return Err(ToolOutput::error("the name of a working tree has no `/`"));
        }
        let path = Path::new(".selvedge/worktrees").join(&name);
        // A link there would lead git elsewhere.
        let text = path.to_string_lossy();
        if context.workspace.destination(&text)? != path {
            return Err(ToolOutput::error(format!(
                "`{text}` is not where it seems to be"
            )));
        }
        let exists = context.workspace.root().join(&path).exists();
        let problem = match (action, exists) {
            (Action::Add, true) => Some("is there already; choose another name"),
            (Action::Remove, false) => Some("does not exist"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(ToolOutput::error(format!(
                "the working tree `{name}` {problem}"
            )));
        }
        let git = Git::open(context).await?;
        let commit = match (action, tip(&git, &branch).await) {
            (Action::Add, Some(_)) => {
                return Err(ToolOutput::error(format!(
                    "there is a branch `{branch}` already; choose another name"
                )));
            }
            (_, Some(tip)) => tip,
            (_, None) => commit(&git, "HEAD").await?,
        };
        Ok(json!(Evidence {
            action,
            branch,
            path,
            commit
        }))
    }

    async fn run(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolOutput {
        act(context, evidence).await.unwrap_or_else(|output| output)
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let Ok(begun) = Evidence::deserialize(evidence) else {
            return ToolProbe::Unknown;
        };
        // Making one takes a moment: only what has not begun is certain.
        let exists = context.workspace.root().join(&begun.path).exists();
        match (begun.action, exists) {
            (Action::Add, false) => ToolProbe::DidNotHappen,
            (Action::Remove, false) => ToolProbe::Happened(confirm(&begun)),
            _ => ToolProbe::Unknown,
        }
    }
}

async fn act(context: &ToolContext, evidence: &Value) -> Result<ToolOutput, ToolOutput> {
    let begun = Evidence::deserialize(evidence)
        .map_err(|error| ToolOutput::error(format!("what was prepared cannot be read: {error}")))?;
    let git = Git::open(context).await?;
    let path = begun.path.to_string_lossy();
    let line = match begun.action {
        Action::Add => words(&[
            "worktree",
            "add",
            "--quiet",
            "--no-track",
            "-b",
            &begun.branch,
            "--",
            &path,
            &begun.commit,
        ]),
        // Without force: what is not committed stays.
        Action::Remove => words(&["worktree", "remove", "--", &path]),
    };
    git.must("do that", line).await?;
    Ok(confirm(&begun))
}

fn confirm(done: &Evidence) -> ToolOutput {
    let Evidence {
        action,
        branch,
        path,
        ..
    } = done;
    let path = path.display();
    let text = match action {
        Action::Add => format!("made `{path}` on the new branch `{branch}`"),
        Action::Remove => format!("removed `{path}`; its commits are on `{branch}`"),
    };
    ToolOutput::ok(text).with_facts(json!({ "path": path.to_string(), "branch": branch }))
}
