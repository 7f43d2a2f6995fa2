//! `sessions fork`: a copy of a session up to an event, to go on from there.
//!
//! The copy is of everything that was on record when that event was, children
//! included, in new streams with hashes of their own. It works in the same
//! directory: what was changed there stays changed.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use selvedge_agent::{COPY_REMOVED, UpkeepOutcome};
use selvedge_crews::opens_phase;
use selvedge_ledger::{Event, Letter, NewEvent, NewStream, Pen, Position, Seq, StreamId, Sync};
use selvedge_runtime::Finished;
use selvedge_tool::WorkCopy;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Exit, Result};
use crate::sessions::{FORKED, FORKED_LAST, SessionForked};
use crate::wiring::Store;
use crate::{drive, out, sessions};

#[derive(Args)]
pub struct Fork {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
    /// The last event to copy. Default: the last one; for a session that has
    /// ended, the one before the model's last answer; for a job, before its last phase.
    #[arg(long, value_name = "SEQ")]
    at: Option<Seq>,
}

/// The part of an event that says which letter it took.
#[derive(Deserialize)]
struct Taken {
    letter: Option<Seq>,
}

impl Fork {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let origin = sessions::find(&store, &self.session).await?;
        let cut = |events: &[Event]| self.at.unwrap_or_else(|| default_cut(events));
        let own = store.ledger.read(&origin, 0).await?;
        if let Some(copied) = open_copy(&own, cut(&own)) {
            return Err(shared(&origin, cut(&own), copied));
        }
        let (fork, at) = fork(&store, &origin, cut).await?;
        out::line(fork.as_str());
        out::say(&format!(
            "{fork} is {origin} as it was at event {at}\n  go on: selvedge resume {fork}"
        ));
        Ok(Exit::Done)
    }
}

/// The making of the copy of a directory that a session was at work on at an event.
fn open_copy(events: &[Event], at: Seq) -> Option<Seq> {
    let is_about_it = |event: &&Event| {
        event.seq <= at && matches!(&*event.kind, "CopyFinished" | "MergeFinished")
    };
    let copied = events.iter().rfind(is_about_it);
    let copied = copied.filter(|event| &*event.kind == "CopyFinished");
    copied.map(|event| event.seq)
}

/// Two sessions cannot work on one copy: what one merges, the other has lost.
fn shared(origin: &StreamId, at: Seq, copied: Seq) -> Error {
    Error::usage(format!("`{origin}` cannot be forked at {at}"))
        .cause("it was at work on a copy of the directory, which cannot be shared")
        .hint(format!(
            "fork it before the copy was made: `--at {}`",
            copied.saturating_sub(2).max(2)
        ))
}

/// A copy of a job that has failed, as it was before its last phase.
pub async fn before_last_phase(store: &Store, origin: &StreamId) -> Result<StreamId> {
    Ok(fork(store, origin, default_cut).await?.0)
}

/// A copy of a session that has ended, as it was before its end was put on record: who
/// speaks to it is answered.
pub async fn reopened(store: &Store, origin: &StreamId) -> Result<StreamId> {
    let before_end = |events: &[Event]| {
        let is_end = |event: &&Event| matches!(&*event.kind, "RunCancelled" | "RunFinished");
        let end = events.iter().find(is_end);
        end.map_or(0, |event| event.seq - 1)
    };
    Ok(fork(store, origin, before_end).await?.0)
}

/// Copies a session up to the event that `cut` chooses.
async fn fork(
    store: &Store,
    origin: &StreamId,
    cut: impl Fn(&[Event]) -> Seq,
) -> Result<(StreamId, Seq)> {
    // Read verified: a fork of damaged history would pass as sound.
    let own = store.ledger.read(origin, 0).await?;
    let head = own.last().map_or(0, |event| event.seq);
    let at = cut(&own);
    if at < 2 || at > head {
        return Err(Error::usage(format!("`{origin}` cannot be forked at {at}"))
            .cause(format!("its events are 2 to {head}"))
            .hint(format!("`selvedge sessions events {origin}` lists them")));
    }
    let fork = StreamId::new(store.chance.id("s"));
    let copy = drive::spec_of(store, origin).await?.terms.copy;
    // What was in the folder of the one session will be in that of the other.
    let of_origin = store.paths.session(origin);
    let old = copy.as_ref().map_or(&of_origin, |copy| &copy.folder);
    let new = store.paths.session(&fork);
    let folders = (old.display().to_string(), new.display().to_string());
    let is_gone = match (open_copy(&own, at), &copy) {
        (Some(made), Some(copy)) => !branch(copy, &own, made, &new).await?,
        _ => false,
    };
    let branched = copied(store, origin, at, &fork, &folders, is_gone).await;
    if let (Err(_), Some(copy)) = (&branched, copy) {
        // Nobody would find it.
        let copy = WorkCopy {
            folder: new,
            ..copy
        };
        let _ = copy.remove(&CancellationToken::new()).await;
    }
    branched?;
    if let Some(script) = store.kept_script(origin, "")? {
        store.keep_script(&fork, script.text())?;
    }
    Ok((fork, at))
}

