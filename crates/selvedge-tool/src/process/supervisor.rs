//! A small process between Selvedge and a command, that outlives neither.
//!
//! A process group is not enough to end a command: a daemon leaves it with `setsid`,
//! and when Selvedge is killed nobody is left to send a signal. So the child that
//! Selvedge starts does not become the command. It forks once more, lets *that*
//! child become the command, and stays to watch. It is the reaper of everything
//! below it (orphans become its children, not init's), and it holds one end of a
//! socket whose other end closes when Selvedge dies, however it dies. When the
//! command ends or the socket closes, it kills all that is left.
//!
//! A command that is fenced in has a world of its own, and its supervisor is the first
//! process there: when it ends, the kernel ends the others. One more process, outside,
//! waits for it and stands for it.
//!
//! The fork happens in a copy of a program with many threads, where another thread
//! may have held any lock. Everything here therefore makes system calls only: no
//! allocation, no locks, no formatting, no panics.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_void, pid_t};

use super::census::Bounds;
use super::cgroup::Entry;
use crate::sandbox::{self, Prepared, Refused};

/// Bytes of the supervisor's report: the command's process id, then its status and
/// which bound it has crossed.
pub(super) const REPORT_BYTES: usize = 12;

/// Below this, a number says that a command could not be started: by how much is the
/// number of the system's error.
pub(super) const NOT_STARTED: c_int = -1_000;

/// How a command is fenced in.
pub(super) struct Barrier {
    pub(super) prepared: Prepared,
    pub(super) bounds: Bounds,
    /// The group in which the kernel counts it, if there is one.
    pub(super) group: Option<Entry>,
}

// How often what a command uses is counted.
const CENSUS_MILLIS: i64 = 100;

/// Arranges for a command to be started in `directory` under a supervisor, and
/// returns the line to it.
///
/// A byte sent is a signal for the command's process group; SIGKILL ends all that
/// it started. Received are the command's process id as soon as it runs, and its
/// wait status and excess as soon as nothing of it is left, each as four native bytes.
/// The process id of a fenced command means nothing outside and is 0; if the fence
/// could not be put up, it is the number of the stage that failed, below zero. Whoever was
/// started by another program says in the next number why, see [`NOT_STARTED`].
pub(super) fn supervise(
    command: &mut Command,
    directory: OwnedFd,
    mut barrier: Option<Barrier>,
) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    // SAFETY: `split` makes async-signal-safe calls only. All handles belong to
    // the closure and are open for as long as the command can be spawned.
    unsafe {
        command.pre_exec(move || {
            let (control, directory) = (theirs.as_raw_fd(), directory.as_raw_fd());
            split(control, directory, barrier.as_mut())
        });
    }
    Ok(ours)
}

