//! What goes through the gate, and what comes back.

use std::borrow::Cow;

use selvedge_ledger::{Payload, Time};
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::queue::Urgency;
use super::spend::Spend;
use crate::error::{ErrorTier, ModelError};
use crate::money::Usd;
use crate::types::{Request, Response, Usage};

/// A request, and how it is to be treated.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// How urgent it is.
    pub urgency: Urgency,
    /// Models to ask instead, in this order, when the request's own cannot.
    pub fallbacks: &'a [String],
    /// Whether an answer that grows beyond `output_tokens_max` is stopped: it
    /// would cost more than was set aside.
    pub is_capped: bool,
    /// Where the question stands, if an earlier attempt at it broke off.
    pub course: Option<Course>,
}

impl<'a> From<&'a Request> for Ask<'a> {
    fn from(request: &'a Request) -> Self {
        Self {
            request,
            urgency: Urgency::default(),
            fallbacks: &[],
            is_capped: false,
            course: None,
        }
    }
}

impl Ask<'_> {
    /// The request as the `candidate`-th model gets it.
    pub(super) fn request_to(&self, candidate: usize) -> Cow<'_, Request> {
        let fallback = candidate.checked_sub(1).and_then(|n| self.fallbacks.get(n));
        match fallback {
            None => Cow::Borrowed(self.request),
            Some(model) => Cow::Owned(Request {
                model: model.clone(),
                ..self.request.clone()
            }),
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
    /// Whether it is an earlier answer to the same request, kept and given again.
    pub is_cached: bool,
    /// Why the model that was asked first did not answer, if another did.
    pub because: Option<String>,
}

impl Answered {
    /// What to settle a reservation with. An answer given again costs nothing.
    pub fn spend(&self) -> Spend {
        match self.is_cached {
            true => Spend::default(),
            false => Spend::call(&self.response.usage, self.cost),
        }
    }
}

/// No answer, and what was tried.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// Why: of the last attempt, or of one that time may cure.
    #[source]
    pub error: ModelError,
    /// Attempts made.
    pub attempts: u32,
    /// From the first attempt to giving up.
    pub total_ms: u64,
    /// What the last attempt left behind, if it may have cost something.
    pub broken: Option<Broken>,
    /// Ask again with this, once what broke off is on record.
    pub go_on: Option<Course>,
    /// When asking again may help, if that is known.
    pub again_at: Option<Time>,
}

/// An attempt that broke off after it may have cost something.
///
/// What was said is kept for people. It is never acted upon, never sent back,
/// and never becomes part of another answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Broken {
    /// Who spoke, `provider/model`.
    pub model: String,
    /// What was said until then.
    pub text: Payload,
    /// Why it broke off.
    pub why: String,
    /// What kind of failure that was.
    pub tier: ErrorTier,
    /// What it used, as far as the provider said so, and else is likely to have
    /// used: an answer is paid for once it has begun.
    pub usage: Usage,
    /// What that costs; absent if that is unknown: there is no price, or the request
    /// left and nobody said that it arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Whether the provider itself said all of that, and nothing is estimated.
    #[serde(default)]
    pub is_counted: bool,
    /// The most it can have used, where something is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Spend>,
}

impl Broken {
    /// What to settle a reservation with: the most it can have used, for a budget
    /// must hold. The call itself goes on, or was never answered: it does not count
    /// as one.
    pub fn spend(&self) -> Spend {
        self.at_most.unwrap_or_else(|| self.likely())
    }

    /// What it used, or is likely to have used.
    pub fn likely(&self) -> Spend {
        Spend {
            calls: 0,
            ..Spend::call(&self.usage, self.cost)
        }
    }
}
