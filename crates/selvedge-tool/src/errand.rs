//! Runs a program of the user's own for its answer: input on stdin, answer on stdout.
//!
//! It runs under the same supervisor as a command, so it ends in time and leaves
//! nothing behind. The supervisor gives a process no input and joins its two outputs;
//! a shell in between takes the input from a private file and puts complaints into
//! another.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::process::{self, Limits, Patience, Process, Stopped};
use crate::workspace::Workspace;

/// An answer longer than this is none.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
const COMPLAINT_BYTES_MAX: u64 = 4 * 1024;
const CONNECT: &str = r#"input=$1 complaints=$2; shift 2; exec "$@" <"$input" 2>"$complaints""#;

/// What is to be run, for an answer.
#[derive(Clone, Debug)]
pub struct Errand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it reads from stdin.
    pub input: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// How an errand went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// What it printed to stdout.
    pub answer: String,
    /// What it printed to stderr, the beginning of it.
    pub complaint: String,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    /// It cannot be started: correct the command.
    #[error("`{program}` cannot be run: {why}")]
    NotRun {
        /// The program.
        program: String,
        /// Why not.
        why: String,
    },
    /// It was stopped: give it more time.
    #[error("it did not end within {} s", .after.as_secs_f64())]
    TimedOut {
        /// After how long.
        after: Duration,
    },
    /// Somebody stopped the run.
    #[error("it was cancelled")]
    Cancelled,
    /// It printed more than an answer.
    #[error("it printed more than {} KB", ANSWER_BYTES_MAX / 1024)]
    TooLong,
}

impl Errand {
    /// Runs it at the root of the workspace.
    pub async fn run(
        self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Result<Returned, ErrandError> {
        let name = self.command.first().cloned().unwrap_or_default();
        let not_run = |why: String| ErrandError::NotRun {
            program: name.clone(),
            why,
        };
        let io = |error: std::io::Error| not_run(error.to_string());
        let root = workspace.root();
        let program =
            locate(&name, root).ok_or_else(|| not_run("there is no such program".into()))?;
        let shell = process::find("sh", root).ok_or_else(|| not_run("there is no shell".into()))?;
        // Only its owner can look into it, and it is gone with this function.
        let folder = tempfile::tempdir().map_err(io)?;
        let (input, complaints) = (
            folder.path().join("input"),
            folder.path().join("complaints"),
        );
        std::fs::write(&input, &self.input).map_err(io)?;
        let mut arguments: Vec<OsString> = ["-c", CONNECT, "sh"].map(Into::into).into();
        arguments.extend([&input, &complaints, &program].map(|path| path.clone().into_os_string()));
        arguments.extend(self.command.iter().skip(1).map(OsString::from));
        let process = Process {
            program: shell,
            arguments,
            directory: workspace.open_dir(Path::new("")).map_err(io)?,
            directory_path: root.to_owned(),
            environment: process::environment(),
            // It is the user's own command, and does what the user can do.
            enclosure: None,
            limits: Limits {
                output_bytes_max: ANSWER_BYTES_MAX,
                ..Limits::new(Patience::exactly(self.timeout))
            },
        };
        let silent: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
        let finished = process.run(cancel, &silent).await.map_err(io)?;
        match finished.stopped {
            Some(Stopped::Cancelled) => return Err(ErrandError::Cancelled),
            Some(_) => {
                return Err(ErrandError::TimedOut {
                    after: self.timeout,
                });
            }
            None if finished.bytes > ANSWER_BYTES_MAX as u64 => return Err(ErrandError::TooLong),
            None => {}
        }
        Ok(Returned {
            answer: finished.text,
            complaint: beginning(&complaints),
            code: finished.status.and_then(|status| status.code()),
        })
    }
}

/// Where a program is: a name is looked for on the search path and never in the
/// workspace, a path begins at the workspace.
fn locate(name: &str, root: &Path) -> Option<PathBuf> {
    match name.contains('/') {
        true => Some(root.join(name)).filter(|path| path.is_file()),
        false => process::find(name, root),
    }
}

fn beginning(file: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(file) {
        let _ = file.take(COMPLAINT_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    async fn run(
        command: &[&str],
        input: &str,
        timeout: Duration,
    ) -> Result<Returned, ErrandError> {
        let world = World::new(&[("bin/reply.sh", "#!/bin/sh\necho from the workspace\n")]);
        let script = world.root().join("bin/reply.sh");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(script, mode).unwrap();
        let errand = Errand {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            input: input.into(),
            timeout,
        };
        errand
            .run(&world.context.workspace, &world.context.cancel)
            .await
    }

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn input_answer_complaint_and_code_are_kept_apart() {
        let command = ["sh", "-c", "cat; echo bad luck >&2; exit 3"];
        let done = run(&command, "what is it?\n", LONG).await.unwrap();
        assert_eq!(done.answer, "what is it?\n");
        assert_eq!(done.complaint, "bad luck");
        assert_eq!(done.code, Some(3));
    }

    #[tokio::test]
    async fn a_path_begins_at_the_workspace_and_a_name_never_leads_there() {
        let done = run(&["./bin/reply.sh"], "", LONG).await.unwrap();
        assert_eq!(done.answer, "from the workspace\n");
        let error = run(&["reply.sh"], "", LONG).await.unwrap_err();
        assert!(matches!(error, ErrandError::NotRun { .. }), "{error}");
        let error = run(&[], "", LONG).await.unwrap_err();
        assert!(matches!(error, ErrandError::NotRun { .. }), "{error}");
    }

    #[tokio::test]
    async fn what_does_not_end_or_prints_too_much_has_no_answer() {
        let error = run(&["sleep", "1000"], "", Duration::from_millis(50)).await;
        assert!(
            matches!(error, Err(ErrandError::TimedOut { .. })),
            "{error:?}"
        );
        let error = run(&["seq", "1000000"], "", LONG).await;
        assert!(matches!(error, Err(ErrandError::TooLong)), "{error:?}");
    }
}
