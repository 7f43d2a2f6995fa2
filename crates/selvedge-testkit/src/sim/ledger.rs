//! A ledger that notes what it acknowledged, and at which disk operation.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use selvedge_ledger::{
    Append, BlobId, Event, Hash, Holder, Lease, LeaseError, Ledger, LedgerError, Letter, Position,
    Receipt, Seq, Snapshot, SqliteLedger, StreamFilter, StreamId, StreamInfo, Subscription, Sync,
    Time, Topic, VerifyReport,
};

use crate::disk::SimDisk;

/// What was acknowledged, kept outside the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Acknowledged {
    /// (stream, seq, hash) of every acknowledged head.
    pub(super) heads: Vec<(StreamId, Seq, Hash)>,
    /// How many of them were on disk for certain.
    pub(super) synced: usize,
    /// The disk operations before and after each append.
    pub(super) appends: Vec<(u64, u64)>,
}

pub(super) struct NotingLedger {
    pub(super) inner: SqliteLedger,
    pub(super) disk: Arc<SimDisk>,
    pub(super) notes: Arc<Mutex<Acknowledged>>,
}

#[async_trait]
impl Ledger for NotingLedger {
    async fn append(&self, append: Append) -> Result<(), LedgerError> {
        let (stream, head, sync) = append.summary();
        let before = self.disk.operations();
        self.inner.append(append).await?;
        let mut notes = self.notes.lock().expect("one thread");
        notes.appends.push((before, self.disk.operations()));
        notes.heads.push((stream, head.0, head.1));
        if sync == Sync::Now {
            // One file: a sync carries everything before it.
            notes.synced = notes.heads.len();
        }
        Ok(())
    }

    async fn read(&self, stream: &StreamId, after: Seq) -> Result<Vec<Event>, LedgerError> {
        self.inner.read(stream, after).await
    }

    async fn stream(&self, stream: &StreamId) -> Result<Option<StreamInfo>, LedgerError> {
        self.inner.stream(stream).await
    }

    async fn streams(&self, filter: StreamFilter) -> Result<Vec<StreamInfo>, LedgerError> {
        self.inner.streams(filter).await
    }

    async fn session_after(
        &self,
        session: &StreamId,
        after: Position,
    ) -> Result<(Vec<Event>, Position), LedgerError> {
        self.inner.session_after(session, after).await
    }

    fn subscribe(&self, topic: Topic) -> Subscription {
        self.inner.subscribe(topic)
    }

    async fn blob(&self, id: BlobId) -> Result<Arc<str>, LedgerError> {
        self.inner.blob(id).await
    }

    async fn admit(&self, to: &StreamId, letter: Letter) -> Result<Receipt, LedgerError> {
        self.inner.admit(to, letter).await
    }

    async fn claim(
        &self,
        stream: &StreamId,
        holder: &Holder,
        now: Time,
        ttl_millis: i64,
    ) -> Result<Lease, LeaseError> {
        self.inner.claim(stream, holder, now, ttl_millis).await
    }

    async fn renew(&self, holder: &Holder, now: Time, ttl_millis: i64) -> Result<(), LedgerError> {
        self.inner.renew(holder, now, ttl_millis).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LedgerError> {
        self.inner.release(lease).await
    }

    async fn holder(&self, stream: &StreamId, now: Time) -> Result<Option<Holder>, LedgerError> {
        self.inner.holder(stream, now).await
    }

    async fn put_snapshot(&self, stream: &StreamId, snapshot: Snapshot) -> Result<(), LedgerError> {
        self.inner.put_snapshot(stream, snapshot).await
    }

    async fn snapshot(&self, stream: &StreamId) -> Result<Option<Snapshot>, LedgerError> {
        self.inner.snapshot(stream).await
    }

    async fn verify(&self, session: Option<&StreamId>) -> Result<VerifyReport, LedgerError> {
        self.inner.verify(session).await
    }

    async fn backup(&self, path: &Path) -> Result<(), LedgerError> {
        self.inner.backup(path).await
    }
}
