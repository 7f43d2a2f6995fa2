//! One run being driven: its machine, its book, and what is under way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use selvedge_ledger::{
    Event, Fence, LedgerError, NewEvent, Pen, Seq, Snapshot, StreamId, Subscription, Sync, Time,
    Topic,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::book::Book;
use crate::clock::Clock;
use crate::driver::{DriveError, Driver, Rest};
use crate::events::{
    ChildFinished, ChildStarted, Finished, QuestionAsked, RunResumed, Started, Timer, Unfinished,
};
use crate::machine::{Act, Call, ChildSpec, Due, Effect, EffectId, Machine, Nature};
use crate::perform::{Performed, Scene};
use crate::resting::{Place, Resting};

/// A snapshot is worth its bytes after this many events.
const SNAPSHOT_EVERY: Seq = 1000;

pub(crate) struct Run<'d, C: Call> {
    pub(crate) driver: &'d Driver<C>,
    pub(crate) stream: StreamId,
    pub(crate) machine: Box<dyn Machine<Call = C>>,
    pub(crate) book: Book,
    pub(crate) pen: Pen,
    pub(crate) fence: Option<Fence>,
    /// Set from outside: stop driving.
    pub(crate) cancel: CancellationToken,
    /// Set when this run and its children cannot be driven any further.
    halt: CancellationToken,
    /// Set when calls under way must stop.
    pub(crate) stop: CancellationToken,
    inbox: Subscription,
    pub(crate) unread: bool,
    pub(crate) flight: FuturesUnordered<BoxFuture<'d, Landed<C>>>,
    /// Effects that are under way; their children may rest.
    pub(crate) begun: BTreeSet<EffectId>,
    pub(crate) resting: Arc<Resting>,
    /// Where a child says that it rests; `None` for a session.
    place: Option<Place>,
    snapshot_at: Seq,
}

/// Something under way that ended.
pub(crate) enum Landed<C: Call> {
    Call {
        effect: EffectId,
        attempt: u32,
        call: C,
        performed: Performed<C::Outcome>,
    },
    Child {
        effect: EffectId,
        stream: StreamId,
        result: Result<Rest, DriveError>,
    },
    Timer(Timer),
    /// A timer that was stopped before its time.
    Stopped(EffectId),
}

/// What a snapshot holds.
#[derive(Serialize, Deserialize)]
struct Kept<M> {
    book: Book,
    machine: M,
}

impl<'d, C: Call> Run<'d, C> {
    /// Folds a stream, from its latest snapshot if there is one.
    pub(crate) async fn load(
        driver: &'d Driver<C>,
        stream: &StreamId,
        fence: Option<Fence>,
        cancel: CancellationToken,
        place: Option<Place>,
    ) -> Result<Self, DriveError> {
        let ledger = &driver.ledger;
        let info = ledger
            .stream(stream)
            .await?
            .ok_or_else(|| LedgerError::NoStream {
                stream: stream.clone(),
            })?;
        let new_machine = || machine(driver, stream, &info.kind);
        let (mut machine, mut book) = (new_machine()?, Book::default());

        let mut after = 0;
        let snapshot = if info.head > SNAPSHOT_EVERY {
            ledger.snapshot(stream).await?
        } else {
            None
        };
        let mut events = Vec::new();
        if let Some(snapshot) = snapshot.filter(|s| s.seq > 1) {
            events = ledger.read(stream, snapshot.seq - 1).await?;
            let fits = events.first().is_some_and(|e| e.hash == snapshot.hash);
            let kept: Option<Kept<Box<serde_json::value::RawValue>>> =
                serde_json::from_str(snapshot.state.get())
                    .ok()
                    .filter(|_| fits);
            if let Some(kept) = kept.filter(|k| machine.restore(k.machine.get())) {
                book = kept.book;
                after = snapshot.seq;
                events.remove(0);
            } else {
                machine = new_machine()?;
            }
        }
        if after == 0 {
            events = ledger.read(stream, 0).await?;
        }
        let mut head = (after, info.head_hash);
        for event in &events {
            book.apply(event)?;
            machine.apply(event)?;
            head = (event.seq, event.hash);
        }
        let pen = Pen::at(stream.clone(), head.0, head.1, fence.clone());
        let mut run = Self::new(driver, (machine, book), pen, fence, cancel, place, stream);
        run.snapshot_at = after;
        Ok(run)
    }

