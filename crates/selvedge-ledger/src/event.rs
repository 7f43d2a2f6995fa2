//! What is stored: an event, and the hash that chains it to its predecessor.
//!
//! The hash covers the exact bytes that were written, so a reader can tell a
//! changed, missing or moved event from an intact one without trusting the file.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::payload::{self, Blob};
use crate::stream::{LedgerError, StreamId};

/// Position of an event in its stream; the first event has 1, an empty stream is at 0.
pub type Seq = u64;

/// Wall-clock time in milliseconds since the Unix epoch. Never used for ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// This time moved by `millis`.
    pub fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this time; negative if the clock went back.
    pub fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The predecessor of a stream's first event.
    pub const ZERO: Self = Self([0; 32]);

    /// Reads a hash from its stored bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Something that happened, as it stands in the ledger.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The machine it happened to.
    pub stream: StreamId,
    /// Its position there.
    pub seq: Seq,
    /// When, by the writer's clock.
    pub time: Time,
    /// Who made it happen: `driver`, `user`, `agent:engineer`…
    pub actor: Arc<str>,
    /// What happened, in the past tense.
    pub kind: Arc<str>,
    /// Version of the shape of `data`.
    pub version: u16,
    /// What led to it: an effect, a letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Arc<str>>,
    /// The details, as JSON.
    pub data: Arc<RawValue>,
    /// Hash over the previous event's hash and this event's stored bytes.
    pub hash: Hash,
}

impl Event {
    /// The details as a typed value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, LedgerError> {
        serde_json::from_str(self.data.get()).map_err(|e| LedgerError::Damaged {
            stream: self.stream.clone(),
            seq: Some(self.seq),
            what: format!("`{}` v{} does not decode: {e}", self.kind, self.version),
        })
    }
}

/// An event that is about to be appended.
#[derive(Debug)]
pub struct NewEvent {
    pub(crate) time: Time,
    pub(crate) actor: Arc<str>,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) version: u16,
    pub(crate) cause: Option<Arc<str>>,
    pub(crate) data: Box<RawValue>,
    pub(crate) blobs: Vec<Blob>,
}

impl NewEvent {
    /// Encodes `data`; the long payloads in it become blobs of the same append.
    pub fn new<T: Serialize>(
        kind: impl Into<Cow<'static, str>>,
        actor: impl Into<Arc<str>>,
        time: Time,
        data: &T,
    ) -> Self {
        let (data, blobs) = payload::collect(|| {
            serde_json::value::to_raw_value(data)
                .expect("event data has string keys and no failing serializer")
        });
        Self {
            time,
            actor: actor.into(),
            kind: kind.into(),
            version: 1,
            cause: None,
            data,
            blobs,
        }
    }

    /// Says that `data` has a later shape than version 1.
    pub fn version(mut self, version: u16) -> Self {
        self.version = version;
        self
    }

    /// Names what led to the event.
    pub fn because(mut self, cause: impl Into<Arc<str>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// What happened.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The event as it will stand at `seq` of `stream` after `previous`.
    pub(crate) fn seal(self, stream: &StreamId, seq: Seq, previous: Hash) -> Sealed {
        let mut event = Event {
            stream: stream.clone(),
            seq,
            time: self.time,
            actor: self.actor,
            kind: self.kind.into(),
            version: self.version,
            cause: self.cause,
            data: Arc::from(self.data),
            hash: Hash::ZERO,
        };
        event.hash = chain(previous, &event);
        Sealed {
            event,
            blobs: self.blobs,
        }
    }
}

/// An event with its place and hash, and the content it refers to.
#[derive(Debug)]
pub struct Sealed {
    pub(crate) event: Event,
    pub(crate) blobs: Vec<Blob>,
}

/// The hash that `event` must have after `previous`.
pub(crate) fn chain(previous: Hash, event: &Event) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&previous.0);
    // Every variable field is preceded by its length, so that no two different
    // events have the same bytes.
    for field in [
        event.stream.as_str(),
        &event.actor,
        &event.kind,
        event.data.get(),
    ] {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field.as_bytes());
    }
    // No cause is not an empty cause; no field is this long.
    let cause = event.cause.as_deref();
    hasher.update(&cause.map_or(u64::MAX, |c| c.len() as u64).to_le_bytes());
    hasher.update(cause.unwrap_or_default().as_bytes());
    hasher.update(&event.seq.to_le_bytes());
    hasher.update(&event.time.0.to_le_bytes());
    hasher.update(&event.version.to_le_bytes());
    Hash(*hasher.finalize().as_bytes())
}
