//! The last steps before a command takes over: it gives up what it must not have.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use libc::{c_int, c_ulong};
use seccompiler::BpfProgram;
use serde::{Deserialize, Serialize};

use super::filter::{Sockets, filters};
use super::landlock::Landlock;
use super::mounts::text;
use super::prepared::{Refused, Stage, done};
use super::spec::Resources;

/// What a command is to give up, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Confines {
    /// Where it works. Not a path: those that are no text could not be written down.
    pub(super) directory: std::ffi::OsString,
    pub(super) resources: Resources,
    pub(super) writable: Vec<std::ffi::OsString>,
    pub(super) sockets: Sockets,
}

impl Confines {
    /// Makes everything ready for it.
    pub(crate) fn prepare(&self) -> Result<Confinement, Refused> {
        let writable: Vec<PathBuf> = self.writable.iter().map(PathBuf::from).collect();
        let landlock = Landlock::new(&writable).map_err(Stage::Landlock.refused())?;
        let filters = filters(self.sockets)
            .map_err(io::Error::other)
            .map_err(Stage::Filter.refused())?;
        let directory = Path::new(&self.directory);
        Confinement::new(directory, &self.resources, landlock, filters)
            .map_err(Stage::Files.refused())
    }
}

/// What a command gives up.
pub(crate) struct Confinement {
    directory: CString,
    limits: Vec<(c_int, u64)>,
    landlock: Landlock,
    filters: Vec<BpfProgram>,
}

impl Confinement {
    fn new(
        directory: &Path,
        resources: &Resources,
        landlock: Landlock,
        filters: Vec<BpfProgram>,
    ) -> io::Result<Self> {
        let mut limits = vec![
            (libc::RLIMIT_CORE as c_int, 0),
            (libc::RLIMIT_FSIZE as c_int, resources.file_bytes_max),
            (libc::RLIMIT_NOFILE as c_int, resources.open_files_max),
            (libc::RLIMIT_NPROC as c_int, resources.processes_max),
        ];
        if let Some(seconds) = resources.cpu_seconds_max {
            limits.push((libc::RLIMIT_CPU as c_int, seconds));
        }
        Ok(Self {
            directory: text(directory)?,
            limits,
            landlock,
            filters,
        })
    }

    /// Gives everything up, in an order in which each step is still allowed.
    /// `directory` is the one to work in, as it was seen from outside.
    pub(crate) fn enter(&self, directory: RawFd) -> Result<(), Refused> {
        self.go_to(directory).map_err(Stage::Directory.refused())?;
        for (resource, most) in &self.limits {
            limit(*resource, *most).map_err(Stage::Limits.refused())?;
        }
        drop_capabilities().map_err(Stage::Capabilities.refused())?;
        self.landlock.obey()?;
        for filter in &self.filters {
            put_on(filter).map_err(Stage::Filter.refused())?;
        }
        Ok(())
    }

    /// Goes to the directory by its path: the handle belongs to the view from outside,
    /// and would lead there. It must be the same directory.
    fn go_to(&self, directory: RawFd) -> io::Result<()> {
        // SAFETY: a valid path and handle, and structures of this frame.
        unsafe {
            done(libc::chdir(self.directory.as_ptr()).into())?;
            let (mut meant, mut found): (libc::stat, libc::stat) = (zeroed(), zeroed());
            done(libc::fstat(directory, &raw mut meant).into())?;
            done(libc::stat(c".".as_ptr(), &raw mut found).into())?;
            match (meant.st_dev, meant.st_ino) == (found.st_dev, found.st_ino) {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(libc::ESTALE)),
            }
        }
    }
}

/// Lowers a limit; where it is lower already it stays so.
fn limit(resource: c_int, most: u64) -> io::Result<()> {
    // SAFETY: structures of this frame.
    unsafe {
        let mut present: libc::rlimit64 = zeroed();
        done(libc::getrlimit64(resource as _, &raw mut present).into())?;
        let most = most.min(present.rlim_max);
        let lowered = libc::rlimit64 {
            rlim_cur: most,
            rlim_max: most,
        };
        done(libc::setrlimit64(resource as _, &raw const lowered).into())
    }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up every right of an administrator, for good: it had them only in its own
/// world, where it could have taken the walls down.
fn drop_capabilities() -> io::Result<()> {
    // The kernel's headers `linux/securebits.h` and `linux/capability.h`: being root
    // means nothing, and none of it can be changed again.
    const ROOT_MEANS_NOTHING: c_ulong = 0b1110_1111;
    const VERSION_3: u32 = 0x2008_0522;
    let header = CapabilityHeader {
        version: VERSION_3,
        pid: 0,
    };
    let none = [CapabilityData::default(); 2];
    // SAFETY: calls on structures of this frame.
    unsafe {
        // Before anything else: from here on, `exec` gives nobody more than it has.
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        // Somebody else has put the fence up, and taken everything already. Who has
        // nothing cannot even give it up.
        let mut present = none;
        done(libc::syscall(
            libc::SYS_capget,
            &raw const header,
            present.as_mut_ptr(),
        ))?;
        if present == none {
            return Ok(());
        }
        done(libc::prctl(libc::PR_SET_SECUREBITS, ROOT_MEANS_NOTHING, 0, 0, 0).into())?;
        for capability in 0..64 {
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 {
                break;
            }
        }
        let all = libc::PR_CAP_AMBIENT_CLEAR_ALL;
        done(libc::prctl(libc::PR_CAP_AMBIENT, all, 0, 0, 0).into())?;
        done(libc::syscall(
            libc::SYS_capset,
            &raw const header,
            none.as_ptr(),
        ))
    }
}

fn put_on(filter: &BpfProgram) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        // The crate's instructions are laid out as the kernel's.
        filter: filter.as_ptr().cast_mut().cast(),
    };
    // SAFETY: a program in memory that outlives the call, with its length.
    done(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    })
}
