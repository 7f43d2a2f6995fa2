//! One attempt at one answer: its turn in the queue, its patience, its end.

use selvedge_ledger::Time;
use selvedge_runtime::Notice;
use tokio_util::sync::CancellationToken;

use super::Gate;
use super::ask::{Answered, Ask, Broken};
use super::breaker::Permit;
use super::course::{Course, Stumble};
use super::heard::Heard;
use super::queue::Slot;
use crate::error::{ErrorTier, ModelError};
use crate::provider::DeltaSink;
use crate::providers::provider_of;
use crate::types::{Delta, Request, Response};

/// Why a call ended that had to give way.
const GAVE_WAY: &str = "it gave way to a call that somebody waits for";
/// When a rate limit ends, calls that nobody waits for come back this much later:
/// those that somebody waits for are in the queue before them.
const BACKGROUND_LAG_MILLIS: i64 = 20;

/// Whether a provider can be asked.
pub(super) enum Pace {
    Go(Permit),
    Wait(Time),
}

/// What one attempt needs.
pub(super) struct Attempt<'a> {
    pub(super) gate: &'a Gate,
    /// The request as this model gets it.
    pub(super) request: &'a Request,
    pub(super) ask: &'a Ask<'a>,
    pub(super) notice: &'a (dyn Fn(Notice) + Send + Sync),
    pub(super) cancel: &'a CancellationToken,
}

impl Attempt<'_> {
    /// Waits for its turn and asks once. Having to give way is no attempt.
    pub(super) async fn make(
        &self,
        course: &mut Course,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Answered, Stumble> {
        let gate = self.gate;
        let provider = provider_of(&self.request.model);
        let account = gate.account(&self.request.model);
        if let Some(until) = course.take_wait() {
            gate.sleep_until(until, self.cancel).await?;
        }
        loop {
            let slot = self.slot(provider, course).await?;
            let permit = match gate.pace(provider, &account).await? {
                Pace::Go(permit) => permit,
                Pace::Wait(until) => {
                    drop(slot);
                    self.be_patient(provider, until).await?;
                    continue;
                }
            };
            course.begin();
            let mut heard = Heard::default();
            let result = self.listen(&slot, &mut heard, course, deltas).await;
            let now = gate.clock.now();
            let Some(result) = result else {
                drop(slot);
                let given_up: Result<(), _> = Err(ModelError::Cancelled);
                gate.pacing.note(&account, permit, &given_up, now, 0).await;
                course.give_way();
                match self.broken(heard, GAVE_WAY.to_owned(), ErrorTier::Cancelled) {
                    None => continue,
                    broken => {
                        return Err(Stumble {
                            broken,
                            gave_way: true,
                            ..ModelError::Cancelled.into()
                        });
                    }
                }
            };
            let random = gate.chance.next();
            if gate
                .pacing
                .note(&account, permit, &result, now, random)
                .await
            {
                let text = format!("{provider} does not answer and is given a rest");
                (self.notice)(text.into());
            }
            // Whoever takes the slot next knows how this went.
            drop(slot);
            return match result {
                Ok(response) => Ok(Answered {
                    cost: gate
                        .price(&self.request.model)
                        .map(|price| price.cost(&response.usage)),
                    response,
                    attempts: course.attempts(),
                    first_token_ms: heard.first_token_ms,
                    total_ms: course.millis(now),
                    is_cached: false,
                    because: course.because(),
                }),
                Err(error) => Err(Stumble {
                    broken: self.broken(heard, error.to_string(), error.tier()),
                    again_at: gate.pacing.until(&account, now).await,
                    ..error.into()
                }),
            };
        }
    }

    /// What is left of an attempt that may have cost something.
    fn broken(&self, heard: Heard, why: String, tier: ErrorTier) -> Option<Box<Broken>> {
        let price = self.gate.price(&self.request.model);
        let input_worst = self.gate.input_tokens_worst(self.request);
        let broken = heard.broken(self.request, why, tier, price, input_worst);
        broken.map(Box::new)
    }

    async fn slot(&self, provider: &str, course: &mut Course) -> Result<Slot, ModelError> {
        let queue = &self.gate.queue;
        let now = self.gate.clock.now();
        let ticket = course.ticket(queue, provider, self.ask.urgency, now);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ModelError::Cancelled),
            slot = queue.enter(&ticket) => Ok(slot),
        }
    }

    /// Sits out a rate limit.
    async fn be_patient(&self, provider: &str, until: Time) -> Result<(), ModelError> {
        let millis = until.millis_since(self.gate.clock.now()).max(0);
        (self.notice)(Notice {
            text: format!(
                "{provider} asked for patience; waiting {:.1} s",
                millis as f64 / 1e3
            ),
            until: Some(until),
            abandons: false,
        });
        let lag = match self.ask.urgency.awaited {
            true => 0,
            false => BACKGROUND_LAG_MILLIS,
        };
        self.gate
            .sleep_until(until.plus_millis(lag), self.cancel)
            .await
    }

    /// Asks and listens. `None` if the call had to give way.
    async fn listen(
        &self,
        slot: &Slot,
        heard: &mut Heard,
        course: &Course,
        deltas: &mut dyn DeltaSink,
    ) -> Option<Result<Response, ModelError>> {
        let clock = &self.gate.clock;
        let tokens_max = u64::from(self.request.output_tokens_max);
        let overrun = CancellationToken::new();
        let mut listen = |delta: Delta| {
            let had_begun = heard.is_anything();
            heard.note(&delta, || course.millis(clock.now()));
            if heard.is_anything() && !had_begun {
                slot.answering();
            }
            if self.ask.is_capped && heard.tokens_min() > tokens_max {
                overrun.cancel();
            }
            deltas.take(delta);
        };
        tokio::select! {
            biased;
            () = slot.give_way.cancelled() => None,
            () = overrun.cancelled() => Some(Err(ModelError::Overrun {
                provider: provider_of(&self.request.model).to_owned(),
                what: format!("the answer grew beyond the {tokens_max} tokens set aside for it, and was stopped"),
            })),
            result = self.ask_provider(&mut listen) => Some(result),
        }
    }

    async fn ask_provider(&self, deltas: &mut dyn DeltaSink) -> Result<Response, ModelError> {
        if self.cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let provider = self.gate.providers.get(&self.request.model)?;
        provider.ask(self.request, deltas, self.cancel).await
    }
}
