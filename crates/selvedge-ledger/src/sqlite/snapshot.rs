//! How a folded state is stored: a checksum, then the state, compressed.
//!
//! A snapshot stands in for events, and events are protected by their hashes.
//! Without a checksum of its own, one flipped bit in it would change what a run
//! believes and nobody would notice.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::event::{Hash, Seq};
use crate::stream::{Snapshot, StreamId};

const CHECKSUM_BYTES: usize = 32;

/// The stored form of a snapshot's state.
pub(super) fn pack(stream: &StreamId, snapshot: &Snapshot) -> Vec<u8> {
    let state = zstd::bulk::compress(snapshot.state.get().as_bytes(), 1)
        .expect("compressing from memory to memory has nothing to fail on");
    let checksum = checksum(stream, snapshot.seq, snapshot.hash, &state);
    [&checksum[..], &state].concat()
}

/// The snapshot, if it is as it was stored.
pub(super) fn unpack(stream: &StreamId, seq: Seq, hash: Hash, stored: &[u8]) -> Option<Snapshot> {
    let (expected, state) = stored.split_at_checked(CHECKSUM_BYTES)?;
    (checksum(stream, seq, hash, state) == expected).then_some(())?;
    let state = String::from_utf8(zstd::stream::decode_all(state).ok()?).ok()?;
    Some(Snapshot {
        seq,
        hash,
        state: Arc::from(RawValue::from_string(state).ok()?),
    })
}

fn checksum(stream: &StreamId, seq: Seq, hash: Hash, state: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&hash.0);
    hasher.update(&seq.to_le_bytes());
    hasher.update(&(state.len() as u64).to_le_bytes());
    hasher.update(state);
    hasher.update(stream.as_str().as_bytes());
    *hasher.finalize().as_bytes()
}
