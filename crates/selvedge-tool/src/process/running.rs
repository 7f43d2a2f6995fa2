//! A process under its supervisor: started, signalled, buried.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::Instant;

use super::census::{Bounds, Excess};
use super::cgroup::Cgroup;
use super::inside::{self, Outside};
use super::supervisor::{self, Barrier, REPORT_BYTES};
use super::{DRAIN_WAIT, Enclosure, Limits, Process, Stage};
use crate::sandbox::{self, Maker, Placeholder, Prepared, Proxy, Refused, Visit};

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
        let nothing = File::open("/dev/null")?;
        let channels = [nothing.into(), writer.try_clone()?.into(), writer.into()];
        let running = Self::start(&process, &channels)?;
        Ok((running, pipe::Receiver::from_owned_fd(reader.into())?))
    }

    /// Starts a process with these for its input, its output and its complaints.
    pub(super) fn start(process: &Process, channels: &[OwnedFd; 3]) -> io::Result<Self> {
        let Some(enclosure) = &process.enclosure else {
            let command = command(process, channels, process.environment.clone())?;
            return Self::supervised(command, process, None);
        };
        let fence = enclosure.sandbox.fence;
        let maker = Maker::choose(fence)?;
        let started = Self::fenced(process, enclosure, channels, &maker);
        match started
            .as_ref()
            .err()
            .and_then(|error| maker.instead(fence, error))
        {
            // Nothing has run yet: it was the fence that could not be put up.
            Some(other) => Self::fenced(process, enclosure, channels, &other),
            None => started,
        }
    }

    /// Starts a process behind a fence.
    fn fenced(
        process: &Process,
        enclosure: &Enclosure,
        channels: &[OwnedFd; 3],
        maker: &Maker,
    ) -> io::Result<Self> {
        let placeholder = Placeholder::make(&enclosure.workspace)?;
        let mut environment = process.environment.clone();
        let network = &enclosure.sandbox.network;
        let (mut way_out, mut theirs) = (None, None);
        if Proxy::is_needed(network) {
            let (ours, other) = std::os::unix::net::UnixStream::pair()?;
            (way_out, theirs) = (Some(ours), Some(other.into()));
            let variables = Proxy::environment().into_iter();
            environment.extend(variables.map(|(name, value)| (name.into(), value.into())));
        }
        let group = Cgroup::make(&enclosure.sandbox.resources);
        let mut running = match maker {
            Maker::Own => {
                let barrier = prepare(enclosure, &process.directory_path, theirs, group.as_ref())?;
                let command = command(process, channels, environment)?;
                Self::supervised(command, process, Some(barrier))?
            }
            Maker::Bubblewrap { .. } => Self::borrowed(Outside::prepare(
                process,
                enclosure,
                environment,
                channels,
                theirs,
                group.as_ref(),
            )?)?,
        };
        running.proxy = way_out.map(|end| Proxy::start(end, network)).transpose()?;
        running.group = group;
        running._placeholder = Some(placeholder);
        Ok(running)
    }

    /// Starts a command under a supervisor of our own.
    fn supervised(
        mut command: Command,
        process: &Process,
        barrier: Option<Barrier>,
    ) -> io::Result<Self> {
        let directory = process.directory.try_clone()?;
        let mut line = supervisor::supervise(&mut command, directory, barrier)?;
        line.set_nonblocking(true)?;
        let mut command = tokio::process::Command::from(command);
        let child = command.spawn().map_err(|error| refusal(&mut line, error))?;
        Self::new(child, line, Vec::new())
    }

    /// Starts a command in a world that somebody else makes, and waits until it is there.
    fn borrowed(outside: Outside) -> io::Result<Self> {
        let Outside {
            command,
            line,
            complaints,
        } = outside;
        let mut command = tokio::process::Command::from(command);
        // Until it is known to run, nobody else ends it.
        let mut child = command.spawn()?;
        // It holds our copies of the other ends: whoever waits would wait for ever.
        drop(command);
        let begun = inside::begun(&line, complaints).inspect_err(|_| drop(child.start_kill()))?;
        line.set_nonblocking(true)?;
        Self::new(child, line, begun.to_ne_bytes().to_vec())
    }

    fn new(
        child: Child,
        line: std::os::unix::net::UnixStream,
        report: Vec<u8>,
    ) -> io::Result<Self> {
        Ok(Self {
            child,
            line: UnixStream::from_std(line)?,
            report,
            kill_signal: None,
            proxy: None,
            group: None,
            _placeholder: None,
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

/// The program, with what it is given.
fn command(
    process: &Process,
    channels: &[OwnedFd; 3],
    environment: Vec<(OsString, OsString)>,
) -> io::Result<Command> {
    let [input, output, complaints] = channels;
    let mut command = Command::new(&process.program);
    command
        .args(&process.arguments)
        .env_clear()
        .envs(environment)
        .env("PWD", &process.directory_path)
        .stdin(input.try_clone()?)
        .stdout(output.try_clone()?)
        .stderr(complaints.try_clone()?);
    Ok(command)
}

fn prepare(
    enclosure: &Enclosure,
    directory: &std::path::Path,
    way_out: Option<OwnedFd>,
    group: Option<&Cgroup>,
) -> io::Result<Barrier> {
    let (sandbox, workspace) = (&enclosure.sandbox, &enclosure.workspace);
    let prepared = Prepared::new(sandbox, workspace, directory, way_out);
    Ok(Barrier {
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
