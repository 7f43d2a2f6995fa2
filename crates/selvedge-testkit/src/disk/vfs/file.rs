//! An open file as SQLite sees it: a table of methods and a pointer to ours.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rusqlite::ffi;

use super::{SimVfs, code, randomness};
use crate::disk::share::{Hold, Level};
use crate::disk::state::{Handle, Refusal, Shared};

/// What lies in the memory SQLite sets aside for a file.
#[repr(C)]
pub(super) struct SimFile {
    base: ffi::sqlite3_file,
    open: *mut OpenFile,
}

struct OpenFile {
    vfs: Arc<SimVfs>,
    handle: Handle,
}

impl SimFile {
    /// Marks the memory as holding no open file.
    ///
    /// # Safety
    ///
    /// `file` must be valid for writes.
    pub(super) unsafe fn clear(file: *mut SimFile) {
        let none = SimFile {
            base: ffi::sqlite3_file {
                pMethods: ptr::null(),
            },
            open: ptr::null_mut(),
        };
        // SAFETY: by the contract above.
        unsafe { file.write(none) }
    }

    /// Puts an open file there; SQLite frees it by calling `xClose`.
    ///
    /// # Safety
    ///
    /// `file` must be valid for writes.
    pub(super) unsafe fn fill(file: *mut SimFile, vfs: Arc<SimVfs>, handle: Handle) {
        let open = SimFile {
            base: ffi::sqlite3_file { pMethods: &METHODS },
            open: Box::into_raw(Box::new(OpenFile { vfs, handle })),
        };
        // SAFETY: by the contract above.
        unsafe { file.write(open) }
    }
}

impl OpenFile {
    /// The open file behind SQLite's pointer.
    ///
    /// # Safety
    ///
    /// `file` must come from SQLite as the first argument of a file method of
    /// this module, and the result must not outlive that call. SQLite does not
    /// call two methods of one file at the same time.
    unsafe fn of<'a>(file: *mut ffi::sqlite3_file) -> &'a mut OpenFile {
        // SAFETY: only `SimFile::fill` sets the methods that SQLite calls, and
        // it sets `open` with them. The box lives until `xClose`.
        unsafe { &mut *(*file.cast::<SimFile>()).open }
    }

    fn parts(&mut self) -> (&Shared, &mut Handle) {
        (self.vfs.enter(), &mut self.handle)
    }
}

// Version 2 has shared memory and no mapping of the file itself, so that every
// read and write passes through here.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once; the box was made by `SimFile::fill`
    // and nothing refers to it afterwards.
    let OpenFile { vfs, handle } = unsafe {
        let sim = file.cast::<SimFile>();
        let open = Box::from_raw((*sim).open);
        SimFile::clear(sim);
        *open
    };
    vfs.enter().with(|state| state.close(handle));
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    out: *mut c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes our own file and `bytes` writable bytes. They are
    // zeroed first: a short read must end in zeros, and a reference must not
    // cover memory that was never written.
    let (open, buf) = unsafe {
        let bytes = length(bytes);
        out.cast::<u8>().write_bytes(0, bytes);
        (
            OpenFile::of(file),
            slice::from_raw_parts_mut(out.cast::<u8>(), bytes),
        )
    };
    let (shared, handle) = open.parts();
    match shared.with(|state| state.read(handle, position(offset), buf)) {
        Ok(found) if found == buf.len() => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(refusal) => refusal,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    data: *const c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes our own file and `bytes` readable bytes.
    let (open, data) = unsafe {
        (
            OpenFile::of(file),
            slice::from_raw_parts(data.cast::<u8>(), length(bytes)),
        )
    };
    let (shared, handle) = open.parts();
    code(shared.with(|state| state.write(handle, position(offset), data)))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    code(shared.with(|state| state.truncate(handle, position(len))))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    code(shared.with(|state| state.sync(handle)))
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    out: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    let len = shared.with(|state| state.len(handle));
    code(len.map(|len| {
        let len = i64::try_from(len).expect("a file fits in memory");
        // SAFETY: SQLite passes a place for the answer.
        unsafe { *out = len }
    }))
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    randomness::renew();
    code(level_of(level).and_then(|level| shared.with(|state| state.lock(handle, level))))
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    code(level_of(level).and_then(|level| shared.with(|state| state.unlock(handle, level))))
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    let reserved = shared.with(|state| state.is_reserved(handle));
    code(reserved.map(|reserved| {
        // SAFETY: SQLite passes a place for the answer.
        unsafe { *out = c_int::from(reserved) }
    }))
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _operation: c_int,
    _argument: *mut c_void,
) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, _) = unsafe { OpenFile::of(file) }.parts();
    let bytes = shared.with(|state| state.sector_bytes());
    c_int::try_from(bytes).expect("a sector is small")
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    let address =
        shared.with(|state| state.map_memory(handle, length(region), length(bytes), extend != 0));
    let answer = match address {
        Ok(Some(address)) => address.cast_mut().cast(),
        Ok(None) | Err(_) => ptr::null_mut(),
    };
    // SAFETY: SQLite passes a place for the answer. The words are atomics, so
    // SQLite may write to them, and they live until the file unmaps or closes.
    unsafe { *out = answer };
    code(address.map(drop))
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite passes our own file.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    let (first, count) = (length(first), length(count));
    let hold = match flags & ffi::SQLITE_SHM_SHARED != 0 {
        true => Hold::Shared,
        false => Hold::Exclusive,
    };
    if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        shared.with(|state| state.unlock_memory(handle, first, count, hold));
        return ffi::SQLITE_OK;
    }
    if hold == Hold::Exclusive {
        randomness::renew();
    }
    code(shared.with(|state| state.lock_memory(handle, first, count, hold)))
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {
    fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: SQLite passes our own file, and uses no region after this.
    let (shared, handle) = unsafe { OpenFile::of(file) }.parts();
    shared.with(|state| state.leave_memory(handle));
    ffi::SQLITE_OK
}

fn level_of(level: c_int) -> Result<Level, Refusal> {
    match level {
        ffi::SQLITE_LOCK_NONE => Ok(Level::None),
        ffi::SQLITE_LOCK_SHARED => Ok(Level::Shared),
        ffi::SQLITE_LOCK_RESERVED => Ok(Level::Reserved),
        ffi::SQLITE_LOCK_PENDING => Ok(Level::Pending),
        ffi::SQLITE_LOCK_EXCLUSIVE => Ok(Level::Exclusive),
        _ => Err(ffi::SQLITE_IOERR_LOCK),
    }
}

fn length(value: c_int) -> usize {
    usize::try_from(value).unwrap_or(0)
}

fn position(value: ffi::sqlite3_int64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
