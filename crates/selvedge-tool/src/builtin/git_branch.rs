//! Makes a branch among those that belong to agents.
//!
//! An agent's branches are called `selvedge/…`. It moves and removes none, its own
//! included, so that no commit of anybody is lost.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::git::{GIT, Git, revision, words};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

pub(super) struct GitBranch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Its name after `selvedge/`, such as `faster-search`.
    name: String,
    /// The commit it begins at. Default: HEAD.
    start: Option<String>,
}

/// What is on record before a branch is made.
#[derive(Serialize, Deserialize)]
struct Evidence {
    branch: String,
    commit: String,
}

#[async_trait]
impl Tool for GitBranch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_branch".into(),
            description: "Make a new branch, `selvedge/NAME`. The files stay as they are.".into(),
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
        let Arguments { name, start } = schema::arguments(input)?;
        let branch = own_branch(&name)?;
        let git = Git::open(context).await?;
        if tip(&git, &branch).await.is_some() {
            return Err(ToolOutput::error(format!(
                "there is a branch `{branch}` already; choose another name"
            )));
        }
        let commit = commit(&git, start.as_deref().unwrap_or("HEAD")).await?;
        Ok(json!(Evidence { branch, commit }))
    }

    async fn run(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolOutput {
        make(context, evidence)
            .await
            .unwrap_or_else(|output| output)
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let (Ok(begun), Ok(git)) = (Evidence::deserialize(evidence), Git::open(context).await)
        else {
            return ToolProbe::Unknown;
        };
        match tip(&git, &begun.branch).await {
            None => ToolProbe::DidNotHappen,
            Some(tip) if tip == begun.commit => ToolProbe::Happened(confirm(&begun)),
            Some(_) => ToolProbe::Unknown,
        }
    }
}

async fn make(context: &ToolContext, evidence: &Value) -> Result<ToolOutput, ToolOutput> {
    let begun = Evidence::deserialize(evidence)
        .map_err(|error| ToolOutput::error(format!("what was prepared cannot be read: {error}")))?;
    let git = Git::open(context).await?;
    let line = [
        "branch",
        "--no-track",
        "--end-of-options",
        &begun.branch,
        &begun.commit,
    ];
    git.must("make the branch", words(&line)).await?;
    Ok(confirm(&begun))
}

fn confirm(made: &Evidence) -> ToolOutput {
    let Evidence { branch, commit } = made;
    ToolOutput::ok(format!(
        "made `{branch}` at `{}`",
        &commit[..commit.len().min(12)]
    ))
    .with_facts(json!({ "branch": branch, "commit": commit }))
}

/// The commit that a branch is at, if there is such a branch.
pub(super) async fn tip(git: &Git<'_>, branch: &str) -> Option<String> {
    commit(git, &format!("refs/heads/{branch}")).await.ok()
}

/// The commit that a revision means.
pub(super) async fn commit(git: &Git<'_>, name: &str) -> Result<String, ToolOutput> {
    revision(name)?;
    let name = format!("{name}^{{commit}}");
    let line = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &name,
    ];
    let text = git.must("find the commit", words(&line)).await?;
    // The option is echoed before what it ends.
    Ok(text.lines().last().unwrap_or_default().to_owned())
}

/// The name of an agent's branch.
pub(super) fn own_branch(name: &str) -> Result<String, ToolOutput> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_word = |part: &str| {
        !part.is_empty()
            && part.chars().all(is_plain)
            && !part.starts_with(['-', '.'])
            && !part.ends_with(".lock")
            && !part.ends_with('.')
            && !part.contains("..")
    };
    let name = name.strip_prefix("selvedge/").unwrap_or(name);
    match name.len() <= 100 && name.split('/').all(is_word) {
        true => Ok(format!("selvedge/{name}")),
        false => Err(ToolOutput::error(format!(
            "`{}` cannot be a name here: use letters, digits, `-`, `_` and `.`",
            name.escape_debug()
        ))),
    }
}
