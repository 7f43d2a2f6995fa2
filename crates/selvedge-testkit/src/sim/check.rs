//! What must hold after every crash and at the end.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_agent::{AgentMachine, Answer, ModelOutcome, ToolOutcome};
use selvedge_ledger::{Event, Ledger, LedgerError, StreamFilter, StreamId};
use selvedge_runtime::{Book, EffectId, Finished, Machine, QuestionAnswered, Started, Unfinished};
use selvedge_tool::{Decision, Verdict};

use super::ledger::Acknowledged;

/// How often each thing worth seeing was seen: no vacuous passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub BTreeMap<&'static str, u64>);

impl Counts {
    pub(super) fn hit(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        for (what, n) in &other.0 {
            *self.0.entry(what).or_default() += n;
        }
    }
}

/// An invariant that does not hold, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(Broken(format!($($why)+)));
        }
    };
}

/// What a finished or interrupted world's ledger says, for comparing runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    /// Heads of all streams.
    pub(super) heads: String,
    /// What must be equal however often a run was killed: every call, and its
    /// result unless it was in doubt.
    pub(super) story: BTreeMap<String, String>,
}

/// Checks a ledger that was just opened after a crash, or at the end.
pub(super) async fn check(
    ledger: &dyn Ledger,
    session: &StreamId,
    notes: &Acknowledged,
    effects: &BTreeMap<String, u32>,
    counts: &mut Counts,
) -> Result<Digest, Broken> {
    let broken = |e: LedgerError| Broken(e.to_string());
    // Sequences without gaps, and the chain.
    let report = ledger.verify(None).await.map_err(broken)?;
    ensure!(report.damage.is_empty(), "damage: {:?}", report.damage);
    // Acknowledged is durable.
    let mut events: BTreeMap<StreamId, Vec<Event>> = BTreeMap::new();
    for info in ledger
        .streams(StreamFilter::Session(session.clone()))
        .await
        .map_err(broken)?
    {
        events.insert(
            info.id.clone(),
            ledger.read(&info.id, 0).await.map_err(broken)?,
        );
    }
    for (stream, seq, hash) in &notes.heads {
        let stored = events.get(stream).and_then(|e| e.get(*seq as usize - 1));
        ensure!(
            stored.is_some_and(|e| e.hash == *hash),
            "acknowledged event {seq} of {stream} is lost"
        );
    }
    // No effect twice.
    for (call, times) in effects {
        ensure!(*times <= 1, "`{call}` had its effect {times} times");
    }
    let mut digest = Digest::default();
    for (stream, events) in &events {
        digest.heads.push_str(&format!(
            "{stream} {}\n",
            events.last().expect("never empty").hash
        ));
        if !stream.as_str().ends_with("#inbox") {
            check_stream(stream, events, &mut digest, counts)?;
        }
    }
    Ok(digest)
}

/// Every intent has at most one end, no end is without intent, nothing runs without
/// a verdict, and the fold of what is stored works.
fn check_stream(
    stream: &StreamId,
    events: &[Event],
    digest: &mut Digest,
    counts: &mut Counts,
) -> Result<(), Broken> {
    let broken = |e: LedgerError| Broken(e.to_string());
    let (mut book, mut machine) = (Book::default(), AgentMachine::default());
    let mut begun: BTreeSet<EffectId> = BTreeSet::new();
    let mut ended: BTreeSet<EffectId> = BTreeSet::new();
    let mut judged: BTreeMap<String, Decision> = BTreeMap::new();
    let mut approved: BTreeSet<String> = BTreeSet::new();
    for event in events {
        book.apply(event).map_err(broken)?;
        machine.apply(event).map_err(broken)?;
        let mut end = |effect: EffectId| {
            ensure!(
                begun.contains(&effect),
                "{stream} {effect} ended without having begun"
            );
            ensure!(
                ended.insert(effect.clone()),
                "{stream} {effect} ended twice"
            );
            Ok(())
        };
        let mut note = |effect: &EffectId, what: String| {
            digest.story.insert(format!("{stream} {effect}"), what);
        };
        match &*event.kind {
            "ModelCallStarted" | "ToolCallStarted" => {
                let started: Started = event.decode().map_err(broken)?;
                ensure!(
                    !ended.contains(&started.effect),
                    "{stream} {} began after its end",
                    started.effect
                );
                // What runs was judged before, and approved if the verdict says so.
                let verdict = judged.get(started.effect.as_str());
                ensure!(
                    started.what["tool"] != "run"
                        || match verdict {
                            Some(Decision::Allow) => true,
                            Some(Decision::Ask) => approved.contains(started.effect.as_str()),
                            Some(Decision::Deny) | None => false,
                        },
                    "{stream} {} runs without a verdict that allows it",
                    started.effect
                );
                begun.insert(started.effect);
            }
            "JudgementFinished" => {
                let finished: Finished<Verdict> = event.decode().map_err(broken)?;
                let call = finished.effect.as_str().trim_end_matches('!');
                judged.insert(call.to_owned(), finished.outcome.decision());
            }
            "ModelCallFinished" => {
                let finished: Finished<ModelOutcome> = event.decode().map_err(broken)?;
                note(&finished.effect, "answered".into());
                end(finished.effect)?;
            }
            "ToolCallFinished" => {
                let finished: Finished<ToolOutcome> = event.decode().map_err(broken)?;
                let outcome = &finished.outcome;
                note(
                    &finished.effect,
                    format!("{} {}", outcome.tool, outcome.is_error),
                );
                end(finished.effect)?;
            }
            "ToolCallInDoubt" => {
                let doubtful: Unfinished = event.decode().map_err(broken)?;
                counts.hit("in doubt");
                note(&doubtful.effect, "in doubt".into());
                end(doubtful.effect)?;
            }
            "RunFinished" => note(&EffectId::new("end"), event.data.get().to_owned()),
            "RunPaused" => counts.hit("paused"),
            "RunCancelled" => counts.hit("cancelled"),
            "ChildFinished" => counts.hit("child finished"),
            "QuestionAnswered" => {
                counts.hit("question answered");
                let answered: QuestionAnswered = event.decode().map_err(broken)?;
                let text = answered.answer.text().map_or("", |text| text);
                if matches!(Answer::read(text), Answer::Yes(_)) {
                    let effect = answered.effect.as_str();
                    approved.extend(effect.split('?').next().map(str::to_owned));
                }
            }
            "MessageTaken" => counts.hit("steered"),
            "LetterIgnored" => counts.hit("letter ignored"),
            _ => {}
        }
    }
    Ok(())
}
