//! Counts what a command uses, with everything that it started.
//!
//! Limits of a process are inherited, not shared: a thousand processes each within
//! their limit can take a machine down. The process that watches over a command is the
//! first of its world, sees all others there, and only there, and ends them by ending.
//! Where the kernel counts by itself (`cgroup`), this is the second count.
//!
//! Files are counted by what their file system says of itself: nobody else counts those
//! of one command. What others write meanwhile counts too, so the bound is generous; it
//! keeps a flood from filling a disk, and a file system that does not count its files
//! (btrfs) is kept from being full only.
//!
//! Between fork and exec, like all of the supervisor: system calls only.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::{c_int, c_void};
use serde::{Deserialize, Serialize};

use crate::sandbox::{IN_MEMORY_FILES_MAX, Sandbox};

/// What all processes of a command may use together.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Bounds {
    /// Processes.
    pub(super) processes_max: u64,
    /// Pages of memory that are their own.
    pub(super) memory_pages_max: u64,
    /// Pages of memory that no process has: shared ones, and files in memory. Counted
    /// for the machine as a whole, from what there was before; none where the kernel
    /// counts the memory of a command by itself.
    pub(super) shared_before: Option<u64>,
    /// Files that are made while it runs.
    pub(super) files_max: u64,
    /// The disks that it can fill.
    pub(super) disks: Vec<Disk>,
}

/// A disk, and how full it was before.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Disk {
    /// A place on it, as it is seen from within.
    at: CString,
    before: Usage,
    /// How many files a folder in memory may hold. It has its own bound for bytes.
    in_memory: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Usage {
    files: u64,
    files_free: u64,
    bytes: u64,
    bytes_free: u64,
    bytes_all: u64,
}

/// Which bound was crossed. The numbers are what the supervisor reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Excess {
    /// Too many processes.
    Processes = 1,
    /// Too much memory.
    Memory = 2,
    /// Too many files.
    Files = 3,
    /// All but the last of the disk.
    Disk = 4,
}

impl Excess {
    pub(super) fn from_number(number: i32) -> Option<Self> {
        [Self::Processes, Self::Memory, Self::Files, Self::Disk]
            .into_iter()
            .find(|excess| *excess as i32 == number)
    }
}

const ENTRIES_BYTES: usize = 32 * 1024;

// What is left of a disk to everybody else: a fiftieth of its files, a twentieth of its
// bytes and at most a gigabyte. Who has hardly added to it is not to blame.
const FILES_RESERVE_PART: u64 = 50;
const BYTES_RESERVE_PART: u64 = 20;
const BYTES_RESERVE_MAX: u64 = 1 << 30;
const FILES_TO_BLAME: u64 = 10_000;
const BYTES_TO_BLAME: u64 = 64 << 20;

impl Bounds {
    /// The bounds of a command in `workspace`, whose memory the kernel counts or not.
    pub(super) fn new(sandbox: &Sandbox, workspace: &Path, is_counted: bool) -> io::Result<Self> {
        let resources = &sandbox.resources;
        // SAFETY: a question without memory.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page_bytes = u64::try_from(page_bytes).unwrap_or(4096);
        let mut disks = vec![Disk::new(workspace, workspace)?];
        if let Some(temp) = &sandbox.temp {
            disks.push(Disk::new(temp, Path::new("/tmp"))?);
        }
        Ok(Self {
            processes_max: resources.processes_max,
            memory_pages_max: resources.memory_bytes() / page_bytes,
            shared_before: (!is_counted).then(shared_pages).flatten(),
            files_max: resources.files_max(),
            disks,
        })
    }

    /// Counts the files of folders in memory too, where whoever made them could not be
    /// told a bound.
    pub(super) fn count_in_memory(&mut self, folders: &[PathBuf]) -> io::Result<()> {
        for folder in folders {
            self.disks.push(Disk {
                at: CString::new(folder.as_os_str().as_bytes())?,
                before: Usage::default(),
                in_memory: Some(IN_MEMORY_FILES_MAX),
            });
        }
        Ok(())
    }

    /// Looks at every process that is seen from here.
    pub(super) fn crossed(&self) -> Option<Excess> {
        let (mut processes, mut pages) = (0_u64, 0_u64);
        // SAFETY: handles of this function, closed in it.
        unsafe {
            let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
            let folder = libc::open(c"/proc".as_ptr(), flags);
            if folder < 0 {
                return None;
            }
            each_process(folder, |name| {
                processes += 1;
                pages += own_pages(folder, name);
            });
            libc::close(folder);
        }
        // What others share meanwhile counts too: there is no telling them apart.
        if let (Some(before), Some(now)) = (self.shared_before, shared_pages()) {
            pages += now.saturating_sub(before);
        }
        match (
            processes > self.processes_max,
            pages > self.memory_pages_max,
        ) {
            (true, _) => Some(Excess::Processes),
            (false, true) => Some(Excess::Memory),
            (false, false) => self
                .disks
                .iter()
                .find_map(|disk| disk.crossed(self.files_max)),
        }
    }
}

impl Disk {
    /// The disk of `outside`, which is seen as `inside`.
    fn new(outside: &Path, inside: &Path) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
        Ok(Self {
            before: usage(&text(outside)?).unwrap_or_default(),
            at: text(inside)?,
            in_memory: None,
        })
    }

    fn crossed(&self, files_max: u64) -> Option<Excess> {
        let now = usage(&self.at)?;
        let files = now.files.saturating_sub(self.before.files);
        let bytes = now.bytes.saturating_sub(self.before.bytes);
        let files_all = now.files.saturating_add(now.files_free);
        let files_reserve = files_all / FILES_RESERVE_PART;
        let bytes_reserve = (now.bytes_all / BYTES_RESERVE_PART).min(BYTES_RESERVE_MAX);
        if let Some(most) = self.in_memory {
            return (now.files > most).then_some(Excess::Files);
        }
        match () {
            () if files > files_max => Some(Excess::Files),
            () if files > FILES_TO_BLAME && now.files_free < files_reserve => Some(Excess::Files),
            () if bytes > BYTES_TO_BLAME && now.bytes_free < bytes_reserve => Some(Excess::Disk),
            () => None,
        }
    }
}

