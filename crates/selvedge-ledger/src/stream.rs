//! The `Ledger` trait: append with an expected sequence, read, tail.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::event::{Event, Hash, NewEvent, Sealed, Seq, Time};
use crate::lease::{Fence, Holder, Lease, LeaseError};
use crate::payload::{BlobId, Payload};
use crate::verify::VerifyReport;

/// Names a stream. A child's name begins with its parent's and a `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// Wraps a name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The stream of the child that effect `effect` of this stream runs.
    pub fn child(&self, effect: &str) -> Self {
        Self(format!("{}/{effect}", self.0).into())
    }

    /// The stream that takes messages from outside for this one.
    pub fn inbox(&self) -> Self {
        Self(format!("{}#inbox", self.0).into())
    }

    /// The session (root stream) this stream belongs to.
    pub fn session(&self) -> Self {
        let end = self.0.find(['/', '#']).unwrap_or(self.0.len());
        Self(self.0[..end].into())
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A stream to be opened with its first append.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewStream {
    /// Which machine folds it.
    pub kind: String,
    /// The stream whose effect started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<StreamId>,
}

/// What a ledger knows of a stream without reading its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamInfo {
    /// Its name.
    pub id: StreamId,
    /// Which machine folds it.
    pub kind: String,
    /// The stream whose effect started it.
    pub parent: Option<StreamId>,
    /// Position of its last event.
    pub head: Seq,
    /// Hash of its last event.
    pub head_hash: Hash,
    /// When it was opened.
    pub opened: Time,
    /// When its last event was written.
    pub updated: Time,
}

/// Which streams to list.
#[derive(Clone, Debug)]
pub enum StreamFilter {
    /// Sessions: streams without a parent, inboxes left out. Newest first.
    Sessions,
    /// A session's stream and all below it, inboxes included. Oldest first.
    Session(StreamId),
}

/// When an append counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sync {
    /// When the file system has it; the next `Now` carries it to the disk.
    Later,
    /// When it is on disk.
    Now,
}

/// A request to append; all of it happens, or nothing. Made by a `Pen`.
#[derive(Debug)]
pub struct Append {
    pub(crate) stream: StreamId,
    pub(crate) expected: Seq,
    pub(crate) previous: Hash,
    pub(crate) open: Option<NewStream>,
    pub(crate) events: Arc<Vec<Sealed>>,
    pub(crate) sync: Sync,
    pub(crate) fence: Option<Fence>,
}

impl Append {
    /// Where to, the head after it, and when it counts as done.
    pub fn summary(&self) -> (StreamId, (Seq, Hash), Sync) {
        let last = self.events.last().map(|s| (s.event.seq, s.event.hash));
        (
            self.stream.clone(),
            last.unwrap_or((self.expected, self.previous)),
            self.sync,
        )
    }
}

/// A position in the order of all events of a ledger, for following it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// A message from outside.
#[derive(Debug)]
pub struct Letter {
    /// Chosen by the sender: the same id twice is the same letter.
    pub id: String,
    /// What it says, as an event of the inbox.
    pub event: NewEvent,
}

/// Proof that a letter is in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its place there.
    pub seq: Seq,
    /// Whether it had been admitted before.
    pub repeated: bool,
}

/// A folded state, kept to save time. Deletable, never the truth.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The last event folded into it.
    pub seq: Seq,
    /// That event's hash; a snapshot of another history is ignored.
    pub hash: Hash,
    /// The state, as JSON.
    pub state: Arc<RawValue>,
}

/// What to be woken for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Appends to one stream.
    Stream(StreamId),
    /// Appends to any stream of a session.
    Session(StreamId),
    /// Sessions that other processes open.
    OpenedElsewhere,
}

/// Wakes its owner when something was appended under its topic.
///
/// A wake-up that nobody waited for is kept, so read first, then wait.
#[derive(Clone, Debug)]
pub struct Subscription(pub(crate) Arc<Notify>);

impl Subscription {
    /// Waits for the next wake-up.
    pub async fn changed(&self) {
        self.0.notified().await;
    }
}

/// Why a ledger refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// Another writer came first: reload, then decide again.
    #[error("stream `{stream}` is at {actual}, expected {expected}")]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// Where the writer believed it to be.
        expected: Seq,
        /// Where it is.
        actual: Seq,
    },
    /// The writer's lease has passed to another: stop driving.
    #[error("the lease on `{stream}` has passed to another worker")]
    Fenced {
        /// The leased stream.
        stream: StreamId,
    },
    /// There is no such stream.
    #[error("there is no stream `{stream}`")]
    NoStream {
        /// The stream.
        stream: StreamId,
    },
    /// What is stored is not what was written: only this stream is affected.
    #[error("stream `{stream}` is damaged{}: {what}", seq.map(|s| format!(" at event {s}")).unwrap_or_default())]
    Damaged {
        /// The stream.
        stream: StreamId,
        /// The first event that is wrong, if one can be named.
        seq: Option<Seq>,
        /// What is wrong with it.
        what: String,
    },
    /// The disk is full: nothing was written, make room and retry.
    #[error("no room is left for the ledger at `{path}`")]
    Full {
        /// The database file.
        path: String,
    },
    /// The file cannot be used at all: wrong format, too new, or not writable.
    #[error("the ledger at `{path}` cannot be opened: {why}")]
    Unusable {
        /// The database file.
        path: String,
        /// Why not.
        why: String,
    },
    /// The database is away; whether the append happened is unknown: reload.
    #[error("the ledger did not answer: {why}")]
    Unavailable {
        /// What it said instead.
        why: String,
    },
}

