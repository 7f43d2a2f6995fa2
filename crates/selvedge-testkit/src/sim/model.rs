//! A model whose words depend on the seed and the turn alone, and whose faults
//! on the seed and the moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::Payload;
use selvedge_model::{
    Delta, DeltaSink, Message, ModelError, Part, Price, Provider, Request, Response, Role, Stop,
    ToolCall, Usage, Usd,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::check::Counts;
use super::dice::Dice;

pub(super) struct SimModel {
    pub(super) seed: u64,
    pub(super) turns: u32,
    /// Percent of attempts that fail.
    pub(super) fault_percent: u64,
    /// Whether agents hand work on, ask people, and write malformed calls.
    pub(super) lively: bool,
    pub(super) faults: Dice,
    pub(super) counts: Arc<Mutex<Counts>>,
}

#[async_trait]
impl Provider for SimModel {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let latency = Duration::from_millis(1 + self.faults.below(400));
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            () = tokio::time::sleep(latency) => {}
        }
        if self.faults.percent(self.fault_percent) {
            if self.faults.percent(30) {
                self.counts
                    .lock()
                    .expect("one thread")
                    .hit("model broke off");
                deltas.take(Delta::Text("I was about to ".into()));
            }
            return Err(self.fault());
        }
        Ok(self.answer(request))
    }

    fn price(&self, _model: &str) -> Option<Price> {
        let (input, output) = (Usd::from_dollars(3.0)?, Usd::from_dollars(15.0)?);
        Some(Price {
            input,
            cached: None,
            cache_written: None,
            output,
            long: None,
        })
    }
}

impl SimModel {
    fn fault(&self) -> ModelError {
        let provider = "sim".to_owned();
        let mut counts = self.counts.lock().expect("one thread");
        if self.faults.percent(50) {
            counts.hit("model transient");
            ModelError::Transient {
                provider,
                what: "the stream was cut".into(),
            }
        } else {
            counts.hit("model rate limited");
            let retry_after = self
                .faults
                .percent(50)
                .then(|| Duration::from_secs(1 + self.faults.below(90)));
            ModelError::RateLimited {
                provider,
                what: "slow down".into(),
                retry_after,
            }
        }
    }

    fn answer(&self, request: &Request) -> Response {
        // The first message tells one run of an agent from another.
        let topic = text(&request.messages[0]);
        let dice = Dice::new(self.seed, &format!("{topic}/{}", request.turn));
        let last = text(request.messages.last().expect("a request has messages"));
        let mut parts = Vec::new();
        let mut stop = Stop::End;
        if last.starts_with("The conversation is about to exceed") {
            self.counts.lock().expect("one thread").hit("summary");
            parts.push(said("so far, so good"));
        } else if request.turn + 1 >= self.turns_of(&request.agent) {
            parts.push(call(
                "finish",
                0,
                &json!({ "summary": format!("{topic} done") }),
            ));
            stop = Stop::Tools;
        } else {
            parts.push(said(&"x".repeat(dice.below(3000) as usize)));
            for n in 0..1 + dice.below(3) {
                parts.push(self.call(request, &topic, &dice, n));
            }
            stop = Stop::Tools;
        }
        let message = Message {
            role: Role::Assistant,
            parts,
        };
        let usage = Usage {
            input: 100,
            output: 50,
            ..Usage::default()
        };
        Response {
            message,
            stop,
            usage,
            model: request.model.clone(),
        }
    }

    fn turns_of(&self, agent: &str) -> u32 {
        if agent == "helper" {
            2 + self.turns / 8
        } else {
            self.turns
        }
    }

    fn call(&self, request: &Request, topic: &str, dice: &Dice, n: u64) -> Part {
        let key = format!("{topic}-{}-{n}", request.turn);
        let lively = if self.lively { 100 } else { 85 };
        match dice.below(lively) {
            0..30 => call("look", n, &json!({ "key": key, "bytes": dice.below(6000) })),
            30..60 => call("write", n, &json!({ "key": key })),
            60..85 => call("act", n, &json!({ "key": key })),
            85..88 => call("run", n, &json!({ "key": key, "command": "make" })),
            88..91 => call("ask_user", n, &json!({ "question": format!("{key}?") })),
            91..94 if request.agent == "lead" => {
                call("delegate", n, &json!({ "agent": "helper", "task": key }))
            }
            94..96 => call("nothing", n, &json!({})),
            96..98 => call("write", n, &json!({ "kee": key })),
            _ => {
                let arguments = Payload::new("{\"key\": ");
                Part::ToolCall(ToolCall {
                    id: format!("c{n}"),
                    name: "act".into(),
                    arguments,
                })
            }
        }
    }
}

fn said(text: &str) -> Part {
    Part::Text {
        text: Payload::new(text),
    }
}

fn call(name: &str, n: u64, arguments: &Value) -> Part {
    Part::ToolCall(ToolCall {
        id: format!("c{n}"),
        name: name.into(),
        arguments: Payload::new(arguments.to_string()),
    })
}

fn text(message: &Message) -> String {
    match message.parts.first() {
        Some(Part::Text { text }) => text.text().map(|t| t.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}
