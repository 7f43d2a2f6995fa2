//! Runs a program to its end, and everything it started with it.
//!
//! It is asked to stop before it is made to: an interrupt lets a compiler remove its
//! lock files, a termination lets a server close its database, and only then is it
//! killed. Its output is taken as it appears and kept within bounds.

mod environment;
mod output;
mod program;
mod supervisor;

pub(crate) use program::find;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use output::{Decoder, Kept};
use supervisor::REPORT_BYTES;

/// What is to be run, and within which bounds.
pub(crate) struct Process {
    /// The program, found by [`find`].
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The directory it runs in, by handle.
    pub(crate) directory: OwnedFd,
    /// Where that directory is, for the program to know.
    pub(crate) directory_path: PathBuf,
    /// Its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The bounds.
    pub(crate) limits: Limits,
}

/// The bounds of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long it may run before it is asked to stop.
    pub(crate) timeout: Duration,
    /// How long it has to answer an interrupt, and then a termination. Default: 2 s.
    pub(crate) grace: Duration,
    /// How much of its output is kept. Default: 8 MB.
    pub(crate) output_bytes_max: usize,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// What it printed, both channels in order.
    pub(crate) text: String,
    /// How many bytes it printed.
    pub(crate) bytes: u64,
    /// Its status; none if it could not be learned.
    pub(crate) status: Option<ExitStatus>,
    /// How long it ran.
    pub(crate) duration: Duration,
    /// Why it was stopped, if it was.
    pub(crate) stopped: Option<Stopped>,
}

/// Why a process was stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stopped {
    TimedOut,
    Cancelled,
}

// After SIGKILL, and after the end, things are over in milliseconds; these bound what
// the kernel or another user's process holds up.
const KILLED_WAIT: Duration = Duration::from_secs(6);
const DRAIN_WAIT: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 * 1024;

impl Limits {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            grace: Duration::from_secs(2),
            output_bytes_max: 8 * 1024 * 1024,
        }
    }
}

impl Process {
    /// Runs it to its end. Dropped before, it is killed with all that it started.
    pub(crate) async fn run(
        self,
        cancel: &CancellationToken,
        sink: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> io::Result<Finished> {
        let limits = self.limits;
        let began = Instant::now();
        let (mut running, mut output) = self.spawn()?;
        let mut kept = Kept::new(limits.output_bytes_max);
        let mut decoder = Decoder::default();
        let mut stage = Stage::Running;
        let mut stopped = None;
        let mut until = began + limits.timeout;
        let mut buffer = vec![0; READ_BYTES];
        let mut is_drained = false;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if stage == Stage::Running => {
                    stopped = Some(Stopped::Cancelled);
                    stage = Stage::Interrupted;
                    running.signal(Signal::INT).await;
                    until = Instant::now() + limits.grace;
                }
                () = tokio::time::sleep_until(until) => match stage {
                    Stage::Running | Stage::Interrupted | Stage::Terminated => {
                        stopped.get_or_insert(Stopped::TimedOut);
                        let (next, signal, wait) = stage.next(limits.grace);
                        stage = next;
                        running.signal(signal).await;
                        until = Instant::now() + wait;
                    }
                    Stage::Killed | Stage::Ended => break,
                },
                () = running.reported(), if stage != Stage::Ended => {
                    stage = Stage::Ended;
                    running.sweep();
                    until = Instant::now() + DRAIN_WAIT;
                }
                read = output.read(&mut buffer), if !is_drained => match read {
                    Ok(0) | Err(_) => is_drained = true,
                    Ok(count) => {
                        kept.push(&buffer[..count]);
                        sink(&decoder.decode(&buffer[..count]));
                    }
                },
            }
            if is_drained && stage == Stage::Ended {
                break;
            }
        }
        let status = running.end().await;
        Ok(Finished {
            bytes: kept.bytes(),
            text: kept.into_text(),
            status,
            duration: began.elapsed(),
            stopped,
        })
    }

    fn spawn(self) -> io::Result<(Running, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment)
            .env("PWD", &self.directory_path)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let line = supervisor::supervise(&mut command, self.directory)?;
        line.set_nonblocking(true)?;
        let mut command = tokio::process::Command::from(command);
        let child = command.spawn()?;
        // It holds our copies of the pipe's other end and of the supervisor's.
        drop(command);
        let running = Running {
            child,
            line: UnixStream::from_std(line)?,
            report: Vec::with_capacity(REPORT_BYTES),
        };
        Ok((running, pipe::Receiver::from_owned_fd(reader.into())?))
    }
}

/// The environment for a command of the user's.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    environment::filtered(std::env::vars_os())
}

/// The environment for git, when it is the runtime that calls it.
pub(crate) fn git_environment() -> Vec<(OsString, OsString)> {
    let mut variables = environment();
    variables.retain(|(name, _)| environment::is_fit_for_git(&name.to_string_lossy()));
    variables
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Running,
    Interrupted,
    Terminated,
    Killed,
    Ended,
}

impl Stage {
    /// The next thing to do when a stage's time is up.
    fn next(self, grace: Duration) -> (Self, Signal, Duration) {
        match self {
            Self::Running => (Self::Interrupted, Signal::INT, grace),
            Self::Interrupted => (Self::Terminated, Signal::TERM, grace),
            Self::Terminated | Self::Killed | Self::Ended => {
                (Self::Killed, Signal::KILL, KILLED_WAIT)
            }
        }
    }
}

/// A process under its supervisor. Dropping it closes the line, on which the
/// supervisor kills everything.
struct Running {
    child: Child,
    line: UnixStream,
    report: Vec<u8>,
}

impl Running {
    /// Sends a signal to the process's group, through the supervisor.
    async fn signal(&mut self, signal: Signal) {
        let byte = u8::try_from(signal.as_raw()).expect("signals are small numbers");
        // It fails only when the supervisor has ended, as it does after the process.
        let _ = self.line.write_all(&[byte]).await;
    }

    /// Returns when nothing of the process is left, or when its supervisor is gone.
    async fn reported(&mut self) {
        while self.report.len() < REPORT_BYTES {
            // Safe to abandon at any point: what was read is in `report`.
            match self.line.read_buf(&mut self.report).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Kills what can still be reached when the supervisor was killed, or cannot get
    /// rid of something.
    fn sweep(&self) {
        if self.status().is_none()
            && let Some(group) = self.number(0)
            && let Some(group) = Pid::from_raw(group)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// The status, and no zombie.
    async fn end(mut self) -> Option<ExitStatus> {
        self.sweep();
        let status = self.status();
        drop(self.line);
        let _ = tokio::time::timeout(DRAIN_WAIT, self.child.wait()).await;
        status
    }

    fn status(&self) -> Option<ExitStatus> {
        self.number(4).map(ExitStatus::from_raw)
    }

    /// A number of the supervisor's report.
    fn number(&self, at: usize) -> Option<i32> {
        let bytes = self.report.get(at..at + 4)?.try_into().ok()?;
        Some(i32::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests;
