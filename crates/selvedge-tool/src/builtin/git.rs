//! The git program, in a repository that nobody vouches for.
//!
//! A repository can name programs for git to run: hooks, filters, signing, a file
//! system monitor. It was written by others, so all of that is switched off here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::process::{self, Limits, Patience, Process};
use crate::tool::{ToolContext, ToolOutput};
use crate::workspace::{PathError, Workspace, refuse_git};

/// Git, at the root of a workspace.
pub(crate) struct Git<'a> {
    workspace: &'a Workspace,
    cancel: &'a CancellationToken,
    timeout: Duration,
    program: PathBuf,
    options: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

/// A commit.
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) parents: Vec<String>,
    pub(super) message: String,
}

/// The bundle of all git tools.
pub(super) const GIT: &str = "git";

// Whatever a repository could make git run, and what would ask or wait.
const HARDENED: [&str; 18] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "commit.gpgSign=false",
    "commit.template=",
    "log.showSignature=false",
    "diff.external=",
    // A submodule has a configuration of its own: nothing in it is looked at.
    "diff.ignoreSubmodules=dirty",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
];

impl<'a> Git<'a> {
    /// The repository of the workspace, to look at.
    pub(super) async fn open(context: &'a ToolContext) -> Result<Self, ToolOutput> {
        Self::of(&context.workspace, &context.cancel, context.timeout).await
    }

    /// The same where there is no tool at work.
    pub(crate) async fn of(
        workspace: &'a Workspace,
        cancel: &'a CancellationToken,
        timeout: Duration,
    ) -> Result<Self, ToolOutput> {
        let mut git = Self::apart(workspace, cancel, timeout)?;
        let query = words(&["rev-parse", "--show-toplevel"]);
        let top = git.must("find the repository", query).await?;
        if Some(Path::new(top.trim_end())) != top_of(workspace.root()) {
            return Err(ToolOutput::error(
                "the repository says that its files are elsewhere (`core.worktree`); nothing was \
                 done: tell the user",
            ));
        }
        git.without_filters().await?;
        Ok(git)
    }

    /// Git without a repository of the workspace's own: variables say which it is.
    pub(crate) fn apart(
        workspace: &'a Workspace,
        cancel: &'a CancellationToken,
        timeout: Duration,
    ) -> Result<Self, ToolOutput> {
        let program = process::find("git", workspace.root())
            .ok_or_else(|| ToolOutput::error("git is not installed on this machine"))?;
        let mut options = vec!["--no-pager".into(), "--literal-pathspecs".into()];
        for setting in HARDENED {
            options.extend(["-c".into(), OsString::from(setting)]);
        }
        Ok(Self {
            workspace,
            cancel,
            timeout,
            program,
            options,
            variables: Vec::new(),
        })
    }

    /// The same with variables of its own, such as another index.
    pub(crate) fn with(&self, variables: &[(&str, &Path)]) -> Self {
        let own = variables
            .iter()
            .map(|(name, path)| (OsString::from(name), path.as_os_str().to_owned()));
        Self {
            program: self.program.clone(),
            options: self.options.clone(),
            variables: self.variables.iter().cloned().chain(own).collect(),
            ..*self
        }
    }

    /// The same, to commit to.
    pub(super) async fn open_to_commit(context: &'a ToolContext) -> Result<Self, ToolOutput> {
        let mut git = Self::open(context).await?;
        git.with_identity().await?;
        Ok(git)
    }

    /// Looks, and answers with what git prints, or that it is `nothing`.
    pub(super) async fn look(
        context: &'a ToolContext,
        arguments: Vec<OsString>,
        nothing: &str,
    ) -> Result<ToolOutput, ToolOutput> {
        let git = Self::open(context).await?;
        let text = git.must("look", arguments).await?;
        Ok(ToolOutput::ok(match text.trim().is_empty() {
            true => format!("[{nothing}]"),
            false => text,
        }))
    }

    /// Switches off the filters that the repository itself defines. Those of the user,
    /// such as LFS, are wanted.
    pub(crate) async fn without_filters(&mut self) -> Result<(), ToolOutput> {
        let pattern = r"^filter\..*\.(clean|smudge|process|required)$";
        let off = |name: &str| match name.ends_with(".required") {
            true => "false",
            false => "",
        };
        self.without(pattern, off).await
    }

    /// Switches off the programs that the repository itself names to merge files. Where
    /// one would be asked, there is a conflict.
    pub(crate) async fn without_drivers(&mut self) -> Result<(), ToolOutput> {
        self.without(r"^merge\..*\.driver$", |_| "false").await
    }

