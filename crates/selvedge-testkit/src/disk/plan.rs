//! What a test may ask of a disk: its options, a crash, a fault, the count.

use rusqlite::ffi;

/// How a disk behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskOptions {
    /// The sector size that SQLite is told. Default: 4096, as a modern drive;
    /// 512 is the other one worth trying.
    pub sector_bytes: u32,
    /// What a loss of power lets through. Default: [`PowerLoss::Any`].
    pub power_loss: PowerLoss,
    /// Whether a sync reports success and does nothing. Default: no.
    pub lie_about_sync: bool,
}

impl Default for DiskOptions {
    fn default() -> Self {
        DiskOptions {
            sector_bytes: 4096,
            power_loss: PowerLoss::Any,
            lie_about_sync: false,
        }
    }
}

/// Which pending operations survive a loss of power.
///
/// Pending operations are those since the last sync of their file, in the
/// order in which they happened across the whole disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerLoss {
    /// None: exactly the durable bytes survive.
    Nothing,
    /// All, as if the power had failed just after a sync of everything.
    Everything,
    /// The first few, as on a disk that keeps the order.
    Prefix,
    /// Any of them, as on a disk that reorders.
    Subset,
    /// The first few, then a part of the next write, cut at a sector boundary.
    Torn,
    /// Any 512-byte sectors of any of them: the harshest.
    Sectors,
    /// One of the above, drawn at each crash.
    Any,
}

/// What a crash takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashKind {
    /// Handles, locks and shared memory go; every written byte stays.
    ProcessKill,
    /// As above, and pending operations are subject to [`PowerLoss`].
    PowerLoss,
}

/// Whether a crash comes before an operation or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The operation does not happen.
    Before,
    /// The operation happens, and nobody learns of it.
    After,
}

/// A crash at one operation of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPlan {
    /// The operation, numbered from 1 as in [`Counters::operations`].
    pub at: u64,
    /// Before it or after it.
    pub moment: Moment,
    /// What the crash takes away.
    pub kind: CrashKind,
}

/// A kind of operation on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// A file is opened.
    Open,
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// A file is cut or extended.
    Truncate,
    /// Pending operations of a file are made durable.
    Sync,
    /// A name is removed.
    Delete,
}

/// An operation that reports an error although the disk lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The kind of operation that fails.
    pub on: OperationKind,
    /// Which one, numbered from 1 as in [`Counters::of`].
    pub nth: u64,
    /// What SQLite is told.
    pub error: FaultError,
    /// What happens to the bytes.
    pub effect: FaultEffect,
    /// How long it lasts.
    pub span: FaultSpan,
}

/// What SQLite is told of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultError {
    /// `SQLITE_FULL`: no space is left.
    Full,
    /// `SQLITE_IOERR_READ`.
    Read,
    /// `SQLITE_IOERR_WRITE`.
    Write,
    /// `SQLITE_IOERR_FSYNC`.
    Fsync,
    /// `SQLITE_CANTOPEN`.
    CantOpen,
}

impl FaultError {
    pub(super) fn code(self) -> i32 {
        match self {
            FaultError::Full => ffi::SQLITE_FULL,
            FaultError::Read => ffi::SQLITE_IOERR_READ,
            FaultError::Write => ffi::SQLITE_IOERR_WRITE,
            FaultError::Fsync => ffi::SQLITE_IOERR_FSYNC,
            FaultError::CantOpen => ffi::SQLITE_CANTOPEN,
        }
    }
}

/// What a fault does to the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultEffect {
    /// The operation does not happen.
    Refused,
    /// The operation happens and is made durable, then reports the error.
    Performed,
    /// A failed sync forgets: readers still see the bytes, yet no later sync
    /// makes them durable. Linux does this. Other operations are refused.
    Forgotten,
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultSpan {
    /// One operation.
    Once,
    /// Every such operation from this one until the disk is healed.
    UntilHealed,
}

/// What has been done to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Files opened, temporary ones too.
    pub opens: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Changes of a file's length.
    pub truncates: u64,
    /// Syncs.
    pub syncs: u64,
    /// Names removed.
    pub deletes: u64,
    /// Bytes handed to writes.
    pub bytes_written: u64,
    /// Written bytes that a sync has made durable.
    pub bytes_synced: u64,
}

impl Counters {
    /// The operations a crash can be planned at: those that change the disk.
    pub fn operations(&self) -> u64 {
        self.writes + self.truncates + self.syncs + self.deletes
    }

    /// The operations of one kind.
    pub fn of(&self, kind: OperationKind) -> u64 {
        match kind {
            OperationKind::Open => self.opens,
            OperationKind::Read => self.reads,
            OperationKind::Write => self.writes,
            OperationKind::Truncate => self.truncates,
            OperationKind::Sync => self.syncs,
            OperationKind::Delete => self.deletes,
        }
    }

    pub(super) fn count(&mut self, kind: OperationKind) {
        match kind {
            OperationKind::Open => self.opens += 1,
            OperationKind::Read => self.reads += 1,
            OperationKind::Write => self.writes += 1,
            OperationKind::Truncate => self.truncates += 1,
            OperationKind::Sync => self.syncs += 1,
            OperationKind::Delete => self.deletes += 1,
        }
    }
}
