//! A state that all processes of a machine share: the fold of one stream of the
//! ledger that they share anyway.
//!
//! Whoever changes it appends to the stream at the place where the decision was
//! made. If another process came first, the append is refused and the decision made
//! anew, on what is now known. That is exact however many processes there are, needs
//! no lock that a crash could leave behind, and works on every ledger.

use std::sync::Arc;

use selvedge_ledger::{
    Event, Hash, Ledger, LedgerError, NewEvent, NewStream, Pen, Seq, Snapshot, StreamId, Sync, Time,
};
use selvedge_runtime::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

/// The streams are nobody's children and no sessions either.
const PARENT: &str = "machine";
/// A snapshot is worth its bytes after this many events.
const SNAPSHOT_EVERY: Seq = 1000;
/// A crowd in which everybody else comes first this often is not to be waited for.
const TRIES_MAX: u32 = 1000;

/// A state that is folded from events.
pub(crate) trait Fold: Default + Serialize + DeserializeOwned + Send {
    /// Its stream.
    const STREAM: &'static str;
    /// What kind of stream that is.
    const KIND: &'static str;

    /// Folds an event in.
    fn apply(&mut self, event: &Event) -> Result<(), LedgerError>;
}

/// A state shared by all processes that have the ledger open.
pub(crate) struct Shared<S> {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    known: Mutex<Option<Known<S>>>,
}

/// The stream as far as it is known here.
struct Known<S> {
    state: S,
    head: (Seq, Hash),
    snapshot_at: Seq,
    looked: Time,
}

impl<S: Fold> Shared<S> {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ledger,
            clock,
            known: Mutex::default(),
        }
    }

    /// The state as it was when somebody here last looked, and whether nobody has
    /// written anything yet.
    pub(crate) async fn with<T>(&self, read: impl FnOnce(&S, bool) -> T) -> Result<T, LedgerError> {
        let mut known = self.known.lock().await;
        let known = self.known(&mut known).await?;
        Ok(read(&known.state, known.head.0 == 0))
    }

    /// Looks what others have written, unless that was done within `millis`.
    pub(crate) async fn look(&self, millis: i64) -> Result<(), LedgerError> {
        let mut known = self.known.lock().await;
        let known = self.known(&mut known).await?;
        let age = self.clock.now().millis_since(known.looked);
        match (0..millis).contains(&age) {
            true => Ok(()),
            false => self.catch_up(known).await,
        }
    }

    /// Appends what `decide` makes of the state; nothing if that is nothing. Decides
    /// again when another process came first.
    pub(crate) async fn write<E: From<LedgerError>>(
        &self,
        decide: impl FnMut(&S) -> Result<Vec<NewEvent>, E>,
    ) -> Result<(), E> {
        self.append(false, decide).await
    }

    /// The same, and opens the stream even if there is nothing to write.
    pub(crate) async fn begin<E: From<LedgerError>>(
        &self,
        mut events: impl FnMut() -> Vec<NewEvent>,
    ) -> Result<(), E> {
        let mut known = self.known.lock().await;
        let is_new = self.known(&mut known).await?.head.0 == 0;
        drop(known);
        match is_new {
            true => self.append(true, |_| Ok(events())).await,
            false => Ok(()),
        }
    }

    async fn append<E: From<LedgerError>>(
        &self,
        opens: bool,
        mut decide: impl FnMut(&S) -> Result<Vec<NewEvent>, E>,
    ) -> Result<(), E> {
        let mut guard = self.known.lock().await;
        for _ in 0..TRIES_MAX {
            let known = self.known(&mut guard).await?;
            // Somebody else may have begun it meanwhile.
            if opens && known.head.0 > 0 {
                return Ok(());
            }
            let events = decide(&known.state)?;
            if events.is_empty() && !opens {
                return Ok(());
            }
            let mut pen = self.pen(known.head);
            // Nothing of it can be lost that the call itself would not be.
            let written = events.into_iter().map(|e| pen.write(e, Sync::Later));
            let written: Vec<Event> = written.collect();
            match pen.flush(&*self.ledger).await {
                Ok(()) => {
                    written.iter().try_for_each(|e| known.state.apply(e))?;
                    known.head = pen.head();
                    self.keep(known).await;
                    return Ok(());
                }
                Err(LedgerError::Conflict { .. }) => self.catch_up(known).await?,
                Err(error) => {
                    // Whether it happened is unknown: look again next time.
                    *guard = None;
                    return Err(error.into());
                }
            }
        }
        let why = format!("{TRIES_MAX} other writers came first");
        Err(LedgerError::Unavailable { why }.into())
    }

    fn pen(&self, head: (Seq, Hash)) -> Pen {
        let stream = StreamId::new(S::STREAM);
        if head.0 > 0 {
            return Pen::at(stream, head.0, head.1, None);
        }
        let new = NewStream {
            kind: S::KIND.into(),
            parent: Some(StreamId::new(PARENT)),
        };
        Pen::open(stream, new, "gate", self.clock.now(), None)
    }

    /// The stream as it was when somebody here last looked.
    async fn known<'a>(
        &self,
        known: &'a mut Option<Known<S>>,
    ) -> Result<&'a mut Known<S>, LedgerError> {
        if known.is_none() {
            let mut fresh = Known {
                state: S::default(),
                head: (0, Hash::ZERO),
                snapshot_at: 0,
                looked: Time(i64::MIN / 2),
            };
            if let Some(kept) = self.ledger.snapshot(&StreamId::new(S::STREAM)).await?
                && let Ok(state) = serde_json::from_str(kept.state.get())
            {
                let Snapshot { seq, hash, .. } = kept;
                (fresh.state, fresh.head, fresh.snapshot_at) = (state, (seq, hash), seq);
            }
            if self.catch_up(&mut fresh).await.is_err() {
                // A snapshot of another history.
                (fresh.state, fresh.head) = (S::default(), (0, Hash::ZERO));
                self.catch_up(&mut fresh).await?;
            }
            *known = Some(fresh);
        }
        Ok(known.as_mut().expect("just filled"))
    }

    /// Folds what others have appended.
    async fn catch_up(&self, known: &mut Known<S>) -> Result<(), LedgerError> {
        let stream = StreamId::new(S::STREAM);
        known.looked = self.clock.now();
        if known.head.0 == 0 && self.ledger.stream(&stream).await?.is_none() {
            return Ok(());
        }
        for event in self.ledger.read(&stream, known.head.0).await? {
            known.state.apply(&event)?;
            known.head = (event.seq, event.hash);
        }
        Ok(())
    }

    async fn keep(&self, known: &mut Known<S>) {
        if known.head.0 < known.snapshot_at + SNAPSHOT_EVERY {
            return;
        }
        known.snapshot_at = known.head.0;
        let state = serde_json::value::to_raw_value(&known.state).expect("plain data");
        let snapshot = Snapshot {
            seq: known.head.0,
            hash: known.head.1,
            state: Arc::from(state),
        };
        let stream = StreamId::new(S::STREAM);
        // A cache that cannot be written costs time later, and nothing now.
        let _ = self.ledger.put_snapshot(&stream, snapshot).await;
    }
}
