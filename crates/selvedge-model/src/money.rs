//! Money: dollars counted in whole billionths, and what a token costs.
//!
//! A token costs a few millionths of a dollar and a cached one a tenth of
//! that, so cents are too coarse and floating point would drift over a long
//! session. Rounding is always up: a budget may stop a little early, never late.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::types::Usage;

const NANOS_PER_USD: u64 = 1_000_000_000;
const TOKENS_PER_PRICE: u128 = 1_000_000;

/// An amount of US dollars, exact to a billionth.
///
/// In JSON and TOML it is a number of dollars: `0.0123`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u64);

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The amount in billionths of a dollar.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The nearest amount to a number of dollars; `None` if it is negative, not
    /// a number, or more than there is money.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let nanos = (dollars * NANOS_PER_USD as f64).round();
        (nanos >= 0.0 && nanos < u64::MAX as f64).then_some(Self(nanos as u64))
    }

    /// The amount as a number of dollars, for display and for JSON.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / NANOS_PER_USD as f64
    }

    /// How many decimals it takes to write the amount down exactly.
    pub fn decimals(self) -> u32 {
        let zeros = (0..9).take_while(|n| self.0.is_multiple_of(10_u64.pow(n + 1)));
        9 - zeros.count() as u32
    }

    /// The amount with so many decimals, at most nine. Amounts in one column have the same
    /// number of them.
    pub fn with_decimals(self, decimals: u32) -> String {
        let decimals = decimals.min(9);
        let unit = 10_u64.pow(9 - decimals);
        // Division first, so that the largest amount does not overflow.
        let rounded = self.0 / unit + u64::from(self.0 % unit * 2 >= unit && unit > 1);
        let scale = 10_u64.pow(decimals);
        let (whole, rest) = (rounded / scale, rounded % scale);
        match decimals {
            0 => format!("${whole}"),
            _ => format!("${whole}.{rest:0width$}", width = decimals as usize),
        }
    }

    /// The sum, or the largest amount.
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl fmt::Display for Usd {
    /// Four decimals, fewer when they are zeros, more when the amount is smaller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0 {
            0 => 2,
            1..1_000 => 9,
            1_000..100_000 => 6,
            _ => 4,
        };
        let text = self.with_decimals(decimals);
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let kept = fraction.trim_end_matches('0').len().max(2);
        write!(f, "{whole}.{}", &fraction[..kept])
    }
}

/// A text that is no amount of dollars.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of dollars, such as `0.50`")]
pub struct NotUsd(String);

impl FromStr for Usd {
    type Err = NotUsd;

    fn from_str(text: &str) -> Result<Self, NotUsd> {
        let number = text.trim().trim_start_matches('$');
        number
            .parse()
            .ok()
            .and_then(Self::from_dollars)
            .ok_or_else(|| NotUsd(text.to_owned()))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars).ok_or_else(|| {
            serde::de::Error::custom(format!("`{dollars}` is not an amount of dollars"))
        })
    }
}

/// What a model costs, per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of the request.
    pub input: Usd,
    /// Those read from the provider's cache; like `input` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Usd>,
    /// Those written to the provider's cache; like `input` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Usd>,
    /// Tokens of the answer.
    pub output: Usd,
    /// What applies instead when the request is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// The price of a whole call whose request is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// Requests of more tokens than this are long.
    pub above: u64,
    /// See `Price::input`.
    pub input: Usd,
    /// See `Price::cached`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Usd>,
    /// See `Price::cache_written`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Usd>,
    /// See `Price::output`.
    pub output: Usd,
}

impl Price {
    /// What a call cost.
    pub fn cost(&self, usage: &Usage) -> Usd {
        let price = self.for_input(usage.input);
        let plain = usage
            .input
            .saturating_sub(usage.cached)
            .saturating_sub(usage.cache_written);
        price.input.times(plain)
            + price.cached.unwrap_or(price.input).times(usage.cached)
            + price
                .cache_written
                .unwrap_or(price.input)
                .times(usage.cache_written)
            + price.output.times(usage.output)
    }

    /// The most that a call of this size can cost, however the provider caches.
    pub fn worst(&self, input_tokens: u64, output_tokens: u64) -> Usd {
        let price = self.for_input(input_tokens);
        let dearest = [price.cached, price.cache_written]
            .into_iter()
            .flatten()
            .fold(price.input, Usd::max);
        dearest.times(input_tokens) + price.output.times(output_tokens)
    }

