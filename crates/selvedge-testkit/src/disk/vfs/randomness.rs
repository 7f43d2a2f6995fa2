//! Feeds SQLite's generator of random numbers from the seed of a disk.
//!
//! SQLite has one generator per process and seeds it from the *default* VFS,
//! whichever disk a connection is on. So a copy of the default VFS is put in
//! its place that asks the disk last used on this thread, and the generator is
//! made to seed itself anew before each of the places where SQLite draws. A
//! thread that has used no disk gets the randomness of the machine, as before.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::slice;
use std::sync::{Arc, OnceLock, Weak};

use rusqlite::ffi;

use crate::disk::state::Shared;

thread_local! {
    static CURRENT: RefCell<Weak<Shared>> = const { RefCell::new(Weak::new()) };
}

static MACHINE: OnceLock<Machine> = OnceLock::new();

struct Machine {
    original: *mut ffi::sqlite3_vfs,
}

// SAFETY: the pointer is to the VFS of the machine, which SQLite keeps for the
// life of the process and whose methods may be called from any thread.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

/// Puts the copy in place, once per process.
pub(super) fn install() {
    MACHINE.get_or_init(|| {
        // SAFETY: SQLite's own VFS is found after initialisation and never
        // goes away. The copy is leaked, so it is valid for ever; its methods
        // depend on the fields of the struct they are given and on nothing
        // else about its address.
        unsafe {
            ffi::sqlite3_initialize();
            let original = ffi::sqlite3_vfs_find(ptr::null());
            let copy = Box::leak(Box::new(*original));
            copy.zName = c"default-with-sim-randomness".as_ptr();
            copy.pNext = ptr::null_mut();
            copy.xRandomness = Some(fill_random);
            ffi::sqlite3_vfs_register(copy, 1);
            Machine { original }
        }
    });
}

/// Makes `shared` the source of randomness on this thread.
pub(super) fn enter(shared: &Arc<Shared>) {
    // A thread on its way out has no current disk, and needs none.
    let changed = CURRENT.try_with(|current| {
        let mut current = current.borrow_mut();
        let changed = !ptr::eq(current.as_ptr(), Arc::as_ptr(shared));
        if changed {
            *current = Arc::downgrade(shared);
        }
        changed
    });
    if changed == Ok(true) {
        renew();
    }
}

/// Makes SQLite seed its generator anew at the next draw.
pub(super) fn renew() {
    // SAFETY: no bytes and no buffer is how SQLite is asked to do this.
    unsafe { ffi::sqlite3_randomness(0, ptr::null_mut()) }
}

unsafe extern "C" fn fill_random(
    _raw: *mut ffi::sqlite3_vfs,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    let current = CURRENT
        .try_with(|current| current.borrow().upgrade())
        .ok()
        .flatten();
    if let Some(shared) = current {
        // SAFETY: SQLite passes `bytes` writable bytes.
        let out = unsafe {
            let bytes = usize::try_from(bytes).unwrap_or(0);
            out.write_bytes(0, bytes);
            slice::from_raw_parts_mut(out.cast::<u8>(), bytes)
        };
        shared.with(|state| state.fill_random(out));
        return bytes;
    }
    let machine = MACHINE.get().expect("installed before SQLite can call it");
    // SAFETY: the arguments are passed on to the VFS this one was copied from.
    unsafe {
        match (*machine.original).xRandomness {
            Some(original) => original(machine.original, bytes, out),
            None => 0,
        }
    }
}
