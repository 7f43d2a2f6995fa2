//! One faulty answer: what goes wrong, and what a client may make of it.

use selvedge_model::{ErrorTier, ModelError, Response, Stop, Usage};
use serde_json::Value;

use super::plan::Plan;
use super::{connection, delivery, protocol, status};
use crate::server::frames::Frames;
use crate::server::reply::Reply;
use crate::server::wire::{Asked, Wire};
use crate::sim::Dice;

/// The key to show to a storm. Some faults repeat it.
pub const STORM_KEY: &str = "sk-storm-0123456789";

/// One faulty answer.
pub struct Case {
    /// Its number.
    pub seed: u64,
    /// The protocol it is in.
    pub wire: Wire,
    kind: &'static Kind,
    pub(super) reply: Reply,
}

/// A way to go wrong.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) wires: &'static [Wire],
    /// What the reply must have for this to go wrong.
    pub(super) adjust: fn(&mut Reply),
    pub(super) plan: fn(&Case, &Dice) -> Plan,
}

/// What a client may make of an answer.
pub(super) enum Outcome {
    /// It is the reply, wholly.
    Whole,
    /// It is an error of one of these tiers.
    Fails(&'static [ErrorTier]),
    /// It is the reply or a transient error.
    Either,
    /// As `Either`, or a reply whose calls cannot be run.
    Unrunnable,
}

/// What every broken stream is.
pub(super) const TRANSIENT: Outcome = Outcome::Fails(&[ErrorTier::Transient]);

impl Case {
    /// The case with this number.
    pub fn new(seed: u64) -> Self {
        let dice = Dice::new(seed, "case");
        let kinds = kinds().count() as u64;
        let nth = usize::try_from(dice.below(kinds)).expect("there are few kinds");
        let kind = kinds_at(nth);
        let wire = pick(&dice, kind.wires);
        let mut reply = reply(seed, &dice);
        (kind.adjust)(&mut reply);
        Self {
            seed,
            wire,
            kind,
            reply,
        }
    }

    /// The name of what goes wrong.
    pub fn kind(&self) -> &'static str {
        self.kind.name
    }

    /// Every name of something that can go wrong.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        kinds().map(|kind| kind.name)
    }

    /// The model to ask for, without its provider.
    pub fn model(&self) -> String {
        format!("case-{}", self.seed)
    }

    /// Whether the answer waits until the client loses patience.
    pub fn stalls(&self) -> bool {
        self.plan().stalls()
    }

    /// What is wrong with what a client made of it, if anything.
    pub fn verdict(&self, result: &Result<Response, ModelError>) -> Result<(), String> {
        let shown = || match result {
            Ok(response) => format!("{:?}", response.message),
            Err(error) => format!("{:?}: {error}", error.tier()),
        };
        if format!("{result:?}").contains(STORM_KEY) {
            return Err("the key is shown".to_owned());
        }
        let transient = |error: &ModelError| error.tier() == ErrorTier::Transient;
        let fits = match (&self.kind.outcome, result) {
            (Outcome::Fails(tiers), Err(error)) => tiers.contains(&error.tier()),
            (Outcome::Fails(_), Ok(_)) | (Outcome::Whole, Err(_)) => false,
            (Outcome::Either | Outcome::Unrunnable, Err(error)) => transient(error),
            (Outcome::Whole | Outcome::Either, Ok(response)) => self.is_reply(response),
            (Outcome::Unrunnable, Ok(response)) => self.runs_nothing_else(response),
        };
        match fits {
            true => Ok(()),
            false => Err(shown()),
        }
    }

    /// Whether the answer is the reply and nothing but the reply.
    fn is_reply(&self, response: &Response) -> bool {
        let calls = response.calls().map(|call| {
            let arguments = call.arguments.text().map(ToString::to_string);
            (call.name.clone(), arguments.unwrap_or_default())
        });
        let stop = match self.reply.calls.is_empty() {
            true => Stop::End,
            false => Stop::Tools,
        };
        response.text() == self.reply.text
            && calls.collect::<Vec<_>>() == self.reply.calls
            && response.stop == stop
            && response.model.ends_with(&self.model())
    }

    /// Whether every call that could be run is one of the reply's.
    fn runs_nothing_else(&self, response: &Response) -> bool {
        response.calls().all(|call| {
            let arguments = call.arguments.text().map(|text| &**text).unwrap_or("");
            let runnable = serde_json::from_str::<Value>(arguments).is_ok();
            let meant = self.reply.calls.iter();
            let meant = meant
                .clone()
                .any(|(name, text)| *name == call.name && text == arguments);
            meant || !runnable
        })
    }

    pub(super) fn plan(&self) -> Plan {
        (self.kind.plan)(self, &Dice::new(self.seed, "plan"))
    }

    pub(super) fn frames(&self) -> Frames {
        let asked = Asked {
            model: self.model(),
            streams: true,
            counts: true,
        };
        self.wire.frames(&asked, &self.reply)
    }

    pub(super) fn events(&self) -> Vec<Vec<u8>> {
        self.frames().into_events()
    }
}

fn kinds() -> impl Iterator<Item = &'static Kind> {
    let families: [&'static [Kind]; 4] = [
        delivery::KINDS,
        connection::KINDS,
        status::KINDS,
        protocol::KINDS,
    ];
    families.into_iter().flatten()
}

fn kinds_at(nth: usize) -> &'static Kind {
    kinds().nth(nth).expect("it was counted")
}

pub(super) fn pick<T: Copy>(dice: &Dice, among: &[T]) -> T {
    let nth = usize::try_from(dice.below(among.len() as u64)).expect("it is one of a few");
    among[nth]
}

/// A reply that no other case has.
fn reply(seed: u64, dice: &Dice) -> Reply {
    let words = [
        "größer",
        "two",
        "—",
        "file\n",
        "\"quoted\"",
        "\\n",
        "🧵",
        "end",
    ];
    let mut text = format!("Answer {seed}:");
    for _ in 0..1 + dice.below(20) {
        text.push(' ');
        text.push_str(pick(dice, &words));
    }
    let mut reply = Reply::text(text);
    for n in 0..dice.below(3) {
        reply = reply.call("lookup", format!(r#"{{ "case": {seed}, "n":{n} }}"#));
    }
    if dice.percent(50) {
        reply = reply.reasoning(format!("thinking about {seed}"), "c2VhbA==");
    }
    reply.usage(Usage {
        input: dice.below(100_000),
        output: dice.below(10_000),
        ..Usage::default()
    })
}

/// For kinds that need nothing special.
pub(super) fn as_it_is(_: &mut Reply) {}

/// For kinds that need calls.
pub(super) fn with_calls(reply: &mut Reply) {
    if reply.calls.is_empty() {
        let arguments = r#"{"needed":[true,null]}"#;
        reply.calls.push(("lookup".into(), arguments.into()));
    }
}
