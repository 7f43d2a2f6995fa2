//! A request as Chat Completions has it.
//!
//! Borrowed throughout: the conversation is written straight into the body,
//! without a copy of every message on the way.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::Dialect;
use super::reasoning::Recalled;
use crate::providers::answer::{arguments_object, data_url, result_text, text_of};
use crate::providers::openai_models::{
    always_reasons, effort, never_reasons, reasons_without_tools,
};
use crate::providers::ordered::Ordered;
use crate::providers::schema::fits_strict;
use crate::types::{Effort, Image, Message, Part, Request, Role, ToolDefinition};

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    stream: bool,
    stream_options: Value,
}

#[derive(Default, Serialize)]
struct Entry<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(flatten)]
    recalled: Recalled<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Ordered<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    json_schema: Named<'a>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'static str,
    strict: bool,
    schema: Ordered<'a>,
}

/// Whether the model can be told how long to think while it has tools.
pub(super) fn takes_effort(model: &str, dialect: Dialect) -> bool {
    dialect != Dialect::Official || !(never_reasons(model) || reasons_without_tools(model))
}

/// The body to send.
pub(super) fn body(request: &Request, dialect: Dialect) -> Body<'_> {
    let model = request.model_name();
    let official = dialect == Dialect::Official;
    let tokens = Some(request.output_tokens_max);
    let excludes_tools = official && reasons_without_tools(model) && !request.tools.is_empty();
    Body {
        model,
        messages: entries(request),
        tools: request.tools.iter().map(tool).collect(),
        response_format: request.output_schema.as_ref().map(|schema| format(schema)),
        max_tokens: tokens.filter(|_| !official),
        max_completion_tokens: tokens.filter(|_| official),
        temperature: request
            .temperature
            .filter(|_| !(official && always_reasons(model))),
        reasoning_effort: match request.effort {
            _ if excludes_tools => Some("none"),
            Some(wanted) if official => effort(model, wanted),
            wanted => wanted.map(Effort::name),
        },
        stream: true,
        stream_options: json!({"include_usage": true}),
    }
}

fn entries(request: &Request) -> Vec<Entry<'_>> {
    let mut entries = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        let content = Some(Content::Text(Cow::from(&*request.system)));
        entries.push(Entry {
            role: "system",
            content,
            ..Entry::default()
        });
    }
    for message in &request.messages {
        add(&mut entries, message, &request.model);
    }
    entries
}

fn add<'a>(entries: &mut Vec<Entry<'a>>, message: &'a Message, model: &str) {
    let mut recalled = Recalled::default();
    let mut pieces = Vec::new();
    let mut tool_calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => pieces.push(Piece::Text {
                text: text_of(text),
            }),
            Part::Image(image) => pieces.push(shown(image)),
            Part::ToolCall(call) => {
                let function = Function {
                    name: &call.name,
                    arguments: arguments_object(&call.arguments),
                };
                tool_calls.push(Call {
                    id: &call.id,
                    r#type: "function",
                    function,
                });
            }
            Part::ToolResult(result) => {
                entries.push(Entry {
                    role: "tool",
                    content: Some(Content::Text(result_text(result))),
                    tool_call_id: Some(&result.id),
                    ..Entry::default()
                });
                // A result has no place for them; the user shows them instead,
                // after all the results, which may not be interrupted.
                pieces.extend(result.images.iter().map(shown));
            }
            Part::Reasoning { .. } => recalled.add(part, model),
        }
    }
    let content = content(pieces);
    if content.is_some() || !tool_calls.is_empty() {
        let role = if message.role == Role::Assistant {
            "assistant"
        } else {
            "user"
        };
        entries.push(Entry {
            role,
            content,
            recalled,
            tool_calls,
            tool_call_id: None,
        });
    }
}

/// Words alone are text, which every server takes; only images need pieces.
fn content(pieces: Vec<Piece<'_>>) -> Option<Content<'_>> {
    let words: Option<Vec<&str>> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text { text } => Some(*text),
            Piece::ImageUrl { .. } => None,
        })
        .collect();
    Some(match words.as_deref() {
        Some([]) => return None,
        Some([text]) => Content::Text(Cow::from(*text)),
        Some(texts) => Content::Text(Cow::from(texts.concat())),
        None => Content::Pieces(pieces),
    })
}

fn shown(image: &Image) -> Piece<'_> {
    let url = data_url(image);
    Piece::ImageUrl {
        image_url: ImageUrl { url },
    }
}

fn tool(tool: &ToolDefinition) -> Tool<'_> {
    let ToolDefinition {
        name,
        description,
        schema,
    } = tool;
    Tool {
        r#type: "function",
        function: ToolFunction {
            name,
            description,
            parameters: Ordered::new(Cow::Borrowed(schema)),
        },
    }
}

fn format(schema: &Value) -> Format<'_> {
    Format {
        r#type: "json_schema",
        json_schema: Named {
            name: "answer",
            strict: fits_strict(schema),
            schema: Ordered::new(Cow::Borrowed(schema)),
        },
    }
}
