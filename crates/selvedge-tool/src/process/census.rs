//! Counts what a command uses, with everything that it started.
//!
//! Limits of a process are inherited, not shared: a thousand processes each within
//! their limit can take a machine down. The process that watches over a command is the
//! first of its world, sees all others there, and only there, and ends them by ending.
//!
//! Between fork and exec, like all of the supervisor: system calls only.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;

use libc::{c_int, c_void};

use crate::sandbox::Resources;

/// What all processes of a command may use together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Processes.
    pub(super) processes_max: u64,
    /// Pages of memory that are their own.
    pub(super) memory_pages_max: u64,
}

/// Which bound was crossed. The numbers are what the supervisor reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Excess {
    /// Too many processes.
    Processes = 1,
    /// Too much memory.
    Memory = 2,
}

impl Excess {
    pub(super) fn from_number(number: i32) -> Option<Self> {
        [Self::Processes, Self::Memory]
            .into_iter()
            .find(|excess| *excess as i32 == number)
    }
}

const ENTRIES_BYTES: usize = 32 * 1024;

impl Bounds {
    pub(super) fn new(resources: &Resources) -> Self {
        // SAFETY: a question without memory.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page_bytes = u64::try_from(page_bytes).unwrap_or(4096);
        Self {
            processes_max: resources.processes_max,
            memory_pages_max: resources.memory_bytes() / page_bytes,
        }
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
        match (
            processes > self.processes_max,
            pages > self.memory_pages_max,
        ) {
            (true, _) => Some(Excess::Processes),
            (false, true) => Some(Excess::Memory),
            (false, false) => None,
        }
    }
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
        };
        assert_eq!(bounds(u64::MAX, u64::MAX).crossed(), None);
        assert_eq!(bounds(0, u64::MAX).crossed(), Some(Excess::Processes));
        let memory = vec![1_u8; 8 << 20];
        assert_eq!(bounds(u64::MAX, 100).crossed(), Some(Excess::Memory));
        drop(memory);
    }
}
