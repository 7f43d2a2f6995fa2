//! An answer put together from the chunks of Chat Completions.

use serde::Deserialize;
use serde_json::Value;

use super::reasoning::{Reasoning, Thought};
use crate::provider::DeltaSink;
use crate::providers::answer::{Answer, made_id, note_model};
use crate::providers::exchange::{Fault, Listener, parse};
use crate::types::{Delta, Part, Request, Stop, ToolCall, Usage};

/// What has been said so far.
#[derive(Default)]
pub(super) struct Stream {
    text: String,
    reasoning: Reasoning,
    calls: Vec<Building>,
    stop: Option<Stop>,
    refused: bool,
    usage: Option<Usage>,
    model: Option<String>,
    over: bool,
}

/// A call on its way.
#[derive(Default)]
struct Building {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Listener for Stream {
    // Not every server says so at the end; then the stream's end must do.
    fn is_over(&self) -> bool {
        self.over
    }

    fn take(&mut self, event: &str, deltas: &mut dyn DeltaSink) -> Result<(), Fault> {
        if event == "[DONE]" {
            self.over = true;
            return Ok(());
        }
        let chunk: Chunk = parse(event)?;
        if chunk.error.is_some() {
            return Err(Fault::Refused(event.to_owned()));
        }
        note_model(&mut self.model, chunk.model)?;
        let mut choices = chunk.choices.unwrap_or_default();
        // Another choice is another answer; one was asked for.
        choices.retain(|choice| choice.index.unwrap_or(0) == 0);
        if let Some(usage) = chunk.usage.map(Usage::from) {
            // Said before the rest is judged, for it is paid whatever that is.
            let is_last = |choice: &Choice| choice.finish_reason.is_some();
            let is_all = self.stop.is_some() || choices.iter().any(is_last);
            deltas.take(Delta::Used { usage, is_all });
            self.usage = Some(usage);
        }
        for choice in choices {
            self.take_choice(choice, deltas)?;
        }
        Ok(())
    }

    fn into_answer(self, request: &Request) -> Result<Answer, String> {
        let mut parts = Vec::new();
        parts.extend(self.reasoning.into_part(&request.model));
        if !self.text.is_empty() {
            parts.push(Part::Text {
                text: self.text.into(),
            });
        }
        for (i, call) in self.calls.into_iter().enumerate() {
            let id = if call.id.is_empty() {
                made_id(request, i)
            } else {
                call.id
            };
            parts.push(Part::ToolCall(ToolCall {
                id,
                name: call.name,
                arguments: call.arguments.into(),
            }));
        }
        let stop = if self.refused {
            self.stop.map(|_| Stop::Filtered)
        } else {
            self.stop
        };
        Ok(Answer {
            parts,
            stop,
            usage: self.usage,
            model: self.model,
        })
    }
}

impl Stream {
    fn take_choice(&mut self, choice: Choice, deltas: &mut dyn DeltaSink) -> Result<(), String> {
        let mut said = choice.delta.unwrap_or_default();
        if let Some(text) = self.reasoning.take(&mut said.thought) {
            deltas.take(Delta::Reasoning(text));
        }
        self.refused |= said.refusal.as_ref().is_some_and(|text| !text.is_empty());
        for text in [said.content, said.refusal]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
        {
            self.text.push_str(&text);
            deltas.take(Delta::Text(text));
        }
        for piece in said.tool_calls.unwrap_or_default() {
            self.take_call(piece);
            deltas.take(Delta::Alive);
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some("error") => return Err("the model stopped with an error".to_owned()),
            Some(reason) => self.stop = Some(stop(reason)),
        }
        Ok(())
    }

    fn take_call(&mut self, piece: CallPiece) {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or_default();
        let call = self.building(piece.index, &id);
        let name = function.name.unwrap_or_default();
        // Some servers say whose piece it is with every piece.
        let repeated = !id.is_empty() && call.id == id && call.name == name;
        if call.id.is_empty() {
            call.id = id;
        }
        if !repeated {
            call.name.push_str(&name);
        }
        match function.arguments {
            Some(Value::String(text)) => call.arguments.push_str(&text),
            None | Some(Value::Null) => {}
            // Not the protocol, but unmistakable.
            Some(other) => call.arguments.push_str(&other.to_string()),
        }
    }

    /// The call a piece belongs to. Some servers number every call 0, or none:
    /// a new id then tells a new call.
    fn building(&mut self, index: Option<u64>, id: &str) -> &mut Building {
        let same = |call: &Building| {
            let numbered = index.is_none() || call.index == index;
            numbered && (id.is_empty() || call.id.is_empty() || call.id == id)
        };
        let at = self.calls.iter().rposition(same).unwrap_or_else(|| {
            self.calls.push(Building {
                index,
                ..Building::default()
            });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_calls" | "function_call" => Stop::Tools,
        "length" => Stop::Length,
        "content_filter" => Stop::Filtered,
        _ => Stop::End,
    }
}

#[derive(Deserialize)]
struct Chunk {
    error: Option<Value>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Said {
    content: Option<String>,
    refusal: Option<String>,
    #[serde(flatten)]
    thought: Thought,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        let prompt = counted.prompt_tokens_details.unwrap_or_default();
        let completion = counted.completion_tokens_details.unwrap_or_default();
        Self {
            input: counted.prompt_tokens,
            cached: prompt.cached_tokens.unwrap_or(0),
            cache_written: prompt.cache_write_tokens.unwrap_or(0),
            output: counted.completion_tokens,
            reasoning: completion.reasoning_tokens.unwrap_or(0),
            is_estimated: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and arguments of the calls that these pieces make.
    fn calls(pieces: &[&str]) -> Vec<(String, String)> {
        let mut stream = Stream::default();
        for piece in pieces {
            let event = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]}}"#);
            stream.take(&event, &mut |_| {}).unwrap();
        }
        stream
            .calls
            .into_iter()
            .map(|call| (call.name, call.arguments))
            .collect()
    }

    fn pair(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn pieces_of_calls_that_alternate_find_their_call() {
        let pieces = [
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"y","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"{1"}}"#,
            r#"{"index":1,"function":{"arguments":"2}"}}"#,
            r#"{"index":0,"function":{"arguments":"}"}}"#,
        ];
        assert_eq!(calls(&pieces), [pair("x", "{1}"), pair("y", "{2}")]);
    }

    #[test]
    fn a_name_that_is_repeated_with_every_piece_is_said_once() {
        let pieces = [
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"}"}}"#,
        ];
        assert_eq!(calls(&pieces), [pair("x", "{}")]);
    }

    #[test]
    fn calls_that_are_all_numbered_zero_are_told_apart_by_their_ids() {
        let pieces = [
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"y","arguments":{"k":1}}}"#,
        ];
        assert_eq!(calls(&pieces), [pair("x", "{}"), pair("y", r#"{"k":1}"#)]);
    }
}
