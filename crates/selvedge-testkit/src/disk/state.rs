//! A disk in use: the medium, its handles, the planned crash and the faults.
//!
//! Each operation passes one gate, `perform`, which counts it, crashes if it
//! is time, and lets a fault change its course.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rusqlite::ffi;

use super::medium::{FileId, Medium};
use super::plan::{
    Counters, CrashKind, CrashPlan, DiskOptions, Fault, FaultEffect, FaultSpan, Moment,
    OperationKind, PowerLoss,
};
use super::power;
use super::share::{HandleId, Hold, Level, Locks, Membership, Memories};

// Any fixed instant will do; this one is 2024-01-01, so that dates look sane.
const CLOCK_START_MS: i64 = 1_704_067_200_000;

// Randomness is split by purpose, so that a draw by SQLite does not change
// what a later crash leaves behind.
const STREAM_SQLITE: u64 = 1;
const STREAM_CRASH: u64 = 2;

/// A result code of SQLite, when it is not `SQLITE_OK`.
pub(super) type Refusal = i32;

type Notify = Arc<dyn Fn() + Send + Sync>;

/// A disk as its owner and all of its handles share it.
pub(super) struct Shared {
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Shared {
            state: Mutex::new(state),
        }
    }

    /// Works on the disk alone, then tells of a death if there was one.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let (value, notify) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let value = work(&mut state);
            (value, state.unannounced.take())
        };
        if let Some(notify) = notify {
            notify();
        }
        value
    }
}

pub(super) struct State {
    medium: Medium,
    options: DiskOptions,
    locks: Locks,
    memories: Memories,
    counters: Counters,
    plan: Option<CrashPlan>,
    faults: Vec<Fault>,
    dead: Option<CrashKind>,
    generation: u64,
    handles_made: u64,
    notify: Option<Notify>,
    unannounced: Option<Notify>,
    sqlite_rng: ChaCha8Rng,
    crash_rng: ChaCha8Rng,
    clock_us: i64,
    slept_us: u64,
}

/// An open file, as SQLite holds it.
pub(super) struct Handle {
    id: HandleId,
    file: FileId,
    generation: u64,
    membership: Option<Membership>,
}

/// What SQLite asks for when it opens a file.
pub(super) struct OpenRequest<'a> {
    /// Absent for a temporary file.
    pub(super) path: Option<&'a str>,
    pub(super) create: bool,
    pub(super) exclusive: bool,
    pub(super) delete_on_close: bool,
}

