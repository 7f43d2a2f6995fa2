//! An answer put together from the events of Responses.
//!
//! Items grow by pieces and are then sent once more as a whole. The whole one
//! counts: only there a reasoning item has its final seal.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::provider::DeltaSink;
use crate::providers::answer::{Answer, note_model};
use crate::providers::exchange::{Fault, Listener, parse};
use crate::providers::seal::{Kind, Seal};
use crate::types::{Delta, Part, Request, Stop, ToolCall, Usage};

/// What has been said so far.
#[derive(Default)]
pub(super) struct Stream {
    items: BTreeMap<u64, Building>,
    end: Option<End>,
    model: Option<String>,
    id: Option<String>,
}

/// An item on its way.
#[derive(Default)]
struct Building {
    item: Item,
    // What its pieces have said, should it never come as a whole.
    pieces: String,
    closed: bool,
}

/// How it ended.
struct End {
    stop: Stop,
    usage: Option<Usage>,
}

impl Listener for Stream {
    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn take(&mut self, event: &str, deltas: &mut dyn DeltaSink) -> Result<(), Fault> {
        match parse(event)? {
            Event::Created { response } => {
                if self.id.is_some() && self.id != response.id {
                    return Err("a second answer began within the first".into());
                }
                self.id = response.id;
                note_model(&mut self.model, response.model)?;
                deltas.take(Delta::Alive);
            }
            Event::ItemAdded { output_index, item } => {
                let building = Building {
                    item,
                    ..Building::default()
                };
                if self.items.insert(output_index, building).is_some() {
                    return Err("an item was begun twice".into());
                }
                deltas.take(Delta::Alive);
            }
            Event::Words {
                output_index,
                delta,
            }
            | Event::Refusal {
                output_index,
                delta,
            } => {
                self.open(output_index)?.pieces.push_str(&delta);
                deltas.take(Delta::Text(delta));
            }
            Event::Arguments {
                output_index,
                delta,
            } => {
                self.open(output_index)?.pieces.push_str(&delta);
                deltas.take(Delta::Alive);
            }
            Event::Summary {
                output_index,
                delta,
            }
            | Event::Reasoning {
                output_index,
                delta,
            } => {
                self.open(output_index)?.pieces.push_str(&delta);
                deltas.take(Delta::Reasoning(delta));
            }
            Event::ItemDone { output_index, item } => {
                let building = self.open(output_index)?;
                building.item = item;
                building.closed = true;
            }
            Event::Completed { response } => self.close(response, Stop::End)?,
            Event::Incomplete { response } => {
                let stop = stop(&response)?;
                self.close(response, stop)?;
            }
            Event::Failed { response } => {
                if let Some(usage) = response.usage.map(Usage::from) {
                    let is_all = true;
                    deltas.take(Delta::Used { usage, is_all });
                }
                let body = json!({"error": response.error});
                return Err(Fault::Refused(body.to_string()));
            }
            Event::Error => return Err(Fault::Refused(error_body(event))),
            Event::Other => deltas.take(Delta::Alive),
        }
        Ok(())
    }

    fn into_answer(self, request: &Request) -> Result<Answer, String> {
        let end = self
            .end
            .ok_or("the stream ended before the answer did, without saying why")?;
        let mut parts = Vec::new();
        let mut refused = false;
        for building in self.items.into_values() {
            // What was cut off is shown as far as it came.
            if !building.closed && end.stop == Stop::End {
                return Err("a part of the answer was left unfinished".to_owned());
            }
            refused |= building.refused();
            building.into_parts(&request.model, &mut parts);
        }
        Ok(Answer {
            parts,
            stop: Some(if refused { Stop::Filtered } else { end.stop }),
            usage: end.usage,
            model: self.model,
        })
    }
}

impl Stream {
    /// The item that a piece belongs to.
    fn open(&mut self, index: u64) -> Result<&mut Building, Fault> {
        let building = self.items.get_mut(&index);
        building
            .filter(|building| !building.closed)
            .ok_or_else(|| "a piece came of an item that was not open".into())
    }

    fn close(&mut self, response: Whole, stop: Stop) -> Result<(), Fault> {
        note_model(&mut self.model, response.model)?;
        self.end = Some(End {
            stop,
            usage: response.usage.map(Usage::from),
        });
        Ok(())
    }
}

