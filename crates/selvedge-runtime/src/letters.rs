//! Taking letters: what somebody outside said becomes events of the run.

use selvedge_ledger::{Event, LedgerError, Seq, Sync};

use crate::driver::DriveError;
use crate::events::{
    BudgetRaised, LetterIgnored, MessageTaken, QuestionAnswered, RunCancelled, RunPaused,
    RunResumed,
};
use crate::machine::{Call, EffectId};
use crate::run::Run;
use crate::signal::Signal;

impl<C: Call> Run<'_, C> {
    /// Turns letters into events of the run.
    pub(crate) async fn take_letters(&mut self) -> Result<(), DriveError> {
        if !std::mem::take(&mut self.unread) {
            return Ok(());
        }
        let letters = match self
            .driver
            .ledger
            .read(&self.stream.inbox(), self.book.letter)
            .await
        {
            Ok(letters) => letters,
            Err(LedgerError::NoStream { .. }) => return Ok(()),
            Err(other) => return Err(other.into()),
        };
        for letter in letters.iter().filter(|l| &*l.kind == "SignalAdmitted") {
            self.forward(letter).await?;
            self.take(letter)?;
        }
        Ok(())
    }

    /// What holds for a run holds for its children. They are told first: a letter
    /// that is told twice is one letter, one that is not told is lost.
    async fn forward(&mut self, letter: &Event) -> Result<(), DriveError> {
        let Ok(
            signal @ (Signal::Pause { .. } | Signal::Resume { .. } | Signal::RaiseBudget { .. }),
        ) = letter.decode::<Signal>()
        else {
            return Ok(());
        };
        for child in self.book.children.values() {
            let (ledger, clock) = (&*self.driver.ledger, &*self.driver.clock);
            let id = format!("{}-{}", letter.stream, letter.seq);
            signal.send(ledger, clock, child, &letter.actor, id).await?;
        }
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<(), DriveError> {
        let letter = event.seq;
        let by = event.actor.to_string();
        match event.decode::<Signal>() {
            Err(error) => self.ignore(letter, error.to_string()),
            Ok(Signal::Steer { mode, text }) => self.record(
                "MessageTaken",
                &MessageTaken { mode, text, letter },
                Sync::Now,
            ),
            Ok(Signal::Answer {
                effect,
                text,
                digest,
            }) => match self.answered(effect, digest) {
                Ok(effect) => {
                    let answered = QuestionAnswered {
                        effect,
                        answer: text,
                        by,
                        letter,
                    };
                    self.record("QuestionAnswered", &answered, Sync::Now)
                }
                Err(why) => self.ignore(letter, why.into()),
            },
            Ok(Signal::Pause { reason }) => {
                let paused = RunPaused {
                    reason,
                    detail: format!("asked for by {by}"),
                    until: None,
                    letter: Some(letter),
                };
                self.record("RunPaused", &paused, Sync::Now)
            }
            Ok(Signal::Resume { reason }) => self.resume(reason, letter),
            Ok(Signal::Cancel { reason }) => {
                let cancelled = RunCancelled {
                    by,
                    reason,
                    letter: Some(letter),
                };
                self.record("RunCancelled", &cancelled, Sync::Now)
            }
            Ok(Signal::RaiseBudget {
                usd,
                tokens,
                model_calls,
            }) => self.record(
                "BudgetRaised",
                &BudgetRaised {
                    usd,
                    tokens,
                    model_calls,
                    letter,
                },
                Sync::Now,
            ),
        }
    }

    /// The open question that an answer is for. An approval is bound to what was
    /// shown: an answer that names something else, or nothing, allows nothing.
    fn answered(
        &self,
        effect: Option<EffectId>,
        digest: Option<String>,
    ) -> Result<EffectId, &'static str> {
        let is_named = effect.is_some();
        let effect = effect.or_else(|| self.book.questions.keys().next().cloned());
        let open = effect.and_then(|effect| {
            let question = self.book.questions.get(&effect)?;
            Some((effect, question))
        });
        let (effect, question) = open.ok_or("no such question is open")?;
        match (&question.approval, digest) {
            (Some(approval), Some(digest)) if approval.digest != digest => {
                Err("it approves something else than what is asked")
            }
            (Some(_), _) if !is_named => Err("an approval must name what it approves"),
            _ => Ok(effect),
        }
    }

    fn resume(&mut self, reason: Option<String>, letter: Seq) -> Result<(), DriveError> {
        let reasons: Vec<String> = match reason {
            Some(reason) => vec![reason],
            None => self.book.pauses.keys().cloned().collect(),
        };
        if reasons.is_empty() {
            return self.ignore(letter, "the run is not paused".into());
        }
        for reason in reasons {
            self.record(
                "RunResumed",
                &RunResumed {
                    reason,
                    letter: Some(letter),
                },
                Sync::Now,
            )?;
        }
        Ok(())
    }

    fn ignore(&mut self, letter: Seq, why: String) -> Result<(), DriveError> {
        self.record("LetterIgnored", &LetterIgnored { letter, why }, Sync::Later)
    }
}
