//! A simulated world for tests.
//!
//! # Map
//!
//! - `disk`: a disk that SQLite writes to, that can fail, crash and forget
//! - `sim`: a whole world on that disk, from one seed
//!
//! # Invariants
//!
//! - The same seed and the same calls give the same world, byte for byte.
//! - Nothing here reads the clock or the randomness of the machine.

mod disk;
mod sim;

pub use disk::{
    Counters, CrashKind, CrashPlan, DiskImage, DiskOptions, Fault, FaultEffect, FaultError,
    FaultSpan, Moment, OperationKind, PowerLoss, SimDisk,
};
pub use sim::{Broken, Counts, Dice, Faults, Report, Scenario, simulate};
