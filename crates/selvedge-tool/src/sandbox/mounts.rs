//! Builds a command's view of the files, between fork and exec.
//!
//! Everything that needs memory is made ready before the fork: afterwards there are
//! system calls only. See `supervisor` for why.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_int, c_void};

use super::plan::{Plan, Step};
use super::prepared::{Refused, Stage, done};

/// The steps of a plan, with everything that system calls are to be given.
pub(super) struct Mounts {
    steps: Vec<Ready>,
    held: Vec<RawFd>,
    /// The bounds of a folder in memory: files are memory that no process has.
    in_memory: CString,
}

enum Ready {
    Hold(CString),
    Cover(CString),
    Folder(CString),
    File(CString),
    Link { at: CString, target: CString },
    Place { held: usize, at: CString },
    Seal,
    Open(CString),
    Processes,
    Terminals(CString),
}

// The kernel's header `linux/mount.h`.
const OPEN_TREE_CLONE: u32 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const AT_RECURSIVE: u32 = 0x8000;

/// How many files a folder in memory may hold.
pub(crate) const IN_MEMORY_FILES_MAX: u64 = 200 << 10;

// A command has at most this many folders in memory that it can write: two for temporary
// files, its home, and shared memory. Together they hold no more than it may use.
pub(super) const IN_MEMORY_COUNT: u64 = 4;

const OWN_TERMINALS: &CStr = c"newinstance,ptmxmode=0666,mode=0620";

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

impl Mounts {
    /// The steps of `plan`, for a command that may use so much memory.
    pub(super) fn new(plan: &Plan, memory_bytes: u64) -> io::Result<Self> {
        let steps: Vec<Ready> = plan.steps.iter().map(ready).collect::<io::Result<_>>()?;
        let held = steps.iter().filter(|s| matches!(s, Ready::Hold(_))).count();
        Ok(Self {
            steps,
            held: Vec::with_capacity(held),
            in_memory: CString::new(format!(
                "mode=0755,nr_inodes={IN_MEMORY_FILES_MAX},size={}",
                (memory_bytes / IN_MEMORY_COUNT).max(1 << 20)
            ))?,
        })
    }

    /// Carries the plan out, in a mount namespace of one's own.
    pub(super) fn build(&mut self) -> Result<(), Refused> {
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        mount(c"none", c"/", None, flags, None).map_err(Stage::Mounts.refused())?;
        for step in &self.steps {
            match step {
                Ready::Hold(path) => {
                    let held = hold(path).map_err(Stage::Files.refused())?;
                    // There is room for each: nothing is allocated.
                    self.held.push(held);
                }
                Ready::Cover(at) => {
                    let flags = libc::MS_NOSUID | libc::MS_NODEV;
                    mount(c"tmpfs", at, Some(c"tmpfs"), flags, Some(&self.in_memory))
                        .map_err(Stage::Mounts.refused())?;
                }
                Ready::Folder(at) => {
                    // SAFETY: a valid path.
                    done(unsafe { libc::mkdir(at.as_ptr(), 0o755) }.into())
                        .or_else(unless_there)
                        .map_err(Stage::Files.refused())?;
                }
                Ready::File(at) => {
                    // SAFETY: a valid path.
                    done(unsafe { libc::mknod(at.as_ptr(), libc::S_IFREG | 0o644, 0) }.into())
                        .or_else(unless_there)
                        .map_err(Stage::Files.refused())?;
                }
                Ready::Link { at, target } => {
                    // SAFETY: valid paths.
                    done(unsafe { libc::symlink(target.as_ptr(), at.as_ptr()) }.into())
                        .or_else(unless_there)
                        .map_err(Stage::Files.refused())?;
                }
                Ready::Place { held, at } => {
                    place(self.held[*held], at).map_err(Stage::Files.refused())?;
                }
                Ready::Seal => {
                    let change = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
                    change_attributes(c"/", AT_RECURSIVE, change, 0)
                        .map_err(Stage::Mounts.refused())?;
                }
                Ready::Open(at) => {
                    change_attributes(at, 0, 0, MOUNT_ATTR_RDONLY)
                        .map_err(Stage::Writable.refused())?;
                }
                Ready::Processes => {
                    // Read-only: who is root in here owns the settings of the machine.
                    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                    let flags = flags | libc::MS_RDONLY;
                    // A container may forbid it. What is seen then are processes that
                    // can be neither signalled nor looked into.
                    let _ = mount(c"proc", c"/proc", Some(c"proc"), flags, None);
                }
                Ready::Terminals(at) => {
                    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
                    // A command without terminals is a command nevertheless.
                    let _ = mount(c"devpts", at, Some(c"devpts"), flags, Some(OWN_TERMINALS));
                }
            }
        }
        Ok(())
    }
}

fn ready(step: &Step) -> io::Result<Ready> {
    Ok(match step {
        Step::Hold(path) => Ready::Hold(text(path)?),
        Step::Cover(path) => Ready::Cover(text(path)?),
        Step::Folder(path) => Ready::Folder(text(path)?),
        Step::File(path) => Ready::File(text(path)?),
        Step::Link { at, target } => Ready::Link {
            at: text(at)?,
            target: text(target)?,
        },
        Step::Place { held, at } => Ready::Place {
            held: *held,
            at: text(at)?,
        },
        Step::Seal => Ready::Seal,
        Step::Open(path) => Ready::Open(text(path)?),
        Step::Processes => Ready::Processes,
        Step::Terminals(path) => Ready::Terminals(text(path)?),
    })
}

/// A path for a system call.
pub(super) fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn unless_there(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EEXIST) => Ok(()),
        _ => Err(error),
    }
}

fn mount(
    source: &CStr,
    at: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    let options = options.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: valid texts or none.
    let result = unsafe {
        libc::mount(
            source.as_ptr(),
            at.as_ptr(),
            kind,
            flags,
            options.cast::<c_void>(),
        )
    };
    done(result.into())
}

fn hold(path: &CStr) -> io::Result<RawFd> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::O_CLOEXEC as u32;
    // SAFETY: a valid path.
    let handle =
        unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    done(handle)?;
    Ok(handle as RawFd)
}

fn place(held: RawFd, at: &CStr) -> io::Result<()> {
    // SAFETY: valid handles and paths.
    done(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            held,
            c"".as_ptr(),
            libc::AT_FDCWD,
            at.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
}

fn change_attributes(at: &CStr, flags: u32, set: u64, clear: u64) -> io::Result<()> {
    let attributes = MountAttributes {
        set,
        clear,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: a valid path, and a structure of this frame with its size.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD as c_int,
            at.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
}
