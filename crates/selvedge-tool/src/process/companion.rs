//! A program that stays and is spoken to: its input, its output and its complaints
//! are three pipes.
//!
//! It runs under the same supervisor and behind the same fence as a command, so it
//! outlives neither its keeper nor Selvedge.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;

use super::running::Running;
use super::{Enclosure, Limits, Patience, Process, environment, find};
use crate::sandbox::Sandbox;
use crate::workspace::Workspace;

/// What is to be run, and spoken to.
#[derive(Clone)]
pub struct Companion {
    /// The program and its arguments. A path begins at the workspace; a name is looked
    /// for on the search path, and never in the workspace.
    pub command: Vec<String>,
    /// Variables it is given, besides those that every command sees.
    pub environment: Vec<(String, String)>,
    /// What it may reach.
    pub sandbox: Arc<Sandbox>,
}

/// A program that runs.
pub struct Started {
    /// What it reads.
    pub input: pipe::Sender,
    /// What it says.
    pub output: pipe::Receiver,
    /// What it complains of.
    pub complaints: pipe::Receiver,
    /// Keeps it: when this is dropped, the program and all that it started is killed.
    pub keeper: Keeper,
}

/// Keeps a program running.
pub struct Keeper {
    running: Running,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum CompanionError {
    /// There is no such program: correct the command, or install it.
    #[error("there is no program `{program}`")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The operating system, or the fence, refused it.
    #[error("`{program}` cannot be started: {source}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
}

impl Companion {
    /// Starts it at the root of the workspace.
    pub fn start(&self, workspace: &Workspace) -> Result<Started, CompanionError> {
        let name = self.command.first().cloned().unwrap_or_default();
        let root = workspace.root();
        let program = locate(&name, root).ok_or_else(|| CompanionError::NotFound {
            program: name.clone(),
        })?;
        self.start_at(program, workspace)
            .map_err(|source| CompanionError::NotStarted {
                program: name,
                source,
            })
    }

    fn start_at(&self, program: PathBuf, workspace: &Workspace) -> io::Result<Started> {
        let mut variables = environment();
        for (name, value) in &self.environment {
            variables.retain(|(known, _)| known != name.as_str());
            variables.push((name.into(), value.into()));
        }
        let process = Process {
            program,
            arguments: self.command.iter().skip(1).map(OsString::from).collect(),
            directory: workspace.open_dir(Path::new(""))?,
            directory_path: workspace.root().to_owned(),
            environment: variables,
            limits: Limits::new(Patience::exactly(Duration::MAX)),
            enclosure: self.sandbox.is_on().then(|| Enclosure {
                sandbox: self.sandbox.clone(),
                workspace: workspace.root().to_owned(),
            }),
        };
        let (their_input, input) = io::pipe()?;
        let (output, their_output) = io::pipe()?;
        let (complaints, their_complaints) = io::pipe()?;
        let channels = [
            OwnedFd::from(their_input),
            their_output.into(),
            their_complaints.into(),
        ];
        let running = Running::start(&process, &channels)?;
        Ok(Started {
            input: pipe::Sender::from_owned_fd(input.into())?,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            complaints: pipe::Receiver::from_owned_fd(complaints.into())?,
            keeper: Keeper { running },
        })
    }
}

impl Keeper {
    /// Waits for the program's end, and kills it if that does not come within `grace`.
    /// Who wants it to end closes its input first.
    pub async fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        // Dropped after that, it is killed.
        let _ = tokio::time::timeout(grace, self.running.reported()).await;
        let ended = self.running.end().await;
        // One that was killed has no status of its own.
        let is_own = |status: &ExitStatus| status.signal() != Some(libc::SIGKILL);
        ended.status.filter(is_own)
    }
}

/// Where a program is: a name is looked for on the search path and never in the
/// workspace, a path begins at the workspace.
fn locate(name: &str, root: &Path) -> Option<PathBuf> {
    match name.contains('/') {
        true => Some(root.join(name)).filter(|path| path.is_file()),
        false => find(name, root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

    fn companion(command: &[&str], sandbox: Sandbox) -> Companion {
        Companion {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![("GREETING".into(), "good day".into())],
            sandbox: Arc::new(sandbox),
        }
    }

    async fn converses(sandbox: Sandbox) {
        let world = World::new(&[]);
        let talk = "echo ready >&2; while read line; do echo \"$GREETING, $line\"; done; exit 7";
        let companion = companion(&["sh", "-c", talk], sandbox);
        let mut started = companion.start(&world.context.workspace).unwrap();
        let mut output = BufReader::new(started.output);
        for name in ["warp", "weft"] {
            let line = format!("{name}\n");
            started.input.write_all(line.as_bytes()).await.unwrap();
            let mut answer = String::new();
            output.read_line(&mut answer).await.unwrap();
            assert_eq!(answer, format!("good day, {name}\n"));
        }
        drop(started.input);
        let status = started.keeper.end(Duration::from_secs(20)).await;
        assert_eq!(status.and_then(|status| status.code()), Some(7));
        let mut complaints = String::new();
        started
            .complaints
            .read_to_string(&mut complaints)
            .await
            .unwrap();
        assert_eq!(complaints, "ready\n");
    }

    #[tokio::test]
    async fn it_is_spoken_to_and_answers_until_its_input_ends() {
        converses(Sandbox::off()).await;
    }

    #[tokio::test]
    async fn it_is_spoken_to_behind_the_fence_as_well() {
        converses(Sandbox::default()).await;
    }

    #[tokio::test]
    async fn when_nobody_keeps_it_everything_it_started_is_gone() {
        let world = World::new(&[]);
        let spawn = "sleep 1000 & echo up; exec sleep 1000";
        let companion = companion(&["sh", "-c", spawn], Sandbox::off());
        let mut started = companion.start(&world.context.workspace).unwrap();
        let mut line = [0; 3];
        started.output.read_exact(&mut line).await.unwrap();
        drop(started.keeper);
        let mut rest = Vec::new();
        // The pipe ends when the last who could write to it is gone.
        let ended = started.output.read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
        assert_eq!(ended.expect("they end").unwrap(), 0);
    }

    #[tokio::test]
    async fn a_program_that_the_workspace_brings_along_is_not_found_by_its_name() {
        let world = World::new(&[("helper", "#!/bin/sh\n")]);
        let started = companion(&["helper"], Sandbox::off()).start(&world.context.workspace);
        assert!(matches!(started, Err(CompanionError::NotFound { .. })));
    }
}
