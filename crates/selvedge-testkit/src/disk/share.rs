//! Who holds what: the locks on a file, and the shared memory of its log.
//!
//! A lock belongs to a handle, so two connections in one process exclude each
//! other as two processes would.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use rusqlite::ffi::{SQLITE_BUSY, SQLITE_SHM_NLOCK};

use super::medium::FileId;

const SLOTS: usize = SQLITE_SHM_NLOCK as usize;

/// Names an open handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HandleId(pub(super) u64);

/// How far a handle has locked its file, in SQLite's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    None,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

/// The locks on all files.
#[derive(Default)]
pub(super) struct Locks {
    held: BTreeMap<FileId, Vec<(HandleId, Level)>>,
}

impl Locks {
    /// Raises the lock of `handle`, or refuses because another is in the way.
    ///
    /// A refused exclusive lock stays pending, which keeps new readers out
    /// until the present ones are done.
    pub(super) fn raise(&mut self, file: FileId, handle: HandleId, to: Level) -> Result<(), i32> {
        let held = self.held.entry(file).or_default();
        let mine = held
            .iter()
            .find(|(owner, _)| *owner == handle)
            .map_or(Level::None, |(_, level)| *level);
        if mine >= to {
            return Ok(());
        }
        let highest_other = held
            .iter()
            .filter(|(owner, _)| *owner != handle)
            .map(|(_, level)| *level)
            .max()
            .unwrap_or(Level::None);
        let (reached, result) = match to {
            Level::Shared if highest_other >= Level::Pending => (mine, Err(SQLITE_BUSY)),
            Level::Reserved | Level::Pending | Level::Exclusive
                if highest_other >= Level::Reserved =>
            {
                (mine, Err(SQLITE_BUSY))
            }
            Level::Exclusive if highest_other >= Level::Shared => {
                (Level::Pending, Err(SQLITE_BUSY))
            }
            _ => (to, Ok(())),
        };
        set(held, handle, reached);
        result
    }

    /// Lowers the lock of `handle`; a level it does not hold changes nothing.
    pub(super) fn lower(&mut self, file: FileId, handle: HandleId, to: Level) {
        let Some(held) = self.held.get_mut(&file) else {
            return;
        };
        if held.iter().any(|(owner, at)| *owner == handle && *at > to) {
            set(held, handle, to);
        }
        if held.is_empty() {
            self.held.remove(&file);
        }
    }

    /// Whether anyone intends to write.
    pub(super) fn is_reserved(&self, file: FileId) -> bool {
        self.held
            .get(&file)
            .is_some_and(|held| held.iter().any(|(_, level)| *level >= Level::Reserved))
    }
}

fn set(held: &mut Vec<(HandleId, Level)>, handle: HandleId, level: Level) {
    held.retain(|(owner, _)| *owner != handle);
    if level > Level::None {
        held.push((handle, level));
    }
}

/// Names a shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MemoryId(u64);

/// The shared memories of all logs, those of dead handles included.
///
/// SQLite reads and writes through the pointers without asking, so a memory
/// lives until its last user has let go of it, whatever happens to the disk.
#[derive(Default)]
pub(super) struct Memories {
    of_file: BTreeMap<FileId, MemoryId>,
    all: BTreeMap<MemoryId, Memory>,
    made: u64,
}

#[derive(Default)]
struct Memory {
    // Atomics, because SQLite writes to them behind a shared reference; words,
    // because it expects the alignment of one.
    regions: Vec<Box<[AtomicU64]>>,
    slots: [Slot; SLOTS],
    users: u32,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    shared: u32,
    exclusive: bool,
}

/// A handle's part in a shared memory: a bit for each slot it holds.
#[derive(Debug)]
pub(super) struct Membership {
    memory: MemoryId,
    shared: u8,
    exclusive: u8,
}

/// Whether a slot is held with others or alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Shared,
    Exclusive,
}

impl Memories {
    pub(super) fn join(&mut self, file: FileId) -> Membership {
        let id = *self.of_file.entry(file).or_insert_with(|| {
            self.made += 1;
            MemoryId(self.made)
        });
        self.all.entry(id).or_default().users += 1;
        Membership {
            memory: id,
            shared: 0,
            exclusive: 0,
        }
    }

    pub(super) fn leave(&mut self, mut member: Membership) {
        self.unlock(&mut member, 0, SLOTS, Hold::Shared);
        self.unlock(&mut member, 0, SLOTS, Hold::Exclusive);
        let memory = self.memory(member.memory);
        memory.users -= 1;
        if memory.users == 0 {
            self.all.remove(&member.memory);
            self.of_file.retain(|_, id| *id != member.memory);
        }
    }

