//! One tiny call, to see whether a provider answers and how soon.
//!
//! A list of models would be cheaper still, but some providers hand it to
//! anybody: only an answer shows that the key is good.

use std::sync::Arc;
use std::time::Duration;

use selvedge_ledger::Payload;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::money::{Price, Usd};
use crate::provider::Provider;
use crate::providers::provider_of;
use crate::types::{Message, Part, Request, Role, Usage};

// The least that every provider accepts; the answer need not be complete.
const OUTPUT_TOKENS_MAX: u32 = 16;

/// How a tiny call went.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// From asking to the end of the answer.
    pub latency: Duration,
    /// Tokens used.
    pub usage: Usage,
    /// What it cost; `None` if the price is unknown.
    pub cost: Option<Usd>,
}

/// Asks `model` for a word, once, for as long as `patience`.
pub async fn probe(
    provider: &dyn Provider,
    model: &str,
    price: Option<Price>,
    patience: Duration,
) -> Result<Probe, ModelError> {
    let text = Payload::new("Say: ok");
    let request = Request {
        model: model.to_owned(),
        agent: "probe".to_owned(),
        turn: 0,
        system: "".into(),
        messages: vec![Arc::new(Message {
            role: Role::User,
            parts: vec![Part::Text { text }],
        })]
        .into(),
        tools: Arc::new([]),
        output_schema: None,
        output_tokens_max: OUTPUT_TOKENS_MAX,
        temperature: None,
        effort: None,
    };
    let begun = Instant::now();
    let cancel = CancellationToken::new();
    let mut unheard = |_| {};
    let asked = provider.ask(&request, &mut unheard, &cancel);
    let response = tokio::time::timeout(patience, asked)
        .await
        .unwrap_or_else(|_| {
            Err(ModelError::Transient {
                provider: provider_of(model).to_owned(),
                what: format!("no answer within {} s", patience.as_secs()),
            })
        })?;
    Ok(Probe {
        latency: begun.elapsed(),
        usage: response.usage,
        cost: price
            .or_else(|| provider.price(model))
            .map(|price| price.cost(&response.usage)),
    })
}
