//! A request as Chat Completions has it.
//!
//! Borrowed throughout: the conversation is written straight into the body,
//! without a copy of every message on the way.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::Dialect;
use crate::providers::answer::{arguments_object, text_of};
use crate::providers::schema::fits_strict;
use crate::types::{Message, Part, Request, Role, ToolDefinition};

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
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
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
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
    parameters: &'a Value,
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
        reasoning_effort: excludes_tools.then_some("none"),
        stream: true,
        stream_options: json!({"include_usage": true}),
    }
}

fn entries(request: &Request) -> Vec<Entry<'_>> {
    let mut entries = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        let content = Some(Cow::from(&*request.system));
        entries.push(Entry {
            role: "system",
            content,
            ..Entry::default()
        });
    }
    for message in &request.messages {
        add(&mut entries, message);
    }
    entries
}

fn add<'a>(entries: &mut Vec<Entry<'a>>, message: &'a Message) {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => texts.push(text_of(text)),
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
                let text = text_of(&result.content);
                // The protocol has no place for it but the text.
                let unsaid = result.is_error && !text.to_ascii_lowercase().starts_with("error");
                let content = if unsaid {
                    format!("error: {text}").into()
                } else {
                    Cow::from(text)
                };
                let (content, tool_call_id) = (Some(content), Some(result.id.as_str()));
                entries.push(Entry {
                    role: "tool",
                    content,
                    tool_call_id,
                    ..Entry::default()
                });
            }
            // Not sent back: the protocol has no field for it that all servers take.
            Part::Reasoning { .. } => {}
        }
    }
    let content = match texts[..] {
        [] => None,
        [text] => Some(Cow::from(text)),
        _ => Some(Cow::from(texts.concat())),
    };
    if content.is_some() || !tool_calls.is_empty() {
        let role = if message.role == Role::Assistant {
            "assistant"
        } else {
            "user"
        };
        entries.push(Entry {
            role,
            content,
            tool_calls,
            tool_call_id: None,
        });
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
            parameters: schema,
        },
    }
}

fn format(schema: &Value) -> Value {
    let strict = fits_strict(schema);
    json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}})
}

/// Whether OpenAI has the model always reason, which fixes its temperature.
fn always_reasons(model: &str) -> bool {
    let o_series = model.starts_with('o') && model[1..].starts_with(|c: char| c.is_ascii_digit());
    o_series || version(model).is_some_and(|version| version >= (5, 0))
}

/// Whether OpenAI lets the model have tools here only if it does not reason.
fn reasons_without_tools(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (5, 4))
}

/// The 5 and the 4 of `gpt-5.4-mini`.
fn version(model: &str) -> Option<(u32, u32)> {
    let number = model.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_that_differ_are_told_by_their_version() {
        assert!(
            !always_reasons("gpt-4.1-mini")
                && always_reasons("gpt-5-mini")
                && always_reasons("o4-mini")
        );
        assert!(!always_reasons("gpt-oss:20b") && !always_reasons("olmo-3"));
        assert!(!reasons_without_tools("gpt-5.2") && reasons_without_tools("gpt-5.6-sol"));
        assert!(reasons_without_tools("gpt-6-luna") && !reasons_without_tools("gpt-4o"));
    }
}
