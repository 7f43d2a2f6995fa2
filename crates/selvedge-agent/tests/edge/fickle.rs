//! A provider that answers, breaks off or fails, and keeps its own bill.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::Payload;
use selvedge_model::{
    Delta, DeltaSink, Message, ModelError, Part, Price, Provider, Request, Response, Role, Stop,
    Usage, Usd,
};
use selvedge_runtime::{Chance, SeededChance};
use tokio_util::sync::CancellationToken;

/// Answers, breaks off or fails, as the dice will, and charges for what was heard.
pub struct Fickle {
    pub dice: Arc<SeededChance>,
    pub bill: Arc<Mutex<Bill>>,
}

fn price() -> Price {
    Price {
        input: Usd::from_dollars(3.0).unwrap(),
        cached: None,
        cache_written: None,
        output: Usd::from_dollars(15.0).unwrap(),
        long: None,
    }
}

impl Fickle {
    fn charge(&self, usage: &Usage) {
        let mut bill = self.bill.lock().unwrap();
        bill.usd = bill.usd + price().cost(usage);
    }
}

#[async_trait]
impl Provider for Fickle {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        _cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let wait = || Duration::from_millis(1 + self.dice.next() % 50);
        tokio::time::sleep(wait()).await;
        let lost = |what: &str| ModelError::Transient {
            provider: "sim".into(),
            what: what.into(),
        };
        let fate = self.dice.next() % 100;
        if fate < 5 {
            return Err(lost("reset"));
        }
        let words = "word ".repeat((self.dice.next() % 200) as usize);
        deltas.take(Delta::Text(words.clone()));
        if fate < 15 {
            tokio::time::sleep(wait()).await;
            // Heard: the input, and four bytes a token.
            self.charge(&Usage {
                input: request.bytes().div_ceil(4),
                output: (words.len() as u64).div_ceil(4),
                ..Usage::default()
            });
            self.bill.lock().unwrap().broken += 1;
            return Err(lost("the stream was cut"));
        }
        let usage = Usage {
            input: request.bytes() / 3,
            output: 1 + self.dice.next() % u64::from(request.output_tokens_max),
            ..Usage::default()
        };
        self.charge(&usage);
        self.bill.lock().unwrap().answered += 1;
        let text = Payload::new(words);
        Ok(Response {
            message: Message {
                role: Role::Assistant,
                parts: vec![Part::Text { text }],
            },
            stop: Stop::End,
            usage,
            model: request.model.clone(),
        })
    }

    fn price(&self, _model: &str) -> Option<Price> {
        Some(price())
    }
}

/// What the provider charges for.
#[derive(Clone, Copy, Default)]
pub struct Bill {
    pub answered: u64,
    pub broken: u64,
    pub usd: Usd,
}