    /// A run that was opened just now: its first event is at hand.
    pub(crate) fn opened(
        driver: &'d Driver<C>,
        stream: &StreamId,
        kind: &str,
        (pen, started): (Pen, Event),
        fence: Option<Fence>,
        cancel: CancellationToken,
        place: Option<Place>,
    ) -> Result<Self, DriveError> {
        let (mut machine, mut book) = (machine(driver, stream, kind)?, Book::default());
        book.apply(&started)?;
        machine.apply(&started)?;
        let folded = (machine, book);
        Ok(Self::new(driver, folded, pen, fence, cancel, place, stream))
    }

    fn new(
        driver: &'d Driver<C>,
        (machine, book): (Box<dyn Machine<Call = C>>, Book),
        pen: Pen,
        fence: Option<Fence>,
        cancel: CancellationToken,
        place: Option<Place>,
        stream: &StreamId,
    ) -> Self {
        let halt = cancel.child_token();
        let stop = halt.child_token();
        Self {
            driver,
            stream: stream.clone(),
            machine,
            book,
            pen,
            fence,
            cancel,
            halt,
            stop,
            inbox: driver.ledger.subscribe(Topic::Stream(stream.inbox())),
            unread: true,
            flight: FuturesUnordered::new(),
            begun: BTreeSet::new(),
            resting: Arc::default(),
            place,
            snapshot_at: 0,
        }
    }

    /// Drives until the run ends, rests or is told to stop. Nothing is left
    /// running, not even when the ledger refuses to go on.
    pub(crate) async fn go(mut self) -> Result<Rest, DriveError> {
        let driven = self.go_on().await;
        if driven.is_err() {
            self.halt.cancel();
            while self.flight.next().await.is_some() {}
        }
        driven
    }

    /// The loop: take letters, begin what is due, wait for something to end.
    async fn go_on(&mut self) -> Result<Rest, DriveError> {
        loop {
            if let Some(ending) = &self.book.ended {
                return Ok(Rest::Ended(ending.clone()));
            }
            self.take_letters().await?;
            if self.cancel.is_cancelled() {
                return self.interrupt().await;
            }
            if self.book.cancelled.is_some() {
                return self.end_cancelled().await;
            }
            let ready = match self.machine.due() {
                Due::Ended(ending) => return self.end_done(ending).await,
                Due::Idle => Vec::new(),
                Due::Effects(effects) => self.begin(effects).await?,
            };
            // What only looked and is answered already shares the commit with what
            // it was asked for, and with what follows from it.
            if ready.is_empty() && self.land_what_ended()? {
                continue;
            }
            self.flush().await?;
            self.flight.extend(ready);
            let Some(rest) = self.rest() else {
                self.wait().await?;
                continue;
            };
            // What came between taking letters and now.
            if self.stirs()? {
                continue;
            }
            let Some(place) = self.place.clone() else {
                return Ok(rest);
            };
            // A child stays where it is, so that a letter finds it awake as long
            // as anything of its session is.
            place.rest(rest);
            self.wait().await?;
            place.rise();
        }
    }

    /// Whether something happened that nobody has looked at yet.
    fn stirs(&mut self) -> Result<bool, DriveError> {
        if self.inbox.changed().now_or_never().is_some() {
            self.unread = true;
            return Ok(true);
        }
        Ok(self.land_what_ended()? || !self.is_quiet())
    }

    /// Records everything that has ended by now; false if nothing has.
    fn land_what_ended(&mut self) -> Result<bool, DriveError> {
        let mut any = false;
        while let Some(Some(landed)) = self.flight.next().now_or_never() {
            self.land(landed)?;
            any = true;
        }
        Ok(any)
    }

    /// Whether nothing is under way but children that rest.
    pub(crate) fn is_quiet(&self) -> bool {
        self.flight.len() == self.resting.len()
    }

