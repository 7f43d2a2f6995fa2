//! The part of Selvedge that stays inside, where another program has made the fence.
//!
//! A fence of our own is entered by a fork, and the copy knows what it has to do. Another
//! program begins anew in there, so it is told: what to run, what to give up, and which
//! handles are whose. It becomes the first process of that world and watches over the
//! command, as the supervisor always does.
//!
//! The program is the one that runs, opened by handle: its path is hidden in there. It has
//! to call [`stand_inside`] before anything else.

#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use libc::c_int;
use serde::{Deserialize, Serialize};

use super::census::Bounds;
use super::cgroup::{Cgroup, Entry};
use super::{Enclosure, Process, supervisor};
use crate::sandbox::{self, Bubblewrap, Confines, Refused, Stage};

/// The first argument of a program that is to stand inside. The second is the number of
/// the handle from which its order is read.
const WORD: &str = "stand-inside";

// The first process of a world has this number in it.
const FIRST: libc::pid_t = 1;

/// What is to be done inside. The numbers are handles that were left open.
#[derive(Serialize, Deserialize)]
struct Order {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    confines: Confines,
    bounds: Bounds,
    control: RawFd,
    directory: RawFd,
    complaints: RawFd,
    way_out: Option<RawFd>,
    group: Vec<RawFd>,
}

// Which program stands inside.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// To be called first by every program that runs commands: it may have been started to
/// watch over one, and then does so and does not return. Otherwise this program will be
/// the one that is started.
pub fn stand_inside() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == WORD) {
        let order = arguments
            .next()
            .and_then(|text| text.to_str()?.parse().ok());
        watch(order.unwrap_or(-1));
    }
    set_stand_in(Path::new("/proc/self/exe"));
}

/// Lets another program stand inside, one that calls [`stand_inside`] first. The first to
/// be named is the one.
pub fn set_stand_in(program: &Path) {
    let _ = PROGRAM.set(program.to_owned());
}

/// Reads the order and carries it out.
fn watch(order: RawFd) -> ! {
    // Nobody reads what went wrong with that: who is outside sees that nobody reports.
    const NO_ORDER: c_int = 3;
    // SAFETY: a question about a number; the kernel knows whether it is a handle.
    if order < 3 || unsafe { libc::fcntl(order, libc::F_GETFD) } == -1 {
        std::process::exit(NO_ORDER);
    }
    // SAFETY: a handle that was left open for this process, and that nothing else owns.
    let mut file = unsafe { File::from_raw_fd(order) };
    let mut text = Vec::new();
    let read = file.read_to_end(&mut text).is_ok();
    let Some(order) = serde_json::from_slice::<Order>(&text).ok().filter(|_| read) else {
        std::process::exit(NO_ORDER);
    };
    let control = order.control;
    if let Err(refused) = carry_out(order) {
        supervisor::send(control, -(refused.stage as c_int));
        let error = refused.error.raw_os_error().unwrap_or(libc::EIO);
        supervisor::send(control, supervisor::NOT_STARTED - error);
    }
    std::process::exit(NO_ORDER);
}

/// Starts the command and watches over it. Returns only if there is nothing to watch.
fn carry_out(order: Order) -> Result<(), Refused> {
    supervisor::set_mask(&supervisor::all_signals());
    sandbox::keep_to_itself();
    if let Some(way_out) = order.way_out {
        sandbox::listen_for(way_out)?;
    }
    let confinement = order.confines.prepare()?;
    // SAFETY: handles that were left open for this process, and that nothing else owns.
    let handle = |number: &RawFd| unsafe { OwnedFd::from_raw_fd(*number) };
    let group = Entry::given(order.group.iter().map(handle).collect());
    let complaints = handle(&order.complaints);
    let (control, directory) = (order.control, order.directory);
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .env_clear()
        .envs(order.environment)
        .stderr(complaints);
    // SAFETY: system calls only, on handles that stay open.
    unsafe {
        command.pre_exec(move || {
            supervisor::become_command(FIRST);
            let _ = group.enter();
            confinement.enter(directory).map_err(|refused| {
                supervisor::send(control, -(refused.stage as c_int));
                refused.error
            })
        });
    }
    match command.spawn() {
        Ok(child) => {
            let child = libc::pid_t::try_from(child.id()).unwrap_or(libc::pid_t::MAX);
            supervisor::watch(control, child, 0, Some(&order.bounds))
        }
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            supervisor::send(control, supervisor::NOT_STARTED - number);
            Ok(())
        }
    }
}

