//! What the driver knows of a run: its own fold over the same events.

use std::collections::BTreeMap;

use selvedge_ledger::{Event, LedgerError, Seq, StreamId, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::events::{
    ChildFinished, ChildStarted, Finished, LetterIgnored, QuestionAnswered, QuestionAsked,
    RunCancelled, RunFinished, RunPaused, RunResumed, Started, Timer, Unfinished,
};
use crate::machine::{EffectId, Ending, Question};

/// The state of a run, apart from what its machine makes of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Book {
    /// Calls begun and not ended.
    pub open: BTreeMap<EffectId, OpenCall>,
    /// Attempts of calls that were begun and have no outcome yet.
    attempts: BTreeMap<EffectId, u32>,
    /// Questions asked and not answered.
    pub questions: BTreeMap<EffectId, Question>,
    /// Children begun and not ended.
    pub children: BTreeMap<EffectId, StreamId>,
    /// Timers set and not fired.
    pub timers: BTreeMap<EffectId, Time>,
    /// Why nothing new begins, and until when.
    pub pauses: BTreeMap<String, Pause>,
    /// That the run was cancelled, and why.
    pub cancelled: Option<String>,
    /// How it ended.
    pub ended: Option<Ending>,
    /// The last letter taken from the inbox.
    pub letter: Seq,
}

/// Why nothing new begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// What happened, for a person.
    pub detail: String,
    /// Since when.
    pub since: Time,
    /// Until when, if it ends by itself.
    pub until: Option<Time>,
}

/// A call that was begun and whose end is not on record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenCall {
    /// Which attempt.
    pub attempt: u32,
    /// What was on record before it began.
    pub evidence: Value,
}

/// The part of an event that says which letter it took.
#[derive(Deserialize)]
struct Taken {
    letter: Option<Seq>,
}

impl Book {
    /// The number of the next attempt at `effect`.
    pub(crate) fn next_attempt(&self, effect: &EffectId) -> u32 {
        self.attempts.get(effect).copied().unwrap_or(0) + 1
    }

    /// Folds an event in.
    pub fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "StreamOpened" | "RunStarted" => {}
            "QuestionAsked" => {
                let asked: QuestionAsked = event.decode()?;
                self.questions.insert(asked.effect, asked.question);
            }
            "QuestionAnswered" => {
                let answered: QuestionAnswered = event.decode()?;
                self.questions.remove(&answered.effect);
                self.letter = answered.letter;
            }
            "ChildStarted" => {
                let child: ChildStarted = event.decode()?;
                self.children.insert(child.effect, child.stream);
            }
            "ChildFinished" => {
                self.children
                    .remove(&event.decode::<ChildFinished>()?.effect);
            }
            "TimerSet" => {
                let timer: Timer = event.decode()?;
                self.timers.insert(timer.effect, timer.until);
            }
            "TimerFired" => {
                let timer: Timer = event.decode()?;
                self.timers.remove(&timer.effect);
            }
            "RunPaused" => {
                let paused: RunPaused = event.decode()?;
                let RunPaused {
                    reason,
                    detail,
                    until,
                    letter,
                } = paused;
                self.pauses.insert(
                    reason,
                    Pause {
                        detail,
                        since: event.time,
                        until,
                    },
                );
                self.take(letter);
            }
            "RunResumed" => {
                let resumed: RunResumed = event.decode()?;
                self.pauses.remove(&resumed.reason);
                self.take(resumed.letter);
            }
            "RunCancelled" => {
                let cancelled: RunCancelled = event.decode()?;
                self.cancelled = Some(cancelled.reason);
                self.take(cancelled.letter);
            }
            "RunFinished" => self.ended = Some(event.decode::<RunFinished>()?.ending),
            "LetterIgnored" => self.letter = event.decode::<LetterIgnored>()?.letter,
            "MessageTaken" | "BudgetRaised" => self.take(event.decode::<Taken>()?.letter),
            kind => self.apply_call(kind, event)?,
        }
        Ok(())
    }

    fn apply_call(&mut self, kind: &str, event: &Event) -> Result<(), LedgerError> {
        if kind.ends_with("Started") {
            let Started {
                effect,
                attempt,
                evidence,
                ..
            } = event.decode()?;
            self.attempts.insert(effect.clone(), attempt);
            self.open.insert(effect, OpenCall { attempt, evidence });
        } else if kind.ends_with("Finished") {
            let finished: Finished<serde::de::IgnoredAny> = event.decode()?;
            self.open.remove(&finished.effect);
            self.attempts.remove(&finished.effect);
        } else if kind.ends_with("InDoubt") {
            let doubtful: Unfinished = event.decode()?;
            self.open.remove(&doubtful.effect);
            self.attempts.remove(&doubtful.effect);
        } else if kind.ends_with("Interrupted") {
            // The attempt counts, the call may be begun again.
            self.open.remove(&event.decode::<Unfinished>()?.effect);
        }
        Ok(())
    }

    fn take(&mut self, letter: Option<Seq>) {
        self.letter = letter.unwrap_or(self.letter).max(self.letter);
    }
}
