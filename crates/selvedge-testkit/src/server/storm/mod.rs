//! Faulty answers by the thousand, each wholly determined by its number.
//!
//! A storm is a bare socket that speaks HTTP as badly as a case wants it to,
//! which no HTTP library would. The client is told which case to ask for by the
//! name of the model, so one storm serves any number of cases at once.

mod connection;
mod delivery;
mod plan;
mod protocol;
mod status;

use std::net::SocketAddr;

use selvedge_model::{ErrorTier, ModelError, Response, Stop, Usage};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use self::plan::Plan;
use super::frames::Frames;
use super::reply::Reply;
use super::wire::{Asked, Wire};
use crate::sim::Dice;

/// The key to show to a storm. Some faults repeat it.
pub const STORM_KEY: &str = "sk-storm-0123456789";

/// A server that answers every request as its case has it. It stops when dropped.
pub struct Storm {
    address: SocketAddr,
    stop: CancellationToken,
}

/// One faulty answer.
pub struct Case {
    /// Its number.
    pub seed: u64,
    /// The protocol it is in.
    pub wire: Wire,
    kind: &'static Kind,
    reply: Reply,
}

/// A way to go wrong.
struct Kind {
    name: &'static str,
    outcome: Outcome,
    wires: &'static [Wire],
    /// What the reply must have for this to go wrong.
    adjust: fn(&mut Reply),
    plan: fn(&Case, &Dice) -> Plan,
}

/// What a client may make of an answer.
enum Outcome {
    /// It is the reply, wholly.
    Whole,
    /// It is an error of one of these tiers.
    Fails(&'static [ErrorTier]),
    /// It is the reply or a transient error.
    Either,
    /// As `Either`, or a reply whose calls cannot be run.
    Unrunnable,
}

const TRANSIENT: Outcome = Outcome::Fails(&[ErrorTier::Transient]);

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

    fn plan(&self) -> Plan {
        (self.kind.plan)(self, &Dice::new(self.seed, "plan"))
    }

    fn frames(&self) -> Frames {
        let asked = Asked {
            model: self.model(),
            streams: true,
            counts: true,
        };
        self.wire.frames(&asked, &self.reply)
    }

    fn events(&self) -> Vec<Vec<u8>> {
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

fn pick<T: Copy>(dice: &Dice, among: &[T]) -> T {
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
fn as_it_is(_: &mut Reply) {}

/// For kinds that need calls.
fn with_calls(reply: &mut Reply) {
    if reply.calls.is_empty() {
        let arguments = r#"{"needed":[true,null]}"#;
        reply.calls.push(("lookup".into(), arguments.into()));
    }
}

impl Storm {
    /// A storm on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the local machine has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stopped.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                // A client that is gone already is part of the weather.
                if let Ok((socket, _)) = accepted {
                    let stopped = stopped.clone();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = stopped.cancelled() => {}
                            () = serve(socket) => {}
                        }
                    });
                }
            }
        });
        Self { address, stop }
    }

    /// Where it is, for every protocol: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Answers the requests of a connection until one of them ends it.
async fn serve(mut socket: TcpStream) {
    // Fails only on a connection that is gone.
    let _ = socket.set_nodelay(true);
    let mut received = Vec::new();
    while let Some(seed) = next_case(&mut socket, &mut received).await {
        let plan = Case::new(seed).plan();
        if !plan.carry_out(&mut socket).await {
            return;
        }
    }
}

/// Reads one request; returns the case it asks for.
async fn next_case(socket: &mut TcpStream, received: &mut Vec<u8>) -> Option<u64> {
    loop {
        if let Some((request, rest)) = split_request(received) {
            let seed = seed_in(&received[..request]);
            received.drain(..request);
            debug_assert_eq!(received.len(), rest);
            return seed;
        }
        let mut more = [0; 16 * 1024];
        let count = socket
            .read(&mut more)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        received.extend_from_slice(&more[..count]);
    }
}

/// The length of the first whole request, and of what comes after it.
fn split_request(received: &[u8]) -> Option<(usize, usize)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
    let length = head.split("content-length:").nth(1)?;
    let length: usize = length.lines().next()?.trim().parse().ok()?;
    let whole = end + length;
    Some((whole, received.len().checked_sub(whole)?))
}

fn seed_in(request: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(request);
    let digits = text.split("case-").nth(1)?;
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// Whether the text is one JSON value.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