/// Everything with which bubblewrap is started.
pub(super) struct Outside {
    pub(super) command: Command,
    pub(super) line: UnixStream,
    /// What bubblewrap itself complains of.
    pub(super) complaints: PipeReader,
}

impl Outside {
    /// Prepares to run `process` in a world that bubblewrap makes.
    pub(super) fn prepare(
        process: &Process,
        enclosure: &Enclosure,
        mut environment: Vec<(OsString, OsString)>,
        channels: &[OwnedFd; 3],
        way_out: Option<OwnedFd>,
        group: Option<&Cgroup>,
    ) -> io::Result<Self> {
        let (sandbox, workspace) = (&enclosure.sandbox, &enclosure.workspace);
        let bubblewrap = Bubblewrap::find().map_err(|why| refused(io::Error::other(why)))?;
        let borrowed = bubblewrap.prepare(sandbox, workspace, &process.directory_path)?;
        environment.push(("PWD".into(), process.directory_path.clone().into()));
        let [input, output, their_complaints] = channels;
        let their_complaints = their_complaints.try_clone()?;
        let (line, control) = UnixStream::pair()?;
        let (complaints, own_complaints) = io::pipe()?;
        let directory = process.directory.try_clone()?;
        let entry = group.map(Cgroup::entry).transpose()?;
        let members = entry.iter().flat_map(Entry::members);
        let members: Vec<OwnedFd> = members.map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        let is_counted = group.is_some_and(Cgroup::holds_memory);
        let mut bounds = Bounds::new(sandbox, workspace, is_counted)?;
        bounds.count_in_memory(&borrowed.in_memory)?;
        let order = Order {
            program: process.program.clone().into(),
            arguments: process.arguments.clone(),
            environment,
            confines: borrowed.confines,
            bounds,
            control: control.as_raw_fd(),
            directory: directory.as_raw_fd(),
            complaints: their_complaints.as_raw_fd(),
            way_out: way_out.as_ref().map(AsRawFd::as_raw_fd),
            group: members.iter().map(AsRawFd::as_raw_fd).collect(),
        };
        let order = in_memory(
            "order",
            &serde_json::to_vec(&order).map_err(io::Error::other)?,
        )?;
        let told = in_memory("arguments", &with_ends(&borrowed.arguments))?;
        let program = OwnedFd::from(File::open(stand_in()?)?);
        let mut command = Command::new(&bubblewrap.program);
        // Nothing of the command's environment: what a program loads is decided there.
        command
            .env_clear()
            .arg("--args")
            .arg(told.as_raw_fd().to_string())
            .arg("--")
            .arg(format!("/proc/self/fd/{}", program.as_raw_fd()))
            .arg(WORD)
            .arg(order.as_raw_fd().to_string())
            .stdin(input.try_clone()?)
            .stdout(output.try_clone()?)
            .stderr(own_complaints);
        let mut handed = vec![
            order,
            told,
            program,
            control.into(),
            directory,
            their_complaints,
        ];
        handed.extend(way_out);
        handed.extend(members);
        supervisor::stand_by(&mut command, handed, entry);
        Ok(Self {
            command,
            line,
            complaints,
        })
    }
}

