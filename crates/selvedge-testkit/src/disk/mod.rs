//! A simulated disk that the real SQLite runs on, with crashes on demand.
//!
//! Each file holds two contents: *written*, which reads see, and *durable*,
//! which survives a loss of power. The difference is a list of pending
//! operations that a sync empties. A crash is then a plain function over that
//! list, so every position of a run can be tried in memory and in order.
//!
//! # Map
//!
//! - `plan`: what a test may ask for: crashes, faults, counters
//! - `content`: the bytes of one file, cheap to copy
//! - `medium`: files, names and pending operations
//! - `power`: which pending operations a loss of power lets through
//! - `share`: file locks and the shared memory of the write-ahead log
//! - `state`: a disk in use: the medium, its handles, the plan and its faults
//! - `vfs`: the door to SQLite, and the one place with unsafe code

mod content;
mod medium;
mod plan;
mod power;
mod share;
mod state;
mod vfs;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use medium::Medium;
pub use plan::{
    Counters, CrashKind, CrashPlan, DiskOptions, Fault, FaultEffect, FaultError, FaultSpan, Moment,
    OperationKind, PowerLoss,
};
use state::{Shared, State};
use vfs::Registration;

/// A disk in memory, reached by SQLite through a VFS of its own.
///
/// Open a database with [`SimDisk::open`], or pass [`SimDisk::vfs_name`] to
/// `Connection::open_with_flags_and_vfs`. Paths are absolute: `a.db` and
/// `/a.db` are one file.
///
/// SQLite draws its random numbers (the salts of a log, `random()`) from one
/// generator per process. The disk feeds it from its own seed, which is exact
/// as long as one thread at a time works on simulated disks. Threads may share
/// a disk, but since sleep takes no time, one that waits for another exhausts
/// SQLite's patience soon: it should be ready to try again.
pub struct SimDisk {
    shared: Arc<Shared>,
    name: String,
    registration: Mutex<Registration>,
}

impl SimDisk {
    /// An empty disk with the default options.
    pub fn new(seed: u64) -> Arc<SimDisk> {
        SimDisk::with_options(seed, DiskOptions::default())
    }

    /// An empty disk.
    pub fn with_options(seed: u64, options: DiskOptions) -> Arc<SimDisk> {
        SimDisk::start(Medium::default(), seed, options)
    }

    /// A disk that begins as `image` was, with its own seed and new counters.
    pub fn from_image(image: &DiskImage, seed: u64) -> Arc<SimDisk> {
        SimDisk::start(image.medium.clone(), seed, image.options)
    }

    fn start(medium: Medium, seed: u64, options: DiskOptions) -> Arc<SimDisk> {
        let shared = Arc::new(Shared::new(State::new(medium, seed, options)));
        let name = vfs::unused_name();
        let registration = Registration::new(&shared, &name, 0);
        Arc::new(SimDisk {
            shared,
            name,
            registration: Mutex::new(registration),
        })
    }

    /// The name SQLite knows this disk by; it stays the same over restarts.
    pub fn vfs_name(&self) -> &str {
        &self.name
    }

    /// Opens a database for reading and writing, and creates it if missing.
    pub fn open(&self, path: impl AsRef<Path>) -> rusqlite::Result<Connection> {
        Connection::open_with_flags_and_vfs(path, OpenFlags::default(), self.vfs_name())
    }

    /// Plans a crash, in place of any earlier plan.
    pub fn arm(&self, plan: CrashPlan) {
        self.shared.with(|state| state.arm(Some(plan)));
    }

    /// Forgets the planned crash.
    pub fn disarm(&self) {
        self.shared.with(|state| state.arm(None));
    }

    /// Crashes now, between two operations.
    pub fn crash(&self, kind: CrashKind) {
        self.shared.with(|state| state.die(kind));
    }

    /// Whether a crash has happened and [`SimDisk::restart`] has yet to come.
    pub fn is_dead(&self) -> bool {
        self.shared.with(|state| state.is_dead())
    }

