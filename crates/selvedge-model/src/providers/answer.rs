//! From the pieces of a stream to an answer that is complete, or to the reason it is not.

use selvedge_ledger::Payload;

use crate::types::{Message, Part, Request, Response, Role, Stop, Usage};

/// What a stream has said when it is over.
#[derive(Default)]
pub(super) struct Answer {
    /// The pieces in order.
    pub(super) parts: Vec<Part>,
    /// Why the model stopped, if it said so.
    pub(super) stop: Option<Stop>,
    /// What it used, if it said so.
    pub(super) usage: Option<Usage>,
    /// The model's own name for itself.
    pub(super) model: Option<String>,
}

impl Answer {
    /// The complete answer, or what is missing.
    pub(super) fn complete(self, provider: &str, request: &Request) -> Result<Response, String> {
        let stop = self.stop.ok_or("the stream ended without saying why")?;
        let calls = self
            .parts
            .iter()
            .any(|part| matches!(part, Part::ToolCall(_)));
        let words = self
            .parts
            .iter()
            .any(|part| matches!(part, Part::Text { text } if !text.is_empty()));
        let stop = match stop {
            // Some servers say `stop` beside calls, some say `tool_calls` without any.
            Stop::End | Stop::Tools if calls => Stop::Tools,
            Stop::End | Stop::Tools if words => Stop::End,
            Stop::End | Stop::Tools => return Err("empty reply".to_owned()),
            // These two explain an emptiness; asking again would not fill it.
            Stop::Length | Stop::Filtered => stop,
        };
        let usage = self
            .usage
            .unwrap_or_else(|| usage_estimate(request, &self.parts));
        let model = self
            .model
            .unwrap_or_else(|| request.model_name().to_owned());
        Ok(Response {
            message: Message {
                role: Role::Assistant,
                parts: self.parts,
            },
            stop,
            usage,
            model: format!("{provider}/{model}"),
        })
    }
}

/// The arguments of a call as a JSON object that a provider will take back.
///
/// What the model wrote goes back byte for byte if it is an object, so that the
/// provider's cache still knows it; anything else is wrapped, and the model can
/// see what it wrote.
pub(super) fn arguments_object(arguments: &Payload) -> String {
    let text = text_of(arguments);
    let is_object = text.trim_start().starts_with('{')
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    if is_object {
        text.to_owned()
    } else if text.trim().is_empty() {
        "{}".to_owned()
    } else {
        serde_json::json!({ "not_a_json_object": text }).to_string()
    }
}

/// The text of a payload in a request.
pub(super) fn text_of(payload: &Payload) -> &str {
    payload
        .text()
        .expect("payloads of a request have their text at hand")
}

/// A server that does not count is assumed to use a token for four bytes.
fn usage_estimate(request: &Request, parts: &[Part]) -> Usage {
    let output: u64 = parts.iter().map(Part::bytes).sum();
    Usage {
        input: request.bytes().div_ceil(4),
        output: output.div_ceil(4),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_back_as_they_were_written_or_wrapped() {
        let back = |text: &str| arguments_object(&Payload::new(text));
        assert_eq!(back(r#"{ "b":1,  "a":2 }"#), r#"{ "b":1,  "a":2 }"#);
        assert_eq!(back(""), "{}");
        assert_eq!(
            back(r#"{"path": "#),
            r#"{"not_a_json_object":"{\"path\": "}"#
        );
        assert_eq!(back("[1]"), r#"{"not_a_json_object":"[1]"}"#);
    }
}
