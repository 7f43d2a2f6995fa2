//! A process under its supervisor: started, signalled, buried.

use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::Instant;

use super::census::{Bounds, Excess};
use super::cgroup::Cgroup;
use super::supervisor::{self, REPORT_BYTES};
use super::{DRAIN_WAIT, Enclosure, Limits, Process, Stage};
use crate::sandbox::{self, Placeholder, Prepared, Proxy, Refused, Visit};

/// A process under its supervisor. Dropping it closes the line, on which the
/// supervisor kills everything.
pub(super) struct Running {
    child: Child,
    line: UnixStream,
    report: Vec<u8>,
    kill_signal: Option<&'static str>,
    proxy: Option<Proxy>,
    group: Option<Cgroup>,
    _placeholder: Option<Placeholder>,
}

/// How a process ended.
pub(super) struct Ended {
    pub(super) status: Option<ExitStatus>,
    pub(super) excess: Option<Excess>,
    pub(super) kill_signal: Option<&'static str>,
    pub(super) network: Vec<Visit>,
}

impl Running {
    /// Starts a process; its output comes through the pipe.
    pub(super) fn spawn(process: Process) -> io::Result<(Self, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let channels = [Stdio::null(), writer.try_clone()?.into(), writer.into()];
        let running = Self::start(process, channels)?;
        Ok((running, pipe::Receiver::from_owned_fd(reader.into())?))
    }

    /// Starts a process with these for its input, its output and its complaints.
    pub(super) fn start(process: Process, channels: [Stdio; 3]) -> io::Result<Self> {
        let [input, output, complaints] = channels;
        let mut command = std::process::Command::new(&process.program);
        command
            .args(&process.arguments)
            .env_clear()
            .envs(process.environment)
            .env("PWD", &process.directory_path)
            .stdin(input)
            .stdout(output)
            .stderr(complaints);
        let mut way_out = None;
        let mut placeholder = None;
        let mut group = None;
        let barrier = match &process.enclosure {
            None => None,
            Some(enclosure) => {
                placeholder = Some(Placeholder::make(&enclosure.workspace)?);
                let theirs = match Proxy::is_needed(&enclosure.sandbox.network) {
                    false => None,
                    true => {
                        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
                        way_out = Some(ours);
                        command.envs(Proxy::environment());
                        Some(theirs.into())
                    }
                };
                group = Cgroup::make(&enclosure.sandbox.resources);
                let directory = &process.directory_path;
                Some(prepare(enclosure, directory, theirs, group.as_ref())?)
            }
        };
        let mut line = supervisor::supervise(&mut command, process.directory, barrier)?;
        line.set_nonblocking(true)?;
        let mut command = tokio::process::Command::from(command);
        let child = command.spawn().map_err(|error| refusal(&mut line, error))?;
        // It holds our copies of the pipes' other ends and of the supervisor's.
        drop(command);
        let proxy = match (way_out, process.enclosure) {
            (Some(way_out), Some(enclosure)) => {
                Some(Proxy::start(way_out, &enclosure.sandbox.network)?)
            }
            _ => None,
        };
        Ok(Self {
            child,
            line: UnixStream::from_std(line)?,
            report: Vec::with_capacity(REPORT_BYTES),
            kill_signal: None,
            proxy,
            group,
            _placeholder: placeholder,
        })
    }

    /// Takes the next step to end it; returns when the one after that is due.
    pub(super) async fn advance(&mut self, stage: &mut Stage, limits: &Limits) -> Instant {
        let (next, signal, wait) = stage.next(limits);
        *stage = next;
        self.kill_signal = Some(match signal {
            Signal::INT => "SIGINT",
            Signal::TERM => "SIGTERM",
            _ => "SIGKILL",
        });
        let byte = u8::try_from(signal.as_raw()).expect("signals are small numbers");
        // It fails only when the supervisor has ended, as it does after the process.
        let _ = self.line.write_all(&[byte]).await;
        Instant::now() + wait
    }

    /// Returns when nothing of the process is left, or when its supervisor is gone.
    pub(super) async fn reported(&mut self) {
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
    pub(super) fn sweep(&self) {
        // The number of a fenced process means nothing here, and is 0.
        if self.status().is_none()
            && let Some(group) = self.number(0)
            && let Some(group) = Pid::from_raw(group)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// How it ended, and no zombie.
    pub(super) async fn end(mut self) -> Ended {
        self.sweep();
        let ended = Ended {
            status: self.status(),
            excess: self
                .number(8)
                .and_then(Excess::from_number)
                .or_else(|| self.out_of_memory()),
            kill_signal: self.kill_signal,
            network: self.proxy.take().map(Proxy::end).unwrap_or_default(),
        };
        drop(self.line);
        let _ = tokio::time::timeout(DRAIN_WAIT, self.child.wait()).await;
        ended
    }

    /// What the kernel ended by itself.
    fn out_of_memory(&self) -> Option<Excess> {
        let group = self.group.as_ref()?;
        group.ran_out_of_memory().then_some(Excess::Memory)
    }

    fn status(&self) -> Option<ExitStatus> {
        self.number(4).map(ExitStatus::from_raw)
    }

    /// A number of the supervisor's report.
    fn number(&self, at: usize) -> Option<i32> {
        let bytes = self.report.get(at..at + 4)?;
        bytes.try_into().ok().map(i32::from_ne_bytes)
    }
}

fn prepare(
    enclosure: &Enclosure,
    directory: &std::path::Path,
    way_out: Option<OwnedFd>,
    group: Option<&Cgroup>,
) -> io::Result<supervisor::Barrier> {
    let (sandbox, workspace) = (&enclosure.sandbox, &enclosure.workspace);
    let prepared = Prepared::new(sandbox, workspace, directory, way_out);
    Ok(supervisor::Barrier {
        prepared: prepared.map_err(io::Error::from)?,
        bounds: Bounds::new(sandbox, workspace, group.is_some_and(Cgroup::holds_memory))?,
        group: group.map(Cgroup::entry).transpose()?,
    })
}

/// Why a process was not started, if it was the fence.
fn refusal(line: &mut impl Read, error: io::Error) -> io::Error {
    let mut said = [0; REPORT_BYTES];
    let count = line.read(&mut said).unwrap_or(0);
    let mut stages = said[..count].chunks_exact(4).filter_map(|bytes| {
        let number = i32::from_ne_bytes(bytes.try_into().ok()?);
        sandbox::Stage::from_number(number.checked_neg()?)
    });
    match stages.next() {
        Some(stage) => Refused { stage, error }.into(),
        None => error,
    }
}
