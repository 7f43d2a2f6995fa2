//! A ledger whose answers get lost.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use selvedge_ledger::{
    Append, BlobId, Event, Holder, Lease, LeaseError, Ledger, LedgerError, Letter, Position,
    Receipt, Seq, Snapshot, StreamFilter, StreamId, StreamInfo, Subscription, Time, Topic,
    VerifyReport,
};

/// What goes wrong with an append.
#[derive(Clone, Copy, Debug)]
pub enum Lost {
    /// It does not happen.
    Request,
    /// It happens, and the writer does not learn of it.
    Answer,
}

/// Loses the next appends as told, then works.
pub struct Flaky {
    inner: Arc<dyn Ledger>,
    losses: Mutex<VecDeque<Lost>>,
}

impl Flaky {
    pub fn new(inner: Arc<dyn Ledger>, losses: impl IntoIterator<Item = Lost>) -> Self {
        let losses = Mutex::new(losses.into_iter().collect());
        Self { inner, losses }
    }
}

fn unavailable() -> LedgerError {
    LedgerError::Unavailable {
        why: "the test lost it".into(),
    }
}

#[async_trait]
impl Ledger for Flaky {
    async fn append(&self, append: Append) -> Result<(), LedgerError> {
        let lost = self.losses.lock().unwrap().pop_front();
        match lost {
            None => self.inner.append(append).await,
            Some(Lost::Request) => Err(unavailable()),
            Some(Lost::Answer) => {
                self.inner.append(append).await?;
                Err(unavailable())
            }
        }
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
