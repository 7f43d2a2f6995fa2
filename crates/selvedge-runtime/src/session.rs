//! Who drives a session, and what state it is in.

use std::sync::Arc;
use std::time::Duration;

use selvedge_ledger::{Holder, Lease, LeaseError, Ledger, LedgerError, StreamFilter, StreamId};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::book::Book;
use crate::clock::Clock;
use crate::machine::{EffectId, Question, Status};

// Three renewals fit into a lease, so that one late renewal does not lose it.
const LEASE_MILLIS: i64 = 30_000;
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// A process's right to drive sessions: leases, and the task that renews them.
pub struct Seat {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    holder: Holder,
    renewing: CancellationToken,
}

/// Why a session cannot be driven from here.
pub type SeatError = LeaseError;

impl Seat {
    /// Takes a seat for this process.
    pub fn take(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, nonce: &str) -> Self {
        let holder = Holder::current(nonce);
        let renewing = CancellationToken::new();
        tokio::spawn(renew(
            ledger.clone(),
            clock.clone(),
            holder.clone(),
            renewing.clone(),
        ));
        Self {
            ledger,
            clock,
            holder,
            renewing,
        }
    }

    /// Leases a session; the fence goes with every append.
    pub async fn claim(&self, session: &StreamId) -> Result<Lease, SeatError> {
        self.ledger
            .claim(session, &self.holder, self.clock.now(), LEASE_MILLIS)
            .await
    }

    /// Gives a session back.
    pub async fn release(&self, lease: &Lease) -> Result<(), LedgerError> {
        self.ledger.release(lease).await
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.renewing.cancel();
    }
}

async fn renew(
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    holder: Holder,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(RENEW_EVERY) => {}
        }
        // A failed renewal is not fatal: the next one may come in time, and if
        // not, the fence refuses the appends of the late holder.
        if let Err(error) = ledger.renew(&holder, clock.now(), LEASE_MILLIS).await {
            tracing::warn!(%error, "leases were not renewed");
        }
    }
}

/// What can be said of a session without driving it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SessionState {
    /// A live process drives it.
    Active {
        /// Which.
        pid: u32,
    },
    /// A human must answer.
    Waiting {
        /// Where the question was asked.
        stream: StreamId,
        /// Which effect asks.
        effect: EffectId,
        /// What is asked.
        question: Question,
    },
    /// Paused, or left by its process: `resume` goes on.
    Suspended {
        /// Why, if a reason is on record.
        reasons: Vec<String>,
    },
    /// It ended.
    Ended {
        /// How.
        status: Status,
    },
    /// It cannot be read.
    Damaged {
        /// What is wrong.
        what: String,
    },
}

/// Folds what the driver knows of a session: its state, and open questions in
/// the session's stream or a child's.
pub async fn session_state(
    ledger: &dyn Ledger,
    clock: &dyn Clock,
    session: &StreamId,
) -> Result<SessionState, LedgerError> {
    let mut books = Vec::new();
    for info in ledger
        .streams(StreamFilter::Session(session.clone()))
        .await?
    {
        if info.kind == "inbox" {
            continue;
        }
        let mut book = Book::default();
        let folded = ledger.read(&info.id, 0).await;
        match folded.and_then(|events| events.iter().try_for_each(|e| book.apply(e))) {
            Ok(()) => books.push((info.id, book)),
            Err(error @ LedgerError::Damaged { .. }) => {
                return Ok(SessionState::Damaged {
                    what: error.to_string(),
                });
            }
            Err(other) => return Err(other),
        }
    }
    let Some((_, root)) = books.iter().find(|(stream, _)| stream == session) else {
        return Err(LedgerError::NoStream {
            stream: session.clone(),
        });
    };
    if let Some(ending) = &root.ended {
        return Ok(SessionState::Ended {
            status: ending.status,
        });
    }
    if let Some(holder) = ledger.holder(session, clock.now()).await? {
        return Ok(SessionState::Active { pid: holder.pid });
    }
    let reasons: Vec<String> = root.pauses.keys().cloned().collect();
    // What a run that has ended once asked is not open any more.
    books.retain(|(_, book)| book.ended.is_none());
    books.sort_by_key(|(stream, _)| stream != session);
    let asked = books.into_iter().find_map(|(stream, book)| {
        let (effect, question) = book.questions.into_iter().next()?;
        Some(SessionState::Waiting {
            stream,
            effect,
            question,
        })
    });
    Ok(asked.unwrap_or(SessionState::Suspended { reasons }))
}
