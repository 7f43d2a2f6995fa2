//! What was heard of one attempt: enough to keep, to cost and to stop it.

use selvedge_ledger::Payload;

use super::ask::Broken;
use crate::error::ModelError;
use crate::money::Price;
use crate::types::{Delta, Request, Usage};

/// Bytes of prose to a token, about.
const BYTES_PER_TOKEN: u64 = 4;
/// Bytes to a token that no text exceeds for long: so much is certain.
const BYTES_PER_TOKEN_MAX: u64 = 8;

/// What was heard of one attempt.
#[derive(Default)]
pub(super) struct Heard {
    text: String,
    bytes: u64,
    /// Pieces that are not shown, such as those of a tool call: a token each, about.
    unshown: u64,
    is_anything: bool,
    pub(super) first_token_ms: Option<u64>,
}

impl Heard {
    pub(super) fn is_anything(&self) -> bool {
        self.is_anything
    }

    pub(super) fn note(&mut self, delta: &Delta, now_ms: impl FnOnce() -> u64) {
        self.is_anything = true;
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(_) => {}
            Delta::Alive => {
                self.unshown += 1;
                return;
            }
        }
        if let Delta::Text(text) | Delta::Reasoning(text) = delta {
            self.bytes += text.len() as u64;
        }
        if self.first_token_ms.is_none() {
            self.first_token_ms = Some(now_ms());
        }
    }

    /// Tokens that the answer has for certain by now.
    pub(super) fn tokens_min(&self) -> u64 {
        self.bytes / BYTES_PER_TOKEN_MAX
    }

    /// What is left of the attempt, if it had begun to answer.
    pub(super) fn broken(
        self,
        request: &Request,
        error: &ModelError,
        price: Option<Price>,
    ) -> Option<Broken> {
        if !self.is_anything {
            return None;
        }
        let likely = self.bytes.div_ceil(BYTES_PER_TOKEN) + self.unshown;
        let may_be = u64::from(request.output_tokens_max);
        let usage = Usage {
            input: request.bytes().div_ceil(BYTES_PER_TOKEN),
            output: likely.min(may_be).max(self.tokens_min()),
            ..Usage::default()
        };
        Some(Broken {
            model: request.model.clone(),
            text: Payload::new(self.text),
            why: error.to_string(),
            tier: error.tier(),
            usage,
            cost: price.map(|price| price.cost(&usage)),
        })
    }
}
