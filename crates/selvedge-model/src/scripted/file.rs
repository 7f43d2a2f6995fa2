//! The YAML of a script.
//!
//! Its shape is shown at `ScriptedModel`. Nothing unknown is passed over: a
//! typo in a key would otherwise be a turn that silently does less.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::PROVIDER;
use super::turn::{Entry, Turn};
use crate::error::{ErrorTier, ModelError};
use crate::money::{Price, Usd};
use crate::nearest::{did_you_mean, nearest};
use crate::types::{Stop, Usage};

/// A script that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`{}: {what}", .line.map(|line| format!(" line {line}")).unwrap_or_default())]
pub struct ScriptError {
    /// Which file.
    pub file: String,
    /// Where in it, if that is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// A script, read and checked.
pub(super) struct ScriptFile {
    pub(super) model: Option<String>,
    pub(super) price: Option<Price>,
    pub(super) agents: BTreeMap<String, Vec<Entry>>,
}

/// Reads a script; `file` stands for it in messages.
pub(super) fn parse(file: &str, text: &str) -> Result<ScriptFile, ScriptError> {
    let written: Written = serde_saphyr::from_str(text).map_err(|error| explain(file, &error))?;
    let entry = |spanned: Spanned<WrittenEntry>| {
        let line = Some(spanned.referenced.line());
        let refuse = |what: &str| ScriptError {
            file: file.to_owned(),
            line,
            what: what.to_owned(),
        };
        spanned.value.check().map_err(refuse)
    };
    let mut agents = BTreeMap::new();
    for (agent, entries) in written.agents {
        let entries: Result<Vec<Entry>, ScriptError> = entries.into_iter().map(entry).collect();
        agents.insert(agent, entries?);
    }
    let price = written.price.map(|price| Price {
        input: price.input,
        cached: price.cached,
        cache_written: None,
        output: price.output,
        long: None,
    });
    Ok(ScriptFile {
        model: written.model,
        price,
        agents,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    model: Option<String>,
    price: Option<WrittenPrice>,
    agents: BTreeMap<String, Vec<Spanned<WrittenEntry>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPrice {
    input: Usd,
    cached: Option<Usd>,
    output: Usd,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    text: Option<String>,
    reasoning: Option<String>,
    #[serde(default)]
    calls: Vec<BTreeMap<String, Value>>,
    answer: Option<Value>,
    stop: Option<Stop>,
    usage: Option<WrittenUsage>,
    #[serde(default)]
    delay: Span,
    error: Option<WrittenError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUsage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    reasoning: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    kind: ErrorTier,
    what: Option<String>,
    retry_after: Option<Span>,
    hint: Option<String>,
    /// What is said before it.
    after: Option<String>,
}

impl WrittenEntry {
    fn check(self) -> Result<Entry, &'static str> {
        let says = self.text.is_some() || self.reasoning.is_some() || !self.calls.is_empty();
        match (self.error, self.answer) {
            (Some(_), Some(_)) => Err("an `error` stands alone, without an `answer`"),
            (Some(_), None) if says => {
                Err("an `error` stands alone: what follows it is the next entry")
            }
            (Some(mut error), None) => Ok(match error.after.take() {
                None => Entry::Error(error.into()),
                Some(said) => Entry::Cut(said, error.into()),
            }),
            (None, Some(_)) if says => Err("an `answer` stands alone, without `text` or `calls`"),
            (None, None) if !says => Err("a turn needs `text`, `calls`, an `answer` or an `error`"),
            (None, answer) => Ok(Entry::Reply(Turn {
                text: answer
                    .map(|answer| answer.to_string())
                    .or(self.text)
                    .unwrap_or_default(),
                reasoning: self.reasoning,
                calls: self.calls.into_iter().map(call).collect::<Result<_, _>>()?,
                stop: self.stop,
                usage: self.usage.map(Into::into),
                delay: self.delay.0,
            })),
        }
    }
}

fn call(written: BTreeMap<String, Value>) -> Result<(String, String), &'static str> {
    let mut calls = written.into_iter();
    let (Some((tool, arguments)), None) = (calls.next(), calls.next()) else {
        return Err("a call is one tool and its arguments, such as `- read_file: {path: a.txt}`");
    };
    let arguments = match arguments {
        Value::String(text) => text,
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    };
    Ok((tool, arguments))
}

impl From<WrittenUsage> for Usage {
    fn from(written: WrittenUsage) -> Self {
        let WrittenUsage {
            input,
            cached,
            output,
            reasoning,
        } = written;
        Self {
            input,
            cached,
            output,
            reasoning,
            ..Self::default()
        }
    }
}

impl From<WrittenError> for ModelError {
    fn from(written: WrittenError) -> Self {
        let provider = PROVIDER.to_owned();
        let what = written
            .what
            .unwrap_or_else(|| "the script says so".to_owned());
        match written.kind {
            ErrorTier::Transient => Self::Transient { provider, what },
            ErrorTier::RateLimited => Self::RateLimited {
                provider,
                what,
                retry_after: written.retry_after.map(|span| span.0),
            },
            ErrorTier::Permanent => Self::Permanent { provider, what },
            ErrorTier::UserFixable => {
                let hint = written
                    .hint
                    .unwrap_or_else(|| "change the script".to_owned());
                Self::UserFixable {
                    provider,
                    what,
                    hint,
                }
            }
            ErrorTier::Degraded => Self::Degraded { provider, what },
            ErrorTier::Overrun => Self::Overrun { provider, what },
            ErrorTier::Cancelled => Self::Cancelled,
        }
    }
}

/// A length of time as people write it: `300ms`, `1.5s`, `2m`.
#[derive(Default)]
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let unknown =
            || serde::de::Error::custom(format!("`{text}` is not a time such as `300ms` or `2s`"));
        let digits = text
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(unknown)?;
        let (number, unit) = text.split_at(digits);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            _ => return Err(unknown()),
        };
        let number: f64 = number.trim().parse().map_err(|_| unknown())?;
        Duration::try_from_secs_f64(number * seconds)
            .map(Self)
            .map_err(|_| unknown())
    }
}

/// The parser's complaint in our words: the key, and the key that was meant.
fn explain(file: &str, error: &serde_saphyr::Error) -> ScriptError {
    use serde_saphyr::Error;
    let error = error.without_snippet();
    let line = error
        .location()
        .map(|location| location.line())
        .filter(|line| *line > 0);
    let what = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown("key", field, expected),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("value", variant, expected),
        other => other
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    ScriptError {
        file: file.to_owned(),
        line,
        what,
    }
}

fn unknown(noun: &str, name: &str, expected: &[&'static str]) -> String {
    match nearest(name, expected.iter().copied()).first() {
        Some(near) => format!("unknown {noun} `{name}`{}", did_you_mean(&[near])),
        None => format!("unknown {noun} `{name}`; there is {}", expected.join(", ")),
    }
}
