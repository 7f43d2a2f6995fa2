//! Runs a program to its end, and everything it started with it.
//!
//! It is asked to stop before it is made to: an interrupt lets a compiler remove its
//! lock files, a termination lets a server close its database, and only then is it
//! killed. Its output is taken as it appears and kept within bounds.

mod census;
mod cgroup;
mod companion;
mod environment;
mod inside;
mod output;
mod patience;
mod program;
mod running;
mod slots;
mod supervisor;

pub(crate) use census::Excess;
pub use cgroup::{Counted, counted};
pub use companion::{Companion, CompanionError, Keeper, Started};
pub use environment::names_a_secret;
pub(crate) use environment::{environment, git_environment, is_fit_for_commands};
pub use inside::{set_stand_in, stand_inside};
pub(crate) use patience::Patience;
pub(crate) use program::find;
pub(crate) use slots::Slots;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Sandbox, Visit};
use output::{Decoder, Kept};
use patience::Listener;
use running::Running;

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
    /// The fence around it, if there is one.
    pub(crate) enclosure: Option<Enclosure>,
}

/// The fence around a process.
#[derive(Clone, Debug)]
pub(crate) struct Enclosure {
    /// What it may reach.
    pub(crate) sandbox: Arc<Sandbox>,
    /// The workspace that it works in.
    pub(crate) workspace: PathBuf,
}

/// The bounds of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long it may run before it is asked to stop.
    pub(crate) patience: Patience,
    /// How long it has to answer an interrupt. Default: 5 s.
    pub(crate) interrupt_grace: Duration,
    /// How long it has to answer a termination. Default: 3 s.
    pub(crate) terminate_grace: Duration,
    /// How much of its output is kept. Default: 8 MB.
    pub(crate) output_bytes_max: usize,
    /// How much it may print before it is asked to stop. Default: 1 GB.
    pub(crate) flood_bytes_max: u64,
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
    /// The last signal that it was sent, by its name.
    pub(crate) kill_signal: Option<&'static str>,
    /// What it was refused and granted of the network.
    pub(crate) network: Vec<Visit>,
}

/// Why a process was stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stopped {
    TimedOut,
    Cancelled,
    /// It printed more than anybody could read.
    Flooded,
    /// It used more than its share.
    Exceeded(Excess),
}

// After SIGKILL, and after the end, things are over in milliseconds; these bound what
// the kernel or another user's process holds up.
const KILLED_WAIT: Duration = Duration::from_secs(6);
const DRAIN_WAIT: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 * 1024;

impl Limits {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            interrupt_grace: Duration::from_secs(5),
            terminate_grace: Duration::from_secs(3),
            output_bytes_max: 8 * 1024 * 1024,
            flood_bytes_max: 1 << 30,
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
        let (mut running, mut output) = Running::spawn(self)?;
        let mut kept = Kept::new(limits.output_bytes_max);
        let mut decoder = Decoder::default();
        let mut listener = Listener::default();
        let mut stage = Stage::Running;
        let mut stopped = None;
        let mut until = began + limits.patience.ends(None);
        let mut buffer = vec![0; READ_BYTES];
        let mut is_drained = false;
        loop {
            let mut stop = None;
            tokio::select! {
                biased;
                () = cancel.cancelled(), if stage == Stage::Running => {
                    stop = Some(Stopped::Cancelled);
                }
                () = tokio::time::sleep_until(until) => match stage {
                    Stage::Running => stop = Some(Stopped::TimedOut),
                    Stage::Interrupted | Stage::Terminated => {
                        until = running.advance(&mut stage, &limits).await;
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
                        let text = decoder.decode(&buffer[..count]);
                        if stage == Stage::Running && listener.hears(&text) {
                            until = began + limits.patience.ends(Some(began.elapsed()));
                        }
                        sink(&text);
                        if stage == Stage::Running && kept.bytes() > limits.flood_bytes_max {
                            stop = Some(Stopped::Flooded);
                        }
                    }
                },
            }
            if let Some(reason) = stop {
                stopped = Some(reason);
                until = running.advance(&mut stage, &limits).await;
            }
            if is_drained && stage == Stage::Ended {
                break;
            }
        }
        let ended = running.end().await;
        Ok(Finished {
            bytes: kept.bytes(),
            text: kept.into_text(),
            status: ended.status,
            duration: began.elapsed(),
            stopped: ended.excess.map(Stopped::Exceeded).or(stopped),
            kill_signal: ended.kill_signal,
            network: ended.network,
        })
    }
}

/// How far the end of a process is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Running,
    Interrupted,
    Terminated,
    Killed,
    Ended,
}

impl Stage {
    /// What is done next to end it, and how long that may take.
    fn next(self, limits: &Limits) -> (Self, Signal, Duration) {
        match self {
            Self::Running => (Self::Interrupted, Signal::INT, limits.interrupt_grace),
            Self::Interrupted => (Self::Terminated, Signal::TERM, limits.terminate_grace),
            Self::Terminated | Self::Killed | Self::Ended => {
                (Self::Killed, Signal::KILL, KILLED_WAIT)
            }
        }
    }
}

#[cfg(test)]
mod tests;