    /// Waits for the first of: a stop, something ended, a letter, a child that
    /// rests, a pause's end.
    async fn wait(&mut self) -> Result<(), DriveError> {
        let pauses_end = self.pauses_end();
        let landed = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            Some(landed) = self.flight.next() => Some(landed),
            () = self.inbox.changed() => { self.unread = true; None }
            () = self.resting.changed() => None,
            () = pauses_end => {
                let over: Vec<String> = self.book.pauses.keys().cloned().collect();
                for reason in over {
                    self.record("RunResumed", &RunResumed { reason, letter: None }, Sync::Later)?;
                }
                None
            }
        };
        if let Some(landed) = landed {
            self.land(landed)?;
            // What else has ended shares the commit.
            self.land_what_ended()?;
        }
        Ok(())
    }

    /// Writes down that effects begin. Those that only look do so at once; the
    /// others, which are returned, after the next flush.
    async fn begin(
        &mut self,
        effects: Vec<Effect<C>>,
    ) -> Result<Vec<BoxFuture<'d, Landed<C>>>, DriveError> {
        let mut ready: Vec<BoxFuture<'d, Landed<C>>> = Vec::new();
        for Effect { id, act } in effects {
            let asked = self.book.questions.contains_key(&id);
            if asked || self.begun.contains(&id) || !self.book.pauses.is_empty() {
                continue;
            }
            match act {
                Act::Call(call) => {
                    let nature = call.nature();
                    match self.begin_call(&id, call).await? {
                        Some(future) if nature == Nature::Reads => self.flight.push(future),
                        Some(future) => ready.push(future),
                        None => continue,
                    }
                }
                Act::Ask(question) => {
                    self.record(
                        "QuestionAsked",
                        &QuestionAsked {
                            effect: id,
                            question,
                        },
                        Sync::Now,
                    )?;
                    continue;
                }
                Act::Child(spec) => {
                    let stream = self.stream.child(id.as_str());
                    if !self.book.children.contains_key(&id) {
                        let started = ChildStarted {
                            effect: id.clone(),
                            stream: stream.clone(),
                            kind: spec.kind.clone(),
                        };
                        self.record("ChildStarted", &started, Sync::Later)?;
                    }
                    ready.push(self.child(id.clone(), stream, Some(spec)));
                }
                Act::Wait(until) => {
                    let timer = Timer {
                        effect: id.clone(),
                        until,
                    };
                    if !self.book.timers.contains_key(&id) {
                        self.record("TimerSet", &timer, Sync::Now)?;
                    }
                    let (clock, stop) = (self.driver.clock.clone(), self.stop.clone());
                    ready.push(Box::pin(async move {
                        tokio::select! {
                            biased;
                            () = stop.cancelled() => Landed::Stopped(timer.effect),
                            () = sleep_until(&*clock, until) => Landed::Timer(timer),
                        }
                    }));
                }
            }
            self.begun.insert(id);
        }
        Ok(ready)
    }

    async fn begin_call(
        &mut self,
        id: &EffectId,
        call: C,
    ) -> Result<Option<BoxFuture<'d, Landed<C>>>, DriveError> {
        // A call may be about what was just recorded, and must find it.
        if self.pen.holds_blobs() {
            self.flush().await?;
        }
        let attempt = self.book.next_attempt(id);
        let scene = self.scene(id, attempt);
        let evidence = match self.driver.performer.prepare(&scene, &call).await {
            Ok(evidence) => evidence,
            Err(hold) => {
                self.hold(hold)?;
                return Ok(None);
            }
        };
        let started = Started {
            effect: id.clone(),
            attempt,
            what: call.describe(),
            evidence,
        };
        let sync = if call.nature() == Nature::Changes {
            Sync::Now
        } else {
            Sync::Later
        };
        if !call.is_brief() {
            self.record(format!("{}Started", call.noun()), &started, sync)?;
        }
        let performer = self.driver.performer.clone();
        let effect = id.clone();
        Ok(Some(Box::pin(async move {
            let performed = performer
                .perform(scene, call.clone(), started.evidence)
                .await;
            Landed::Call {
                effect,
                attempt,
                call,
                performed,
            }
        })))
    }

    /// Drives a child; `spec` opens it if it is not there yet.
    pub(crate) fn child(
        &self,
        effect: EffectId,
        stream: StreamId,
        spec: Option<ChildSpec>,
    ) -> BoxFuture<'d, Landed<C>> {
        let driver = self.driver.clone();
        let (parent, fence, cancel) = (self.stream.clone(), self.fence.clone(), self.halt.clone());
        let place = self.resting.place(&effect);
        Box::pin(async move {
            let result = driver
                .drive_child(&stream, &parent, spec, fence, cancel, place)
                .await;
            Landed::Child {
                effect,
                stream,
                result,
            }
        })
    }

    pub(crate) fn scene(&self, effect: &EffectId, attempt: u32) -> Scene {
        Scene {
            stream: self.stream.clone(),
            effect: effect.clone(),
            attempt,
            cancel: self.stop.clone(),
            watcher: self.driver.watcher.clone(),
        }
    }

    /// Writes down what came of something that was under way.
    pub(crate) fn land(&mut self, landed: Landed<C>) -> Result<(), DriveError> {
        match landed {
            Landed::Call {
                effect,
                attempt,
                call,
                performed,
            } => {
                self.begun.remove(&effect);
                match performed {
                    Performed::Finished(outcome) => {
                        let sync = if call.nature() == Nature::Reads {
                            Sync::Later
                        } else {
                            Sync::Now
                        };
                        let kind = format!("{}Finished", call.noun());
                        // It shares what the machine is about to change.
                        drop(call);
                        let finished = Finished {
                            effect,
                            attempt,
                            outcome,
                            probed: false,
                        };
                        self.record(kind, &finished, sync)
                    }
                    Performed::Interrupted(left) => self.interrupted(&call, effect, attempt, left),
                    Performed::Held(hold, left) => {
                        self.interrupted(&call, effect, attempt, left)?;
                        self.hold(hold)
                    }
                }
            }
            Landed::Child {
                effect,
                stream,
                result,
            } => match result? {
                Rest::Ended(ending) => {
                    self.begun.remove(&effect);
                    let finished = ChildFinished {
                        effect,
                        stream,
                        ending,
                    };
                    self.record("ChildFinished", &finished, Sync::Later)
                }
                // It stopped because this run does.
                _ => Ok(()),
            },
            Landed::Timer(timer) => {
                self.begun.remove(&timer.effect);
                self.record("TimerFired", &timer, Sync::Later)
            }
            Landed::Stopped(effect) => {
                self.begun.remove(&effect);
                Ok(())
            }
        }
    }

    fn interrupted(
        &mut self,
        call: &C,
        effect: EffectId,
        attempt: u32,
        left: Option<C::Outcome>,
    ) -> Result<(), DriveError> {
        let unfinished = Unfinished {
            effect,
            attempt,
            left,
        };
        let kind = format!("{}Interrupted", call.noun());
        self.record(kind, &unfinished, Sync::Now)
    }

    /// Folds an event in and keeps it for the next flush.
    pub(crate) fn record<T: Serialize>(
        &mut self,
        kind: impl Into<std::borrow::Cow<'static, str>>,
        data: &T,
        sync: Sync,
    ) -> Result<(), DriveError> {
        let event = NewEvent::new(kind, "driver", self.driver.clock.now(), data);
        let event = self.pen.write(event, sync);
        self.book.apply(&event)?;
        self.machine.apply(&event)?;
        Ok(())
    }

    pub(crate) async fn flush(&mut self) -> Result<(), DriveError> {
        self.driver.flush(&mut self.pen).await?;
        let (seq, hash) = self.pen.head();
        if seq >= self.snapshot_at + SNAPSHOT_EVERY
            && let Some(machine) = self.machine.snapshot()
        {
            self.snapshot_at = seq;
            let kept = Kept {
                book: self.book.clone(),
                machine,
            };
            let state = serde_json::value::to_raw_value(&kept).expect("a book is plain data");
            let snapshot = Snapshot {
                seq,
                hash,
                state: Arc::from(state),
            };
            // A cache that cannot be written costs time later, and nothing now.
            let kept = self.driver.ledger.put_snapshot(&self.stream, snapshot);
            if let Err(error) = kept.await {
                tracing::warn!(%error, stream = %self.stream, "no snapshot was kept");
            }
        }
        Ok(())
    }
}

/// An empty machine for `stream`.
fn machine<C: Call>(
    driver: &Driver<C>,
    stream: &StreamId,
    kind: &str,
) -> Result<Box<dyn Machine<Call = C>>, DriveError> {
    let unknown = || DriveError::UnknownMachine {
        stream: stream.clone(),
        kind: kind.to_owned(),
    };
    driver.machines.machine(kind).ok_or_else(unknown)
}

/// Waits until the wall clock shows `until`, never less.
async fn sleep_until(clock: &dyn Clock, until: Time) {
    loop {
        let left = until.millis_since(clock.now());
        if left <= 0 {
            return;
        }
        clock
            .sleep(Duration::from_millis(left.unsigned_abs()))
            .await;
    }
}