/// How full a disk is; none if it does not say.
fn usage(at: &CStr) -> Option<Usage> {
    // SAFETY: a valid path, and a structure of this frame for which zeroes are valid.
    let (result, found) = unsafe {
        let mut found: libc::statfs64 = zeroed();
        (libc::statfs64(at.as_ptr(), &raw mut found), found)
    };
    if result != 0 {
        return None;
    }
    let block = u64::try_from(found.f_bsize).unwrap_or(0);
    Some(Usage {
        files: found.f_files.saturating_sub(found.f_ffree),
        files_free: found.f_ffree,
        bytes: found
            .f_blocks
            .saturating_sub(found.f_bfree)
            .saturating_mul(block),
        bytes_free: found.f_bavail.saturating_mul(block),
        bytes_all: found.f_blocks.saturating_mul(block),
    })
}

/// Calls `look` with the name of each folder of a process.
unsafe fn each_process(folder: RawFd, mut look: impl FnMut(&CStr)) {
    let mut buffer = [0_u64; ENTRIES_BYTES / 8];
    loop {
        // SAFETY: a buffer of this frame, with its size.
        let count = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                folder,
                buffer.as_mut_ptr(),
                ENTRIES_BYTES,
            )
        };
        if count <= 0 {
            return;
        }
        let entries = buffer.as_ptr().cast::<u8>();
        let mut at = 0_usize;
        while at < count as usize {
            // SAFETY: the kernel has filled `count` bytes with whole entries, each of
            // which says its length; a name ends with a zero.
            let (length, name) = unsafe {
                let entry = entries.add(at).cast::<libc::dirent64>();
                let name = (&raw const (*entry).d_name).cast();
                ((*entry).d_reclen, CStr::from_ptr(name))
            };
            if name.to_bytes().first().is_some_and(u8::is_ascii_digit) {
                look(name);
            }
            at += usize::from(length);
        }
    }
}

/// How many pages of memory are a process's own: those it has, without those it shares.
fn own_pages(folder: RawFd, name: &CStr) -> u64 {
    const NAME: &[u8] = b"/statm\0";
    let mut path = [0_u8; 32];
    let digits = name.to_bytes();
    if digits.len() + NAME.len() > path.len() {
        return 0;
    }
    path[..digits.len()].copy_from_slice(digits);
    path[digits.len()..digits.len() + NAME.len()].copy_from_slice(NAME);
    let mut text = [0_u8; 128];
    // SAFETY: a path that ends with a zero, and a buffer of this frame with its size.
    let count = unsafe {
        let file = libc::openat(
            folder,
            path.as_ptr().cast(),
            libc::O_RDONLY | libc::O_CLOEXEC as c_int,
        );
        if file < 0 {
            return 0;
        }
        let count = libc::read(file, text.as_mut_ptr().cast::<c_void>(), text.len());
        libc::close(file);
        count
    };
    let text = &text[..usize::try_from(count).unwrap_or(0)];
    let mut numbers = text.split(|byte| *byte == b' ').map(number);
    let (_, resident, shared) = (numbers.next(), numbers.next(), numbers.next());
    resident.unwrap_or(0).saturating_sub(shared.unwrap_or(0))
}

/// How many pages of the machine are shared, or files in memory.
fn shared_pages() -> Option<u64> {
    const NAME: &[u8] = b"\nShmem:";
    // The file has some fifty lines of thirty bytes.
    let mut text = [0_u8; 4096];
    // SAFETY: a valid path, and a buffer of this frame with its size.
    let (count, page_bytes) = unsafe {
        let file = libc::open(c"/proc/meminfo".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let count = libc::read(file, text.as_mut_ptr().cast::<c_void>(), text.len());
        libc::close(file);
        (count, libc::sysconf(libc::_SC_PAGESIZE))
    };
    let text = &text[..usize::try_from(count).unwrap_or(0)];
    let at = text.windows(NAME.len()).position(|part| part == NAME)?;
    let digits = text[at + NAME.len()..].trim_ascii_start();
    Some(number(digits) * 1024 / u64::try_from(page_bytes).ok()?.max(1))
}

fn number(digits: &[u8]) -> u64 {
    digits
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .fold(0, |n, digit| {
            n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_counted() {
        let bounds = |processes_max, memory_pages_max| Bounds {
            processes_max,
            memory_pages_max,
            shared_before: None,
            files_max: u64::MAX,
            disks: Vec::new(),
        };
        assert!(shared_pages().is_some());
        assert_eq!(bounds(u64::MAX, u64::MAX).crossed(), None);
        assert_eq!(bounds(0, u64::MAX).crossed(), Some(Excess::Processes));
        let memory = vec![1_u8; 8 << 20];
        assert_eq!(bounds(u64::MAX, 100).crossed(), Some(Excess::Memory));
        drop(memory);
    }

    #[test]
    fn a_disk_is_kept_from_being_full_by_whoever_fills_it() {
        let scratch = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(scratch.path(), scratch.path()).unwrap();
        assert_eq!(disk.crossed(u64::MAX), None);
        disk.before.files = disk.before.files.saturating_sub(100_000);
        assert_eq!(disk.crossed(10), Some(Excess::Files));
        assert_eq!(
            Disk::new(scratch.path(), Path::new("/gone"))
                .unwrap()
                .crossed(0),
            None
        );
    }
}