    fn for_input(&self, tokens: u64) -> Self {
        match self.long {
            Some(LongPrice {
                above,
                input,
                cached,
                cache_written,
                output,
            }) if tokens > above => Self {
                input,
                cached,
                cache_written,
                output,
                long: None,
            },
            _ => *self,
        }
    }
}

impl Usd {
    /// The cost of so many tokens at this price per million, rounded up.
    fn times(self, tokens: u64) -> Self {
        let nanos = (u128::from(self.0) * u128::from(tokens)).div_ceil(TOKENS_PER_PRICE);
        Self(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars).unwrap()
    }

    #[test]
    fn an_amount_shows_as_many_decimals_as_it_needs() {
        let shown = |dollars| usd(dollars).to_string();
        assert_eq!(shown(0.0), "$0.00");
        assert_eq!(shown(5.0), "$5.00");
        assert_eq!(shown(0.0123), "$0.0123");
        assert_eq!(shown(12.34567), "$12.3457");
        assert_eq!(shown(0.000045), "$0.000045");
        assert_eq!(shown(0.000000007), "$0.000000007");
        assert!(
            Usd::from_nanos(u64::MAX)
                .to_string()
                .starts_with("$18446744073.7")
        );
    }

    #[test]
    fn amounts_of_a_column_have_the_same_number_of_decimals() {
        let shown = |nanos, decimals| Usd::from_nanos(nanos).with_decimals(decimals);
        assert_eq!(shown(0, 2), "$0.00");
        assert_eq!(shown(3_028_000, 6), "$0.003028");
        assert_eq!(shown(6_000_000, 6), "$0.006000");
        assert_eq!(shown(12_999_999_999, 2), "$13.00");
        assert_eq!(shown(u64::MAX, 9), "$18446744073.709551615");
        assert_eq!(shown(u64::MAX, 0), "$18446744074");
        let needed = [0, 1, 3_028_000, 5_000_000_000, 10].map(|n| Usd::from_nanos(n).decimals());
        assert_eq!(needed, [0, 9, 6, 0, 8]);
    }

    #[test]
    fn an_amount_survives_json_exactly() {
        for nanos in [0, 1, 7, 12_300_000, 999_999_999, 1_234_567_890_123] {
            let text = serde_json::to_string(&Usd::from_nanos(nanos)).unwrap();
            assert_eq!(
                serde_json::from_str::<Usd>(&text).unwrap(),
                Usd::from_nanos(nanos),
                "{text}"
            );
        }
        assert_eq!(serde_json::to_string(&usd(0.0123)).unwrap(), "0.0123");
        assert_eq!(serde_json::from_str::<Usd>("3").unwrap(), usd(3.0));
        assert!(serde_json::from_str::<Usd>("-1").is_err());
    }

    #[test]
    fn an_amount_is_read_with_and_without_the_dollar_sign() {
        assert_eq!("$0.50".parse(), Ok(usd(0.5)));
        assert_eq!("2".parse(), Ok(usd(2.0)));
        assert!("-2".parse::<Usd>().is_err());
        assert!("two".parse::<Usd>().is_err());
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price {
            input: usd(3.0),
            cached: Some(usd(0.3)),
            cache_written: Some(usd(3.75)),
            output: usd(15.0),
            long: None,
        };
        let usage = Usage {
            input: 1_000_000,
            cached: 500_000,
            cache_written: 100_000,
            output: 10_000,
            reasoning: 0,
            is_estimated: false,
        };
        assert_eq!(price.cost(&usage), usd(1.2 + 0.15 + 0.375 + 0.15));
        assert_eq!(price.worst(1_000_000, 10_000), usd(3.75 + 0.15));
    }

    #[test]
    fn a_long_request_is_charged_as_one_throughout() {
        let long = LongPrice {
            above: 100,
            input: usd(2.0),
            cached: None,
            cache_written: None,
            output: usd(4.0),
        };
        let price = Price {
            input: usd(1.0),
            cached: None,
            cache_written: None,
            output: usd(1.0),
            long: Some(long),
        };
        let cost = |input| {
            price.cost(&Usage {
                input,
                output: 10,
                ..Usage::default()
            })
        };
        assert_eq!(cost(100), Usd::from_nanos(110_000));
        assert_eq!(cost(101), Usd::from_nanos(242_000));
    }
}
