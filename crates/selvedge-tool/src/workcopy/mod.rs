//! A copy of the user's files to work in, merged back all at once.
//!
//! The copy is a working tree of the user's repository, or of a private one where the
//! user has none. It begins with what the user sees, changes that are not committed
//! included. Nothing of the user's is touched before the end, and then every file or
//! none: the user's files as they are then, and the work, are merged in git's object
//! store first. Where both changed the same lines, nothing is written at all.
//!
//! Merging twice is merging once: what is there already is no change. That is what
//! lets a merge that was interrupted simply be done again, after what it wrote was put
//! back.

mod apply;
mod journal;
mod links;
mod tree;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::builtin::git::{Git, top_of, words};
use crate::tool::ToolOutput;
use crate::workspace::Workspace;
pub use links::StrayLink;
use tree::Trees;

/// Hashing a large repository takes its time.
const GIT_PATIENCE: Duration = Duration::from_secs(600);
/// Somebody who saves again and again while it is merged is in the way.
const ATTEMPTS_MAX: u32 = 3;

const WORK: &str = "work";
const REPOSITORY: &str = "repository";
const STAGING: &str = "staging";
const MERGED: &str = "merged.json";

/// A copy of the user's files: where from, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkCopy {
    /// The user's own directory.
    pub origin: PathBuf,
    /// The folder that the copy is kept in, with what belongs to it.
    pub folder: PathBuf,
    /// The top of the repository that the origin is in, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<PathBuf>,
}

/// What came of merging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merged {
    /// The work is in the user's directory; these files changed there.
    Done {
        /// From the top of the copy.
        files: Vec<String>,
        /// Links that were not merged.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<StrayLink>,
    },
    /// Nothing was written: the user changed the same.
    Conflict {
        /// Where.
        files: Vec<String>,
    },
}

/// Why there is no copy, or no merge. The user's files are as they were, but for those
/// that [`WorkCopy::touched`] names.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CopyError(pub String);

impl From<ToolOutput> for CopyError {
    fn from(output: ToolOutput) -> Self {
        Self(output.text)
    }
}

impl From<std::io::Error> for CopyError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl WorkCopy {
    /// A copy of `origin` to be kept in `folder`. Looks, and makes nothing.
    pub async fn of(origin: &Path, folder: &Path) -> Result<Self, CopyError> {
        let mut copy = Self {
            origin: origin.to_owned(),
            folder: folder.to_owned(),
            repository: None,
        };
        let Some(top) = top_of(origin) else {
            return Ok(copy);
        };
        // A folder that the repository ignores is not in it.
        let workspace = Workspace::open(top)?;
        let cancel = CancellationToken::new();
        let git = Git::of(&workspace, &cancel, GIT_PATIENCE).await?;
        let name = origin.display().to_string();
        let query = words(&["check-ignore", "--quiet", "--", &name]);
        let is_ignored = top != origin && git.ask(query).await?.0;
        copy.repository = (!is_ignored).then(|| top.to_owned());
        Ok(copy)
    }

    /// The directory to work in.
    pub fn place(&self) -> PathBuf {
        let below = self
            .origin
            .strip_prefix(self.top())
            .unwrap_or(Path::new(""));
        self.work().join(below)
    }

