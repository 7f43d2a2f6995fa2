//! What was heard of one attempt: enough to keep, to cost and to stop it.

use selvedge_ledger::Payload;

use super::ask::Broken;
use super::spend::Spend;
use crate::error::ErrorTier;
use crate::money::Price;
use crate::types::{Delta, Request, Stage, Usage};

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
    /// What the provider has counted, and whether that is all.
    used: Option<(Usage, bool)>,
    is_anything: bool,
    stage: Option<Stage>,
    pub(super) first_token_ms: Option<u64>,
}

impl Heard {
    pub(super) fn is_anything(&self) -> bool {
        self.is_anything
    }

    pub(super) fn note(&mut self, delta: &Delta, now_ms: impl FnOnce() -> u64) {
        if let Delta::Request(stage) = delta {
            self.stage = Some(*stage);
            return;
        }
        self.is_anything = true;
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(_) | Delta::Request(_) => {}
            Delta::Used { usage, is_all } => {
                self.used = Some((*usage, *is_all));
                return;
            }
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
        let counted = self.used.map_or(0, |(usage, _)| usage.output);
        counted.max(self.bytes / BYTES_PER_TOKEN_MAX)
    }

    /// What is left of the attempt, if it may have cost something. A request is of
    /// `input_worst` tokens at most.
    ///
    /// A request that was accepted was read, and reading is paid for, whether or not a
    /// word came back. Of one that nobody answered at all, nothing is known: its cost is
    /// unknown, which is not the same as nothing.
    pub(super) fn broken(
        self,
        request: &Request,
        why: String,
        tier: ErrorTier,
        price: Option<Price>,
        input_worst: u64,
    ) -> Option<Broken> {
        let is_unknown = match (self.is_anything, self.stage) {
            (true, _) | (false, Some(Stage::Accepted)) => false,
            (false, Some(Stage::Sent)) => true,
            (false, None | Some(Stage::Refused)) => return None,
        };
        let is_counted = self.used.is_some_and(|(_, is_all)| is_all);
        let usage = match is_unknown {
            true => Usage::default(),
            false => self.likely(request),
        };
        let cost = price.filter(|_| !is_unknown);
        let cost = cost.map(|price| price.cost(&usage));
        let at_most = (!is_counted).then(|| Spend {
            unpriced: u64::from(cost.is_none()),
            ..self.at_most(request, usage, price, input_worst)
        });
        Some(Broken {
            model: request.model.clone(),
            text: Payload::new(self.text),
            why,
            tier,
            usage,
            cost,
            is_counted,
            at_most,
        })
    }

    /// What the provider has counted, and an estimate of what it has not.
    fn likely(&self, request: &Request) -> Usage {
        if let Some((usage, true)) = self.used {
            return usage;
        }
        let counted = self.used.map(|(usage, _)| usage).unwrap_or_default();
        let likely = self.bytes.div_ceil(BYTES_PER_TOKEN) + self.unshown;
        let may_be = u64::from(request.output_tokens_max);
        let input = match counted.input {
            0 => request.bytes().div_ceil(BYTES_PER_TOKEN),
            counted => counted,
        };
        Usage {
            input,
            output: likely.min(may_be).max(self.tokens_min()),
            ..counted
        }
    }

