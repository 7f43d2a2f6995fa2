//! What a provider's refusal means for the caller.
//!
//! Statuses are used loosely in the wild: an empty account may be a 400 or a
//! 429, overload a 529, an error a 200. The body's own words settle what the
//! status leaves open.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::error::ModelError;

/// So much of a provider's explanation is shown.
const EXPLANATION_CHARS_MAX: usize = 500;

/// What is needed to speak of a refusal.
pub(super) struct Refusal<'a> {
    /// Whose.
    pub(super) provider: &'a str,
    /// The model that was asked.
    pub(super) model: &'a str,
    /// The variable that holds the key.
    pub(super) key_variable: Option<&'a str>,
    /// The status, or what the body says it should have been.
    pub(super) status: u16,
    /// How long to wait, if it says.
    pub(super) retry_after: Option<Duration>,
    /// The body, keys removed.
    pub(super) body: &'a str,
}

impl Refusal<'_> {
    /// The error that says what to do.
    pub(super) fn into_error(self) -> ModelError {
        let provider = self.provider.to_owned();
        let explanation = explanation(self.body);
        let what = format!("status {}: {explanation}", self.status);
        let fixable = |hint: String| ModelError::UserFixable {
            provider: provider.clone(),
            what: what.clone(),
            hint,
        };
        if is_about_money(&explanation) {
            return fixable(format!(
                "check the balance and limits of the `{}` account",
                self.provider
            ));
        }
        match self.status {
            401 | 403 => fixable(match self.key_variable {
                Some(variable) => {
                    format!("check `{variable}`: the key is missing, wrong or not allowed this")
                }
                None => "check the server's access rules".to_owned(),
            }),
            402 => fixable(format!(
                "check the balance and limits of the `{}` account",
                self.provider
            )),
            404 => fixable(format!(
                "check the model's name, `{}`, and the base URL",
                self.model
            )),
            300..=399 => {
                fixable("the base URL leads elsewhere: set it to where it leads".to_owned())
            }
            429 => ModelError::RateLimited {
                provider,
                what,
                retry_after: self.retry_after,
            },
            503 | 529 if self.retry_after.is_some() => ModelError::RateLimited {
                provider,
                what,
                retry_after: self.retry_after,
            },
            408 | 409 | 425 | 500.. => ModelError::Transient { provider, what },
            _ => ModelError::Permanent { provider, what },
        }
    }
}

/// How long the headers ask to wait.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.trim().parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    // The server's own clock, if it tells it: ours may be wrong.
    let now = text(DATE.as_str())
        .and_then(http_date)
        .unwrap_or_else(Timestamp::now);
    patience(text(RETRY_AFTER.as_str())?, now)
}

/// The status that an error body of a 200 stands for.
pub(super) fn status_within(body: &Value) -> Option<u16> {
    let error = body.get("error")?;
    let code = error
        .get("code")
        .and_then(Value::as_u64)
        .or_else(|| error.get("status")?.as_u64());
    if let Some(code) = code
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 300)
    {
        return Some(code);
    }
    Some(
        match error
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "authentication_error" => 401,
            "permission_error" => 403,
            "not_found_error" => 404,
            "invalid_request_error" => 400,
            "rate_limit_error" => 429,
            _ => 500,
        },
    )
}

/// The readable part of an error body, cut to a length.
pub(super) fn explanation(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    let error = value
        .as_ref()
        .map(|value| value.get("error").unwrap_or(value));
    let message = error.and_then(|error| error.get("message").or(Some(error))?.as_str());
    let text = message.unwrap_or(body);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return "no explanation".to_owned();
    }
    match words.char_indices().nth(EXPLANATION_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &words[..cut]),
        None => words,
    }
}

/// A `Retry-After`: a number of seconds, or a date.
fn patience(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // A moment that has passed asks for no wait.
    Some(Duration::try_from(http_date(text)? - now).unwrap_or(Duration::ZERO))
}

fn http_date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new()
        .parse_timestamp(text.trim())
        .ok()
}

fn is_about_money(explanation: &str) -> bool {
    let text = explanation.to_lowercase();
    [
        "credit balance",
        "insufficient_quota",
        "exceeded your current quota",
        "insufficient credits",
    ]
    .iter()
    .any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorTier;

    fn refusal(status: u16, body: &str) -> ModelError {
        let key_variable = Some("KEY");
        Refusal {
            provider: "p",
            model: "m",
            key_variable,
            status,
            retry_after: None,
            body,
        }
        .into_error()
    }

    #[test]
    fn each_status_says_what_to_do() {
        let tiers = [
            (400, ErrorTier::Permanent),
            (401, ErrorTier::UserFixable),
            (403, ErrorTier::UserFixable),
            (404, ErrorTier::UserFixable),
            (413, ErrorTier::Permanent),
            (429, ErrorTier::RateLimited),
            (500, ErrorTier::Transient),
            (503, ErrorTier::Transient),
            (529, ErrorTier::Transient),
        ];
        for (status, tier) in tiers {
            assert_eq!(refusal(status, "{}").tier(), tier, "{status}");
        }
    }

    #[test]
    fn an_empty_account_is_a_persons_to_fix_whatever_the_status() {
        let body = r#"{"error":{"message":"Your credit balance is too low"}}"#;
        assert_eq!(refusal(400, body).tier(), ErrorTier::UserFixable);
        assert_eq!(refusal(429, body).tier(), ErrorTier::UserFixable);
    }

    #[test]
    fn patience_is_read_as_seconds_and_as_a_date() {
        let now = http_date("Wed, 18 Nov 2026 07:00:00 GMT").unwrap();
        let read = |text| patience(text, now).map(|wait| wait.as_millis());
        assert_eq!(read("7"), Some(7000));
        assert_eq!(read("0.5"), Some(500));
        assert_eq!(read("Wed, 18 Nov 2026 07:01:30 GMT"), Some(90_000));
        assert_eq!(read("Wed, 18 Nov 2026 06:00:00 GMT"), Some(0));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-3"), None);
    }

    #[test]
    fn an_explanation_is_the_message_and_not_long() {
        assert_eq!(
            explanation(r#"{"error":{"message":"no\n such model"}}"#),
            "no such model"
        );
        assert_eq!(explanation(r#"{"error":"plain"}"#), "plain");
        assert_eq!(explanation("<html>busy</html>"), "<html>busy</html>");
        assert_eq!(explanation("  "), "no explanation");
        assert_eq!(
            explanation(&"é".repeat(2000)).chars().count(),
            EXPLANATION_CHARS_MAX + 1
        );
    }
}
