//! A simulated world for tests.
//!
//! # Map
//!
//! - `disk`: a disk that SQLite writes to, that can fail, crash and forget
//!
//! # Invariants
//!
//! - The same seed and the same calls give the same world, byte for byte.
//! - Nothing here reads the clock or the randomness of the machine.

mod disk;

pub use disk::{
    Counters, CrashKind, CrashPlan, DiskImage, DiskOptions, Fault, FaultEffect, FaultError,
    FaultSpan, Moment, OperationKind, PowerLoss, SimDisk,
};
