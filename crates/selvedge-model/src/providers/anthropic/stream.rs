//! An answer put together from the events of Anthropic's Messages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::provider::DeltaSink;
use crate::providers::answer::{Answer, note_model};
use crate::providers::exchange::{Fault, Listener, parse};
use crate::providers::seal::{Kind, Seal};
use crate::types::{Delta, Part, Request, Stop, ToolCall, Usage};

/// What has been said so far.
#[derive(Default)]
pub(super) struct Stream {
    blocks: BTreeMap<u64, Building>,
    stop: Option<Stop>,
    counted: Counted,
    model: Option<String>,
    begun: bool,
    over: bool,
}

/// A block on its way.
struct Building {
    block: Block,
    // Text, reasoning or arguments.
    text: String,
    signature: String,
    closed: bool,
}

impl Listener for Stream {
    fn is_over(&self) -> bool {
        self.over
    }

    fn take(&mut self, event: &str, deltas: &mut dyn DeltaSink) -> Result<(), Fault> {
        match parse(event)? {
            Event::MessageStart { message } => {
                if std::mem::replace(&mut self.begun, true) {
                    return Err("a second message began within the first".into());
                }
                note_model(&mut self.model, message.model)?;
                self.counted.update(message.usage);
                deltas.take(Delta::Alive);
                self.tell_used(deltas);
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                let block = Building::new(content_block);
                if self.blocks.insert(index, block).is_some() {
                    return Err("a block was begun twice".into());
                }
                deltas.take(Delta::Alive);
            }
            Event::ContentBlockDelta { index, delta } => {
                let block = self
                    .blocks
                    .get_mut(&index)
                    .filter(|block| !block.closed)
                    .ok_or("a piece came of a block that was not open")?;
                deltas.take(block.take(delta));
            }
            Event::ContentBlockStop { index } => {
                let block = self
                    .blocks
                    .get_mut(&index)
                    .ok_or("a block ended that was not begun")?;
                block.closed = true;
            }
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.as_deref().map(stop).or(self.stop);
                self.counted.update(usage.unwrap_or_default());
                self.tell_used(deltas);
            }
            Event::MessageStop => self.over = true,
            Event::Error => return Err(Fault::Refused(event.to_owned())),
            Event::Other => deltas.take(Delta::Alive),
        }
        Ok(())
    }

    fn into_answer(self, request: &Request) -> Result<Answer, String> {
        if !self.over {
            return Err("the stream ended before the message did".to_owned());
        }
        let mut parts = Vec::new();
        for building in self.blocks.into_values() {
            if !building.closed {
                return Err("a part of the answer was left unfinished".to_owned());
            }
            parts.extend(building.into_part(&request.model));
        }
        Ok(Answer {
            parts,
            stop: self.stop,
            usage: self.counted.usage(),
            model: self.model,
        })
    }
}

impl Stream {
    fn tell_used(&self, deltas: &mut dyn DeltaSink) {
        if let Some(usage) = self.counted.usage() {
            let is_all = self.stop.is_some();
            deltas.take(Delta::Used { usage, is_all });
        }
    }
}

impl Building {
    fn new(block: Block) -> Self {
        let text = match &block {
            Block::Text { text } => text.clone(),
            Block::Thinking { thinking, .. } => thinking.clone(),
            _ => String::new(),
        };
        let signature = if let Block::Thinking { signature, .. } = &block {
            signature.clone()
        } else {
            String::new()
        };
        Self {
            block,
            text,
            signature,
            closed: false,
        }
    }

    fn take(&mut self, piece: Piece) -> Delta {
        match piece {
            Piece::TextDelta { text } => {
                self.text.push_str(&text);
                Delta::Text(text)
            }
            Piece::ThinkingDelta { thinking } => {
                self.text.push_str(&thinking);
                Delta::Reasoning(thinking)
            }
            Piece::SignatureDelta { signature } => {
                self.signature.push_str(&signature);
                Delta::Alive
            }
            Piece::InputJsonDelta { partial_json } => {
                self.text.push_str(&partial_json);
                Delta::Alive
            }
            Piece::Other => Delta::Alive,
        }
    }

    fn into_part(self, model: &str) -> Option<Part> {
        match self.block {
            Block::Text { .. } => (!self.text.is_empty()).then(|| Part::Text {
                text: self.text.into(),
            }),
            Block::Thinking { .. } => {
                let seal = Seal {
                    kind: Kind::Signature,
                    value: &self.signature,
                };
                Some(Part::Reasoning {
                    text: self.text.into(),
                    signature: (!seal.value.is_empty()).then(|| seal.write(model)),
                })
            }
            Block::RedactedThinking { data } => {
                let seal = Seal {
                    kind: Kind::Redacted,
                    value: &data,
                };
                Some(Part::Reasoning {
                    text: "".into(),
                    signature: Some(seal.write(model)),
                })
            }
            Block::ToolUse { id, name, input } => {
                // Arguments come in pieces, or whole at the start, or there are none.
                let arguments = if self.text.is_empty() {
                    Value::Object(input).to_string()
                } else {
                    self.text
                };
                Some(Part::ToolCall(ToolCall {
                    id,
                    name,
                    arguments: arguments.into(),
                }))
            }
            Block::Other => None,
        }
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Filtered,
        _ => Stop::End,
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Opening,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Piece,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Closing,
        usage: Option<Counted>,
    },
    MessageStop,
    Error,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Opening {
    model: Option<String>,
    #[serde(default)]
    usage: Counted,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Map<String, Value>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Closing {
    stop_reason: Option<String>,
}

/// Counts come at the start and again at the end, where they are final.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl Counted {
    fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = later
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = later
            .cache_read_input_tokens
            .or(self.cache_read_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later
            .output_tokens_details
            .or(self.output_tokens_details.take());
    }

    fn usage(&self) -> Option<Usage> {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let cache_written = self.cache_creation_input_tokens.unwrap_or(0);
        let details = self.output_tokens_details.as_ref();
        Some(Usage {
            input: self
                .input_tokens?
                .saturating_add(cached)
                .saturating_add(cache_written),
            cached,
            cache_written,
            output: self.output_tokens?,
            reasoning: details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(0),
            is_estimated: false,
        })
    }
}