impl Building {
    fn refused(&self) -> bool {
        let pieces = self.item.content.iter();
        pieces.flatten().any(|piece| piece.refusal.is_some())
    }

    fn into_parts(self, model: &str, parts: &mut Vec<Part>) {
        let sealed = |kind, value: &str| Some(Seal { kind, value }.write(model));
        let Item {
            r#type,
            id,
            call_id,
            name,
            arguments,
            content,
            summary,
            encrypted_content,
            phase,
        } = self.item;
        match r#type.as_str() {
            "message" => {
                let text = joined(content, "").unwrap_or(self.pieces);
                if text.is_empty() {
                    return;
                }
                if let Some(phase) = phase {
                    parts.push(Part::Reasoning {
                        text: "".into(),
                        signature: sealed(Kind::Phase, &phase),
                    });
                }
                parts.push(Part::Text { text: text.into() });
            }
            "function_call" => {
                let arguments = arguments.filter(|_| self.closed).unwrap_or(self.pieces);
                parts.push(Part::ToolCall(ToolCall {
                    id: call_id.unwrap_or_default(),
                    name: name.unwrap_or_default(),
                    arguments: arguments.into(),
                }));
            }
            "reasoning" => {
                let text = joined(summary, "\n\n").or(joined(content, "\n\n"));
                let seal = encrypted_content.zip(id);
                parts.push(Part::Reasoning {
                    text: text.unwrap_or(self.pieces).into(),
                    signature: seal.and_then(|(sealed_by, id)| {
                        sealed(Kind::Item, &format!("{id}.{sealed_by}"))
                    }),
                });
            }
            _ => {}
        }
    }
}

/// The texts of pieces, if there are any.
fn joined(pieces: Option<Vec<Piece>>, between: &str) -> Option<String> {
    let pieces = pieces.filter(|pieces| !pieces.is_empty())?;
    let texts = pieces
        .into_iter()
        .filter_map(|piece| piece.text.or(piece.refusal));
    Some(texts.collect::<Vec<_>>().join(between))
}

/// Why an answer is not complete.
fn stop(response: &Whole) -> Result<Stop, Fault> {
    let details = response.incomplete_details.as_ref();
    match details.and_then(|details| details.reason.as_deref()) {
        Some("max_output_tokens") => Ok(Stop::Length),
        Some("content_filter") => Ok(Stop::Filtered),
        other => {
            let reason = other.unwrap_or("no reason");
            Err(format!("the answer is incomplete: {reason}").into())
        }
    }
}

/// An error event with its error where an error body has it.
fn error_body(event: &str) -> String {
    let value: Value = serde_json::from_str(event).unwrap_or_default();
    match value.get("error") {
        Some(_) => event.to_owned(),
        None => json!({"error": {"code": value["code"], "message": value["message"]}}).to_string(),
    }
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.created")]
    Created { response: Whole },
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: u64, item: Item },
    #[serde(rename = "response.output_text.delta")]
    Words { output_index: u64, delta: String },
    #[serde(rename = "response.refusal.delta")]
    Refusal { output_index: u64, delta: String },
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments { output_index: u64, delta: String },
    #[serde(rename = "response.reasoning_summary_text.delta")]
    Summary { output_index: u64, delta: String },
    #[serde(rename = "response.reasoning_text.delta")]
    Reasoning { output_index: u64, delta: String },
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: u64, item: Item },
    #[serde(rename = "response.completed")]
    Completed { response: Whole },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Whole },
    #[serde(rename = "response.failed")]
    Failed { response: Whole },
    #[serde(rename = "error")]
    Error,
    #[serde(other)]
    Other,
}

/// The answer as a whole: its beginning or its end.
#[derive(Deserialize)]
struct Whole {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Counted>,
    error: Option<Value>,
    incomplete_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    r#type: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    content: Option<Vec<Piece>>,
    summary: Option<Vec<Piece>>,
    encrypted_content: Option<String>,
    phase: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    input_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens: u64,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        let input = counted.input_tokens_details.unwrap_or_default();
        let output = counted.output_tokens_details.unwrap_or_default();
        Self {
            input: counted.input_tokens,
            cached: input.cached_tokens.unwrap_or(0),
            cache_written: input.cache_write_tokens.unwrap_or(0),
            output: counted.output_tokens,
            reasoning: output.reasoning_tokens.unwrap_or(0),
            is_estimated: false,
        }
    }
}
