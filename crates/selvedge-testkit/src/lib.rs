//! A simulated world for tests.
//!
//! # Map
//!
//! - `disk`: a disk that SQLite writes to, that can fail, crash and forget
//! - `server`: an HTTP server that speaks the providers' protocols, with faults
//! - `leaks`: secrets in files and databases, whatever their form
//! - `schema`: values that fit a JSON Schema, by chance
//! - `sim`: a whole world on that disk, from one seed
//!
//! # Invariants
//!
//! - The same seed and the same calls give the same world, byte for byte.
//! - Nothing here reads the clock or the randomness of the machine, except
//!   `server`, which has real sockets.

mod disk;
mod leaks;
mod schema;
mod server;
mod sim;

pub use disk::{
    Counters, CrashKind, CrashPlan, DiskImage, DiskOptions, Fault, FaultEffect, FaultError,
    FaultSpan, Moment, OperationKind, PowerLoss, SimDisk,
};
pub use leaks::{CANARY, Leak, Watch, leaks, leaks_in};
pub use schema::fitting;
pub use server::{Case, ModelServer, Recorded, Reply, ReplyFault, STORM_KEY, Storm, Wire};
pub use sim::{Broken, Counts, Dice, Faults, Report, Scenario, simulate};
