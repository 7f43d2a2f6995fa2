//! The bytes of one file, in chunks that copies share until one is written.

use std::sync::{Arc, LazyLock};

// Large enough that a page and its frame header seldom touch two chunks, small
// enough that the first write after a copy stays around a microsecond.
const CHUNK_BYTES: usize = 16 * 1024;

type Chunk = [u8; CHUNK_BYTES];

static ZEROS: LazyLock<Arc<Chunk>> = LazyLock::new(|| Arc::new([0; CHUNK_BYTES]));

/// A growable byte string; what lies past its length is zero.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Content {
    chunks: Vec<Arc<Chunk>>,
    len: u64,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset` and returns how many bytes there were.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let available = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buf.len().min(available);
        let mut done = 0;
        while done < wanted {
            let (chunk, within) = locate(offset + done as u64);
            let part = (CHUNK_BYTES - within).min(wanted - done);
            buf[done..done + part].copy_from_slice(&self.chunks[chunk][within..within + part]);
            done += part;
        }
        wanted
    }

    /// Writes `data` at `offset`; a gap before it reads as zeros.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        self.extend(offset + data.len() as u64);
        let mut done = 0;
        while done < data.len() {
            let (chunk, within) = locate(offset + done as u64);
            let part = (CHUNK_BYTES - within).min(data.len() - done);
            Arc::make_mut(&mut self.chunks[chunk])[within..within + part]
                .copy_from_slice(&data[done..done + part]);
            done += part;
        }
    }

    /// Cuts or extends to `len` bytes.
    pub(super) fn truncate(&mut self, len: u64) {
        if len >= self.len {
            self.extend(len);
            return;
        }
        let (chunk, within) = locate(len);
        self.chunks.truncate(chunk + usize::from(within > 0));
        if within > 0 {
            Arc::make_mut(&mut self.chunks[chunk])[within..].fill(0);
        }
        self.len = len;
    }

    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) -> bool {
        if offset >= self.len {
            return false;
        }
        let (chunk, within) = locate(offset);
        Arc::make_mut(&mut self.chunks[chunk])[within] ^= 1 << bit;
        true
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.len).expect("a file fits in memory")];
        self.read(0, &mut bytes);
        bytes
    }

    fn extend(&mut self, len: u64) {
        if len <= self.len {
            return;
        }
        let (chunk, within) = locate(len);
        let chunks = chunk + usize::from(within > 0);
        if chunks > self.chunks.len() {
            self.chunks.resize(chunks, ZEROS.clone());
        }
        self.len = len;
    }
}

fn locate(offset: u64) -> (usize, usize) {
    let offset = usize::try_from(offset).expect("a file fits in memory");
    (offset / CHUNK_BYTES, offset % CHUNK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_past_the_end_leaves_zeros_before_it() {
        let mut content = Content::default();
        content.write(CHUNK_BYTES as u64 - 2, b"abcd");
        assert_eq!(content.len(), CHUNK_BYTES as u64 + 2);
        let bytes = content.to_vec();
        assert!(bytes[..CHUNK_BYTES - 2].iter().all(|byte| *byte == 0));
        assert_eq!(&bytes[CHUNK_BYTES - 2..], b"abcd");
    }

    #[test]
    fn a_cut_file_that_grows_again_reads_zeros() {
        let mut content = Content::default();
        content.write(0, b"abcd");
        content.truncate(1);
        content.truncate(4);
        assert_eq!(content.to_vec(), b"a\0\0\0");
    }

    #[test]
    fn a_copy_keeps_its_bytes_when_the_original_is_written() {
        let mut content = Content::default();
        content.write(0, b"abcd");
        let copy = content.clone();
        content.write(1, b"x");
        assert_eq!(copy.to_vec(), b"abcd");
        assert_eq!(content.to_vec(), b"axcd");
    }
}