impl State {
    pub(super) fn new(medium: Medium, seed: u64, options: DiskOptions) -> Self {
        let stream = |stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream);
            rng
        };
        State {
            medium,
            options,
            locks: Locks::default(),
            memories: Memories::default(),
            counters: Counters::default(),
            plan: None,
            faults: Vec::new(),
            dead: None,
            generation: 0,
            handles_made: 0,
            notify: None,
            unannounced: None,
            sqlite_rng: stream(STREAM_SQLITE),
            crash_rng: stream(STREAM_CRASH),
            clock_us: CLOCK_START_MS * 1000,
            slept_us: 0,
        }
    }

    pub(super) fn open(
        &mut self,
        generation: u64,
        request: &OpenRequest<'_>,
    ) -> Result<Handle, Refusal> {
        self.alive(generation)?;
        let found = request.path.and_then(|path| self.medium.find(path));
        if found.is_none() && !request.create || found.is_some() && request.exclusive {
            return Err(ffi::SQLITE_CANTOPEN);
        }
        let file = self.perform(OperationKind::Open, None, |state| match found {
            Some(file) => file,
            // A file that goes when it is closed has no need of a name.
            None if request.delete_on_close => state.medium.create(None),
            None => state.medium.create(request.path),
        })?;
        self.medium.opened(file);
        self.handles_made += 1;
        Ok(Handle {
            id: HandleId(self.handles_made),
            file,
            generation,
            membership: None,
        })
    }

    pub(super) fn close(&mut self, mut handle: Handle) {
        self.leave_memory(&mut handle);
        // A restart has already closed the handles of earlier generations.
        if handle.generation == self.generation {
            self.locks.lower(handle.file, handle.id, Level::None);
            self.medium.closed(handle.file);
        }
    }

    /// Fills `buf` and returns how many bytes the file had for it.
    pub(super) fn read(
        &mut self,
        handle: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, Refusal> {
        self.alive(handle.generation)?;
        let file = handle.file;
        self.perform(OperationKind::Read, Some(file), |state| {
            state.medium.read(file, offset, buf)
        })
    }

    pub(super) fn write(
        &mut self,
        handle: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Refusal> {
        self.alive(handle.generation)?;
        let file = handle.file;
        self.perform(OperationKind::Write, Some(file), |state| {
            state.counters.bytes_written += data.len() as u64;
            state.medium.write(file, offset, data);
        })
    }

    pub(super) fn truncate(&mut self, handle: &Handle, len: u64) -> Result<(), Refusal> {
        self.alive(handle.generation)?;
        let file = handle.file;
        self.perform(OperationKind::Truncate, Some(file), |state| {
            state.medium.truncate(file, len);
        })
    }

    pub(super) fn sync(&mut self, handle: &Handle) -> Result<(), Refusal> {
        self.alive(handle.generation)?;
        let file = handle.file;
        self.perform(OperationKind::Sync, Some(file), |state| {
            state.sync_file(file);
        })
    }

    pub(super) fn delete(
        &mut self,
        generation: u64,
        path: &str,
        sync_directory: bool,
    ) -> Result<(), Refusal> {
        self.alive(generation)?;
        if self.medium.find(path).is_none() {
            return Err(ffi::SQLITE_IOERR_DELETE_NOENT);
        }
        let sync_directory = sync_directory && !self.options.lie_about_sync;
        self.perform(OperationKind::Delete, None, |state| {
            state.medium.delete(path, sync_directory);
        })
    }

    /// Whether `path` holds anything; an empty file counts as none, as it does
    /// for SQLite on a real disk.
    pub(super) fn exists(&self, generation: u64, path: &str) -> Result<bool, Refusal> {
        self.alive(generation)?;
        let found = self.medium.find(path);
        Ok(found.is_some_and(|file| self.medium.len(file) > 0))
    }

    pub(super) fn len(&self, handle: &Handle) -> Result<u64, Refusal> {
        self.alive(handle.generation)?;
        Ok(self.medium.len(handle.file))
    }

    pub(super) fn lock(&mut self, handle: &Handle, level: Level) -> Result<(), Refusal> {
        self.alive(handle.generation)?;
        self.locks.raise(handle.file, handle.id, level)
    }

    pub(super) fn unlock(&mut self, handle: &Handle, level: Level) -> Result<(), Refusal> {
        self.alive(handle.generation)?;
        self.locks.lower(handle.file, handle.id, level);
        Ok(())
    }

    pub(super) fn is_reserved(&self, handle: &Handle) -> Result<bool, Refusal> {
        self.alive(handle.generation)?;
        Ok(self.locks.is_reserved(handle.file))
    }

    /// The address of a region of shared memory, valid until it is left.
    pub(super) fn map_memory(
        &mut self,
        handle: &mut Handle,
        index: usize,
        bytes: usize,
        extend: bool,
    ) -> Result<Option<*const std::sync::atomic::AtomicU64>, Refusal> {
        self.alive(handle.generation)?;
        let member = handle
            .membership
            .get_or_insert_with(|| self.memories.join(handle.file));
        Ok(self.memories.region(member, index, bytes, extend))
    }

    pub(super) fn lock_memory(
        &mut self,
        handle: &mut Handle,
        first: usize,
        count: usize,
        hold: Hold,
    ) -> Result<(), Refusal> {
        self.alive(handle.generation)?;
        let member = handle
            .membership
            .as_mut()
            .ok_or(ffi::SQLITE_IOERR_SHMLOCK)?;
        self.memories.lock(member, first, count, hold)
    }

    /// Lets go of slots; the dead may do so too, and nobody notices.
    pub(super) fn unlock_memory(
        &mut self,
        handle: &mut Handle,
        first: usize,
        count: usize,
        hold: Hold,
    ) {
        if let Some(member) = handle.membership.as_mut() {
            self.memories.unlock(member, first, count, hold);
        }
    }

    pub(super) fn leave_memory(&mut self, handle: &mut Handle) {
        if let Some(member) = handle.membership.take() {
            self.memories.leave(member);
        }
    }

    pub(super) fn sector_bytes(&self) -> u32 {
        self.options.sector_bytes
    }

    pub(super) fn fill_random(&mut self, buf: &mut [u8]) {
        self.sqlite_rng.fill_bytes(buf);
    }

    pub(super) fn sleep(&mut self, us: u32) {
        self.clock_us += i64::from(us);
        self.slept_us += u64::from(us);
    }

    pub(super) fn set_clock(&mut self, unix_ms: i64) {
        self.clock_us = unix_ms * 1000;
    }

    pub(super) fn clock_ms(&self) -> i64 {
        self.clock_us.div_euclid(1000)
    }

    pub(super) fn slept(&self) -> Duration {
        Duration::from_micros(self.slept_us)
    }

    pub(super) fn arm(&mut self, plan: Option<CrashPlan>) {
        self.plan = plan;
    }

    pub(super) fn on_death(&mut self, notify: Notify) {
        self.notify = Some(notify);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.is_some()
    }

    /// Stops all work; a disk that is already dead stays as it died.
    pub(super) fn die(&mut self, kind: CrashKind) {
        if self.dead.is_none() {
            self.dead = Some(kind);
            self.unannounced = self.notify.clone();
        }
    }

    /// Applies the crash and returns the generation that may use the disk now.
    pub(super) fn restart(&mut self) -> u64 {
        match self.dead.take().unwrap_or(CrashKind::ProcessKill) {
            CrashKind::ProcessKill => self.medium.drop_handles(),
            CrashKind::PowerLoss => {
                let policy = self.options.power_loss;
                power::lose_power(&mut self.medium, policy, &mut self.crash_rng);
            }
        }
        self.locks = Locks::default();
        self.memories.abandon();
        self.plan = None;
        self.faults.clear();
        self.generation += 1;
        self.generation
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn heal(&mut self) {
        self.faults.clear();
    }

    pub(super) fn set_power_loss(&mut self, policy: PowerLoss) {
        self.options.power_loss = policy;
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn options(&self) -> DiskOptions {
        self.options
    }

    pub(super) fn medium(&self) -> &Medium {
        &self.medium
    }

    pub(super) fn medium_mut(&mut self) -> &mut Medium {
        &mut self.medium
    }

    fn alive(&self, generation: u64) -> Result<(), Refusal> {
        if self.dead.is_some() || generation != self.generation {
            return Err(ffi::SQLITE_IOERR);
        }
        Ok(())
    }

    fn sync_file(&mut self, file: FileId) {
        if !self.options.lie_about_sync {
            self.counters.bytes_synced += self.medium.sync(file);
        }
    }

    /// The gate that every operation passes; `file` is the one it is on.
    fn perform<T>(
        &mut self,
        kind: OperationKind,
        file: Option<FileId>,
        work: impl FnOnce(&mut State) -> T,
    ) -> Result<T, Refusal> {
        self.counters.count(kind);
        let crash = self.take_crash(kind);
        if let Some(plan) = crash
            && plan.moment == Moment::Before
        {
            self.die(plan.kind);
            return Err(ffi::SQLITE_IOERR);
        }
        let result = match self.take_fault(kind) {
            None => Ok(work(self)),
            Some(fault) => {
                match fault.effect {
                    FaultEffect::Refused => {}
                    FaultEffect::Performed => {
                        work(self);
                        file.into_iter().for_each(|file| self.sync_file(file));
                    }
                    FaultEffect::Forgotten => self.forget(kind, file),
                }
                Err(fault.error.code())
            }
        };
        if let Some(plan) = crash {
            self.die(plan.kind);
            return Err(ffi::SQLITE_IOERR);
        }
        result
    }

    /// The planned crash, if this operation is the one or has passed it.
    fn take_crash(&mut self, kind: OperationKind) -> Option<CrashPlan> {
        let countable = !matches!(kind, OperationKind::Open | OperationKind::Read);
        let operations = self.counters.operations();
        self.plan.take_if(|plan| countable && operations >= plan.at)
    }

    fn take_fault(&mut self, kind: OperationKind) -> Option<Fault> {
        let number = self.counters.of(kind);
        let index = self
            .faults
            .iter()
            .position(|fault| fault.on == kind && number >= fault.nth)?;
        match self.faults[index].span {
            FaultSpan::Once => Some(self.faults.remove(index)),
            FaultSpan::UntilHealed => Some(self.faults[index]),
        }
    }

    fn forget(&mut self, kind: OperationKind, file: Option<FileId>) {
        if kind == OperationKind::Sync
            && let Some(file) = file
        {
            self.medium.forget_pending(file);
        }
    }
}