/// Arranges for another program to be started that makes the command's world and starts
/// the supervisor in it (see `inside`). Whoever is outside stands for it, as always.
/// `handed` are open in that program, under the same numbers.
pub(super) fn stand_by(command: &mut Command, handed: Vec<OwnedFd>, group: Option<Entry>) {
    // SAFETY: async-signal-safe calls only, on handles that belong to the closure.
    unsafe {
        command.pre_exec(move || {
            set_mask(&no_signals());
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::setsid();
            let outside = libc::getpid();
            match libc::fork() {
                -1 => return Err(io::Error::last_os_error()),
                0 => {}
                child => stand_for(child, group.as_ref()),
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            if libc::getppid() != outside {
                libc::_exit(1);
            }
            sandbox::first_to_go();
            for handle in &handed {
                if libc::fcntl(handle.as_raw_fd(), libc::F_SETFD, 0) == -1 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Becomes two processes: returns in the one that will be the command, and watches
/// in the other.
fn split(control: RawFd, directory: RawFd, barrier: Option<&mut Barrier>) -> io::Result<()> {
    // SAFETY: system calls on valid handles and on memory of this frame. `fork` is
    // called in a process that has a single thread, being itself fresh from a fork.
    unsafe {
        // Handlers of the runtime must not run in these copies of it.
        set_mask(&all_signals());
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        // Its own session, so that what is sent to Selvedge's group or terminal
        // does not reach the supervisor.
        libc::setsid();
        match barrier {
            None => split_bare(control, directory),
            Some(barrier) => split_fenced(control, directory, barrier).map_err(|refused| {
                send(control, -(refused.stage as c_int));
                refused.error
            }),
        }
    }
}

fn split_bare(control: RawFd, directory: RawFd) -> io::Result<()> {
    // SAFETY: as in `split`.
    unsafe {
        if libc::fchdir(directory) != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let supervisor = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                become_command(supervisor);
                Ok(())
            }
            child => watch(control, child, child, None),
        }
    }
}

fn split_fenced(control: RawFd, directory: RawFd, barrier: &mut Barrier) -> Result<(), Refused> {
    // The first process of a world has this number in it.
    const FIRST: pid_t = 1;
    let outside = barrier.prepared.split()?;
    if outside != 0 {
        stand_for(outside, barrier.group.as_ref());
    }
    barrier.prepared.build()?;
    // SAFETY: as in `split`.
    match unsafe { libc::fork() } {
        -1 => Err(Refused {
            stage: sandbox::Stage::Namespaces,
            error: io::Error::last_os_error(),
        }),
        0 => {
            become_command(FIRST);
            // Not the process that watches: it has to tell what became of the others. Who
            // may not enter is held by limits of its own, as where there is no group.
            if let Some(group) = &barrier.group {
                let _ = group.enter();
            }
            barrier.prepared.enter(directory)
        }
        child => watch(control, child, 0, Some(&barrier.bounds)),
    }
}

/// What a process does that will be the command.
pub(super) fn become_command(supervisor: pid_t) {
    // SAFETY: system calls without memory.
    unsafe {
        libc::setsid();
        // Should the command kill its supervisor, it dies with it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != supervisor {
            libc::_exit(1);
        }
        // What a careless parent left open for Selvedge is not for commands.
        // Closed by `exec`, not now: one of these tells `spawn` how that went.
        libc::syscall(
            libc::SYS_close_range,
            3,
            c_int::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        set_mask(&no_signals());
    }
}

/// Stands outside of a world for the first process in it: ends when that ends, and
/// with it everything in there.
fn stand_for(first: pid_t, group: Option<&Entry>) -> ! {
    close_from(0);
    // SAFETY: system calls on memory of this frame.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"selvedge-fence".as_ptr(), 0, 0, 0);
        loop {
            let ended = libc::waitpid(first, std::ptr::null_mut(), 0);
            if ended != -1 || *libc::__errno_location() != libc::EINTR {
                if let Some(group) = group {
                    group.remove_if_orphaned();
                }
                libc::_exit(0);
            }
        }
    }
}

/// Waits for the command's end, passing signals on, then ends what is left of it.
/// `known` is the number by which the command is known to Selvedge.
pub(super) fn watch(control: RawFd, child: pid_t, known: pid_t, bounds: Option<&Bounds>) -> ! {
    // SAFETY: system calls on memory of this frame and on handle 0, which is the
    // control socket from the second line on.
    unsafe {
        libc::dup2(control, 0);
        // Among these is the pipe by which `spawn` learns that the command runs, and
        // the command's output: they must not stay open here.
        close_from(1);
        libc::prctl(libc::PR_SET_NAME, c"selvedge-watch".as_ptr(), 0, 0, 0);
        // This is a copy of Selvedge's memory: the command may not look into it.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::chdir(c"/".as_ptr());
        libc::signal(libc::SIGCHLD, wake as *const () as libc::sighandler_t);
        send(0, known);

        // Signals stay blocked, but for the end of a child while it waits: then none
        // can end in between "is there one?" and "wait".
        let mut waiting = all_signals();
        libc::sigdelset(&mut waiting, libc::SIGCHLD);
        let pause = libc::timespec {
            tv_sec: 0,
            tv_nsec: CENSUS_MILLIS * 1_000_000,
        };
        let timeout = match bounds {
            Some(_) => &raw const pause,
            None => std::ptr::null(),
        };
        let mut excess = 0;
        while !has_ended(child) {
            if let Some(crossed) = bounds.and_then(|bounds| bounds.crossed()) {
                excess = crossed as c_int;
                break;
            }
            let mut ready = libc::pollfd {
                fd: 0,
                events: libc::POLLIN,
                revents: 0,
            };
            if libc::ppoll(&mut ready, 1, timeout, &waiting) <= 0 {
                continue;
            }
            let mut signal = 0_u8;
            let count = libc::read(0, (&raw mut signal).cast::<c_void>(), 1);
            match (count, c_int::from(signal)) {
                (1, libc::SIGKILL) => break,
                (1, signal) => {
                    libc::kill(-child, signal);
                }
                (-1, _) if *libc::__errno_location() == libc::EINTR => {}
                // Selvedge is gone.
                _ => break,
            }
        }
        if bounds.is_some() {
            // Everything in this world but the first, which is this process.
            libc::kill(-1, libc::SIGKILL);
        }
        let status = sweep(child);
        send(0, status);
        send(0, excess);
        libc::_exit(0);
    }
}

/// Whether the command has ended. It is not reaped yet, so that its process id, which
/// is its group's too, cannot be given to anybody else. Others are.
fn has_ended(child: pid_t) -> bool {
    // SAFETY: `waitid` fills `info`, for which all zeroes is a valid value.
    unsafe {
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut info, options) != 0 {
                return true;
            }
            match info.si_pid() {
                0 => return false,
                pid if pid == child => return true,
                pid => {
                    libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG);
                }
            }
        }
    }
}

