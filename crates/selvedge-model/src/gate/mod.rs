//! The gate every model call passes: who answers, what it may cost, when to try again.
//!
//! Providers make one attempt each and know nothing of money or patience; that
//! knowledge is here, once. Reserving and asking are two steps because the
//! caller puts the reservation on record before the call begins.

mod breaker;
mod budget;
mod estimate;
mod pacing;
mod queue;
mod retry;
mod shortfall;
mod spend;

use std::sync::Arc;
use std::time::Duration;

use selvedge_ledger::Time;
use selvedge_runtime::{Chance, Clock};
use tokio_util::sync::CancellationToken;

pub use breaker::BreakerOptions;
pub use budget::{Budget, Reservation};
pub use estimate::input_tokens_estimate;
pub use queue::{Slots, Urgency};
pub use retry::Retry;
pub use shortfall::{BudgetError, Unit};
pub use spend::{Limits, Spend};

use self::pacing::{Go, Pacing};
use self::queue::Queue;
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
    queue: Queue,
    pacing: Pacing,
}

/// A request, and how it is to be treated.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// How urgent it is.
    pub urgency: Urgency,
    /// Models to ask instead, in this order, when the request's own cannot.
    pub fallbacks: &'a [String],
}

impl<'a> From<&'a Request> for Ask<'a> {
    fn from(request: &'a Request) -> Self {
        Self {
            request,
            urgency: Urgency::default(),
            fallbacks: &[],
        }
    }
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
            queue: Queue::new(Slots::default()),
            pacing: Pacing::new(BreakerOptions::default()),
        }
    }

    /// The same gate with other slots.
    pub fn with_slots(self, slots: Slots) -> Self {
        let queue = Queue::new(slots);
        Self { queue, ..self }
    }

    /// The same gate with another idea of when a provider is down.
    pub fn with_breaker(self, options: BreakerOptions) -> Self {
        let pacing = Pacing::new(options);
        Self { pacing, ..self }
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
    /// its tokens and all the output it may ask for, at the price of the dearest
    /// model that may have to answer.
    pub fn reserve(
        &self,
        budget: &Budget,
        request: &Request,
        fallbacks: &[String],
    ) -> Result<Reservation, BudgetError> {
        let output = u64::from(request.output_tokens_max);
        let input = self.input_tokens_worst(request);
        let mut dearest = Some(Usd::ZERO);
        for model in std::iter::once(&request.model).chain(fallbacks) {
            let price = self.price(model);
            if let (None, Some(limited)) = (price, budget.money_limited()) {
                return Err(BudgetError::PriceUnknown {
                    budget: limited.name().to_owned(),
                    model: model.clone(),
                });
            }
            let cost = price.map(|price| price.worst(input, output));
            dearest = dearest.zip(cost).map(|(a, b)| a.max(b));
        }
        budget.hold(Spend::one(input.saturating_add(output), dearest))
    }

    /// Asks, and asks again where that can help: the same model, then its
    /// fallbacks. `notice` is told what goes on. An answer is always one model's.
    pub async fn ask(
        &self,
        ask: impl Into<Ask<'_>>,
        deltas: &mut dyn DeltaSink,
        notice: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Answered, Failed> {
        let ask = ask.into();
        let mut so_far = Tally::new(self.clock.now());
        let mut instead: Request;
        let mut request = ask.request;
        let mut fallbacks = ask.fallbacks.iter();
        loop {
            let failed = self
                .ask_one(request, ask.urgency, deltas, notice, cancel, &mut so_far)
                .await;
            let error = match failed {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            let next = fallbacks.next().filter(|_| another_may_help(&error));
            let Some(next) = next else {
                return Err(Failed {
                    error,
                    attempts: so_far.attempts,
                    total_ms: so_far.millis(self.clock.now()),
                    wasted: so_far.wasted,
                });
            };
            notice(&format!("{error}; asking {next} instead"));
            instead = Request {
                model: next.clone(),
                ..ask.request.clone()
            };
            request = &instead;
        }
    }

    /// Asks one model until it answers or there is no point in going on.
    async fn ask_one(
        &self,
        request: &Request,
        urgency: Urgency,
        deltas: &mut dyn DeltaSink,
        notice: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
        so_far: &mut Tally,
    ) -> Result<Answered, ModelError> {
        let provider = crate::providers::provider_of(&request.model);
        let price = self.price(&request.model);
        let now = self.clock.now().0;
        let mut ticket = self.queue.ticket(provider, urgency, now);
        let mut tries = 0;
        loop {
            let slot = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                slot = self.queue.enter(&ticket) => slot,
            };
            if let Some(wait) = self.pace(provider)? {
                drop(slot);
                notice(&format!(
                    "{provider} asked for patience; waiting {:.1} s",
                    wait.as_secs_f64()
                ));
                self.sleep(wait, cancel).await?;
                continue;
            }
            tries += 1;
            so_far.attempts += 1;
            let mut heard = Heard::default();
            let mut listen = |delta: Delta| {
                if !heard.anything {
                    slot.answering();
                }
                heard.note(&delta, || so_far.millis(self.clock.now()));
                deltas.take(delta);
            };
            let result = tokio::select! {
                biased;
                () = slot.give_way.cancelled() => None,
                result = self.attempt(request, &mut listen, cancel) => Some(result),
            };
            drop(slot);
            let now = self.clock.now();
            let Some(result) = result else {
                let given_up: Result<(), _> = Err(ModelError::Cancelled);
                self.pacing.note(provider, &given_up, now, 0);
                (tries, so_far.attempts) = (tries - 1, so_far.attempts - 1);
                ticket = ticket.again();
                continue;
            };
            if self.pacing.note(provider, &result, now, self.chance.next()) {
                notice(&format!("{provider} does not answer and is given a rest"));
            }
            let error = match result {
                Ok(response) => {
                    return Ok(Answered {
                        cost: price.map(|price| price.cost(&response.usage)),
                        response,
                        attempts: so_far.attempts,
                        first_token_ms: heard.first_token_ms,
                        total_ms: so_far.millis(now),
                        wasted: so_far.wasted,
                    });
                }
                Err(error) => error,
            };
            so_far.wasted = so_far.wasted + heard.waste(request, price);
            let Some(wait) = self.retry.wait(&error, tries, self.chance.next()) else {
                return Err(error);
            };
            // The provider's wish holds for everybody, this call included.
            if matches!(error, ModelError::RateLimited { .. }) {
                notice(&error.to_string());
                continue;
            }
            let (next, of) = (tries + 1, self.retry.attempts_max);
            let seconds = wait.as_secs_f64();
            notice(&format!(
                "{error}; trying again in {seconds:.1} s ({next} of {of})"
            ));
            self.sleep(wait, cancel).await?;
        }
    }

    /// How long a provider is to be left alone; an error if that is too long.
    fn pace(&self, provider: &str) -> Result<Option<Duration>, ModelError> {
        let now = self.clock.now();
        let left =
            |until: Time| Duration::from_millis(until.millis_since(now).max(0).unsigned_abs());
        match self.pacing.go(provider, now) {
            Go::Now => Ok(None),
            Go::Patience(until) if left(until) <= self.retry.retry_after_max => {
                Ok(Some(left(until)))
            }
            Go::Patience(until) => Err(ModelError::RateLimited {
                provider: provider.to_owned(),
                what: "it asked for patience".to_owned(),
                retry_after: Some(left(until)),
            }),
            Go::Down(until) => Err(ModelError::Degraded {
                provider: provider.to_owned(),
                what: format!(
                    "its last calls failed, and it is asked again in {:.0} s",
                    left(until).as_secs_f64()
                ),
            }),
        }
    }

    async fn sleep(&self, wait: Duration, cancel: &CancellationToken) -> Result<(), ModelError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            () = self.clock.sleep(wait) => Ok(()),
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

/// Whether another model may answer where this error came from one.
fn another_may_help(error: &ModelError) -> bool {
    match error {
        ModelError::Transient { .. }
        | ModelError::RateLimited { .. }
        | ModelError::UserFixable { .. }
        | ModelError::Degraded { .. } => true,
        ModelError::Permanent { .. } | ModelError::Cancelled => false,
    }
}

/// What one question has taken so far.
struct Tally {
    begun: Time,
    attempts: u32,
    wasted: Spend,
}

impl Tally {
    fn new(begun: Time) -> Self {
        Self {
            begun,
            attempts: 0,
            wasted: Spend::default(),
        }
    }

    fn millis(&self, now: Time) -> u64 {
        now.millis_since(self.begun).max(0).unsigned_abs()
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
