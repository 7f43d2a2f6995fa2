//! A provider that answers, breaks off or fails, and keeps its own bill.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::Payload;
use selvedge_model::{
    Delta, DeltaSink, Message, ModelError, Part, Price, Provider, Request, Response, Role, Stop,
    Usage, Usd, provider_of,
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
    /// Charges for an answer, or for what was heard of one.
    fn charge(&self, request: &Request, usage: &Usage, is_broken: bool) {
        let cost = price().cost(usage);
        let answerer = provider_of(&request.model).to_owned();
        let mut bill = self.bill.lock().unwrap();
        let line = bill.0.entry((request.agent.clone(), answerer)).or_default();
        line.usd = line.usd + cost;
        line.tokens += usage.total();
        match is_broken {
            true => {
                line.broken += 1;
                line.usd_broken = line.usd_broken + cost;
            }
            false => line.answered += 1,
        }
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
            provider: provider_of(&request.model).to_owned(),
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
            self.charge(request, &usage, true);
            return Err(lost("the stream was cut"));
        }
        let usage = Usage {
            input: request.bytes() / 3,
            output: 1 + self.dice.next() % u64::from(request.output_tokens_max),
            ..Usage::default()
        };
        self.charge(request, &usage, false);
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

/// What providers charge for, by agent and provider.
#[derive(Clone, Default)]
pub struct Bill(pub BTreeMap<(String, String), Line>);

/// What one provider charges for one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    pub answered: u64,
    pub broken: u64,
    pub usd: Usd,
    /// Of it, for attempts that broke off.
    pub usd_broken: Usd,
    pub tokens: u64,
}

impl std::ops::Add for Line {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            broken: self.broken + other.broken,
            usd: self.usd + other.usd,
            usd_broken: self.usd_broken + other.usd_broken,
            tokens: self.tokens + other.tokens,
        }
    }
}

impl Bill {
    /// The sum of the lines that are meant.
    pub fn of(&self, is_meant: impl Fn(&str, &str) -> bool) -> Line {
        let lines = self.0.iter();
        let lines = lines.filter(|((agent, provider), _)| is_meant(agent, provider));
        lines.fold(Line::default(), |sum, (_, line)| sum + *line)
    }

    /// The sum of all.
    pub fn total(&self) -> Line {
        self.of(|_, _| true)
    }
}
