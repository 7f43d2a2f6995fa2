//! Whole directories as trees in git's object store: taken, merged, compared.
//!
//! Every step names the repository and an index of its own. What the user has staged is
//! not touched, and a `.git` in the copy, where agents were at work, is not believed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{CopyError, GIT_PATIENCE};
use crate::builtin::git::{Git, words};
use crate::workspace::Workspace;

/// Arguments of one command line.
const PATHS_AT_ONCE: usize = 500;
const LINK_TO_A_REPOSITORY: &str = "160000";
const SYMLINK: &str = "120000";
const EXECUTABLE: &str = "100755";
const ABSENT: &str = "000000";

/// The repository that trees are kept in.
pub(super) struct Trees<'a> {
    git: Git<'a>,
    cancel: &'a CancellationToken,
    repository: PathBuf,
    index: PathBuf,
    /// What the user has in the index, where there is a user's index.
    user_index: Option<PathBuf>,
}

/// One path that differs between two trees.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    old_mode: String,
    new_mode: String,
}

impl Change {
    pub(super) fn is_link_to_a_repository(&self) -> bool {
        [&self.old_mode, &self.new_mode]
            .iter()
            .any(|mode| *mode == LINK_TO_A_REPOSITORY)
    }

    pub(super) fn was_there(&self) -> bool {
        self.old_mode != ABSENT
    }

    pub(super) fn is_there(&self) -> bool {
        self.new_mode != ABSENT
    }

    pub(super) fn is_executable(&self) -> bool {
        self.new_mode == EXECUTABLE
    }

    pub(super) fn was_executable(&self) -> bool {
        self.old_mode == EXECUTABLE
    }

    pub(super) fn is_a_symlink(&self) -> bool {
        [&self.old_mode, &self.new_mode]
            .iter()
            .any(|mode| *mode == SYMLINK)
    }
}

impl<'a> Trees<'a> {
    /// In the user's repository.
    pub(super) async fn of_repository(
        user: &'a Workspace,
        index: PathBuf,
        cancel: &'a CancellationToken,
    ) -> Result<Self, CopyError> {
        let mut git = Git::of(user, cancel, GIT_PATIENCE).await?;
        git.with_identity().await?;
        let ask = |what| git.must("find the repository", words(what));
        let repository = ask(&["rev-parse", "--absolute-git-dir"]).await?;
        let user_index = ask(&["rev-parse", "--git-path", "index"]).await?;
        let user_index = user.root().join(user_index.trim_end());
        Ok(Self {
            cancel,
            repository: repository.trim_end().into(),
            index,
            user_index: Some(user_index),
            git,
        })
    }

    /// In a private repository, made if need be.
    pub(super) async fn apart(
        user: &'a Workspace,
        repository: PathBuf,
        index: PathBuf,
        cancel: &'a CancellationToken,
    ) -> Result<Self, CopyError> {
        let mut git = Git::apart(user, cancel, GIT_PATIENCE)?;
        if !repository.join("HEAD").exists() {
            let place = repository.display().to_string();
            // Without a template: what the user's git puts into new repositories has no
            // part in it.
            let make = words(&["init", "--quiet", "--bare", "--template=", "--", &place]);
            git.must("make a repository", make).await?;
        }
        git.with_identity().await?;
        Ok(Self {
            git,
            cancel,
            repository,
            index,
            user_index: None,
        })
    }

    /// The user's directory as it is, with what is not committed.
    pub(super) async fn of_the_user(&self, user: &Workspace) -> Result<String, CopyError> {
        let _ = std::fs::remove_file(&self.index);
        if let Some(own) = self.user_index.as_ref().filter(|index| index.exists()) {
            // It knows which files have not changed, and tracks what is ignored.
            std::fs::copy(own, &self.index)?;
        }
        self.take(user).await
    }

    /// A directory as it is, that was `base` once.
    pub(super) async fn since(
        &self,
        base: &str,
        directory: &Workspace,
    ) -> Result<String, CopyError> {
        self.read(base).await?;
        self.take(directory).await
    }

    /// A commit of a tree.
    pub(super) async fn commit(
        &self,
        tree: &str,
        parent: Option<&str>,
    ) -> Result<String, CopyError> {
        let mut line = vec!["commit-tree", "-m", "selvedge: a working tree", tree];
        line.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        let head = self.in_repository().ask(words(&HEAD)).await?;
        // The history stays visible in the copy.
        if parent.is_none() && head.0 {
            line.extend(["-p", head.1.trim_end()]);
        }
        self.name("commit", words(&line)).await
    }

    /// Makes a working tree at `commit`.
    pub(super) async fn check_out(&self, commit: &str, at: &Path) -> Result<(), CopyError> {
        let place = at.display().to_string();
        let line = [
            "worktree", "add", "--quiet", "--detach", "--", &place, commit,
        ];
        let git = self.in_repository();
        git.must("make a working tree", words(&line)).await?;
        Ok(())
    }

    /// Makes the files of a working tree at `base` those of another tree.
    pub(super) async fn fill(
        &self,
        base: &str,
        tree: &str,
        directory: &Workspace,
    ) -> Result<(), CopyError> {
        self.read(base).await?;
        let git = self.at(directory).await?;
        let line = words(&["read-tree", "--reset", "-u", tree]);
        git.must("put the files there", line).await?;
        Ok(())
    }

