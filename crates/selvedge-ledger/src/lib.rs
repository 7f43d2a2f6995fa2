//! The event log: everything Selvedge remembers, in the order it happened.
//!
//! Other views are projections, rebuilt by folding events.
//!
//! # Map
//!
//! - `event`: what is stored, and the hash that chains it to its predecessor
//! - `payload`: long text, kept once in the blob table and by reference in events
//! - `stream`: the `Ledger` trait: append with an expected sequence, read, tail
//! - `pen`: the writing end of a stream, which seals events in their order
//! - `lease`: who may drive a stream
//! - `upcast`: reading events written by older versions
//! - `verify`: finding damage, and what kind
//! - `sqlite`: a ledger in one SQLite file, with group commit
//!
//! # Invariants
//!
//! - An appended event stays as it was written; acknowledged with `Sync::Now`
//!   means on disk.
//! - This crate knows nothing of models, tools, machines or terminals. It reads
//!   no clock: times arrive with the events.

mod event;
mod lease;
mod payload;
mod pen;
mod sqlite;
mod stream;
mod upcast;
mod verify;

pub use event::{Event, Hash, NewEvent, Sealed, Seq, Time};
pub use lease::{Fence, Holder, Lease, LeaseError};
pub use payload::{Blob, BlobId, PAYLOAD_INLINE_BYTES_MAX, Payload};
pub use pen::Pen;
pub use sqlite::{Mode, SqliteLedger, SqliteOptions};
pub use stream::{
    Append, Ledger, LedgerError, Letter, NewStream, Position, Receipt, Snapshot, StreamFilter,
    StreamId, StreamInfo, Subscription, Sync, Tail, Topic,
};
pub use upcast::Upcasts;
pub use verify::{Damage, VerifyReport};
