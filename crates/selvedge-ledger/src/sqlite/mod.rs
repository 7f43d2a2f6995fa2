//! A ledger in one SQLite file, with group commit.
//!
//! One thread writes. It takes all appends that wait for it, of any session,
//! into one transaction and one sync, so a thousand sessions cost little more
//! than one. Readers have their own connection and do not block it.

mod backup;
mod cache;
mod log;
mod notify;
mod read;
mod schema;
mod snapshot;
mod store;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::event::{Event, Seq, Time};
use crate::lease::{Holder, Lease, LeaseError};
use crate::payload::BlobId;
use crate::stream::{
    Append, Ledger, LedgerError, Letter, Position, Receipt, Snapshot, StreamFilter, StreamId,
    StreamInfo, Subscription, Topic,
};
use crate::upcast::Upcasts;
use crate::verify::VerifyReport;

use cache::BlobCache;
use notify::Subscribers;
use read::Reader;
use store::{Job, Store};
use writer::Writer;

/// How to open a SQLite ledger.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file; it is made if missing, its folder is not.
    pub path: PathBuf,
    /// Who does the work.
    pub mode: Mode,
    /// Whether `Sync::Now` really syncs. Off only to measure what syncing costs.
    pub sync: bool,
    /// The SQLite VFS to use; `None` for the operating system's files.
    pub vfs: Option<String>,
    /// Pages of write-ahead log after which it is folded into the file.
    /// Default: 2000, which is 8 MB: rare enough not to be felt, small enough
    /// to be folded in when closing and read quickly when opening.
    pub checkpoint_pages: u32,
    /// How to read events of older versions.
    pub upcasts: Upcasts,
}

/// Who does a SQLite ledger's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A writer thread with group commit, for real use.
    Threaded,
    /// The calling thread, one commit per call, for deterministic simulation.
    Inline,
}

impl SqliteOptions {
    /// Real use of the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            mode: Mode::Threaded,
            sync: true,
            vfs: None,
            checkpoint_pages: 2000,
            upcasts: Upcasts::default(),
        }
    }
}

/// A ledger in one SQLite file.
#[derive(Clone)]
pub struct SqliteLedger(Arc<Shared>);

struct Shared {
    options: SqliteOptions,
    path: String,
    // Reads are short and come from the file cache: one connection, taken in
    // turn, has been faster than a pool up to a thousand sessions. Dropped before
    // the writer, so that the writer's is the last to close.
    reader: Mutex<Reader>,
    writer: Writer,
    blobs: Mutex<BlobCache>,
    subscribers: Arc<Subscribers>,
}

impl SqliteLedger {
    /// Opens or makes the ledger.
    pub fn open(options: &SqliteOptions) -> Result<Self, LedgerError> {
        let subscribers = Arc::new(Subscribers::default());
        let store = Store::open(options)?;
        let reader = Mutex::new(Reader::open(options)?);
        let writer = match options.mode {
            Mode::Threaded => Writer::spawn(store, subscribers.clone()),
            Mode::Inline => Writer::Inline(Mutex::new(Box::new(store)), subscribers.clone()),
        };
        let path = options.path.display().to_string();
        Ok(Self(Arc::new(Shared {
            options: options.clone(),
            path,
            writer,
            reader,
            blobs: Mutex::default(),
            subscribers,
        })))
    }

    /// What it runs on, such as `SQLite 3.51.3`.
    pub fn engine() -> String {
        format!("SQLite {}", rusqlite::version())
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, BlobCache> {
        self.0.blobs.lock().expect("no panic under this lock")
    }

    fn reading<T>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let mut reader = self
            .0
            .reader
            .lock()
            .expect("a reader does not panic while reading");
        read(&mut reader)
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn append(&self, append: Append) -> Result<(), LedgerError> {
        let events = append.events.clone();
        let blobs = || events.iter().flat_map(|sealed| &sealed.blobs);
        let mut stored = Vec::new();
        for blob in blobs() {
            if self.cache().has(blob.id) {
                stored.push(blob.id);
            } else {
                // Here, where it holds up nobody else.
                blob.compressed();
            }
        }
        let appended = self
            .0
            .writer
            .perform(|reply| Job::Append(append, stored, reply))
            .await;
        match &appended {
            Ok(()) => blobs().for_each(|b| self.cache().put(b.id, b.content.clone())),
            // What a failed write left behind is unknown: nothing counts as stored.
            Err(_) => self.cache().clear(),
        }
        appended
    }

    async fn read(&self, stream: &StreamId, after: Seq) -> Result<Vec<Event>, LedgerError> {
        self.reading(|r| r.events(stream, after))
    }

    async fn stream(&self, stream: &StreamId) -> Result<Option<StreamInfo>, LedgerError> {
        self.reading(|r| r.stream(stream))
    }

    async fn streams(&self, filter: StreamFilter) -> Result<Vec<StreamInfo>, LedgerError> {
        self.reading(|r| r.streams(&filter))
    }

    async fn session_after(
        &self,
        session: &StreamId,
        after: Position,
    ) -> Result<(Vec<Event>, Position), LedgerError> {
        self.reading(|r| r.session_after(session, after))
    }

    fn subscribe(&self, topic: Topic) -> Subscription {
        self.0.subscribers.subscribe(topic)
    }

    async fn blob(&self, id: BlobId) -> Result<Arc<str>, LedgerError> {
        if let Some(content) = self.cache().get(id) {
            return Ok(content);
        }
        let content = self.reading(|r| r.blob(id))?;
        self.cache().put(id, content.clone());
        Ok(content)
    }

    async fn admit(&self, to: &StreamId, letter: Letter) -> Result<Receipt, LedgerError> {
        let to = to.clone();
        self.0
            .writer
            .perform(|reply| Job::Admit(to, letter, reply))
            .await
    }

    async fn claim(
        &self,
        stream: &StreamId,
        holder: &Holder,
        now: Time,
        ttl_millis: i64,
    ) -> Result<Lease, LeaseError> {
        let (stream, holder) = (stream.clone(), holder.clone());
        self.0
            .writer
            .perform(|reply| Job::Claim(stream, holder, now, ttl_millis, reply))
            .await
    }

    async fn renew(&self, holder: &Holder, now: Time, ttl_millis: i64) -> Result<(), LedgerError> {
        let holder = holder.id.clone();
        self.0
            .writer
            .perform(|reply| Job::Renew(holder, now, ttl_millis, reply))
            .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LedgerError> {
        let lease = lease.clone();
        self.0
            .writer
            .perform(|reply| Job::Release(lease, reply))
            .await
    }

    async fn holder(&self, stream: &StreamId, now: Time) -> Result<Option<Holder>, LedgerError> {
        self.reading(|r| r.holder(stream, now))
    }

    async fn put_snapshot(&self, stream: &StreamId, snapshot: Snapshot) -> Result<(), LedgerError> {
        let stream = stream.clone();
        self.0
            .writer
            .perform(|reply| Job::Snapshot(stream, snapshot, reply))
            .await
    }

    async fn snapshot(&self, stream: &StreamId) -> Result<Option<Snapshot>, LedgerError> {
        self.reading(|r| r.snapshot(stream))
    }

    async fn verify(&self, session: Option<&StreamId>) -> Result<VerifyReport, LedgerError> {
        self.reading(|r| r.verify(session))
    }

    async fn backup(&self, path: &Path) -> Result<(), LedgerError> {
        backup::backup(&self.0.options, path)
    }
}
