//! The door to SQLite: a VFS for each disk, known by a name.
//!
//! A restart puts a new VFS under the old name, so that a connection from
//! before, which keeps a pointer to the old one, cannot delete or look for
//! files in the new world. (`attach` alone finds its VFS by name again.)

#![allow(unsafe_code)]

mod file;
mod randomness;

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

use super::absolute;
use super::state::{OpenRequest, Refusal, Shared};
use file::SimFile;

const PATH_BYTES_MAX: c_int = 512;

// The start of 1970 in SQLite's time: milliseconds since noon in Greenwich on
// November 24, 4714 B.C.
const UNIX_EPOCH_JULIAN_MS: i64 = 210_866_760_000_000;

/// A name no VFS of this process has had.
pub(super) fn unused_name() -> String {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    format!("sim-disk-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

/// A VFS that SQLite can find for as long as this lives.
///
/// Its memory lives longer if need be: every open file keeps it.
pub(super) struct Registration {
    vfs: Arc<SimVfs>,
}

impl Registration {
    pub(super) fn new(shared: &Arc<Shared>, name: &str, generation: u64) -> Self {
        randomness::install();
        let name = CString::new(name).expect("a generated name has no zero byte");
        let vfs = Arc::new(SimVfs {
            raw: UnsafeCell::new(methods(name.as_ptr())),
            _name: name,
            shared: Arc::clone(shared),
            generation,
        });
        // SAFETY: nobody else knows `raw` yet, so the write is alone. SQLite
        // may use it from here on; it stays in place inside the `Arc` until
        // `Drop` has unregistered it and every open file has let go. The name
        // it points to is owned by the same allocation.
        let code = unsafe {
            let raw = vfs.raw.get();
            (*raw).pAppData = Arc::as_ptr(&vfs).cast_mut().cast();
            ffi::sqlite3_vfs_register(raw, 0)
        };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite takes any well-formed VFS");
        Registration { vfs }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: `raw` was registered in `new` and is unregistered once;
        // SQLite ignores a VFS it no longer lists.
        unsafe {
            ffi::sqlite3_vfs_unregister(self.vfs.raw.get());
        }
    }
}

struct SimVfs {
    raw: UnsafeCell<ffi::sqlite3_vfs>,
    _name: CString,
    shared: Arc<Shared>,
    generation: u64,
}

// SAFETY: `raw` is written once before it is shared; afterwards only SQLite
// touches it, under its own mutex. All other fields are `Send` and `Sync`.
unsafe impl Send for SimVfs {}
// SAFETY: as above.
unsafe impl Sync for SimVfs {}

impl SimVfs {
    /// The VFS behind SQLite's pointer.
    ///
    /// # Safety
    ///
    /// `raw` must come from SQLite as the first argument of a VFS method of
    /// this module, and the result must not outlive that call.
    unsafe fn of<'a>(raw: *mut ffi::sqlite3_vfs) -> &'a SimVfs {
        // SAFETY: `pAppData` was set in `Registration::new` to the `SimVfs`
        // that owns `raw`, which lives while SQLite can call its methods.
        unsafe { &*(*raw).pAppData.cast::<SimVfs>() }
    }

    /// Marks this disk as the one at work on this thread.
    fn enter(&self) -> &Shared {
        randomness::enter(&self.shared);
        &self.shared
    }
}

fn methods(name: *const c_char) -> ffi::sqlite3_vfs {
    ffi::sqlite3_vfs {
        iVersion: 2,
        szOsFile: mem::size_of::<SimFile>() as c_int,
        mxPathname: PATH_BYTES_MAX,
        pNext: ptr::null_mut(),
        zName: name,
        pAppData: ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(fill_random),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

fn code(result: Result<(), Refusal>) -> c_int {
    result.err().unwrap_or(ffi::SQLITE_OK)
}

/// The path in a string of SQLite's.
///
/// # Safety
///
/// `path` must point to a string that ends in a zero byte and outlives `'a`.
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a str, Refusal> {
    // SAFETY: by the contract above.
    let path = unsafe { CStr::from_ptr(path) };
    path.to_str().map_err(|_| ffi::SQLITE_CANTOPEN)
}

unsafe extern "C" fn open(
    raw: *mut ffi::sqlite3_vfs,
    path: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let file = file.cast::<SimFile>();
    // SAFETY: SQLite passes our own VFS, a path that is null or a string, and
    // `szOsFile` writable bytes for the file. `flags_out` may be null. A file
    // that failed to open is marked by having no methods.
    unsafe {
        SimFile::clear(file);
        let vfs = SimVfs::of(raw);
        let path = match path.is_null() {
            true => Ok(None),
            false => path_of(path).map(Some),
        };
        let path = match path {
            Ok(path) => path,
            Err(refusal) => return refusal,
        };
        let request = OpenRequest {
            path,
            create: flags & ffi::SQLITE_OPEN_CREATE != 0,
            exclusive: flags & ffi::SQLITE_OPEN_EXCLUSIVE != 0,
            delete_on_close: flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0,
        };
        let shared = vfs.enter();
        randomness::renew();
        let handle = match shared.with(|state| state.open(vfs.generation, &request)) {
            Ok(handle) => handle,
            Err(refusal) => return refusal,
        };
        // The pointer that came from `Arc::as_ptr` reaches the counts as well,
        // which one made from the reference would not.
        let owner = (*raw).pAppData.cast_const().cast::<SimVfs>();
        Arc::increment_strong_count(owner);
        SimFile::fill(file, Arc::from_raw(owner), handle);
        if !flags_out.is_null() {
            *flags_out = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(
    raw: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    sync_directory: c_int,
) -> c_int {
    // SAFETY: SQLite passes our own VFS and a string.
    let (vfs, path) = unsafe { (SimVfs::of(raw), path_of(path)) };
    code(path.and_then(|path| {
        vfs.enter()
            .with(|state| state.delete(vfs.generation, path, sync_directory != 0))
    }))
}

unsafe extern "C" fn access(
    raw: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    _flags: c_int,
    result: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes our own VFS and a string.
    let (vfs, path) = unsafe { (SimVfs::of(raw), path_of(path)) };
    let exists = path.and_then(|path| vfs.enter().with(|state| state.exists(vfs.generation, path)));
    code(exists.map(|exists| {
        // SAFETY: SQLite passes a place for the answer.
        unsafe { *result = c_int::from(exists) }
    }))
}

unsafe extern "C" fn full_pathname(
    raw: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    out_bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes our own VFS and a string.
    let (vfs, path) = unsafe { (SimVfs::of(raw), path_of(path)) };
    vfs.enter();
    code(path.and_then(|path| {
        let full = absolute(path);
        let out_bytes = usize::try_from(out_bytes).unwrap_or(0);
        if full.len() >= out_bytes {
            return Err(ffi::SQLITE_CANTOPEN);
        }
        // SAFETY: SQLite passes `out_bytes` writable bytes, and the path with
        // its final zero is no longer than that.
        unsafe {
            ptr::copy_nonoverlapping(full.as_ptr().cast(), out, full.len());
            *out.add(full.len()) = 0;
        }
        Ok(())
    }))
}

unsafe extern "C" fn fill_random(
    raw: *mut ffi::sqlite3_vfs,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes our own VFS and `bytes` writable bytes.
    let (vfs, out) = unsafe {
        let bytes = usize::try_from(bytes).unwrap_or(0);
        out.write_bytes(0, bytes);
        (
            SimVfs::of(raw),
            slice::from_raw_parts_mut(out.cast::<u8>(), bytes),
        )
    };
    vfs.shared.with(|state| state.fill_random(out));
    bytes
}

unsafe extern "C" fn sleep(raw: *mut ffi::sqlite3_vfs, us: c_int) -> c_int {
    // SAFETY: SQLite passes our own VFS.
    let vfs = unsafe { SimVfs::of(raw) };
    let duration = u32::try_from(us).unwrap_or(0);
    vfs.enter().with(|state| state.sleep(duration));
    // Whoever holds the lock may be a thread that needs this processor.
    std::thread::yield_now();
    us
}

unsafe extern "C" fn current_time(raw: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    const DAY_MS: f64 = 86_400_000.0;
    // SAFETY: SQLite passes our own VFS and a place for the answer.
    unsafe { *out = julian_ms(SimVfs::of(raw)) as f64 / DAY_MS }
    ffi::SQLITE_OK
}

unsafe extern "C" fn current_time_int64(
    raw: *mut ffi::sqlite3_vfs,
    out: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes our own VFS and a place for the answer.
    unsafe { *out = julian_ms(SimVfs::of(raw)) }
    ffi::SQLITE_OK
}

fn julian_ms(vfs: &SimVfs) -> i64 {
    UNIX_EPOCH_JULIAN_MS + vfs.enter().with(|state| state.clock_ms())
}

unsafe extern "C" fn last_error(
    _raw: *mut ffi::sqlite3_vfs,
    _bytes: c_int,
    _out: *mut c_char,
) -> c_int {
    0
}
