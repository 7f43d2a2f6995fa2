//! The one driver: performs what is due, and records it before and after.
//!
//! All that a session does happens inside the future that `drive` returns: it
//! owns every call, child and timer it began, and waits for them before it ends.
//! What a crash leaves open is settled first (`settle.rs`), by the rule that an
//! effect that may have changed something is never simply run again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use selvedge_ledger::{
    Event, Fence, Ledger, LedgerError, NewEvent, NewStream, Pen, StreamId, Sync,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::book::Pause;
use crate::clock::Clock;
use crate::events::RunStarted;
use crate::machine::{Call, ChildSpec, Ending, Machine};
use crate::perform::{Performer, Watcher};
use crate::resting::Place;
use crate::run::Run;

/// Drives machines whose calls are of type `C`.
pub struct Driver<C: Call> {
    /// Where events are kept.
    pub ledger: Arc<dyn Ledger>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Carries calls out.
    pub performer: Arc<dyn Performer<C>>,
    /// Makes machines.
    pub machines: Arc<dyn Machines<C>>,
    /// Sees what happens while it happens.
    pub watcher: Arc<dyn Watcher>,
    /// What to do when only somebody outside can bring the run forward.
    pub patience: Patience,
}

impl<C: Call> Clone for Driver<C> {
    fn clone(&self) -> Self {
        Self {
            ledger: self.ledger.clone(),
            clock: self.clock.clone(),
            performer: self.performer.clone(),
            machines: self.machines.clone(),
            watcher: self.watcher.clone(),
            patience: self.patience,
        }
    }
}

/// Makes an empty machine for a stream's kind.
pub trait Machines<C: Call>: Send + std::marker::Sync {
    /// `None` if no such machine exists.
    fn machine(&self, kind: &str) -> Option<Box<dyn Machine<Call = C>>>;
}

impl<C: Call, F> Machines<C> for F
where
    F: Fn(&str) -> Option<Box<dyn Machine<Call = C>>> + Send + std::marker::Sync,
{
    fn machine(&self, kind: &str) -> Option<Box<dyn Machine<Call = C>>> {
        self(kind)
    }
}

/// What to do when only somebody outside can bring the run forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Return, so that the process can end.
    Return,
    /// Wait for a letter.
    Wait,
}

/// Why a run is not being driven any more.
#[derive(Clone, Debug, PartialEq)]
pub enum Rest {
    /// It ended.
    Ended(Ending),
    /// A human must answer a question.
    Waiting,
    /// It is paused for these reasons.
    Paused(BTreeMap<String, Pause>),
    /// It waits for a message.
    Idle,
    /// The driver was told to stop.
    Interrupted,
}

/// Why a run cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The ledger refused. Nothing recorded is lost.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The stream belongs to a machine that this program does not have.
    #[error("stream `{stream}` is of the unknown kind `{kind}`")]
    UnknownMachine {
        /// The stream.
        stream: StreamId,
        /// Its kind.
        kind: String,
    },
}

// A database that is away for longer than this sum is reported instead.
const FLUSH_RETRY_MILLIS: [u64; 3] = [50, 500, 2000];

impl<C: Call> Driver<C> {
    /// Opens a run. Opening the same stream again changes nothing.
    pub async fn start<S: Serialize>(
        &self,
        stream: &StreamId,
        parent: Option<&StreamId>,
        kind: &str,
        spec: S,
        fence: Option<Fence>,
    ) -> Result<(), DriveError> {
        self.open(stream, parent, kind, spec, fence).await?;
        Ok(())
    }

    /// As `start`; what was written, and where to go on writing, if it was not there
    /// already.
    async fn open<S: Serialize>(
        &self,
        stream: &StreamId,
        parent: Option<&StreamId>,
        kind: &str,
        spec: S,
        fence: Option<Fence>,
    ) -> Result<Option<(Pen, Event)>, DriveError> {
        let now = self.clock.now();
        let new = NewStream {
            kind: kind.to_owned(),
            parent: parent.cloned(),
        };
        let mut pen = Pen::open(stream.clone(), new, "driver", now, fence);
        let started = pen.write(
            NewEvent::new("RunStarted", "driver", now, &RunStarted { spec }),
            Sync::Now,
        );
        match self.flush(&mut pen).await {
            // Somebody opened it already: this process before it was killed, or
            // another one. What it was opened with stands.
            Err(LedgerError::Conflict { actual, .. }) if actual > 0 => Ok(None),
            opened => Ok(opened.map(|()| Some((pen, started)))?),
        }
    }

    /// Opens a run and brings it forward: `start` and `drive` in one, in which what
    /// was just written is not read back.
    pub fn launch<'a, S: Serialize + Send + 'a>(
        &'a self,
        stream: &'a StreamId,
        kind: &'a str,
        spec: S,
        fence: Option<Fence>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Rest, DriveError>> {
        Box::pin(async move {
            let opened = self.open(stream, None, kind, spec, fence.clone()).await?;
            match opened {
                Some(opened) => {
                    let run = Run::opened(self, stream, kind, opened, fence, cancel, None)?;
                    run.go().await
                }
                None => self.drive(stream, fence, cancel).await,
            }
        })
    }

    /// Brings a run forward until it ends, rests, or `cancel` is set.
    ///
    /// Resuming is the same as going on: the state is folded from the ledger.
    pub fn drive<'a>(
        &'a self,
        stream: &'a StreamId,
        fence: Option<Fence>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Rest, DriveError>> {
        // Boxed because a run drives its children.
        Box::pin(async move {
            let mut run = Run::load(self, stream, fence, cancel, None).await?;
            run.settle().await?;
            run.go().await
        })
    }

    /// Opens a child, if need be, and drives it.
    pub(crate) async fn drive_child(
        self,
        stream: &StreamId,
        parent: &StreamId,
        spec: Option<ChildSpec>,
        fence: Option<Fence>,
        cancel: CancellationToken,
        place: Place,
    ) -> Result<Rest, DriveError> {
        if let Some(ChildSpec { kind, spec }) = spec {
            let opened = self.open(stream, Some(parent), &kind, spec, fence.clone());
            if let Some(opened) = opened.await? {
                let place = Some(place);
                let run = Run::opened(&self, stream, &kind, opened, fence, cancel, place)?;
                return run.go().await;
            }
        }
        let mut run = Run::load(&self, stream, fence, cancel, Some(place)).await?;
        run.settle().await?;
        run.go().await
    }

    /// Flushes, and waits out a ledger that does not answer for a moment.
    pub(crate) async fn flush(&self, pen: &mut Pen) -> Result<(), LedgerError> {
        let mut pauses = FLUSH_RETRY_MILLIS.into_iter();
        loop {
            match pen.flush(&*self.ledger).await {
                Err(LedgerError::Unavailable { why }) => match pauses.next() {
                    Some(millis) => self.clock.sleep(Duration::from_millis(millis)).await,
                    None => return Err(LedgerError::Unavailable { why }),
                },
                other => return other,
            }
        }
    }
}
