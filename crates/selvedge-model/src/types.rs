//! The neutral words for talking to a model: one message, one delta, one usage.

use std::sync::Arc;

use selvedge_ledger::Payload;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::messages::Messages;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of the user.
    pub fn user(text: impl Into<Payload>) -> Self {
        Self {
            role: Role::User,
            parts: vec![Part::Text { text: text.into() }],
        }
    }
}

/// Who speaks. The system prompt is a field of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or the runtime on their behalf.
    User,
    /// The model.
    Assistant,
    /// Results of the calls in the message before.
    Tool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: Payload,
    },
    /// Something to look at.
    Image(Image),
    /// The model's reasoning, kept so that it can be sent back.
    Reasoning {
        /// What it said of it; may be empty.
        text: Payload,
        /// The provider's seal on it, sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Payload>,
    },
    /// The model wants a tool called.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
}

const NO_IMAGES: &[Image] = &[];

impl Part {
    /// Its texts and pictures, in order.
    pub fn payloads(&self) -> impl Iterator<Item = &Payload> {
        let (first, second, images) = match self {
            Self::Text { text } => (text, None, NO_IMAGES),
            Self::Image(image) => (&image.data, None, NO_IMAGES),
            Self::Reasoning { text, signature } => (text, signature.as_ref(), NO_IMAGES),
            Self::ToolCall(call) => (&call.arguments, None, NO_IMAGES),
            Self::ToolResult(result) => (&result.content, None, &*result.images),
        };
        let images = images.iter().map(|image| &image.data);
        [first].into_iter().chain(second).chain(images)
    }

    /// Its texts and pictures, in order, to be changed.
    pub fn payloads_mut(&mut self) -> impl Iterator<Item = &mut Payload> {
        let (first, second, images) = match self {
            Self::Text { text } => (text, None, [].as_mut_slice()),
            Self::Image(image) => (&mut image.data, None, [].as_mut_slice()),
            Self::Reasoning { text, signature } => (text, signature.as_mut(), [].as_mut_slice()),
            Self::ToolCall(call) => (&mut call.arguments, None, [].as_mut_slice()),
            Self::ToolResult(result) => (&mut result.content, None, &mut *result.images),
        };
        let images = images.iter_mut().map(|image| &mut image.data);
        [first].into_iter().chain(second).chain(images)
    }

    /// Length of its text.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Text { text } => text.len(),
            Self::Image(_) => Image::BYTES_OF_TEXT,
            Self::Reasoning { text, signature } => {
                text.len() + signature.as_ref().map_or(0, Payload::len)
            }
            Self::ToolCall(call) => call.name.len() as u64 + call.arguments.len(),
            Self::ToolResult(result) => {
                result.content.len() + result.images.len() as u64 * Image::BYTES_OF_TEXT
            }
        }
    }

    /// What there is to look at.
    pub(crate) fn images(&self) -> &[Image] {
        match self {
            Self::Image(image) => std::slice::from_ref(image),
            Self::ToolResult(result) => &result.images,
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolCall(_) => &[],
        }
    }
}

/// An image, small enough to be sent with a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// What it is: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// Its bytes, in base64.
    pub data: Payload,
}

impl Image {
    /// So much text weighs as much as an image. Providers count how large it
    /// looks, not its bytes, and scale it down to about five thousand tokens.
    pub const BYTES_OF_TEXT: u64 = 20_000;
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's name for it, which its result must repeat.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With what: JSON text, as written by the model; possibly not valid JSON.
    pub arguments: Payload,
}

/// The result of a tool call, for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The `id` of the call.
    pub id: String,
    /// What to tell the model.
    pub content: Payload,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// What to show the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// Everything a model is asked with. Payloads have their text at hand.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which model: `provider/model`.
    pub model: String,
    /// Who asks: an agent's name. The scripted model answers by it.
    pub agent: String,
    /// The ordinal of this call in the agent's stream, from 0.
    pub turn: u32,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation.
    pub messages: Messages,
    /// What the model may call.
    pub tools: Arc<[ToolDefinition]>,
    /// The JSON Schema that the answer must fit, if any.
    pub output_schema: Option<Arc<Value>>,
    /// At most this many tokens of answer.
    pub output_tokens_max: u32,
    /// Randomness of the answer, where the provider has the setting.
    pub temperature: Option<f64>,
    /// How long the model thinks, where the provider has the setting.
    pub effort: Option<Effort>,
}

