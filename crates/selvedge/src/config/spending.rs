//! What may be spent by all sessions together, as it is configured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use selvedge_model::{Allowance, Period, Rule, Strength, Usd};
use serde::Deserialize;

/// What all sessions of this machine may spend together. No call begins that may
/// exceed it. A limit that is absent, 0 or -1 is none.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// US dollars from midnight to midnight.
    pub usd_per_day: Option<f64>,
    /// US dollars from Monday to Monday.
    pub usd_per_week: Option<f64>,
    /// US dollars in a calendar month.
    pub usd_per_month: Option<f64>,
    /// Tokens a day.
    pub tokens_per_day: Option<i64>,
    /// Tokens a week.
    pub tokens_per_week: Option<i64>,
    /// Tokens a month.
    pub tokens_per_month: Option<i64>,
    /// Requests a day.
    pub requests_per_day: Option<i64>,
    /// Requests a week.
    pub requests_per_week: Option<i64>,
    /// Requests a month.
    pub requests_per_month: Option<i64>,
    /// The same for one provider, by its name.
    #[serde(default)]
    pub providers: BTreeMap<String, Budget>,
}

/// When to say that much was spent at a provider; calls go through all the same.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoftLimit {
    /// From when on it is counted: `day`, `week` or `month`.
    pub period: Every,
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens of requests and answers together.
    pub tokens: Option<i64>,
    /// Requests.
    pub requests: Option<i64>,
    /// The part of it at which to warn. Default: 0.8.
    #[serde(default = "most")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub warn_at: f64,
}

fn most() -> f64 {
    0.8
}

/// How long a limit lasts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// A calendar month.
    Month,
}

impl Budget {
    /// The limits as rules.
    pub fn rules(&self) -> Vec<Rule> {
        let own = self.rules_of(None);
        let providers = self.providers.iter();
        let theirs = providers.flat_map(|(name, budget)| budget.rules_of(Some(name)));
        own.into_iter().chain(theirs).collect()
    }

    fn rules_of(&self, provider: Option<&String>) -> [Rule; 3] {
        let rule = |period, usd, tokens, requests| Rule {
            provider: provider.cloned(),
            period,
            allowance: allowance(usd, tokens, requests),
            strength: Strength::Hard,
        };
        [
            rule(
                Period::Day,
                self.usd_per_day,
                self.tokens_per_day,
                self.requests_per_day,
            ),
            rule(
                Period::Week,
                self.usd_per_week,
                self.tokens_per_week,
                self.requests_per_week,
            ),
            rule(
                Period::Month,
                self.usd_per_month,
                self.tokens_per_month,
                self.requests_per_month,
            ),
        ]
    }
}

impl SoftLimit {
    /// The limit as a rule.
    pub fn rule(&self, provider: &str) -> Rule {
        Rule {
            provider: Some(provider.to_owned()),
            period: match self.period {
                Every::Day => Period::Day,
                Every::Week => Period::Week,
                Every::Month => Period::Month,
            },
            allowance: allowance(self.usd, self.tokens, self.requests),
            strength: Strength::Soft {
                warn_at: self.warn_at,
            },
        }
    }
}

/// What is absent, zero or less is not limited.
fn allowance(usd: Option<f64>, tokens: Option<i64>, requests: Option<i64>) -> Allowance {
    let whole = |limit: Option<i64>| limit.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    Allowance {
        usd: usd
            .and_then(Usd::from_dollars)
            .filter(|usd| *usd > Usd::ZERO),
        tokens: whole(tokens),
        requests: whole(requests),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_zero_and_minus_one_are_no_limits() {
        let text = "usd_per_day = 20\ntokens_per_day = 0\nrequests_per_day = -1\n\
                    [providers.openai]\nusd_per_month = -1";
        let budget: Budget = toml::from_str(text).unwrap();
        let rules = budget.rules();
        assert_eq!(
            rules[0].allowance,
            Allowance {
                usd: Usd::from_dollars(20.0),
                ..Allowance::default()
            }
        );
        let others = rules[1..].iter().map(|rule| rule.allowance);
        assert!(others.into_iter().all(|a| a == Allowance::default()));
        assert_eq!(rules[5].provider.as_deref(), Some("openai"));
    }

    #[test]
    fn a_soft_limit_warns_at_four_fifths_unless_told_otherwise() {
        let limit: SoftLimit = toml::from_str("period = 'week'\ntokens = 1000").unwrap();
        let rule = limit.rule("anthropic");
        assert_eq!(rule.strength, Strength::Soft { warn_at: 0.8 });
        assert_eq!(rule.allowance.tokens, Some(1000));
    }
}
