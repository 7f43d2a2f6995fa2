//! The writing end of a stream.
//!
//! A driver folds an event before it is stored, so that what follows from it can
//! share its commit. The pen therefore gives events their place and hash at once
//! and keeps them until `flush`. A refused flush means that the driver's state is
//! not the stream's: it must be dropped and folded anew.

use std::sync::Arc;

use crate::event::{Event, Hash, NewEvent, Sealed, Seq, Time};
use crate::lease::Fence;
use crate::stream::{Append, Ledger, LedgerError, NewStream, StreamId, Sync};

/// Seals events in their order and hands them to a ledger together.
#[derive(Debug)]
pub struct Pen {
    stream: StreamId,
    stored: (Seq, Hash),
    head: (Seq, Hash),
    open: Option<NewStream>,
    pending: Vec<Sealed>,
    failed: Vec<Part>,
    sync: Sync,
    fence: Option<Fence>,
}

/// What one flush handed over, kept until the ledger has confirmed it.
#[derive(Debug)]
struct Part {
    from: (Seq, Hash),
    events: Arc<Vec<Sealed>>,
    to: (Seq, Hash),
    sync: Sync,
}

impl Pen {
    /// Writes on where a stream ends.
    pub fn at(stream: StreamId, seq: Seq, hash: Hash, fence: Option<Fence>) -> Self {
        let head = (seq, hash);
        Self {
            stream,
            stored: head,
            head,
            open: None,
            pending: Vec::new(),
            failed: Vec::new(),
            sync: Sync::Later,
            fence,
        }
    }

    /// Begins a new stream. Its first event says what it is.
    pub fn open(
        stream: StreamId,
        new: NewStream,
        actor: &str,
        time: Time,
        fence: Option<Fence>,
    ) -> Self {
        let mut pen = Self::at(stream, 0, Hash::ZERO, fence);
        pen.write(
            NewEvent::new("StreamOpened", actor, time, &new),
            Sync::Later,
        );
        pen.open = Some(new);
        pen
    }

    /// Takes an event; it is in the ledger after the next `flush`.
    pub fn write(&mut self, event: NewEvent, sync: Sync) -> Event {
        let sealed = event.seal(&self.stream, self.head.0 + 1, self.head.1);
        self.head = (sealed.event.seq, sealed.event.hash);
        let event = sealed.event.clone();
        self.pending.push(sealed);
        self.sync = self.sync.max(sync);
        event
    }

    /// Whether there is something to flush.
    pub fn is_dirty(&self) -> bool {
        !self.pending.is_empty() || !self.failed.is_empty()
    }

    /// Whether long content waits for the next flush: until then it cannot be read.
    pub fn holds_blobs(&self) -> bool {
        self.pending.iter().any(|sealed| !sealed.blobs.is_empty())
    }

    /// The stream's last event, flushed or not.
    pub fn head(&self) -> (Seq, Hash) {
        self.head
    }

    /// Appends what was written since the last flush. After `Unavailable` the same
    /// flush may be repeated: whether the first one happened is looked up.
    pub async fn flush(&mut self, ledger: &dyn Ledger) -> Result<(), LedgerError> {
        if !self.pending.is_empty() {
            // An earlier flush that failed left its part here; it goes first.
            let part = Part {
                from: self.stored_after_failed(),
                events: Arc::new(std::mem::take(&mut self.pending)),
                to: self.head,
                sync: self.sync,
            };
            self.failed.push(part);
            self.sync = Sync::Later;
        }
        while let Some(part) = self.failed.first() {
            let append = Append {
                stream: self.stream.clone(),
                expected: part.from.0,
                previous: part.from.1,
                open: self.open.clone().filter(|_| part.from.0 == 0),
                events: part.events.clone(),
                sync: part.sync,
                fence: self.fence.clone(),
            };
            match ledger.append(append).await {
                Ok(()) => {}
                // It may be our own append that happened although it was
                // reported as failed: the hash tells.
                Err(LedgerError::Conflict {
                    stream,
                    expected,
                    actual,
                }) if actual == part.to.0 => {
                    let head = ledger.stream(&self.stream).await?;
                    if head.is_none_or(|h| h.head_hash != part.to.1) {
                        return Err(LedgerError::Conflict {
                            stream,
                            expected,
                            actual,
                        });
                    }
                }
                Err(other) => return Err(other),
            }
            self.stored = part.to;
            self.failed.remove(0);
        }
        Ok(())
    }

    fn stored_after_failed(&self) -> (Seq, Hash) {
        self.failed.last().map_or(self.stored, |part| part.to)
    }
}
