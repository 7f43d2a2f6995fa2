//! A request as Responses has it: a flat list of items.
//!
//! Borrowed throughout, as for Chat Completions. What the model said goes back
//! in the order it was said, because a call belongs to the reasoning before it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::providers::answer::{arguments_object, data_url, result_text, text_of};
use crate::providers::openai_models::{always_reasons, effort, never_reasons};
use crate::providers::ordered::Ordered;
use crate::providers::schema::fits_strict;
use crate::providers::seal::{Kind, Seal};
use crate::types::{Image, Message, Part, Request, Role, ToolDefinition, ToolResult};

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Piece<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Reasoning {
        id: &'a str,
        summary: Vec<Piece<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: String,
        detail: &'static str,
    },
    OutputText {
        text: &'a str,
    },
    SummaryText {
        text: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<Piece<'a>>),
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Ordered<'a>,
    // On by default, and then schemas of most tools are refused.
    strict: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: Ordered<'a>,
}

/// The body to send.
pub(super) fn body(request: &Request) -> Body<'_> {
    let model = request.model_name();
    let mut include = Vec::new();
    if !never_reasons(model) {
        include.push("reasoning.encrypted_content");
    }
    let effort = request.effort.and_then(|wanted| effort(model, wanted));
    Body {
        model,
        instructions: &request.system,
        input: items(request),
        tools: request.tools.iter().map(tool).collect(),
        text: request.output_schema.as_ref().map(|schema| format(schema)),
        max_output_tokens: request.output_tokens_max,
        temperature: request.temperature.filter(|_| !always_reasons(model)),
        reasoning: effort.map(|effort| json!({"effort": effort})),
        include,
        store: false,
        stream: true,
    }
}

fn items(request: &Request) -> Vec<Item<'_>> {
    let mut items = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message.role {
            Role::Assistant => said(message, &request.model, &mut items),
            Role::User | Role::Tool => heard(message, &mut items),
        }
    }
    items
}

/// What the model said, part by part.
fn said<'a>(message: &'a Message, model: &str, items: &mut Vec<Item<'a>>) {
    let mut phase = None;
    for part in &message.parts {
        match part {
            Part::Text { text } => items.push(Item::Message {
                role: "assistant",
                content: vec![Piece::OutputText {
                    text: text_of(text),
                }],
                phase: phase.take(),
            }),
            Part::Reasoning { text, signature } => {
                let seal = signature.as_ref();
                let seal = seal.and_then(|signature| Seal::read(signature, model));
                match seal.map(|seal| (seal.kind, seal.value)) {
                    Some((Kind::Phase, value)) => phase = Some(value),
                    Some((Kind::Item, value)) => items.extend(reasoning(text_of(text), value)),
                    _ => {}
                }
            }
            Part::ToolCall(call) => items.push(Item::FunctionCall {
                call_id: &call.id,
                name: &call.name,
                arguments: arguments_object(&call.arguments),
            }),
            // A model says nothing else.
            Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
}

fn reasoning<'a>(text: &'a str, value: &'a str) -> Option<Item<'a>> {
    let (id, encrypted_content) = value.split_once('.')?;
    let summary = (!text.is_empty()).then_some(Piece::SummaryText { text });
    Some(Item::Reasoning {
        id,
        summary: summary.into_iter().collect(),
        encrypted_content,
    })
}

/// What the model is told: results first, then words and images as one message.
fn heard<'a>(message: &'a Message, items: &mut Vec<Item<'a>>) {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => content.push(Piece::InputText {
                text: text_of(text).into(),
            }),
            Part::Image(shown) => content.push(image(shown)),
            Part::ToolResult(result) => items.push(Item::FunctionCallOutput {
                call_id: &result.id,
                output: output(result),
            }),
            Part::Reasoning { .. } | Part::ToolCall(_) => {}
        }
    }
    if !content.is_empty() {
        items.push(Item::Message {
            role: "user",
            content,
            phase: None,
        });
    }
}

fn output(result: &ToolResult) -> Output<'_> {
    let text = result_text(result);
    if result.images.is_empty() {
        return Output::Text(text);
    }
    let words = (!text.is_empty()).then_some(Piece::InputText { text });
    let images = result.images.iter().map(image);
    Output::Pieces(words.into_iter().chain(images).collect())
}

fn image(image: &Image) -> Piece<'_> {
    Piece::InputImage {
        image_url: data_url(image),
        detail: "auto",
    }
}

fn tool(tool: &ToolDefinition) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: Ordered::new(Cow::Borrowed(&tool.schema)),
        strict: false,
    }
}

fn format(schema: &Value) -> Text<'_> {
    Text {
        format: Format {
            r#type: "json_schema",
            name: "answer",
            strict: fits_strict(schema),
            schema: Ordered::new(Cow::Borrowed(schema)),
        },
    }
}