/// A place where events are kept.
#[async_trait]
pub trait Ledger: Send + std::marker::Sync {
    /// Appends if the stream is where the writer believes it to be.
    async fn append(&self, append: Append) -> Result<(), LedgerError>;

    /// Events of a stream after `after`, chain verified, oldest first.
    async fn read(&self, stream: &StreamId, after: Seq) -> Result<Vec<Event>, LedgerError>;

    /// What is known of a stream.
    async fn stream(&self, stream: &StreamId) -> Result<Option<StreamInfo>, LedgerError>;

    /// Streams by filter.
    async fn streams(&self, filter: StreamFilter) -> Result<Vec<StreamInfo>, LedgerError>;

    /// Events of a session after a position, in the order of commits.
    async fn session_after(
        &self,
        session: &StreamId,
        after: Position,
    ) -> Result<(Vec<Event>, Position), LedgerError>;

    /// Wakes the caller on appends, by this process or another.
    fn subscribe(&self, topic: Topic) -> Subscription;

    /// The content of a blob, checked against its id.
    async fn blob(&self, id: BlobId) -> Result<Arc<str>, LedgerError>;

    /// Puts a letter into a stream's inbox; the same id twice gives the same receipt.
    async fn admit(&self, to: &StreamId, letter: Letter) -> Result<Receipt, LedgerError>;

    /// Takes the lease on `stream` until `now + ttl`, unless a live holder has it.
    async fn claim(
        &self,
        stream: &StreamId,
        holder: &Holder,
        now: Time,
        ttl_millis: i64,
    ) -> Result<Lease, LeaseError>;

    /// Extends all leases of `holder` that have not passed to another.
    async fn renew(&self, holder: &Holder, now: Time, ttl_millis: i64) -> Result<(), LedgerError>;

    /// Gives a lease back.
    async fn release(&self, lease: &Lease) -> Result<(), LedgerError>;

    /// Who holds the lease on `stream` at `now`, if anybody does.
    async fn holder(&self, stream: &StreamId, now: Time) -> Result<Option<Holder>, LedgerError>;

    /// Keeps a folded state.
    async fn put_snapshot(&self, stream: &StreamId, snapshot: Snapshot) -> Result<(), LedgerError>;

    /// The latest folded state, if there is one.
    async fn snapshot(&self, stream: &StreamId) -> Result<Option<Snapshot>, LedgerError>;

    /// Checks a session's streams, or everything, against their hashes.
    async fn verify(&self, session: Option<&StreamId>) -> Result<VerifyReport, LedgerError>;

    /// Writes a consistent copy of the whole ledger to `path` while in use.
    async fn backup(&self, path: &std::path::Path) -> Result<(), LedgerError>;

    /// The text of a payload, fetched if need be.
    async fn text(&self, payload: &Payload) -> Result<Arc<str>, LedgerError> {
        match (payload.text(), payload.blob()) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(id)) => self.blob(id).await,
            (None, None) => unreachable!("a payload is text or a blob"),
        }
    }
}

/// Follows a session: every event once, in the order of commits.
pub struct Tail {
    ledger: Arc<dyn Ledger>,
    session: StreamId,
    position: Position,
    subscription: Subscription,
}

impl Tail {
    /// Starts before the session's first event.
    pub fn new(ledger: Arc<dyn Ledger>, session: StreamId) -> Self {
        let subscription = ledger.subscribe(Topic::Session(session.clone()));
        Self {
            ledger,
            session,
            position: Position::default(),
            subscription,
        }
    }

    /// Skips what is there now.
    pub async fn skip_to_end(&mut self) -> Result<(), LedgerError> {
        self.ready().await.map(drop)
    }

    /// What is there now and was not returned before.
    pub async fn ready(&mut self) -> Result<Vec<Event>, LedgerError> {
        let (events, position) = self
            .ledger
            .session_after(&self.session, self.position)
            .await?;
        self.position = position;
        Ok(events)
    }

    /// Waits until there is something new.
    pub async fn next(&mut self) -> Result<Vec<Event>, LedgerError> {
        loop {
            let events = self.ready().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.subscription.changed().await;
        }
    }
}
