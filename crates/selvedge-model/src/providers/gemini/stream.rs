//! An answer put together from the events of Gemini.
//!
//! The protocol has no last event: the reason to stop comes with the last
//! words, and then the stream ends.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::DeltaSink;
use crate::providers::answer::{Answer, made_id, note_model};
use crate::providers::exchange::{Fault, Listener, parse};
use crate::providers::seal::{Kind, Seal};
use crate::types::{Delta, Part, Request, Stop, ToolCall, Usage};

/// What has been said so far.
#[derive(Default)]
pub(super) struct Stream {
    pieces: Vec<Building>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    model: Option<String>,
}

/// A part on its way.
struct Building {
    kind: Said,
    signature: Option<String>,
}

enum Said {
    Words(String),
    Thought(String),
    Call {
        id: Option<String>,
        name: String,
        arguments: String,
    },
}

impl Listener for Stream {
    fn is_over(&self) -> bool {
        false
    }

    fn take(&mut self, event: &str, deltas: &mut dyn DeltaSink) -> Result<(), Fault> {
        let chunk: Chunk = parse(event)?;
        if chunk.error.is_some() {
            return Err(Fault::Refused(event.to_owned()));
        }
        note_model(&mut self.model, chunk.model_version)?;
        if chunk
            .prompt_feedback
            .is_some_and(|said| said.block_reason.is_some())
        {
            self.stop = Some(Stop::Filtered);
        }
        let mut candidates = chunk.candidates.unwrap_or_default();
        // Another candidate is another answer; one was asked for.
        candidates.retain(|candidate| candidate.index.unwrap_or(0) == 0);
        if let Some(usage) = chunk.usage_metadata.map(Usage::from) {
            // Said before the rest is judged, for it is paid whatever that is.
            let is_all = candidates.iter().any(|c| c.finish_reason.is_some());
            deltas.take(Delta::Used { usage, is_all });
            self.usage = Some(usage);
        }
        for candidate in candidates {
            for piece in candidate
                .content
                .and_then(|said| said.parts)
                .unwrap_or_default()
            {
                deltas.take(self.take_piece(piece));
            }
            if let Some(reason) = candidate.finish_reason {
                self.stop = Some(stop(&reason)?);
            }
        }
        Ok(())
    }

    fn into_answer(self, request: &Request) -> Result<Answer, String> {
        let mut parts = Vec::new();
        let mut calls = 0;
        for piece in self.pieces {
            let seal = |kind| {
                let value = piece.signature.as_deref()?;
                Some(Seal { kind, value }.write(&request.model))
            };
            // Only thoughts have a place for a signature; on anything else it
            // is kept before it.
            if !matches!(piece.kind, Said::Thought(_))
                && let Some(signature) = seal(Kind::Next)
            {
                parts.push(Part::Reasoning {
                    text: "".into(),
                    signature: Some(signature),
                });
            }
            match piece.kind {
                Said::Words(text) if text.is_empty() => {}
                Said::Words(text) => parts.push(Part::Text { text: text.into() }),
                Said::Thought(ref text) => parts.push(Part::Reasoning {
                    text: text.as_str().into(),
                    signature: seal(Kind::Thought),
                }),
                Said::Call {
                    id,
                    name,
                    arguments,
                } => {
                    let id = id.unwrap_or_else(|| made_id(request, calls));
                    calls += 1;
                    parts.push(Part::ToolCall(ToolCall {
                        id,
                        name,
                        arguments: arguments.into(),
                    }));
                }
            }
        }
        Ok(Answer {
            parts,
            stop: self.stop,
            usage: self.usage,
            model: self.model,
        })
    }
}

impl Stream {
    fn take_piece(&mut self, piece: Piece) -> Delta {
        if let Some(call) = piece.function_call {
            let arguments = call
                .args
                .map_or("{}".to_owned(), |args| args.get().to_owned());
            self.pieces.push(Building {
                kind: Said::Call {
                    id: call.id.filter(|id| !id.is_empty()),
                    name: call.name.unwrap_or_default(),
                    arguments,
                },
                signature: piece.thought_signature,
            });
            return Delta::Alive;
        }
        let Some(text) = piece.text else {
            return Delta::Alive;
        };
        // Words go on until they are signed: a signature is on one part only.
        let last = self.pieces.last_mut();
        let last = last.filter(|last| last.signature.is_none());
        let heard = match (last, piece.thought) {
            (Some(building), thought) if building.goes_on(thought) => {
                building.push(&text);
                building
            }
            (_, thought) => {
                let kind = match thought {
                    true => Said::Thought(text.clone()),
                    false => Said::Words(text.clone()),
                };
                self.pieces.push(Building {
                    kind,
                    signature: None,
                });
                self.pieces.last_mut().expect("one was just added")
            }
        };
        heard.signature = piece.thought_signature;
        match piece.thought {
            true => Delta::Reasoning(text),
            false => Delta::Text(text),
        }
    }
}

impl Building {
    fn goes_on(&self, thought: bool) -> bool {
        matches!(
            (&self.kind, thought),
            (Said::Words(_), false) | (Said::Thought(_), true)
        )
    }

    fn push(&mut self, more: &str) {
        if let Said::Words(text) | Said::Thought(text) = &mut self.kind {
            text.push_str(more);
        }
    }
}

fn stop(reason: &str) -> Result<Stop, Fault> {
    Ok(match reason {
        "STOP" => Stop::End,
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" | "ESCALATION" | "MODEL_ARMOR" => Stop::Filtered,
        // A call that could not be read, and whatever is not known yet.
        other => return Err(format!("the model stopped with `{other}`").into()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    error: Option<Value>,
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Counted>,
    model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Piece>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<Call>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Counted {
    prompt_token_count: u64,
    tool_use_prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        Self {
            input: counted
                .prompt_token_count
                .saturating_add(counted.tool_use_prompt_token_count),
            cached: counted.cached_content_token_count,
            cache_written: 0,
            output: counted
                .candidates_token_count
                .saturating_add(counted.thoughts_token_count),
            reasoning: counted.thoughts_token_count,
            is_estimated: false,
        }
    }
}
