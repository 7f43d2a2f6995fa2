//! What is on the disk: files, names, and operations that await a sync.
//!
//! Names are made durable a directory at a time: by a delete that asks for it,
//! and by the first sync of a file that is new there, as SQLite does on Unix.
//! A name whose removal is pending can therefore come back after a power loss,
//! with the durable bytes of its file.

use std::collections::BTreeMap;

use super::content::Content;

/// Names a file apart from its paths; it outlives a delete while in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(u64);

#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Medium {
    pub(super) files: BTreeMap<FileId, File>,
    pub(super) names: BTreeMap<String, FileId>,
    pub(super) durable_names: BTreeMap<String, FileId>,
    pub(super) pending_names: Vec<PendingName>,
    files_made: u64,
    operations: u64,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct File {
    pub(super) written: Content,
    pub(super) durable: Content,
    pub(super) pending: Vec<Pending>,
    // The bytes of all pending writes, one after another, so that a write
    // costs a copy and no allocation.
    pub(super) pending_bytes: Vec<u8>,
    // A file without a name cannot survive a crash: it keeps no pending list.
    temporary: bool,
    handles: u32,
}

/// An operation on a file's bytes; `order` places it among all of the disk.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) order: u64,
    pub(super) change: Change,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// `len` bytes, kept in the file's `pending_bytes` from `start`.
    Write {
        offset: u64,
        start: usize,
        len: usize,
    },
    Truncate {
        len: u64,
    },
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct PendingName {
    pub(super) order: u64,
    pub(super) path: String,
    pub(super) file: FileId,
    pub(super) change: NameChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameChange {
    Made,
    Removed,
}

impl Medium {
    pub(super) fn find(&self, path: &str) -> Option<FileId> {
        self.names.get(path).copied()
    }

    /// Makes an empty file: named, or temporary and without a name.
    pub(super) fn create(&mut self, path: Option<&str>) -> FileId {
        self.files_made += 1;
        let id = FileId(self.files_made);
        let file = File {
            temporary: path.is_none(),
            ..File::default()
        };
        self.files.insert(id, file);
        if let Some(path) = path {
            self.forget_brief_lives(path);
            self.names.insert(path.to_owned(), id);
            self.pend_name(path, id, NameChange::Made);
        }
        id
    }

    pub(super) fn opened(&mut self, id: FileId) {
        self.file_mut(id).handles += 1;
    }

    pub(super) fn closed(&mut self, id: FileId) {
        self.file_mut(id).handles -= 1;
        self.collect(id);
    }

    /// Removes a name that exists.
    pub(super) fn delete(&mut self, path: &str, sync_directory: bool) {
        let Some(id) = self.names.remove(path) else {
            return;
        };
        self.pend_name(path, id, NameChange::Removed);
        if sync_directory {
            self.sync_directory(path);
        }
        self.collect(id);
    }

    pub(super) fn len(&self, id: FileId) -> u64 {
        self.file(id).written.len()
    }

    pub(super) fn read(&self, id: FileId, offset: u64, buf: &mut [u8]) -> usize {
        self.file(id).written.read(offset, buf)
    }

    pub(super) fn write(&mut self, id: FileId, offset: u64, data: &[u8]) {
        self.operations += 1;
        let order = self.operations;
        let file = self.file_mut(id);
        file.written.write(offset, data);
        if file.temporary {
            return;
        }
        let start = file.pending_bytes.len();
        file.pending_bytes.extend_from_slice(data);
        file.pending.push(Pending {
            order,
            change: Change::Write {
                offset,
                start,
                len: data.len(),
            },
        });
    }

    pub(super) fn truncate(&mut self, id: FileId, len: u64) {
        self.operations += 1;
        let order = self.operations;
        let file = self.file_mut(id);
        file.written.truncate(len);
        if !file.temporary {
            file.pending.push(Pending {
                order,
                change: Change::Truncate { len },
            });
        }
    }

    /// Makes a file's bytes and names durable; returns how many bytes that was.
    pub(super) fn sync(&mut self, id: FileId) -> u64 {
        let synced = self.file_mut(id).sync();
        let made = self
            .pending_names
            .iter()
            .find(|pending| pending.file == id && pending.change == NameChange::Made);
        if let Some(made) = made {
            let path = made.path.clone();
            self.sync_directory(&path);
        }
        synced
    }

    /// Drops a file's pending bytes: readers see them, no sync will save them.
    pub(super) fn forget_pending(&mut self, id: FileId) {
        let file = self.file_mut(id);
        file.pending.clear();
        file.pending_bytes.clear();
    }

    pub(super) fn list(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(super) fn written(&self, path: &str) -> Option<Vec<u8>> {
        Some(self.file(self.find(path)?).written.to_vec())
    }

    pub(super) fn durable(&self, path: &str) -> Option<Vec<u8>> {
        let id = self.durable_names.get(path)?;
        Some(self.file(*id).durable.to_vec())
    }

    pub(super) fn flip_bit(&mut self, path: &str, offset: u64, bit: u8) -> bool {
        let Some(id) = self.find(path) else {
            return false;
        };
        let file = self.file_mut(id);
        let flipped = file.written.flip_bit(offset, bit);
        file.durable.flip_bit(offset, bit);
        flipped
    }

    /// A copy as it is once every process has gone.
    pub(super) fn without_handles(&self) -> Medium {
        let mut medium = self.clone();
        medium.drop_handles();
        medium
    }

    /// Closes all handles and frees the files that nothing names any more.
    pub(super) fn drop_handles(&mut self) {
        for file in self.files.values_mut() {
            file.handles = 0;
        }
        let ids: Vec<FileId> = self.files.keys().copied().collect();
        for id in ids {
            self.collect(id);
        }
    }

    fn file(&self, id: FileId) -> &File {
        self.files.get(&id).expect("a file in use is kept")
    }

    fn file_mut(&mut self, id: FileId) -> &mut File {
        self.files.get_mut(&id).expect("a file in use is kept")
    }

    fn pend_name(&mut self, path: &str, file: FileId, change: NameChange) {
        self.operations += 1;
        self.pending_names.push(PendingName {
            order: self.operations,
            path: path.to_owned(),
            file,
            change,
        });
    }

    /// Makes all names durable that lie in the same directory as `path`.
    fn sync_directory(&mut self, path: &str) {
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending_names)
            .into_iter()
            .partition(|pending| directory(&pending.path) == directory(path));
        self.pending_names = later;
        for pending in &now {
            pending.apply(&mut self.durable_names);
        }
        // What a durable name pointed to before may now be out of reach.
        let ids: Vec<FileId> = self.files.keys().copied().collect();
        for id in ids {
            self.collect(id);
        }
    }

    /// Lets go of files that came and went at `path` between two syncs.
    ///
    /// The latest of them may still return after a power loss. Keeping them
    /// all would let a run that never syncs fill the memory.
    fn forget_brief_lives(&mut self, path: &str) {
        let durable = self.durable_names.get(path).copied();
        let (brief, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending_names)
            .into_iter()
            .partition(|pending| pending.path == path && Some(pending.file) != durable);
        self.pending_names = kept;
        for pending in brief {
            self.collect(pending.file);
        }
    }

    fn collect(&mut self, id: FileId) {
        let may_return =
            |pending: &PendingName| pending.file == id && pending.change == NameChange::Made;
        let in_use = self.files.get(&id).is_some_and(|file| file.handles > 0)
            || self.names.values().any(|named| *named == id)
            || self.durable_names.values().any(|named| *named == id)
            || self.pending_names.iter().any(may_return);
        if !in_use {
            self.files.remove(&id);
            self.pending_names.retain(|pending| pending.file != id);
        }
    }
}

impl File {
    fn sync(&mut self) -> u64 {
        let mut synced = 0;
        for pending in &self.pending {
            match pending.change {
                Change::Write { offset, start, len } => {
                    let data = &self.pending_bytes[start..start + len];
                    self.durable.write(offset, data);
                    synced += len as u64;
                }
                Change::Truncate { len } => self.durable.truncate(len),
            }
        }
        self.pending.clear();
        self.pending_bytes.clear();
        synced
    }
}

impl PendingName {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, FileId>) {
        match self.change {
            NameChange::Made => {
                names.insert(self.path.clone(), self.file);
            }
            NameChange::Removed => {
                if names.get(&self.path) == Some(&self.file) {
                    names.remove(&self.path);
                }
            }
        }
    }
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