    /// The address of a region, made on demand if `extend` says so.
    ///
    /// It is valid until `member` leaves.
    pub(super) fn region(
        &mut self,
        member: &Membership,
        index: usize,
        bytes: usize,
        extend: bool,
    ) -> Option<*const AtomicU64> {
        let memory = self.memory(member.memory);
        if extend {
            while memory.regions.len() <= index {
                let words = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0));
                memory.regions.push(words.collect());
            }
        }
        memory.regions.get(index).map(|region| region.as_ptr())
    }

    pub(super) fn lock(
        &mut self,
        member: &mut Membership,
        first: usize,
        count: usize,
        hold: Hold,
    ) -> Result<(), i32> {
        let memory = self.memory(member.memory);
        for index in first..first + count {
            let bit = 1 << index;
            let slot = memory.slots[index];
            let others = slot.shared - u32::from(member.shared & bit != 0);
            let blocked = match hold {
                Hold::Shared => slot.exclusive && member.exclusive & bit == 0,
                Hold::Exclusive => others > 0 || (slot.exclusive && member.exclusive & bit == 0),
            };
            if blocked {
                return Err(SQLITE_BUSY);
            }
        }
        for index in first..first + count {
            let bit = 1 << index;
            match hold {
                Hold::Shared if member.shared & bit == 0 => {
                    member.shared |= bit;
                    memory.slots[index].shared += 1;
                }
                Hold::Exclusive => {
                    member.exclusive |= bit;
                    memory.slots[index].exclusive = true;
                }
                Hold::Shared => {}
            }
        }
        Ok(())
    }

    pub(super) fn unlock(
        &mut self,
        member: &mut Membership,
        first: usize,
        count: usize,
        hold: Hold,
    ) {
        let memory = self.memory(member.memory);
        for index in first..first + count {
            let bit = 1 << index;
            match hold {
                Hold::Shared if member.shared & bit != 0 => {
                    member.shared &= !bit;
                    memory.slots[index].shared -= 1;
                }
                Hold::Exclusive if member.exclusive & bit != 0 => {
                    member.exclusive &= !bit;
                    memory.slots[index].exclusive = false;
                }
                _ => {}
            }
        }
    }

    /// Parts every file from its memory; the next to join starts from zeros.
    pub(super) fn abandon(&mut self) {
        self.of_file.clear();
    }

    fn memory(&mut self, id: MemoryId) -> &mut Memory {
        self.all.get_mut(&id).expect("a member keeps its memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::medium::Medium;

    #[test]
    fn a_refused_exclusive_lock_keeps_new_readers_out() {
        let file = Medium::default().create(None);
        let (reader, writer, late) = (HandleId(1), HandleId(2), HandleId(3));
        let mut locks = Locks::default();
        locks.raise(file, reader, Level::Shared).unwrap();
        locks.raise(file, writer, Level::Shared).unwrap();
        locks.raise(file, writer, Level::Reserved).unwrap();
        assert_eq!(locks.raise(file, reader, Level::Reserved), Err(SQLITE_BUSY));
        assert_eq!(
            locks.raise(file, writer, Level::Exclusive),
            Err(SQLITE_BUSY)
        );
        assert_eq!(locks.raise(file, late, Level::Shared), Err(SQLITE_BUSY));
        locks.lower(file, reader, Level::None);
        assert_eq!(locks.raise(file, writer, Level::Exclusive), Ok(()));
        locks.lower(file, writer, Level::Shared);
        assert!(!locks.is_reserved(file));
        assert_eq!(locks.raise(file, late, Level::Shared), Ok(()));
    }

    #[test]
    fn a_slot_is_held_by_many_readers_or_one_writer() {
        let file = Medium::default().create(None);
        let mut memories = Memories::default();
        let mut one = memories.join(file);
        let mut two = memories.join(file);
        memories.lock(&mut one, 3, 1, Hold::Shared).unwrap();
        memories.lock(&mut two, 3, 1, Hold::Shared).unwrap();
        assert_eq!(
            memories.lock(&mut one, 2, 3, Hold::Exclusive),
            Err(SQLITE_BUSY)
        );
        memories.leave(two);
        memories.unlock(&mut one, 3, 1, Hold::Shared);
        assert_eq!(memories.lock(&mut one, 2, 3, Hold::Exclusive), Ok(()));
        memories.leave(one);
        assert!(memories.all.is_empty());
    }
}
