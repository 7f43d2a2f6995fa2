//! A request as Anthropic's Messages has it.
//!
//! Borrowed throughout, as for Chat Completions. Marks for the provider's cache
//! stand after the tools, after the system prompt and on the last messages of
//! the user: the conversation grows by appending, so the mark of one request is
//! found again by the next.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::providers::answer::{arguments_object, text_of};
use crate::providers::ordered::Ordered;
use crate::providers::schema::simplified;
use crate::providers::seal::{Kind as SealKind, Seal};
use crate::types::{Effort, Image, Part, Request, Role, ToolDefinition, ToolResult};

/// Marks on messages; with those on tools and system prompt they are the four
/// that the provider allows.
const MESSAGE_MARKS: usize = 2;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Output>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Mark {
    r#type: &'static str,
}

impl Mark {
    const EPHEMERAL: Self = Self {
        r#type: "ephemeral",
    };
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Ordered<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
}

#[derive(Serialize)]
struct Format {
    r#type: &'static str,
    schema: Ordered<'static>,
}

impl Output {
    fn of(request: &Request, effort: Option<Effort>) -> Option<Self> {
        let schema = request.output_schema.as_deref();
        let format = schema.map(|schema| Format {
            r#type: "json_schema",
            schema: Ordered::new(Cow::Owned(simplified(schema))),
        });
        (format.is_some() || effort.is_some()).then_some(Self { format, effort })
    }
}

/// The body to send.
pub(super) fn body(request: &Request) -> Body<'_> {
    let model = request.model_name();
    let mut system: Vec<Block<'_>> = Vec::new();
    system.extend(text(&request.system));
    mark(system.last_mut());
    let mut tools: Vec<Tool<'_>> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(Mark::EPHEMERAL);
    }
    let effort = request.effort.filter(|_| takes_effort(model));
    let thinks = effort.is_some_and(|effort| effort != Effort::None);
    let thinking = match thinks {
        true => "adaptive",
        false => "disabled",
    };
    Body {
        model,
        max_tokens: request.output_tokens_max,
        system,
        messages: entries(request),
        tools,
        output_config: Output::of(request, effort.filter(|_| thinks)),
        thinking: effort.map(|_| json!({"type": thinking})),
        // A model that thinks has its own.
        temperature: request
            .temperature
            .filter(|_| takes_temperature(model) && !thinks),
        stream: true,
    }
}

fn entries(request: &Request) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        // Results are the user's to give, and two messages of one side are one.
        let role = if message.role == Role::Assistant {
            "assistant"
        } else {
            "user"
        };
        let blocks = message
            .parts
            .iter()
            .filter_map(|part| block(part, &request.model));
        match entries.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => entries.push(Entry {
                role,
                content: blocks.collect(),
            }),
        }
    }
    entries.retain(|entry| !entry.content.is_empty());
    for entry in entries
        .iter_mut()
        .rev()
        .filter(|entry| entry.role == "user")
        .take(MESSAGE_MARKS)
    {
        mark(entry.content.last_mut());
    }
    entries
}

fn block<'a>(part: &'a Part, model: &str) -> Option<Block<'a>> {
    let kind = match part {
        Part::Text { text: words } => return text(text_of(words)),
        Part::Image(shown) => return Some(image(shown)),
        Part::Reasoning { text, signature } => {
            let Seal { kind, value } = Seal::read(signature.as_ref()?, model)?;
            match kind {
                SealKind::Signature => Kind::Thinking {
                    thinking: text_of(text),
                    signature: value,
                },
                SealKind::Redacted => Kind::RedactedThinking { data: value },
                _ => return None,
            }
        }
        Part::ToolCall(call) => {
            let input = RawValue::from_string(arguments_object(&call.arguments));
            Kind::ToolUse {
                id: &call.id,
                name: &call.name,
                input: input.expect("it was made to be an object"),
            }
        }
        Part::ToolResult(result) => Kind::ToolResult {
            tool_use_id: &result.id,
            content: content(result),
            is_error: result.is_error,
        },
    };
    Some(plain(kind))
}

fn plain(kind: Kind<'_>) -> Block<'_> {
    Block {
        kind,
        cache_control: None,
    }
}

fn image(image: &Image) -> Block<'_> {
    plain(Kind::Image {
        source: Source {
            r#type: "base64",
            media_type: &image.media_type,
            data: text_of(&image.data),
        },
    })
}

fn content(result: &ToolResult) -> Content<'_> {
    let words = text_of(&result.content);
    if result.images.is_empty() {
        return Content::Text(words);
    }
    let images = result.images.iter().map(image);
    Content::Blocks(text(words).into_iter().chain(images).collect())
}

/// A block of words; the provider refuses an empty one.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(plain(Kind::Text { text }))
}

fn mark(block: Option<&mut Block<'_>>) {
    if let Some(block) = block {
        block.cache_control = Some(Mark::EPHEMERAL);
    }
}

fn tool(tool: &ToolDefinition) -> Tool<'_> {
    Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: Ordered::new(Cow::Borrowed(&tool.schema)),
        cache_control: None,
    }
}

/// Whether the model has the setting; those since the fifth generation refuse it.
fn takes_temperature(model: &str) -> bool {
    version(model).is_none_or(|(generation, _)| generation < 5)
}

/// Whether the model decides by itself how much to think, and can be told how thoroughly:
/// those before thought within a number of tokens.
pub(super) fn takes_effort(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (4, 6))
}

/// The 4 and the 6 of `claude-sonnet-4-6`.
fn version(model: &str) -> Option<(u32, u32)> {
    let mut words = model.split(['-', '.']).map(str::parse::<u32>);
    let generation = words.find_map(Result::ok)?;
    // What follows may be a date.
    let minor = words.next().and_then(Result::ok).filter(|n| *n < 100);
    Some((generation, minor.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_generation_has_no_temperature() {
        assert!(takes_temperature("claude-sonnet-4-6") && takes_temperature("claude-3-7-sonnet"));
        assert!(!takes_temperature("claude-opus-5-5") && !takes_temperature("claude-sonnet-5"));
    }

    #[test]
    fn a_model_that_thinks_within_a_number_of_tokens_is_not_told_how_long() {
        assert!(takes_effort("claude-sonnet-4-6") && takes_effort("claude-sonnet-5"));
        assert!(!takes_effort("claude-opus-4-20250514") && !takes_effort("claude-3-7-sonnet"));
        assert!(!takes_effort("model"));
    }
}