// Five seconds at two milliseconds: what is still there then cannot be killed, be it
// that it runs as somebody else or that the kernel holds it.
const SWEEP_ROUNDS_MAX: u32 = 2_500;

/// Kills the command's group and everything that left it. Returns the command's wait
/// status.
///
/// When a process dies its children become ours, so each round reaches one
/// generation further, until there are no children.
fn sweep(child: pid_t) -> c_int {
    let mut command_status = libc::SIGKILL;
    // SAFETY: system calls on memory of this frame. A signal goes only to the group of
    // a child that is not reaped yet, and to our own children.
    unsafe {
        libc::kill(-child, libc::SIGKILL);
        for _ in 0..SWEEP_ROUNDS_MAX {
            kill_children();
            loop {
                let mut status = 0;
                match libc::waitpid(-1, &mut status, libc::WNOHANG) {
                    -1 => return command_status,
                    0 => break,
                    pid if pid == child => command_status = status,
                    _ => {}
                }
            }
            libc::poll(std::ptr::null_mut(), 0, 2);
        }
    }
    command_status
}

/// Sends SIGKILL to each of our children, as the kernel lists them.
fn kill_children() {
    // SAFETY: reads into a buffer of this frame; the process ids are of our own
    // children, which nobody else can reap, so they mean nobody else.
    unsafe {
        let path = c"/proc/thread-self/children".as_ptr();
        let list = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if list < 0 {
            return;
        }
        let mut buffer = [0_u8; 4096];
        let mut pid: pid_t = 0;
        loop {
            let count = libc::read(list, buffer.as_mut_ptr().cast::<c_void>(), buffer.len());
            if count <= 0 {
                break;
            }
            for byte in buffer.iter().take(count as usize) {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(pid_t::from(byte - b'0'));
                } else if pid > 1 {
                    libc::kill(pid, libc::SIGKILL);
                    pid = 0;
                }
            }
        }
        libc::close(list);
    }
}

/// Tells Selvedge a number, if it is still there.
pub(super) fn send(line: RawFd, number: c_int) {
    let bytes = number.to_ne_bytes();
    // SAFETY: the buffer is of this frame.
    unsafe {
        libc::send(
            line,
            bytes.as_ptr().cast::<c_void>(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        );
    }
}

/// Closes every handle from `first` on.
fn close_from(first: c_int) {
    // SAFETY: closing handles of this process, which keeps no object that owns one.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) == 0 {
            return;
        }
        // Before Linux 5.9. Few programs have more than this open.
        for handle in first..65_536 {
            libc::close(handle);
        }
    }
}

/// Does nothing: that a handler runs is what ends the wait.
extern "C" fn wake(_: c_int) {}

pub(super) fn all_signals() -> libc::sigset_t {
    // SAFETY: `sigfillset` initializes the set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        set
    }
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: `sigemptyset` initializes the set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        set
    }
}

pub(super) fn set_mask(set: &libc::sigset_t) {
    // SAFETY: the set is initialized, and the old mask is not asked for.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, set, std::ptr::null_mut());
    }
}