/// How long a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, or as little as it can.
    None,
    /// Briefly.
    Low,
    /// For a while.
    Medium,
    /// Thoroughly.
    High,
}

impl Effort {
    /// "none", "low", "medium", "high".
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Request {
    /// The name of the model without its provider.
    pub fn model_name(&self) -> &str {
        self.model
            .split_once('/')
            .map_or(&self.model, |(_, name)| name)
    }

    /// Whether there is anything to look at.
    pub fn has_images(&self) -> bool {
        self.messages.has_images()
    }

    /// Length of everything the model is asked with, in bytes of text.
    pub fn bytes(&self) -> u64 {
        let tools = self.tools.iter().map(ToolDefinition::bytes);
        self.bytes_without_tools() + tools.sum::<u64>()
    }

    /// The same without its tools, which seldom change.
    pub(crate) fn bytes_without_tools(&self) -> u64 {
        let schema = self
            .output_schema
            .as_ref()
            .map_or(0, |schema| json_bytes(schema));
        self.system.len() as u64 + self.messages.bytes() + schema
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
}

impl ToolDefinition {
    /// How long it is, as JSON.
    pub fn bytes(&self) -> u64 {
        (self.name.len() + self.description.len()) as u64 + json_bytes(&self.schema)
    }
}

/// A piece of an answer on its way.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Words.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// What the provider has counted by now.
    Used {
        /// So much.
        usage: Usage,
        /// Whether that is all: the model has stopped.
        is_all: bool,
    },
    /// Anything else that shows the stream is alive.
    Alive,
    /// How far the request itself has come: what it may have cost follows from that.
    Request(Stage),
}

/// How far a request has come that has no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is on its way, and nobody knows whether it arrived.
    Sent,
    /// The provider works on it: reading it is paid for.
    Accepted,
    /// It did not arrive, or the provider would not have it: nothing is paid for.
    Refused,
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// What the model said; role assistant.
    pub message: Message,
    /// Why it stopped.
    pub stop: Stop,
    /// What it used.
    pub usage: Usage,
    /// The model that answered, `provider/model`.
    pub model: String,
}

impl Response {
    /// The same with each text that is at hand kept in another way.
    pub(crate) fn keeping(&self, keep: impl Fn(Arc<str>) -> Payload) -> Self {
        let mut response = self.clone();
        let parts = response.message.parts.iter_mut();
        for payload in parts.flat_map(Part::payloads_mut) {
            if let Some(text) = payload.text().cloned() {
                *payload = keep(text);
            }
        }
        response
    }

    /// Everything said in words, joined.
    pub fn text(&self) -> String {
        let texts = self.message.parts.iter().filter_map(|part| match part {
            Part::Text { text } => text.text().map(|text| &**text),
            _ => None,
        });
        texts.collect()
    }

    /// The calls the model wants made, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said everything.
    End,
    /// It wants tools called.
    Tools,
    /// It reached `output_tokens_max`; calls in the message may be incomplete.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

/// Tokens used by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// Those of them that were read from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Those of them that were written to the provider's cache, where that has a price.
    #[serde(default)]
    pub cache_written: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Those of them that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
    /// Whether nobody counted: the numbers are what the length of the texts suggests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

impl Usage {
    /// Tokens of the request and of the answer.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cached: self.cached + other.cached,
            cache_written: self.cache_written + other.cache_written,
            output: self.output + other.output,
            reasoning: self.reasoning + other.reasoning,
            is_estimated: self.is_estimated || other.is_estimated,
        }
    }
}

/// Length of a value's JSON, without writing it out.
fn json_bytes(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<u64>() + 2,
        Value::Object(fields) => {
            fields
                .iter()
                .map(|(name, value)| name.len() as u64 + 4 + json_bytes(value))
                .sum::<u64>()
                + 2
        }
    }
}