    /// The most it can have used: a model may have thought without being heard.
    fn at_most(
        &self,
        request: &Request,
        usage: Usage,
        price: Option<Price>,
        input_worst: u64,
    ) -> Spend {
        let output = u64::from(request.output_tokens_max).max(usage.output);
        let is_input_counted = self.used.is_some_and(|(usage, _)| usage.input > 0);
        let (input, cost) = match is_input_counted {
            true => {
                let cost = price.map(|price| price.cost(&Usage { output, ..usage }));
                (usage.input, cost)
            }
            false => {
                let input = input_worst.max(usage.input);
                (input, price.map(|price| price.worst(input, output)))
            }
        };
        Spend {
            calls: 0,
            ..Spend::one(input.saturating_add(output), cost)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::money::Usd;
    use crate::types::Message;

    fn request() -> Request {
        Request {
            model: "here/one".into(),
            agent: "engineer".into(),
            turn: 0,
            system: Arc::from("s".repeat(400)),
            messages: vec![Arc::new(Message::user("hello"))].into(),
            tools: Arc::from([]),
            output_schema: None,
            output_tokens_max: 1000,
            temperature: None,
            effort: None,
        }
    }

    fn price() -> Option<Price> {
        Some(Price {
            input: Usd::from_dollars(1.0)?,
            cached: Usd::from_dollars(0.1),
            cache_written: None,
            output: Usd::from_dollars(10.0)?,
            long: None,
        })
    }

    fn broken(deltas: &[Delta]) -> Option<Broken> {
        let mut heard = Heard::default();
        deltas.iter().for_each(|delta| heard.note(delta, || 1));
        let why = "the line is dead".to_owned();
        heard.broken(&request(), why, ErrorTier::Transient, price(), 700)
    }

    fn used(input: u64, cached: u64, output: u64, is_all: bool) -> Delta {
        let usage = Usage {
            input,
            cached,
            output,
            ..Usage::default()
        };
        Delta::Used { usage, is_all }
    }

    #[test]
    fn an_attempt_that_never_began_has_nothing_to_keep() {
        assert_eq!(broken(&[]), None);
    }

    #[test]
    fn a_request_that_was_accepted_costs_its_reading_if_no_word_comes_back() {
        let at = |stage| Delta::Request(stage);
        let accepted = broken(&[at(Stage::Sent), at(Stage::Accepted)]).unwrap();
        assert_eq!((accepted.usage.input, accepted.usage.output), (102, 0));
        assert_eq!(accepted.cost, Usd::from_dollars(0.000_102));
        assert_eq!((accepted.spend().tokens, accepted.spend().calls), (1700, 0));
        // What was refused, or never arrived, costs nothing.
        assert_eq!(broken(&[at(Stage::Sent), at(Stage::Refused)]), None);
        let taken_back = [at(Stage::Sent), at(Stage::Accepted), at(Stage::Refused)];
        assert_eq!(broken(&taken_back), None);
    }

    #[test]
    fn what_a_request_cost_that_nobody_answered_is_unknown_and_not_nothing() {
        let lost = broken(&[Delta::Request(Stage::Sent)]).unwrap();
        assert_eq!((lost.usage, lost.cost), (Usage::default(), None));
        assert_eq!(lost.likely().unpriced, 1);
        // A budget counts the most that it can be.
        let at_most = lost.spend();
        assert_eq!((at_most.tokens, at_most.unpriced), (1700, 1));
        assert_eq!(at_most.usd, Usd::from_dollars(0.0107).unwrap());
    }

    #[test]
    fn what_nobody_counted_is_estimated_and_bounded_by_the_worst_case() {
        let broken = broken(&[Delta::Text("word ".repeat(8))]).unwrap();
        assert!(!broken.is_counted);
        assert_eq!((broken.usage.input, broken.usage.output), (102, 10));
        assert_eq!(broken.cost, Usd::from_dollars(0.000_202));
        let at_most = broken.spend();
        assert_eq!((at_most.tokens, at_most.calls), (1700, 0));
        assert_eq!(at_most.usd, Usd::from_dollars(0.0107).unwrap());
    }

    #[test]
    fn what_was_counted_before_the_break_is_taken_as_it_is() {
        let opening = used(500, 400, 1, false);
        let words = Delta::Text("word ".repeat(8));
        let broken_off = broken(&[opening.clone(), words.clone()]).unwrap();
        assert!(!broken_off.is_counted, "the answer was still growing");
        assert_eq!(
            (broken_off.usage.input, broken_off.usage.cached),
            (500, 400)
        );
        assert_eq!(broken_off.usage.output, 10);
        // The request is known, so only the answer is uncertain.
        assert_eq!(broken_off.spend().tokens, 1500);
        assert_eq!(broken_off.spend().usd, Usd::from_dollars(0.010_14).unwrap());
        let whole = broken(&[opening, words, used(500, 400, 37, true)]).unwrap();
        assert!(whole.is_counted);
        assert_eq!((whole.usage.output, whole.spend().tokens), (37, 537));
        assert_eq!(Some(whole.spend().usd), whole.cost);
    }
}