/// Copies the copy that a session was at work on, with everything done in it: whoever
/// speaks to a mission that failed goes on where it stopped, and apart from others who
/// do. False if it is gone.
async fn branch(copy: &WorkCopy, events: &[Event], made: Seq, to: &Path) -> Result<bool> {
    if !copy.work().exists() {
        return Ok(false);
    }
    let event = events.iter().find(|event| event.seq == made);
    let outcome = event.map(Event::decode::<Finished<UpkeepOutcome>>);
    let Some(UpkeepOutcome::Copied { base }) = outcome.transpose()?.map(|made| made.outcome) else {
        return Ok(false);
    };
    let cancel = CancellationToken::new();
    let branched = copy.branch(&base, to, &cancel).await;
    branched.map(|_| true).map_err(|error| {
        Error::failed("the work of the session cannot be gone on with")
            .cause(error)
            .hint(format!("it is in `{}`", copy.work().display()))
    })
}

/// The end of a session that goes on; the model's last question of one that ended.
fn default_cut(events: &[Event]) -> Seq {
    let ended = events.iter().any(|e| &*e.kind == "RunFinished");
    // A job asks no model itself: its last phase is begun anew.
    let asks = |e: &&Event| &*e.kind == "ModelCallStarted" || opens_phase(e);
    let asked = events.iter().rfind(asks);
    match (ended, asked, events.last()) {
        (true, Some(asked), _) => asked.seq - 1,
        (_, _, Some(last)) => last.seq,
        (_, _, None) => 0,
    }
}

async fn copied(
    store: &Store,
    origin: &StreamId,
    at: Seq,
    fork: &StreamId,
    folders: &(String, String),
    is_copy_gone: bool,
) -> Result<()> {
    let ledger = &*store.ledger;
    let (events, _) = ledger.session_after(origin, Position::default()).await?;
    // Whatever its children did until the session's next event belongs to it.
    let is_next = |e: &Event| e.stream == *origin && e.seq > at;
    let end = events.iter().position(is_next).unwrap_or(events.len());

    // Letters are copied as far as they were taken: one that was not might undo
    // what the fork is for.
    let mut taken: BTreeMap<StreamId, Seq> = BTreeMap::new();
    for event in &events[..end] {
        let letter = event.decode::<Taken>().ok().and_then(|t| t.letter);
        if let Some(letter) = letter {
            let last = taken.entry(event.stream.inbox()).or_default();
            *last = letter.max(*last);
        }
    }
    let is_taken = |e: &&Event| taken.get(&e.stream).is_some_and(|last| e.seq <= *last);
    for event in events.iter().filter(is_taken).filter(|e| e.seq > 1) {
        let inbox = moved(&event.stream, origin, fork);
        let to = StreamId::new(inbox.as_str().trim_end_matches("#inbox"));
        let id = event.cause.as_deref().unwrap_or_default().to_owned();
        let event = again(event, origin, fork, folders);
        ledger.admit(&to, Letter { id, event }).await?;
    }
    let mut pens: BTreeMap<StreamId, Pen> = BTreeMap::new();
    let is_inbox = |e: &&Event| e.stream.as_str().ends_with("#inbox");
    for event in events[..end].iter().filter(|e| !is_inbox(e)) {
        let stream = moved(&event.stream, origin, fork);
        if event.seq == 1 {
            let mut new: NewStream = event.decode()?;
            new.parent = new.parent.map(|parent| moved(&parent, origin, fork));
            // The session is as old as it is; what its agents did is as old as it was.
            let time = match event.stream == *origin {
                true => store.clock.now(),
                false => event.time,
            };
            let pen = Pen::open(stream.clone(), new, &event.actor, time, None);
            pens.insert(stream, pen);
        } else if let Some(pen) = pens.get_mut(&stream) {
            pen.write(again(event, origin, fork, folders), Sync::Now);
        }
    }
    if let Some(pen) = pens.get_mut(fork) {
        let by_user = |kind, data: &Value| NewEvent::new(kind, "user", store.clock.now(), data);
        if is_copy_gone {
            pen.write(by_user(COPY_REMOVED, &json!({})), Sync::Later);
        }
        // The last of what was copied: whatever follows is the fork's own.
        let (from, at) = (origin.clone(), at);
        let forked = json!(SessionForked { from, at });
        pen.write(by_user(FORKED, &forked).version(FORKED_LAST), Sync::Now);
    }
    // The root last: without it, what was written before belongs to no session.
    while let Some((_, mut pen)) = pens.pop_last() {
        pen.flush(ledger).await?;
    }
    Ok(())
}

/// The same event for another stream. What was to be in the folder of the one session
/// will be in that of the other.
fn again(
    event: &Event,
    origin: &StreamId,
    fork: &StreamId,
    (old, new): &(String, String),
) -> NewEvent {
    let mut data: Box<RawValue> = event.data.as_ref().to_owned();
    if &*event.kind == "RunStarted" {
        let text = data.get().replace(&format!("\"{old}"), &format!("\"{new}"));
        data = RawValue::from_string(text).expect("a path in the place of a path leaves JSON");
    }
    if matches!(&*event.kind, "ChildStarted" | "ChildFinished") {
        let text = data.get().replace(
            &format!("\"stream\":\"{origin}/"),
            &format!("\"stream\":\"{fork}/"),
        );
        data = RawValue::from_string(text).expect("a name in the place of a name leaves JSON");
    }
    let kind = event.kind.to_string();
    let mut new = NewEvent::new(kind, event.actor.clone(), event.time, &data);
    new = new.version(event.version);
    match &event.cause {
        Some(cause) => new.because(cause.clone()),
        None => new,
    }
}

/// The stream of the fork that corresponds to one of the origin.
fn moved(stream: &StreamId, origin: &StreamId, fork: &StreamId) -> StreamId {
    let below = stream.as_str().strip_prefix(origin.as_str());
    StreamId::new(format!("{fork}{}", below.unwrap_or_default()))
}
