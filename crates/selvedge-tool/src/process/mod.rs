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

    /// The status, and no zombie.
    async fn end(mut self) -> Option<ExitStatus> {
        let number = |bytes: &[u8]| bytes.try_into().ok().map(i32::from_ne_bytes);
        let status = self.report.get(4..8).and_then(number);
        if status.is_none()
            && let Some(group) = self.report.get(..4).and_then(number)
            && let Some(group) = Pid::from_raw(group)
        {
            // The supervisor was killed, or cannot get rid of something: what can
            // still be reached is the group.
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(self.line);
        let _ = tokio::time::timeout(DRAIN_WAIT, self.child.wait()).await;
        status.map(ExitStatus::from_raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;
    use std::sync::Mutex;

    struct Shell {
        scratch: tempfile::TempDir,
        limits: Limits,
        cancel: CancellationToken,
        seen: Arc<Mutex<String>>,
    }

    impl Shell {
        fn new() -> Self {
            Self {
                scratch: tempfile::tempdir().unwrap(),
                limits: Limits {
                    grace: Duration::from_millis(200),
                    ..Limits::new(Duration::from_secs(60))
                },
                cancel: CancellationToken::new(),
                seen: Arc::default(),
            }
        }

        fn process(&self, command: &str) -> Process {
            let workspace = Workspace::open(self.scratch.path()).unwrap();
            Process {
                program: find("bash", workspace.root()).unwrap(),
                arguments: ["-c", "--", command].map(Into::into).into(),
                directory: workspace.open_dir(std::path::Path::new("")).unwrap(),
                directory_path: workspace.root().into(),
                environment: environment(),
                limits: self.limits,
            }
        }

        async fn run(&self, command: &str) -> Finished {
            let seen = Arc::clone(&self.seen);
            let sink: Arc<dyn Fn(&str) + Send + Sync> =
                Arc::new(move |text| seen.lock().unwrap().push_str(text));
            self.process(command)
                .run(&self.cancel, &sink)
                .await
                .unwrap()
        }

        /// Whether a process whose id the command wrote to a file is gone.
        fn is_gone(&self, file: &str) -> bool {
            let pid = std::fs::read_to_string(self.scratch.path().join(file)).unwrap();
            !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
        }
    }

    /// Waits for something to become true, and says what if it does not.
    async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !is_true() {
            assert!(Instant::now() < until, "it did not come true: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn both_channels_come_in_order_and_as_they_appear() {
        let shell = Shell::new();
        let finished = shell
            .run("echo one; echo two >&2; echo three; exit 3")
            .await;
        assert_eq!(finished.text, "one\ntwo\nthree\n");
        assert_eq!(*shell.seen.lock().unwrap(), finished.text);
        assert_eq!(finished.status.unwrap().code(), Some(3));
        assert_eq!((finished.bytes, finished.stopped), (14, None));
    }

    #[tokio::test]
    async fn a_command_has_no_input_no_terminal_and_a_session_of_its_own() {
        let shell = Shell::new();
        let finished = shell
            .run("read x; echo \"read $?\"; (: </dev/tty) 2>/dev/null; echo \"tty $?\"; ps -o sid= -p $$ | tr -d ' '; echo $$; pwd")
            .await;
        let lines: Vec<_> = finished.text.lines().collect();
        assert_eq!(&lines[..2], ["read 1", "tty 1"], "{}", finished.text);
        assert_eq!(lines[2], lines[3], "the shell leads its session");
        assert_eq!(
            lines[4],
            shell
                .scratch
                .path()
                .canonicalize()
                .unwrap()
                .to_str()
                .unwrap()
        );
    }

    #[tokio::test]
    async fn nothing_of_selvedge_is_open_in_a_command() {
        let shell = Shell::new();
        let finished = shell.run("ls /proc/self/fd | tr '\\n' ' '").await;
        // Three channels, and the directory that `ls` itself reads.
        assert_eq!(finished.text, "0 1 2 3 ");
    }

    #[tokio::test]
    async fn background_processes_and_daemons_die_with_their_command() {
        let shell = Shell::new();
        let finished = shell
            .run(
                "sleep 1000 & echo $! > plain
                 setsid nohup sleep 1000 >/dev/null 2>&1 & echo $! > daemon
                 (setsid bash -c 'echo $$ > forked; trap \"\" INT TERM HUP; sleep 1000 & echo $! > deep; wait' &)
                 until [ -s deep ]; do :; done
                 echo done",
            )
            .await;
        assert_eq!(finished.text, "done\n");
        assert_eq!(finished.status.unwrap().code(), Some(0));
        for file in ["plain", "daemon", "forked", "deep"] {
            assert!(shell.is_gone(file), "{file} is still there");
        }
    }

    #[tokio::test]
    async fn a_command_out_of_time_is_interrupted_first() {
        let mut shell = Shell::new();
        shell.limits.timeout = Duration::from_millis(300);
        shell.limits.grace = Duration::from_secs(60);
        let finished = shell
            .run("trap 'echo cleaned up; exit 5' INT; echo begun; while :; do sleep 0.02; done")
            .await;
        assert_eq!(finished.stopped, Some(Stopped::TimedOut));
        assert_eq!(finished.text, "begun\ncleaned up\n");
        assert_eq!(finished.status.unwrap().code(), Some(5));
    }

    #[tokio::test]
    async fn a_command_that_ignores_signals_is_killed_in_the_end() {
        let mut shell = Shell::new();
        shell.limits.timeout = Duration::from_millis(300);
        let finished = shell
            .run("trap 'echo int' INT; trap 'echo term' TERM; echo $$ > pid; while :; do sleep 0.02; done")
            .await;
        let said = |word: &str| finished.text.lines().position(|line| line == word);
        assert!(
            said("int") < said("term") && said("int").is_some(),
            "{finished:?}"
        );
        assert_eq!(finished.status.unwrap().signal(), Some(9));
        assert!(shell.is_gone("pid"));
    }

    #[tokio::test]
    async fn a_cancelled_command_keeps_what_it_printed() {
        let shell = Shell::new();
        let (cancel, seen) = (shell.cancel.clone(), Arc::clone(&shell.seen));
        let cancelling = tokio::spawn(async move {
            eventually("it began", || seen.lock().unwrap().contains("begun")).await;
            cancel.cancel();
        });
        let finished = shell.run("echo begun; exec sleep 1000").await;
        cancelling.await.unwrap();
        assert_eq!(finished.text, "begun\n");
        assert_eq!(finished.stopped, Some(Stopped::Cancelled));
        assert_eq!(finished.status.unwrap().signal(), Some(2));
    }

    #[tokio::test]
    async fn an_abandoned_command_is_killed() {
        let shell = Shell::new();
        let pid = shell.scratch.path().join("pid");
        let began = || std::fs::read_to_string(&pid).is_ok_and(|text| !text.is_empty());
        tokio::select! {
            _ = shell.run("setsid sleep 1000 & echo $! > pid; wait") => panic!("it ended"),
            () = eventually("it began", began) => {}
        }
        eventually("the daemon is gone", || shell.is_gone("pid")).await;
    }

    #[tokio::test]
    async fn a_flood_of_output_is_bounded() {
        let mut shell = Shell::new();
        shell.limits.output_bytes_max = 64 * 1024;
        let finished = shell
            .run("head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo end")
            .await;
        assert_eq!(finished.bytes, 20_000_005);
        assert!(finished.text.len() < 65 * 1024, "{}", finished.text.len());
        assert!(finished.text.contains("bytes were not kept here"));
        assert!(finished.text.ends_with("\nend\n"));
    }

    #[tokio::test]
    async fn a_command_that_kills_its_supervisor_dies_too() {
        let shell = Shell::new();
        let finished = shell
            .run("sleep 1000 & echo $! > child; echo $$ > shell; kill -9 $PPID; sleep 1000")
            .await;
        assert!(finished.status.is_none(), "{finished:?}");
        eventually("the shell is gone", || shell.is_gone("shell")).await;
        eventually("its child is gone", || shell.is_gone("child")).await;
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_started_is_an_error() {
        let shell = Shell::new();
        let mut process = shell.process("");
        process.program = "/nonexistent/program".into();
        let sink: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
        let error = process.run(&shell.cancel, &sink).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
