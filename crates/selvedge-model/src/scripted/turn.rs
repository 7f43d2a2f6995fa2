//! What the scripted model says at one turn.

use std::time::Duration;

use serde_json::Value;

use crate::error::ModelError;
use crate::types::{Message, Part, Request, Response, Role, Stop, ToolCall, Usage};

/// Pieces of a text that takes time, at most.
const PIECES_MAX: usize = 40;
/// The least worth showing as a piece of its own.
const PIECE_BYTES_MIN: usize = 12;

/// One entry of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The next turn.
    Reply(Turn),
    /// What one attempt at the next turn gets instead.
    Error(ModelError),
    /// The same, after it was heard to say this much.
    Cut(String, ModelError),
}

impl From<Turn> for Entry {
    fn from(turn: Turn) -> Self {
        Self::Reply(turn)
    }
}

impl From<ModelError> for Entry {
    fn from(error: ModelError) -> Self {
        Self::Error(error)
    }
}

/// What is said at one turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// Words; a structured answer is its JSON.
    pub text: String,
    /// Reasoning before them.
    pub reasoning: Option<String>,
    /// Calls: the tool's name, and its arguments as JSON text.
    pub calls: Vec<(String, String)>,
    /// Why it stops; by default as its calls say.
    pub stop: Option<Stop>,
    /// What it uses; by default a quarter of a token for each byte.
    pub usage: Option<Usage>,
    /// How long it takes.
    pub delay: Duration,
}

impl Turn {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A structured answer.
    pub fn answer(answer: &Value) -> Self {
        Self::text(answer.to_string())
    }

    /// A call and no words.
    pub fn calling(tool: impl Into<String>, arguments: &Value) -> Self {
        Self::default().call(tool, arguments)
    }

    /// With one more call.
    pub fn call(mut self, tool: impl Into<String>, arguments: &Value) -> Self {
        self.calls.push((tool.into(), arguments.to_string()));
        self
    }

    /// With this usage.
    pub fn usage(self, usage: Usage) -> Self {
        Self {
            usage: Some(usage),
            ..self
        }
    }

    /// Taking this long.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The complete answer to `request`.
    pub(crate) fn response(&self, request: &Request, model: &str) -> Response {
        let mut parts = Vec::new();
        if let Some(reasoning) = &self.reasoning {
            parts.push(Part::Reasoning {
                text: reasoning.as_str().into(),
                signature: None,
            });
        }
        if !self.text.is_empty() {
            parts.push(Part::Text {
                text: self.text.as_str().into(),
            });
        }
        for (i, (name, arguments)) in self.calls.iter().enumerate() {
            let id = format!("call_{}_{i}", request.turn);
            let arguments = arguments.as_str().into();
            parts.push(Part::ToolCall(ToolCall {
                id,
                name: name.clone(),
                arguments,
            }));
        }
        let natural = if self.calls.is_empty() {
            Stop::End
        } else {
            Stop::Tools
        };
        Response {
            message: Message {
                role: Role::Assistant,
                parts,
            },
            stop: self.stop.unwrap_or(natural),
            usage: self.usage.unwrap_or_else(|| self.usage_estimate(request)),
            model: model.to_owned(),
        }
    }

    fn usage_estimate(&self, request: &Request) -> Usage {
        let calls: usize = self
            .calls
            .iter()
            .map(|(name, arguments)| name.len() + arguments.len())
            .sum();
        let reasoning = self.reasoning.as_ref().map_or(0, String::len) as u64;
        let output = (self.text.len() + calls) as u64 + reasoning;
        Usage {
            input: request.bytes().div_ceil(4),
            output: output.div_ceil(4),
            reasoning: reasoning.div_ceil(4),
            ..Usage::default()
        }
    }
}

/// Cuts a text into pieces of similar length, none of them tiny.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let size = text.len().div_ceil(PIECES_MAX).max(PIECE_BYTES_MIN);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(boundary(rest, size));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The first place from `at` on where a text can be cut.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_again_and_few() {
        for text in ["", "short", &"größer ".repeat(300)] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= PIECES_MAX);
        }
    }
}