/// Waits until the command has begun, or until it is clear that it will not. Nobody else
/// may hold the other ends of `line` and of `complaints`.
pub(super) fn begun(line: &UnixStream, complaints: PipeReader) -> io::Result<i32> {
    // A machine under load takes a second to start a program.
    const LONG: Duration = Duration::from_secs(30);
    line.set_read_timeout(Some(LONG))?;
    let (stage, error) = match number(line) {
        Ok(number @ 0..) => return Ok(number),
        Ok(number) if number <= supervisor::NOT_STARTED => (None, number),
        Ok(number) => {
            let error = self::number(line).unwrap_or(supervisor::NOT_STARTED - libc::EIO);
            (Stage::from_number(-number), error)
        }
        Err(error) => return Err(failed(&error, complaints)),
    };
    let error = io::Error::from_raw_os_error(supervisor::NOT_STARTED - error);
    Err(match stage {
        Some(stage) => Refused { stage, error }.into(),
        None => error,
    })
}

fn number(mut line: &UnixStream) -> io::Result<i32> {
    let mut bytes = [0; 4];
    line.read_exact(&mut bytes)?;
    Ok(i32::from_ne_bytes(bytes))
}

/// What bubblewrap says it failed of.
fn failed(error: &io::Error, complaints: PipeReader) -> io::Error {
    const SAID_BYTES_MAX: u64 = 4 << 10;
    let mut said = Vec::new();
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let _ = complaints.take(SAID_BYTES_MAX).read_to_end(&mut said);
    }
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let why = match said.is_empty() {
        true => format!("it did not begin: {error}"),
        false => said,
    };
    refused(io::Error::other(why)).into()
}

fn refused(error: io::Error) -> Refused {
    let stage = Stage::Bubblewrap;
    Refused { stage, error }
}

fn stand_in() -> io::Result<&'static Path> {
    let why = "this program cannot watch over a command from inside";
    let unable = || refused(io::Error::new(io::ErrorKind::Unsupported, why));
    Ok(PROGRAM.get().ok_or_else(unable)?)
}

/// A file in memory, to be read by whoever has its handle.
fn in_memory(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let handle = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(handle);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Arguments, each with its end.
fn with_ends(arguments: &[OsString]) -> Vec<u8> {
    let each = arguments
        .iter()
        .map(OsString::as_os_str)
        .map(OsStr::as_bytes);
    each.flat_map(|bytes| bytes.iter().copied().chain([0]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Limits, Patience};
    use crate::sandbox::Sandbox;
    use crate::testing::World;
    use std::sync::Arc;

    /// It runs before there is a fence, and a variable can name what a program loads.
    #[test]
    fn what_makes_the_fence_is_given_none_of_the_command_s_variables() {
        if Bubblewrap::find().is_err() {
            eprintln!("there is no bubblewrap here; `tests/bubblewrap` fails without it");
            return;
        }
        set_stand_in(Path::new("/proc/self/exe"));
        let world = World::new(&[]);
        let root = world.context.workspace.root().to_owned();
        let evil = vec![("LD_PRELOAD".into(), root.join("evil.so").into())];
        let enclosure = Enclosure {
            sandbox: Arc::new(Sandbox::default()),
            workspace: root.clone(),
        };
        let process = Process {
            program: "/bin/true".into(),
            arguments: Vec::new(),
            directory: world.context.workspace.open_dir(Path::new("")).unwrap(),
            directory_path: root,
            environment: evil.clone(),
            limits: Limits::new(Patience::exactly(Duration::from_secs(9))),
            enclosure: Some(enclosure.clone()),
        };
        let channel = || OwnedFd::from(File::open("/dev/null").unwrap());
        let channels = [channel(), channel(), channel()];
        let outside = Outside::prepare(&process, &enclosure, evil, &channels, None, None).unwrap();
        let given: Vec<_> = outside.command.get_envs().collect();
        assert_eq!(given, Vec::new());
        let words: Vec<_> = outside.command.get_args().collect();
        let is_named = |word: &&&OsStr| word.to_string_lossy().contains("evil");
        assert!(!words.iter().any(|word| is_named(&word)), "{words:?}");
    }
}