    /// Sets what the repository itself says under names that fit `pattern` to `value`.
    async fn without(
        &mut self,
        pattern: &str,
        value: impl Fn(&str) -> &'static str,
    ) -> Result<(), ToolOutput> {
        let query = [
            "config",
            "--show-scope",
            "--includes",
            "--name-only",
            "--null",
            "--get-regexp",
        ];
        let (_, names) = self.ask(words(&[&query[..], &[pattern]].concat())).await?;
        let mut fields = names.split('\0');
        while let (Some(scope), Some(name)) = (fields.next(), fields.next()) {
            if matches!(scope, "global" | "system" | "command") {
                continue;
            }
            // The name is the repository's: one that is not a plain word could be read
            // as a name and a value.
            if name.contains(['=', '\n']) {
                return Err(ToolOutput::error(format!(
                    "the repository defines an unusual filter (`{}`); commit with a git command \
                     after a look at .git/config",
                    name.escape_debug()
                )));
            }
            let value = value(name);
            self.options
                .extend(["-c".into(), format!("{name}={value}").into()]);
        }
        Ok(())
    }

    /// Commits as Selvedge where the user has not said who they are.
    pub(crate) async fn with_identity(&mut self) -> Result<(), ToolOutput> {
        for (name, fallback) in [
            ("user.name", "Selvedge"),
            ("user.email", "selvedge@localhost"),
        ] {
            let (is_set, _) = self.ask(words(&["config", "--get", name])).await?;
            if !is_set {
                self.options
                    .extend(["-c".into(), format!("{name}={fallback}").into()]);
            }
        }
        Ok(())
    }

    /// The commit at HEAD.
    pub(super) async fn head(&self) -> Result<Option<Commit>, ToolOutput> {
        let query = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            "HEAD^{commit}",
        ];
        let (exists, _) = self.ask(words(&query)).await?;
        if !exists {
            return Ok(None);
        }
        let query = [
            "log",
            "-1",
            "--no-show-signature",
            "--format=%H%x00%P%x00%B",
            "HEAD",
        ];
        let text = self.must("read HEAD", words(&query)).await?;
        let mut parts = text.splitn(3, '\0').map(str::to_owned);
        let (Some(id), Some(parents), Some(message)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(ToolOutput::error("git described HEAD in an unexpected way"));
        };
        Ok(Some(Commit {
            id,
            parents: parents.split_whitespace().map(str::to_owned).collect(),
            message,
        }))
    }

    /// Runs git, which must succeed.
    pub(crate) async fn must(
        &self,
        purpose: &str,
        arguments: Vec<OsString>,
    ) -> Result<String, ToolOutput> {
        match self.ask(arguments).await? {
            (true, text) => Ok(text),
            (false, text) => Err(ToolOutput::error(format!(
                "git could not {purpose}: {}",
                text.trim()
            ))),
        }
    }

    /// Runs git: whether it succeeded, and what it printed.
    pub(crate) async fn ask(&self, arguments: Vec<OsString>) -> Result<(bool, String), ToolOutput> {
        let workspace = self.workspace;
        let failed =
            |error: std::io::Error| ToolOutput::error(format!("git could not be run: {error}"));
        let mut environment = process::git_environment();
        for (name, value) in [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("LC_ALL", "C"),
        ] {
            environment.push((name.into(), value.into()));
        }
        environment.extend(self.variables.iter().cloned());
        let process = Process {
            program: self.program.clone(),
            arguments: self.options.iter().cloned().chain(arguments).collect(),
            directory: workspace.open_dir(Path::new("")).map_err(failed)?,
            directory_path: workspace.root().to_owned(),
            environment,
            limits: Limits::new(Patience::exactly(self.timeout)),
            // It is Selvedge that calls it, and it must write what commands may not.
            enclosure: None,
        };
        let silent: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
        let bytes_max = process.limits.output_bytes_max as u64;
        let finished = process.run(self.cancel, &silent).await.map_err(failed)?;
        // Of what is longer the middle is missing, and nobody reading it would know.
        if finished.bytes > bytes_max {
            return Err(ToolOutput::error(format!(
                "git printed {} bytes, more than the {bytes_max} that are read",
                finished.bytes
            )));
        }
        if finished.stopped.is_some() {
            return Err(ToolOutput {
                interrupted: true,
                ..ToolOutput::error("git was stopped before it was done")
            });
        }
        let succeeded = finished.status.is_some_and(|status| status.success());
        Ok((succeeded, finished.text))
    }
}

/// The nearest folder, from `root` upwards, that has a `.git` in it.
pub(crate) fn top_of(root: &Path) -> Option<&Path> {
    root.ancestors().find(|folder| folder.join(".git").exists())
}

pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A path for git, from the workspace root. It may be a symlink, which is then what is
/// meant, but no symlink may lead to it.
pub(super) fn path(context: &ToolContext, path: &str) -> Result<PathBuf, PathError> {
    let relative = context.workspace.relative(path)?;
    if relative.components().any(|part| part.as_os_str() == "..") {
        return Err(PathError::Malformed {
            path: path.into(),
            reason: "`..` is not used with git",
        });
    }
    refuse_git(path, &relative)?;
    Ok(relative)
}

/// A name of a commit, which must not be taken for an option.
pub(super) fn revision(text: &str) -> Result<OsString, ToolOutput> {
    let is_odd = |c: char| c.is_control() || c == ' ';
    match text.is_empty() || text.starts_with('-') || text.contains(is_odd) {
        true => Err(ToolOutput::error(format!(
            "`{}` is not a name of a commit, such as `HEAD~1`",
            text.escape_debug()
        ))),
        false => Ok(text.into()),
    }
}
