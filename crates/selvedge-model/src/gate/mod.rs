//! The gate every model call passes: who answers, what it may cost, when to try again.
//!
//! Providers make one attempt each and know nothing of money or patience; that
//! knowledge is here, once. Reserving and asking are two steps because the
//! caller puts the reservation on record before the call begins.

mod ask;
mod attempt;
mod breaker;
mod budget;
mod course;
mod estimate;
mod frequency;
mod heard;
mod pacing;
mod queue;
mod reservation;
mod retry;
mod shortfall;
mod spend;

use std::sync::Arc;
use std::time::Duration;

use selvedge_ledger::{Ledger, Time};
use selvedge_runtime::{Chance, Clock, Notice};
use tokio_util::sync::CancellationToken;

pub use ask::{Answered, Ask, Broken, Failed};
pub use breaker::BreakerOptions;
pub use budget::Budget;
pub use course::Course;
pub use estimate::input_tokens_estimate;
pub use queue::{Slots, Urgency};
pub use reservation::Reservation;
pub use retry::Retry;
pub use shortfall::{BudgetError, Unit};
pub use spend::{Limits, Spend};

use self::attempt::{Attempt, Pace};
use self::course::{Step, Stumble};
use self::estimate::ToolSizes;
use self::frequency::Frequency;
use self::pacing::{Account, Go, Pacing};
use self::queue::Queue;
use crate::cache::ResponseCache;
use crate::catalogue::Catalogue;
use crate::error::ModelError;
use crate::money::{Price, Usd};
use crate::provider::DeltaSink;
use crate::providers::{Providers, provider_of};
use crate::types::{Delta, Request};

