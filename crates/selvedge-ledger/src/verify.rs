//! Finding damage, and what kind.

use serde::Serialize;

use crate::event::Seq;
use crate::stream::StreamId;

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Where.
    pub stream: StreamId,
    /// At which event, if one can be named.
    pub seq: Option<Seq>,
    /// What is wrong.
    pub what: String,
}

/// What a check of the ledger found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Streams looked at.
    pub streams: u64,
    /// Events whose hash was computed anew.
    pub events: u64,
    /// Blobs whose content was hashed anew.
    pub blobs: u64,
    /// What is wrong; empty if all is well.
    pub damage: Vec<Damage>,
}
