//! What people have approved: how an answer reads, and what holds for a session.
//!
//! The answers of a session are on record in its streams. Folding them gives what
//! was approved until its end, for every agent of it, also after a restart.

use std::collections::{BTreeSet, HashMap};

use selvedge_ledger::{Event, LedgerError, StreamId, Time};
use selvedge_runtime::{Approval, EffectId, QuestionAnswered, QuestionAsked};
use serde::{Deserialize, Serialize};

/// A person cannot judge more than this many approvals in a minute. Beyond it
/// nobody is asked, and nothing is done.
pub(crate) const ASKED_MAX: usize = 20;
const MINUTE_MS: i64 = 60_000;

/// What a person says to an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Do it, and for how long this holds.
    Yes(Scope),
    /// Leave it, and why if that was said.
    No(String),
}

/// How long an approval holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This once.
    Once,
    /// Until the end of the session, for exactly this.
    Session,
    /// In this project, for exactly this.
    Project,
}

impl Answer {
    /// The answers that a person can choose from.
    pub const OPTIONS: [&str; 4] = ["yes", "session", "project", "no"];

    /// What a person meant. Anything but a plain yes is a no.
    pub fn read(text: &str) -> Self {
        Self::plain(text).unwrap_or_else(|| Self::No(text.trim().to_owned()))
    }

    /// What a person meant who said a plain yes or no; nothing if they said neither.
    pub fn plain(text: &str) -> Option<Self> {
        let text = text.trim();
        let (word, rest) = text.split_once([' ', ',', ':']).unwrap_or((text, ""));
        match word.to_ascii_lowercase().as_str() {
            "y" | "yes" | "allow" | "ok" | "once" => Some(Self::Yes(Scope::Once)),
            "session" => Some(Self::Yes(Scope::Session)),
            "project" => Some(Self::Yes(Scope::Project)),
            "n" | "no" | "deny" => Some(Self::No(rest.trim().to_owned())),
            _ => None,
        }
    }
}

/// What was asked and approved in a session.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    open: HashMap<(StreamId, EffectId), Approval>,
    granted: BTreeSet<String>,
    asked: Vec<Time>,
}

impl Approvals {
    /// Folds an event of any of the session's streams in.
    pub(crate) fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "QuestionAsked" => {
                let QuestionAsked { effect, question } = event.decode()?;
                if let Some(approval) = question.approval {
                    self.asked.push(event.time);
                    self.open.insert((event.stream.clone(), effect), approval);
                }
            }
            "QuestionAnswered" => {
                let QuestionAnswered { effect, answer, .. } = event.decode()?;
                let approval = self.open.remove(&(event.stream.clone(), effect));
                let text = answer.text().map_or("", |text| text);
                if let (Some(approval), Answer::Yes(Scope::Session)) =
                    (approval, Answer::read(text))
                    && !approval.lasting.is_empty()
                {
                    self.granted.insert(approval.lasting);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether exactly this was approved for the session.
    pub(crate) fn has(&self, lasting: &str) -> bool {
        self.granted.contains(lasting)
    }

    /// Whether a person was asked so often that another question would not be read.
    pub(crate) fn is_flooded(&self, now: Time) -> bool {
        let recent = |time: &&Time| now.millis_since(**time) < MINUTE_MS;
        self.asked.iter().rev().take_while(recent).count() >= ASKED_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_ledger::{Hash, NewEvent, Payload, Pen, Sync};
    use selvedge_runtime::Question;

    struct Stage {
        pen: Pen,
        approvals: Approvals,
    }

    impl Stage {
        fn new() -> Self {
            Self {
                pen: Pen::at(StreamId::new("s"), 0, Hash::ZERO, None),
                approvals: Approvals::default(),
            }
        }

        fn record<T: Serialize>(&mut self, kind: &'static str, at: i64, data: &T) {
            let event = NewEvent::new(kind, "test", Time(at), data);
            let event = self.pen.write(event, Sync::Later);
            self.approvals.apply(&event).unwrap();
        }

        fn ask(&mut self, effect: &str, lasting: &str, at: i64) {
            let approval = Approval {
                act: Payload::new("{}"),
                digest: lasting.into(),
                lasting: lasting.into(),
                because: String::new(),
            };
            let question = Question {
                text: "may I?".into(),
                options: Vec::new(),
                approval: Some(approval),
            };
            let effect = EffectId::new(effect);
            self.record("QuestionAsked", at, &QuestionAsked { effect, question });
        }

        fn answer(&mut self, effect: &str, text: &str) {
            let answered = QuestionAnswered {
                effect: EffectId::new(effect),
                answer: Payload::new(text),
                by: "user".into(),
                letter: 1,
            };
            self.record("QuestionAnswered", 0, &answered);
        }
    }

    #[test]
    fn only_a_plain_yes_is_one() {
        for (text, expected) in [
            ("yes", Answer::Yes(Scope::Once)),
            ("Y", Answer::Yes(Scope::Once)),
            ("ok, go", Answer::Yes(Scope::Once)),
            ("session", Answer::Yes(Scope::Session)),
            ("project please", Answer::Yes(Scope::Project)),
            ("no", Answer::No(String::new())),
            ("no, not here", Answer::No("not here".into())),
            ("yesterday", Answer::No("yesterday".into())),
            ("why?", Answer::No("why?".into())),
            ("", Answer::No(String::new())),
        ] {
            assert_eq!(Answer::read(text), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_for_the_session_holds_for_exactly_what_was_asked() {
        let mut stage = Stage::new();
        stage.ask("t0.0?", "make", 0);
        stage.ask("t0.1?", "deploy", 0);
        stage.answer("t0.0?", "session");
        stage.answer("t0.1?", "yes");
        assert!(stage.approvals.has("make"));
        assert!(!stage.approvals.has("deploy"), "once is once");
        stage.answer("t0.1?", "session");
        assert!(!stage.approvals.has("deploy"), "nothing is asked any more");
    }

    #[test]
    fn nobody_is_asked_two_hundred_times_in_a_minute() {
        let mut stage = Stage::new();
        for n in 0..200 {
            stage.ask(&format!("t{n}.0?"), "x", n * 10);
            assert_eq!(
                stage.approvals.is_flooded(Time(n * 10)),
                n + 1 >= ASKED_MAX as i64
            );
        }
        assert!(!stage.approvals.is_flooded(Time(2000 + MINUTE_MS)));
    }
}
