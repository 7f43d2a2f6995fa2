//! From the pieces of a stream to an answer that is complete, or to the reason it is not.

use std::borrow::Cow;
use std::collections::BTreeSet;

use selvedge_ledger::Payload;

use crate::types::{Image, Message, Part, Request, Response, Role, Stop, ToolResult, Usage};

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
        let calls = self.check_calls()?;
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

    /// Whether there are calls; an error if they cannot be told apart.
    fn check_calls(&self) -> Result<bool, String> {
        let mut ids = BTreeSet::new();
        for part in &self.parts {
            let Part::ToolCall(call) = part else { continue };
            if call.name.is_empty() || call.id.is_empty() {
                return Err("a tool call was left unfinished".to_owned());
            }
            if !ids.insert(&call.id) || holds_two_values(text_of(&call.arguments)) {
                return Err("a tool call came twice".to_owned());
            }
        }
        Ok(!ids.is_empty())
    }
}

/// Whether arguments are two sets of them, one after the other.
fn holds_two_values(arguments: &str) -> bool {
    let values = serde_json::Deserializer::from_str(arguments);
    let mut values = values.into_iter::<serde::de::IgnoredAny>();
    let mut next = || matches!(values.next(), Some(Ok(_)));
    next() && next()
}

/// The id of a call whose provider gave it none: one that no other turn has.
pub(super) fn made_id(request: &Request, nth: usize) -> String {
    format!("call_{}_{nth}", request.turn)
}

/// Keeps the first name that a stream gives itself; another one later means
/// that the answers of two models are mixed.
pub(super) fn note_model(known: &mut Option<String>, named: Option<String>) -> Result<(), String> {
    let Some(named) = named.filter(|named| !named.is_empty()) else {
        return Ok(());
    };
    match known {
        Some(known) if *known != named => Err(format!(
            "the answer of `{known}` went on as one of `{named}`"
        )),
        _ => {
            *known = Some(named);
            Ok(())
        }
    }
}

/// The text of a result, for a protocol that has no other place for a failure.
pub(super) fn result_text(result: &ToolResult) -> Cow<'_, str> {
    let text = text_of(&result.content);
    let unsaid = result.is_error && !text.to_ascii_lowercase().starts_with("error");
    match unsaid {
        true => format!("error: {text}").into(),
        false => text.into(),
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

/// An image as an address that holds it.
pub(super) fn data_url(image: &Image) -> String {
    let (media_type, data) = (&image.media_type, text_of(&image.data));
    format!("data:{media_type};base64,{data}")
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
        is_estimated: true,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_the_name_it_began_with() {
        let mut known = None;
        for said in [None, Some("one"), None, Some(""), Some("one")] {
            note_model(&mut known, said.map(str::to_owned)).unwrap();
        }
        let why = note_model(&mut known, Some("two".to_owned())).unwrap_err();
        assert_eq!(why, "the answer of `one` went on as one of `two`");
    }

    #[test]
    fn arguments_that_came_twice_are_noticed() {
        assert!(holds_two_values(r#"{"a":1}{"a":1}"#) && holds_two_values("{} []"));
        assert!(!holds_two_values(r#"{"a":{"b":{}}}"#) && !holds_two_values(r#"{"a":"#));
        assert!(!holds_two_values("") && !holds_two_values("{} what"));
    }

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
