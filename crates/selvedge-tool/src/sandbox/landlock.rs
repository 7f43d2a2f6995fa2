//! Says a second time what may be written, to another part of the kernel.
//!
//! Mounts decide what is seen; Landlock checks each access. An error in one of them is
//! not an error in both. Everything the kernel knows of Landlock is demanded of it:
//! a fence that is only partly enforced would look like a whole one.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use libc::{c_int, c_long};

use ::landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    Scope,
};

use super::mounts::text;
use super::prepared::{Refused, Stage, done};

/// A set of rules that was begun, and what is still to be added where it holds.
pub(super) struct Landlock {
    ruleset: OwnedFd,
    rules: Vec<(CString, u64)>,
}

/// The oldest version that lets files be moved between folders, which builds do.
/// Linux 5.19.
const VERSION_MIN: i32 = 2;
/// From this version on, sockets without a place in the file system can be kept out.
/// Linux 6.12.
const VERSION_SCOPES: i32 = 6;

impl Landlock {
    /// Rules under which everything visible may be read, and `writable` be written.
    pub(super) fn new(writable: &[PathBuf]) -> io::Result<Self> {
        let abi = known(version())?;
        let all = AccessFs::from_all(abi);
        let devices = (AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev) & all;
        let mut rules = vec![
            (text(Path::new("/"))?, AccessFs::from_read(abi).bits()),
            (text(Path::new("/dev"))?, devices.bits()),
        ];
        for path in writable {
            let access = match path.is_file() {
                true => AccessFs::from_file(abi),
                false => all,
            };
            rules.push((text(path)?, access.bits()));
        }
        Ok(Self {
            ruleset: ruleset(all, Scope::from_all(abi))?,
            rules,
        })
    }

    /// Adds the rules, to the places as they are seen from here, and obeys them.
    pub(super) fn obey(&self) -> Result<(), Refused> {
        let ruleset = self.ruleset.as_raw_fd();
        for (path, access) in &self.rules {
            add(ruleset, path, *access).map_err(Stage::Landlock.refused())?;
        }
        // SAFETY: a valid handle.
        done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) })
            .map_err(Stage::Landlock.refused())
    }
}

/// Whether sockets without a place in the file system can be kept out.
pub(super) fn has_scopes() -> bool {
    version() >= VERSION_SCOPES
}

/// The version of Landlock that the kernel has; 0 if it has none.
pub(super) fn version() -> i32 {
    const ASK_VERSION: c_int = 1;
    let nothing = std::ptr::null::<u8>();
    // SAFETY: with this flag, no memory is looked at.
    let version: c_long =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, ASK_VERSION) };
    i32::try_from(version.max(0)).unwrap_or(0)
}

fn known(version: i32) -> io::Result<ABI> {
    match version {
        ..VERSION_MIN => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            match version {
                ..=0 => "the kernel has no Landlock, or it is switched off",
                _ => "Linux 5.19 or later is needed",
            },
        )),
        2 => Ok(ABI::V2),
        3 => Ok(ABI::V3),
        4 => Ok(ABI::V4),
        5 => Ok(ABI::V5),
        6 => Ok(ABI::V6),
        // What came later is not used yet.
        _ => Ok(ABI::V7),
    }
}

fn ruleset(access: BitFlags<AccessFs>, scopes: BitFlags<Scope>) -> io::Result<OwnedFd> {
    let begun = || -> Result<RulesetCreated, ::landlock::RulesetError> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(access)?;
        match scopes.is_empty() {
            true => ruleset.create(),
            false => ruleset.scope(scopes)?.create(),
        }
    };
    let handle: Option<OwnedFd> = begun().map_err(io::Error::other)?.into();
    handle.ok_or_else(|| io::Error::other("the kernel made no set of rules"))
}

// The kernel's header `linux/landlock.h`.
const PATH_BENEATH: c_int = 1;

#[repr(C, packed)]
struct PathBeneath {
    access: u64,
    parent: RawFd,
}

fn add(ruleset: RawFd, path: &CString, access: u64) -> io::Result<()> {
    // SAFETY: a valid path, and a structure of this frame; the handle is closed here.
    unsafe {
        let parent = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        done(parent.into())?;
        let rule = PathBeneath { access, parent };
        let added = libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset,
            PATH_BENEATH,
            &raw const rule,
            0,
        );
        let result = done(added);
        libc::close(parent);
        result
    }
}