    /// Both trees in one, or where they cannot be.
    pub(super) async fn merged(
        &self,
        base: &str,
        mine: &str,
        theirs: &str,
    ) -> Result<Result<String, Vec<String>>, CopyError> {
        let mine = self.commit(mine, Some(base)).await?;
        let theirs = self.commit(theirs, Some(base)).await?;
        let mut line = words(&["merge-tree", "--write-tree", "-z", "--name-only"]);
        line.extend(words(&["--no-messages", &mine, &theirs]));
        let mut git = self.in_repository();
        git.without_drivers().await?;
        let (is_clean, text) = git.ask(line).await?;
        let mut fields = text.split('\0').filter(|field| !field.is_empty());
        let Some(tree) = fields.next().filter(|tree| is_hash(tree)) else {
            return Err(CopyError(format!("git could not merge: {}", text.trim())));
        };
        Ok(match is_clean {
            true => Ok(tree.to_owned()),
            false => Err(fields.map(str::to_owned).collect()),
        })
    }

    /// What differs between two trees, by name.
    pub(super) async fn names(&self, from: &str, to: &str) -> Result<Vec<String>, CopyError> {
        let changes = self.changes(from, to).await?;
        Ok(changes
            .iter()
            .map(|change| change.path.display().to_string())
            .collect())
    }

    /// What differs between two trees.
    pub(super) async fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>, CopyError> {
        let from = format!("{from}^{{tree}}");
        let line = words(&["diff-tree", "-r", "-z", "--raw", "--no-renames", &from, to]);
        let text = self.in_repository().must("compare", line).await?;
        let mut fields = text.split('\0').filter(|field| !field.is_empty());
        let mut changes = Vec::new();
        while let (Some(what), Some(path)) = (fields.next(), fields.next()) {
            let mut parts = what.trim_start_matches(':').split(' ');
            let (Some(old_mode), Some(new_mode)) = (parts.next(), parts.next()) else {
                return Err(CopyError("git compared in an unexpected way".into()));
            };
            changes.push(Change {
                path: path.into(),
                old_mode: old_mode.to_owned(),
                new_mode: new_mode.to_owned(),
            });
        }
        Ok(changes)
    }

    /// Puts the files of `tree` that are changed into a folder.
    pub(super) async fn stage(
        &self,
        tree: &str,
        changes: &[Change],
        folder: &Path,
    ) -> Result<(), CopyError> {
        std::fs::create_dir_all(folder)?;
        self.read(tree).await?;
        let git = self
            .in_repository()
            .with(&[("GIT_INDEX_FILE", &self.index), ("GIT_WORK_TREE", folder)]);
        let prefix = format!("--prefix={}/", folder.display());
        let names: Vec<&str> = changes.iter().filter_map(|c| c.path.to_str()).collect();
        for some in names.chunks(PATHS_AT_ONCE) {
            // Those that the tree does not have are passed over.
            let mut line = vec!["checkout-index", "--quiet", "--force", &prefix, "--"];
            line.extend(some);
            git.ask(words(&line)).await?;
        }
        Ok(())
    }

    async fn read(&self, tree: &str) -> Result<(), CopyError> {
        let _ = std::fs::remove_file(&self.index);
        let git = self
            .in_repository()
            .with(&[("GIT_INDEX_FILE", &self.index)]);
        git.must("read a tree", words(&["read-tree", tree])).await?;
        Ok(())
    }

    /// Adds everything that is in a directory to the index, and keeps it.
    async fn take(&self, directory: &Workspace) -> Result<String, CopyError> {
        let git = self.at(directory).await?;
        git.must("take the files", words(&["add", "--all"])).await?;
        let tree = git.must("keep the files", words(&["write-tree"])).await?;
        self.hash("tree", &tree)
    }

    /// Git with the files of a directory, and the index of our own.
    async fn at<'b>(&self, directory: &'b Workspace) -> Result<Git<'b>, CopyError>
    where
        'a: 'b,
    {
        let git = Git::apart(directory, self.cancel, GIT_PATIENCE)?;
        let mut git = git.with(&[
            ("GIT_DIR", &self.repository),
            ("GIT_WORK_TREE", directory.root()),
            ("GIT_INDEX_FILE", &self.index),
        ]);
        git.without_filters().await?;
        Ok(git)
    }

    async fn name(&self, what: &str, line: Vec<std::ffi::OsString>) -> Result<String, CopyError> {
        let text = self.in_repository().must("keep a commit", line).await?;
        self.hash(what, &text)
    }

    fn hash(&self, what: &str, text: &str) -> Result<String, CopyError> {
        // Warnings may stand before it.
        match text.lines().rfind(|line| is_hash(line)) {
            Some(hash) => Ok(hash.to_owned()),
            None => Err(CopyError(format!("git named no {what}: {}", text.trim()))),
        }
    }

    fn in_repository(&self) -> Git<'a> {
        self.git.with(&[("GIT_DIR", &self.repository)])
    }
}

const HEAD: [&str; 5] = [
    "rev-parse",
    "--verify",
    "--quiet",
    "--end-of-options",
    "HEAD^{commit}",
];

fn is_hash(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
