//! The long texts used last, all of them stored.
//!
//! A turn sends the results of the last few turns again, and a thousand sessions
//! begin with the same prompt. Keeping these saves reading and unpacking them each
//! time, and packing and storing what is there already.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::payload::BlobId;

/// Together they take at most this much.
const BYTES_MAX: usize = 8 << 20;

/// First in, first out: older turns are asked for less and less.
#[derive(Default)]
pub(super) struct BlobCache {
    contents: HashMap<BlobId, Arc<str>>,
    order: VecDeque<BlobId>,
    bytes: usize,
}

impl BlobCache {
    pub(super) fn get(&self, id: BlobId) -> Option<Arc<str>> {
        self.contents.get(&id).cloned()
    }

    pub(super) fn has(&self, id: BlobId) -> bool {
        self.contents.contains_key(&id)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn put(&mut self, id: BlobId, content: Arc<str>) {
        if content.len() > BYTES_MAX / 4 || self.contents.contains_key(&id) {
            return;
        }
        self.bytes += content.len();
        self.contents.insert(id, content);
        self.order.push_back(id);
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.bytes -= self.contents.remove(&oldest).map_or(0, |c| c.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leave_when_there_are_too_many() {
        let mut cache = BlobCache::default();
        let content: Arc<str> = "x".repeat(BYTES_MAX / 8).into();
        for n in 0..20u8 {
            cache.put(BlobId([n; 32]), content.clone());
        }
        assert!(cache.bytes <= BYTES_MAX);
        assert!(cache.get(BlobId([0; 32])).is_none());
        assert!(cache.get(BlobId([19; 32])).is_some());
    }
}