/// The one door through which models are asked.
pub struct Gate {
    providers: Providers,
    catalogue: Arc<Catalogue>,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    retry: Retry,
    queue: Queue,
    pacing: Pacing,
    tool_sizes: ToolSizes,
    cache: Option<ResponseCache>,
    resets: Frequency,
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
            tool_sizes: ToolSizes::default(),
            cache: None,
            resets: Frequency::default(),
        }
    }

    /// The same gate with other slots.
    pub fn with_slots(self, slots: Slots) -> Self {
        let queue = Queue::new(slots);
        Self { queue, ..self }
    }

    /// The same gate with another idea of when a provider is down.
    pub fn with_breaker(self, options: BreakerOptions) -> Self {
        let pacing = self.pacing.with_options(options);
        Self { pacing, ..self }
    }

    /// The same gate, which learns from every process that has `ledger` open who asks
    /// for patience and who is down, and tells them.
    pub fn with_pace_of(self, ledger: Arc<dyn Ledger>) -> Self {
        let pacing = self.pacing.shared(ledger, self.clock.clone());
        Self { pacing, ..self }
    }

    /// The same gate with another patience.
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The same gate with answers that are given again to the very same request.
    pub fn with_cache(self, cache: Option<ResponseCache>) -> Self {
        Self { cache, ..self }
    }

    /// How many calls wait for a slot.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// The providers behind the gate.
    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// Whom the limits and troubles of `provider/model` concern.
    fn account(&self, model: &str) -> Account {
        let provider = self.providers.find(model);
        let place = provider.and_then(|provider| provider.place());
        Account::new(provider_of(model), place)
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
    ///
    /// An attempt that breaks off after it may have cost something
    /// ends the call: `Failed::go_on` says how to ask again, when that is on
    /// record and there is money for it.
    pub async fn ask(
        &self,
        ask: impl Into<Ask<'_>>,
        deltas: &mut dyn DeltaSink,
        notice: &(dyn Fn(Notice) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Answered, Failed> {
        let mut ask = ask.into();
        let course = ask.course.take();
        let mut course = course.unwrap_or_else(|| Course::new(self.clock.now()));
        if let Some(answered) = self.answered_before(ask.request, deltas) {
            return Ok(answered);
        }
        loop {
            let request = ask.request_to(course.candidate());
            let attempt = Attempt {
                gate: self,
                request: &request,
                ask: &ask,
                notice,
                cancel,
            };
            let stumble = match attempt.make(&mut course, deltas).await {
                Ok(answered) => {
                    if let Some(cache) = &self.cache {
                        cache.put(&request, &answered.response);
                    }
                    return Ok(answered);
                }
                Err(stumble) => stumble,
            };
            let now = self.clock.now();
            if stumble.gave_way {
                return Err(course.interrupted(stumble, now));
            }
            let random = self.chance.next();
            let step = course.after(&stumble, &self.retry, ask.fallbacks, now, random);
            let Some(step) = step else {
                return Err(course.failed(stumble, now));
            };
            let next = ask.request_to(course.candidate());
            notice(self.told(&stumble, &step, &course, &next.model, now));
            if stumble.broken.is_some() {
                return Err(course.interrupted(stumble, now));
            }
        }
    }

    /// The answer that the very same request got before, if answers are kept.
    fn answered_before(&self, request: &Request, deltas: &mut dyn DeltaSink) -> Option<Answered> {
        let response = self.cache.as_ref()?.get(request)?;
        deltas.take(Delta::Text(response.text()));
        Some(Answered {
            response,
            cost: Some(Usd::ZERO),
            attempts: 0,
            first_token_ms: None,
            total_ms: 0,
            is_cached: true,
            because: None,
        })
    }

    /// What a person is told about a stumble that is not the end.
    fn told(
        &self,
        stumble: &Stumble,
        step: &Step,
        course: &Course,
        model: &str,
        now: Time,
    ) -> Notice {
        let error = &stumble.error;
        let lost = match &stumble.broken {
            Some(broken) if !broken.text.is_empty() => "; what was said so far does not count",
            _ => "",
        };
        let (text, until) = match step {
            Step::Instead => (format!("{error}{lost}; asking {model} instead"), None),
            Step::Again(wait) if wait.is_zero() => (format!("{error}{lost}"), None),
            Step::Again(wait) => {
                let (next, of) = (course.tries() + 1, self.retry.attempts_max);
                let seconds = wait.as_secs_f64();
                let text =
                    format!("{error}{lost}; trying again in {seconds:.1} s ({next} of {of})");
                // What heals by itself is silent, unless it is frequent.
                let is_transient = matches!(error, ModelError::Transient { .. });
                let is_silent = is_transient && !self.resets.note(now) && lost.is_empty();
                let text = if is_silent { String::new() } else { text };
                (text, Some(later(now, *wait)))
            }
        };
        Notice {
            text,
            until,
            abandons: stumble.broken.is_some(),
        }
    }

    /// Whether a provider can be asked, or when; a stumble if that is too far off.
    async fn pace(&self, provider: &str, account: &Account) -> Result<Pace, Stumble> {
        let now = self.clock.now();
        let left =
            |until: Time| Duration::from_millis(until.millis_since(now).max(0).unsigned_abs());
        let (error, until) = match self.pacing.go(account, now).await {
            Go::Now(permit) => return Ok(Pace::Go(permit)),
            Go::Patience(until) if left(until) <= self.retry.retry_after_max => {
                return Ok(Pace::Wait(until));
            }
            Go::Patience(until) => {
                let error = ModelError::RateLimited {
                    provider: provider.to_owned(),
                    what: "it asked for patience".to_owned(),
                    retry_after: Some(left(until)),
                };
                (error, until)
            }
            Go::Down(until) => {
                let seconds = left(until).as_secs_f64();
                let error = ModelError::Degraded {
                    provider: provider.to_owned(),
                    what: format!("its last calls failed, and it is asked again in {seconds:.0} s"),
                };
                (error, until)
            }
        };
        Err(Stumble {
            again_at: Some(until),
            is_refused: true,
            ..error.into()
        })
    }

    async fn sleep_until(&self, until: Time, cancel: &CancellationToken) -> Result<(), ModelError> {
        let left = until.millis_since(self.clock.now()).max(0).unsigned_abs();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            () = self.clock.sleep(Duration::from_millis(left)) => Ok(()),
        }
    }

    /// No request is larger than the model's context, however cautious the estimate.
    fn input_tokens_worst(&self, request: &Request) -> u64 {
        let context = self
            .catalogue
            .facts(&request.model)
            .and_then(|facts| facts.context_tokens);
        let estimate = self.tool_sizes.input_tokens_estimate(request);
        estimate.min(context.unwrap_or(u64::MAX))
    }
}

fn later(now: Time, wait: Duration) -> Time {
    now.plus_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