    /// The top of the copy.
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK)
    }

    /// Makes the copy, and says which commit it began with. What an attempt before
    /// left behind goes first.
    pub async fn make(&self, cancel: &CancellationToken) -> Result<String, CopyError> {
        std::fs::create_dir_all(&self.folder)?;
        // First: it puts back what a merge wrote that is not known to be complete.
        self.remove(cancel).await?;
        let _ = std::fs::remove_file(self.folder.join(MERGED));
        journal::forget(&self.folder);
        let user = Workspace::open(self.top())?;
        let trees = self.trees(&user, cancel).await?;
        let tree = trees.of_the_user(&user).await?;
        let base = trees.commit(&tree, None).await?;
        trees.check_out(&base, &self.work()).await?;
        // A directory without files is in no commit.
        std::fs::create_dir_all(self.place())?;
        Ok(base)
    }

    /// A copy of this copy as it is, to be kept in `folder`. Both began with `base`, and
    /// from now on each is on its own.
    pub async fn branch(
        &self,
        base: &str,
        folder: &Path,
        cancel: &CancellationToken,
    ) -> Result<Self, CopyError> {
        let branch = Self {
            folder: folder.to_owned(),
            ..self.clone()
        };
        let work = Workspace::open(&self.work())?;
        std::fs::create_dir_all(folder)?;
        branch.remove(cancel).await?;
        if self.repository.is_none() {
            let (from, to) = (self.folder.join(REPOSITORY), folder.join(REPOSITORY));
            copy_repository(&from, &to)?;
        }
        let user = Workspace::open(self.top())?;
        let trees = branch.trees(&user, cancel).await?;
        let tree = trees.since(base, &work).await?;
        trees.check_out(base, &branch.work()).await?;
        let place = Workspace::open(&branch.work())?;
        trees.fill(base, &tree, &place).await?;
        std::fs::create_dir_all(branch.place())?;
        Ok(branch)
    }

    /// Puts what was done since `base` into the user's directory, all of it or nothing.
    pub async fn merge(&self, base: &str, cancel: &CancellationToken) -> Result<Merged, CopyError> {
        if let Some(done) = self.merged() {
            return Ok(done);
        }
        journal::recover(&Workspace::open(self.top())?, &self.folder)?;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(merged) = self.try_to_merge(base, cancel).await? {
                return Ok(merged);
            }
        }
        Err(CopyError(
            "files of the directory are being changed all the time".into(),
        ))
    }

    /// That the work is in the user's directory, if it is known to be.
    pub fn merged(&self) -> Option<Merged> {
        let text = std::fs::read(self.folder.join(MERGED)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Files of the user's that a merge had written when it was stopped, and that could
    /// not be put back: somebody had changed them since.
    pub fn touched(&self) -> Vec<String> {
        journal::touched(&self.folder)
    }

    /// Whether there is anything of it.
    pub fn is_there(&self) -> bool {
        let parts = [WORK, STAGING, REPOSITORY].iter();
        parts
            .map(|name| self.folder.join(name))
            .any(|path| path.symlink_metadata().is_ok())
    }

    /// Removes the copy. What was done in it is gone, and what a merge wrote that did not
    /// come to its end is put back.
    pub async fn remove(&self, cancel: &CancellationToken) -> Result<(), CopyError> {
        match (self.merged(), Workspace::open(self.top())) {
            (None, Ok(user)) => journal::recover(&user, &self.folder)?,
            // There is nothing to put anything back into.
            (Some(_), _) | (None, Err(_)) => journal::close(&self.folder)?,
        }
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if let Some(top) = &self.repository {
            let workspace = Workspace::open(top)?;
            let git = Git::of(&workspace, cancel, GIT_PATIENCE).await?;
            // This one and no other: `prune` would forget those of a disk that is away.
            // Where git knows of none there is nothing to forget.
            let mut remove = words(&["worktree", "remove", "--force", "--force", "--"]);
            remove.push(self.work().into_os_string());
            git.ask(remove).await?;
        }
        for name in [WORK, STAGING, REPOSITORY] {
            let path = self.folder.join(name);
            if is_there(&path) {
                remove_tree(&path)?;
            }
        }
        Ok(())
    }

    /// One attempt; none if the user's files changed meanwhile.
    async fn try_to_merge(
        &self,
        base: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<Merged>, CopyError> {
        let user = Workspace::open(self.top())?;
        let work = Workspace::open(&self.work())?;
        let trees = self.trees(&user, cancel).await?;
        let done = trees.since(base, &work).await?;
        let mut files = trees.names(base, &done).await?;
        let mine = trees.since(base, &user).await?;
        let merged = match trees.merged(base, &mine, &done).await? {
            Ok(merged) => merged,
            Err(files) => return Ok(Some(Merged::Conflict { files })),
        };
        let mut changes = trees.changes(&mine, &merged).await?;
        if let Some(path) = changes
            .iter()
            .find(|change| change.is_link_to_a_repository())
        {
            let files = vec![path.path.display().to_string()];
            return Ok(Some(Merged::Conflict { files }));
        }
        let mut left_out = Vec::new();
        if !changes.is_empty() {
            let staging = self.folder.join(STAGING);
            if staging.exists() {
                std::fs::remove_dir_all(&staging)?;
            }
            trees.stage(&mine, &changes, &staging.join("old")).await?;
            trees.stage(&merged, &changes, &staging.join("new")).await?;
            left_out = links::take_strays(&user, &mut changes, &staging.join("new"));
            let applied = apply::apply(&user, &changes, &self.folder);
            if !matches!(applied, Ok(true)) {
                journal::close(&self.folder)?;
            }
            // What was applied stays in the journal until it is put down as merged.
            if !applied? {
                return Ok(None);
            }
        }
        let is_left_out = |file: &String| left_out.iter().any(|link| link.path == *file);
        files.retain(|file| !is_left_out(file));
        let merged = Merged::Done { files, left_out };
        self.keep(&merged)?;
        // The work is where it belongs: a copy that cannot be removed is only in the way.
        if let Err(error) = self.remove(cancel).await {
            tracing::warn!(%error, folder = %self.folder.display(), "a copy was left behind");
        }
        Ok(Some(merged))
    }

    /// Puts down that the work is merged, before the copy goes.
    fn keep(&self, merged: &Merged) -> Result<(), CopyError> {
        let text = serde_json::to_vec(merged).expect("plain data");
        journal::replace(&self.folder, MERGED, &text)?;
        journal::forget(&self.folder);
        Ok(())
    }

    async fn trees<'a>(
        &self,
        user: &'a Workspace,
        cancel: &'a CancellationToken,
    ) -> Result<Trees<'a>, CopyError> {
        let index = self.folder.join("index");
        match &self.repository {
            Some(_) => Trees::of_repository(user, index, cancel).await,
            None => Trees::apart(user, self.folder.join(REPOSITORY), index, cancel).await,
        }
    }

    fn top(&self) -> &Path {
        self.repository.as_deref().unwrap_or(&self.origin)
    }
}

/// Copies a repository, without the working trees that it knows of.
fn copy_repository(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == "worktrees" => {}
            true => copy_repository(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// Removes a folder, and in it those that were closed to their owner.
fn remove_tree(path: &Path) -> std::io::Result<()> {
    if std::fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    open_up(path)?;
    std::fs::remove_dir_all(path)
}

fn open_up(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
