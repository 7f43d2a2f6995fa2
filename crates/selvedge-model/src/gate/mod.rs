//! The gate every model call passes: who answers, what it may cost, when to try again.
//!
//! Providers make one attempt each and know nothing of money or patience; that
//! knowledge is here, once. Reserving and asking are two steps because the
//! caller puts the reservation on record before the call begins.

mod budget;
mod estimate;
mod retry;
mod shortfall;
mod spend;

use std::sync::Arc;

use selvedge_runtime::{Chance, Clock};
use tokio_util::sync::CancellationToken;

pub use budget::{Budget, Reservation};
pub use estimate::input_tokens_estimate;
pub use retry::Retry;
pub use shortfall::{BudgetError, Unit};
pub use spend::{Limits, Spend};

use crate::catalogue::Catalogue;
use crate::error::ModelError;
use crate::money::{Price, Usd};
use crate::provider::DeltaSink;
use crate::providers::Providers;
use crate::types::{Delta, Request, Response, Usage};

/// The one door through which models are asked.
pub struct Gate {
    providers: Providers,
    catalogue: Arc<Catalogue>,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    retry: Retry,
}

/// An answer and what it took to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub response: Response,
    /// What it cost, if the price is known.
    pub cost: Option<Usd>,
    /// Attempts made, this one included.
    pub attempts: u32,
    /// From the first attempt to the first words, if there were any.
    pub first_token_ms: Option<u64>,
    /// From the first attempt to the end, waits included.
    pub total_ms: u64,
    /// What attempts that broke off are likely to have cost besides.
    pub wasted: Spend,
}

impl Answered {
    /// What to settle a reservation with.
    pub fn spend(&self) -> Spend {
        Spend::call(&self.response.usage, self.cost) + self.wasted
    }
}

/// No answer, and what was tried.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// Why the last attempt failed.
    #[source]
    pub error: ModelError,
    /// Attempts made.
    pub attempts: u32,
    /// From the first attempt to giving up.
    pub total_ms: u64,
    /// What attempts that broke off are likely to have cost: what to settle a
    /// reservation with.
    pub wasted: Spend,
}

impl Gate {
    /// A gate to `providers`, with prices from `catalogue`.
    pub fn new(
        providers: Providers,
        catalogue: Arc<Catalogue>,
        clock: Arc<dyn Clock>,
        chance: Arc<dyn Chance>,
    ) -> Self {
        Self {
            providers,
            catalogue,
            clock,
            chance,
            retry: Retry::default(),
        }
    }

    /// The same gate with another patience.
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The providers behind the gate.
    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// The price of `provider/model`: the catalogue's, else the provider's own.
    pub fn price(&self, model: &str) -> Option<Price> {
        let own = || {
            self.providers
                .find(model)
                .and_then(|provider| provider.price(model))
        };
        self.catalogue.price(model).or_else(own)
    }

    /// Holds the worst case of one attempt at `request`: a cautious estimate of
    /// its tokens and all the output it may ask for, at the model's price.
    pub fn reserve(&self, budget: &Budget, request: &Request) -> Result<Reservation, BudgetError> {
        let output = u64::from(request.output_tokens_max);
        let input = self.input_tokens_worst(request);
        let price = self.price(&request.model);
        if let (None, Some(limited)) = (price, budget.money_limited()) {
            let budget = limited.name().to_owned();
            return Err(BudgetError::PriceUnknown {
                budget,
                model: request.model.clone(),
            });
        }
        let cost = price.map(|price| price.worst(input, output));
        budget.hold(Spend::one(input.saturating_add(output), cost))
    }

    /// Asks, and asks again where that can help. `notice` is told before each wait.
    pub async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        notice: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Answered, Failed> {
        let begun = self.clock.now().0;
        let since_begun = || u64::try_from(self.clock.now().0 - begun).unwrap_or(0);
        let price = self.price(&request.model);
        let mut attempts = 0;
        let mut wasted = Spend::default();
        loop {
            attempts += 1;
            let mut heard = Heard::default();
            let mut listen = |delta: Delta| {
                heard.note(&delta, since_begun);
                deltas.take(delta);
            };
            let mut error = match self.attempt(request, &mut listen, cancel).await {
                Ok(response) => {
                    return Ok(Answered {
                        cost: price.map(|price| price.cost(&response.usage)),
                        response,
                        attempts,
                        first_token_ms: heard.first_token_ms,
                        total_ms: since_begun(),
                        wasted,
                    });
                }
                Err(error) => error,
            };
            wasted = wasted + heard.waste(request, price);
            if let Some(wait) = self.retry.wait(&error, attempts, self.chance.next()) {
                let (next, of) = (attempts + 1, self.retry.attempts_max);
                let seconds = wait.as_secs_f64();
                notice(&format!(
                    "{error}; trying again in {seconds:.1} s ({next} of {of})"
                ));
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => error = ModelError::Cancelled,
                    () = self.clock.sleep(wait) => continue,
                }
            }
            let total_ms = since_begun();
            return Err(Failed {
                error,
                attempts,
                total_ms,
                wasted,
            });
        }
    }

    async fn attempt(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let provider = self.providers.get(&request.model)?;
        provider.ask(request, deltas, cancel).await
    }

    /// No request is larger than the model's context, however cautious the estimate.
    fn input_tokens_worst(&self, request: &Request) -> u64 {
        let context = self
            .catalogue
            .facts(&request.model)
            .and_then(|facts| facts.context_tokens);
        input_tokens_estimate(request).min(context.unwrap_or(u64::MAX))
    }
}

/// What was heard of one attempt.
#[derive(Default)]
struct Heard {
    anything: bool,
    bytes: u64,
    first_token_ms: Option<u64>,
}

impl Heard {
    fn note(&mut self, delta: &Delta, now: impl Fn() -> u64) {
        self.anything = true;
        if let Delta::Text(text) | Delta::Reasoning(text) = delta {
            self.bytes += text.len() as u64;
            self.first_token_ms.get_or_insert_with(now);
        }
    }

    /// What an attempt that broke off costs. Providers charge for an answer
    /// once it has begun, but did not get to say how much.
    fn waste(&self, request: &Request, price: Option<Price>) -> Spend {
        if !self.anything {
            return Spend::default();
        }
        let usage = Usage {
            input: request.bytes().div_ceil(4),
            output: self.bytes.div_ceil(4),
            ..Usage::default()
        };
        let spend = Spend::call(&usage, price.map(|price| price.cost(&usage)));
        // It is part of the call that goes on.
        Spend {
            calls: 0,
            unpriced: 0,
            ..spend
        }
    }
}

#[cfg(test)]
mod tests;
