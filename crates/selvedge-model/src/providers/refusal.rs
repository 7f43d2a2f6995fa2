//! What a provider's refusal means for the caller.
//!
//! Statuses are used loosely in the wild: an empty account may be a 400 or a
//! 429, overload a 529, an error a 200. The body's own words settle what the
//! status leaves open. The tiers, by what is to be done:
//!
//! - `Permanent` (400 and the like): the request is wrong; asking again is no use.
//! - `UserFixable` (401, 403, 404, a redirect, an empty account): only a person
//!   can help; asking again is no use until they have.
//! - `RateLimited` (429, or overload with a `Retry-After`): wait as asked.
//! - `Degraded` (503, 529, anything that says it is overloaded, nobody at the
//!   address): the provider is in trouble for everybody. Another attempt may
//!   still help, another provider helps more.
//! - `Transient` (408, 409, 425, 500, 502, 504, and every stream that breaks):
//!   this one call had an accident, which says little about the next.
//!
//! An error within a stream is read the same way: its words stand for a status.

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
        let account = || {
            format!(
                "check the balance and limits of the `{}` account",
                self.provider
            )
        };
        if self.is_about_money(&explanation) {
            return fixable(account());
        }
        let status = match self.status {
            400 if is_about_the_key(self.body) => 401,
            500.. if is_overloaded(self.body) => 529,
            other => other,
        };
        match status {
            401 | 403 => fixable(match self.key_variable {
                Some(variable) => {
                    format!("check `{variable}`: the key is missing, wrong or not allowed this")
                }
                None => "check the server's access rules".to_owned(),
            }),
            402 => fixable(account()),
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
            503 | 529 => ModelError::Degraded { provider, what },
            408 | 409 | 425 | 500.. => ModelError::Transient { provider, what },
            _ => ModelError::Permanent { provider, what },
        }
    }

    fn is_about_money(&self, explanation: &str) -> bool {
        let text = explanation.to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
        // A quota that is back in a minute is a rate by another name.
        says(&["credit balance", "insufficient credits"])
            || self.body.contains("insufficient_quota")
            || says(&["exceeded your current quota"]) && self.retry_after.is_none()
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

/// How long a body asks to wait; only Google's say it there.
pub(super) fn retry_after_within(body: &Value) -> Option<Duration> {
    let details = error_of(body)?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds: f64 = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The status that an error body of a 200, or an error within a stream, stands for.
pub(super) fn status_within(body: &Value) -> Option<u16> {
    let error = error_of(body)?;
    let fields = ["code", "type", "status"].map(|name| error.get(name));
    let number = |value: &Value| u16::try_from(value.as_u64()?).ok();
    let word = |value: &Value| status_named(value.as_str()?);
    let by_number = fields.iter().flatten().find_map(|value| number(value));
    let by_word = || fields.iter().flatten().find_map(|value| word(value));
    let known = by_number.filter(|code| *code >= 300).or_else(by_word);
    Some(known.unwrap_or(500))
}

/// The status that goes with a provider's word for an error.
fn status_named(word: &str) -> Option<u16> {
    Some(match word {
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "billing_error" | "insufficient_quota" => 402,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "overloaded_error" | "server_is_overloaded" | "UNAVAILABLE" => 529,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        "api_error" | "server_error" | "INTERNAL" => 500,
        "invalid_request_error"
        | "invalid_prompt"
        | "context_length_exceeded"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION" => 400,
        _ => return None,
    })
}

/// The readable part of an error body, cut to a length.
pub(super) fn explanation(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    let error = value.as_ref().map(|value| error_of(value).unwrap_or(value));
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

/// The error in a body; Google wraps that of a stream in a list.
fn error_of(body: &Value) -> Option<&Value> {
    body.get(0).unwrap_or(body).get("error")
}

fn is_about_the_key(body: &str) -> bool {
    body.contains("API_KEY_INVALID") || body.contains("API key not valid")
}

fn is_overloaded(body: &str) -> bool {
    body.to_lowercase().contains("overloaded")
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
            (502, ErrorTier::Transient),
            (503, ErrorTier::Degraded),
            (504, ErrorTier::Transient),
            (529, ErrorTier::Degraded),
        ];
        for (status, tier) in tiers {
            assert_eq!(refusal(status, "{}").tier(), tier, "{status}");
        }
    }

    #[test]
    fn the_words_of_a_body_stand_for_a_status() {
        let statuses = [
            (r#"{"error":{"code":429}}"#, Some(429)),
            (r#"{"error":{"code":404,"status":"NOT_FOUND"}}"#, Some(404)),
            (r#"[{"error":{"status":"UNAVAILABLE"}}]"#, Some(529)),
            (r#"{"error":{"type":"overloaded_error"}}"#, Some(529)),
            (
                r#"{"error":{"type":"requests","code":"rate_limit_exceeded"}}"#,
                Some(429),
            ),
            (
                r#"{"error":{"type":"invalid_request_error","code":"model_not_found"}}"#,
                Some(404),
            ),
            (r#"{"error":{"code":7,"message":"?"}}"#, Some(500)),
            (r#"{"error":"plain"}"#, Some(500)),
            (r#"{"fine":true}"#, None),
        ];
        for (body, status) in statuses {
            let value = serde_json::from_str(body).unwrap();
            assert_eq!(status_within(&value), status, "{body}");
        }
    }

    #[test]
    fn an_overloaded_provider_is_degraded_whatever_its_status() {
        let body = r#"{"error":{"message":"The engine is currently overloaded"}}"#;
        assert_eq!(refusal(500, body).tier(), ErrorTier::Degraded);
        assert_eq!(refusal(400, body).tier(), ErrorTier::Permanent);
    }

    #[test]
    fn google_says_in_the_body_what_others_say_in_headers() {
        let wrong_key = r#"{"error":{"code":400,"message":"API key not valid."}}"#;
        assert_eq!(refusal(400, wrong_key).tier(), ErrorTier::UserFixable);
        let quota = r#"{"error":{"code":429,"message":"You exceeded your current quota",
            "details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}"#;
        let wait = retry_after_within(&serde_json::from_str(quota).unwrap());
        assert_eq!(wait, Some(Duration::from_millis(34_500)));
        assert_eq!(refusal(429, quota).tier(), ErrorTier::UserFixable);
        let patient = Refusal {
            provider: "p",
            model: "m",
            key_variable: None,
            status: 429,
            retry_after: wait,
            body: quota,
        };
        assert_eq!(patient.into_error().tier(), ErrorTier::RateLimited);
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