    /// Asks to be told of each crash, at the moment it happens.
    ///
    /// The call comes from inside SQLite, so it should note the fact and
    /// return: it may use the disk, but no connection.
    pub fn on_death(&self, notify: Arc<dyn Fn() + Send + Sync>) {
        self.shared.with(|state| state.on_death(notify));
    }

    /// Applies the crash to the medium and brings the disk back to life.
    ///
    /// A disk that is alive is killed first, as a process would be. Handles
    /// from before stay dead for ever; faults and the plan are forgotten.
    pub fn restart(&self) {
        let generation = self.shared.with(State::restart);
        let mut registration = self
            .registration
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *registration = Registration::new(&self.shared, &self.name, generation);
    }

    /// Adds a fault to those already waiting.
    pub fn inject(&self, fault: Fault) {
        self.shared.with(|state| state.inject(fault));
    }

    /// Removes every fault, those waiting and those in force.
    pub fn heal(&self) {
        self.shared.with(State::heal);
    }

    /// Changes what a later loss of power lets through.
    pub fn set_power_loss(&self, policy: PowerLoss) {
        self.shared.with(|state| state.set_power_loss(policy));
    }

    /// What has been done to this disk so far.
    pub fn counters(&self) -> Counters {
        self.shared.with(|state| state.counters())
    }

    /// How many operations could have been a crash point so far.
    pub fn operations(&self) -> u64 {
        self.counters().operations()
    }

    /// The paths that a reader finds, in order.
    pub fn list(&self) -> Vec<String> {
        self.shared.with(|state| state.medium().list())
    }

    /// The bytes that a reader of `path` finds.
    pub fn file_bytes(&self, path: &str) -> Option<Vec<u8>> {
        let path = absolute(path);
        self.shared.with(|state| state.medium().written(&path))
    }

    /// The bytes of `path` that survive any loss of power.
    pub fn durable_bytes(&self, path: &str) -> Option<Vec<u8>> {
        let path = absolute(path);
        self.shared.with(|state| state.medium().durable(&path))
    }

    /// Flips one bit, as a failing medium would; false if there is no such byte.
    ///
    /// # Panics
    ///
    /// If `bit` is above 7.
    pub fn flip_bit(&self, path: &str, byte_offset: u64, bit: u8) -> bool {
        assert!(bit < 8, "a byte has bits 0 to 7, asked for {bit}");
        let path = absolute(path);
        self.shared
            .with(|state| state.medium_mut().flip_bit(&path, byte_offset, bit))
    }

    /// The disk as a process killed at this instant would leave it.
    ///
    /// Contents are shared until one side writes, so this costs little more
    /// than the number of files.
    pub fn image(&self) -> DiskImage {
        self.shared.with(|state| DiskImage {
            medium: state.medium().without_handles(),
            options: state.options(),
        })
    }

    /// Sets the clock SQLite reads, in milliseconds since 1970.
    pub fn set_clock(&self, unix_ms: i64) {
        self.shared.with(|state| state.set_clock(unix_ms));
    }

    /// The clock SQLite reads, in milliseconds since 1970. Sleeping moves it.
    pub fn clock(&self) -> i64 {
        self.shared.with(|state| state.clock_ms())
    }

    /// How long SQLite has slept here, all of it virtual.
    pub fn slept(&self) -> Duration {
        self.shared.with(|state| state.slept())
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk")
            .field("name", &self.name)
            .field("dead", &self.is_dead())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

/// A disk at rest: written and durable bytes, names and pending operations.
///
/// Two images are equal when all of these are.
#[derive(Clone, PartialEq, Eq)]
pub struct DiskImage {
    medium: Medium,
    options: DiskOptions,
}

impl fmt::Debug for DiskImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskImage")
            .field("files", &self.medium.list())
            .finish_non_exhaustive()
    }
}

fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}
