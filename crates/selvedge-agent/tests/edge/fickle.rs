//! A provider that answers, breaks off or fails, and keeps its own bill.

use std::collections::BTreeMap;
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
    fn charge(&self, agent: &str, usage: &Usage) {
        let mut bill = self.bill.lock().unwrap();
        bill.usd = bill.usd + price().cost(usage);
        *bill.tokens.entry(agent.to_owned()).or_default() += usage.total();
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
            // It may have thought long without being heard.
            let usage = Usage {
                input: request.bytes() / 3,
                output: 1 + self.dice.next() % u64::from(request.output_tokens_max),
                ..Usage::default()
            };
            self.charge(&request.agent, &usage);
            let mut bill = self.bill.lock().unwrap();
            bill.broken += 1;
            bill.usd_broken = bill.usd_broken + price().cost(&usage);
            return Err(lost("the stream was cut"));
        }
        let usage = Usage {
            input: request.bytes() / 3,
            output: 1 + self.dice.next() % u64::from(request.output_tokens_max),
            ..Usage::default()
        };
        self.charge(&request.agent, &usage);
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
#[derive(Clone, Default)]
pub struct Bill {
    pub answered: u64,
    pub broken: u64,
    pub usd: Usd,
    /// Of it, for attempts that broke off.
    pub usd_broken: Usd,
    /// By agent.
    pub tokens: BTreeMap<String, u64>,
}
