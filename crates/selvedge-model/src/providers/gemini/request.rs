//! A request as Gemini has it.
//!
//! Borrowed throughout, as for Chat Completions. A result names its tool here,
//! which the neutral type does not, so names are looked up among the calls.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::providers::answer::{arguments_object, text_of};
use crate::providers::ordered::Ordered;
use crate::providers::schema::for_gemini;
use crate::providers::seal::{Kind, Seal};
use crate::types::{Effort, Image, Message, Part, Request, Role, ToolDefinition, ToolResult};

/// Stands for the signature of a call that another model made: newer models
/// refuse a call without one, and this is the word they take instead.
const UNSIGNED: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    generation_config: Generation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Ordered<'static>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Piece<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Answered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    name: &'a str,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct Answered<'a> {
    id: &'a str,
    name: &'a str,
    response: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Tool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: Ordered<'static>,
}

/// The body to send.
pub(super) fn body(request: &Request) -> Body<'_> {
    let model = request.model_name();
    let system = (!request.system.is_empty()).then(|| Content {
        role: None,
        parts: vec![words(&request.system)],
    });
    let tools: Vec<Tool<'_>> = request.tools.iter().map(tool).collect();
    // Before the third generation it is one or the other; the caller checks
    // the answer and reminds the model.
    let schema = request.output_schema.as_deref();
    let schema = schema.filter(|_| tools.is_empty() || version(model) >= (3, 0));
    Body {
        system_instruction: system,
        contents: contents(request),
        tools: match tools.is_empty() {
            true => Vec::new(),
            false => vec![Tools {
                function_declarations: tools,
            }],
        },
        generation_config: Generation {
            max_output_tokens: request.output_tokens_max,
            temperature: request.temperature,
            response_mime_type: schema.map(|_| "application/json"),
            response_json_schema: schema.map(|s| Ordered::saying_so(Cow::Owned(for_gemini(s)))),
            thinking_config: thinking(model, request.effort),
        },
    }
}

/// Whether the model thinks; those before 2.5 do not.
pub(super) fn takes_effort(model: &str) -> bool {
    version(model) >= (2, 5)
}

/// Thoughts are always shown. How long it thinks is a level since the third generation,
/// and a number of tokens before.
fn thinking(model: &str, effort: Option<Effort>) -> Option<Value> {
    if !takes_effort(model) {
        return None;
    }
    let version = version(model);
    let mut config = json!({"includeThoughts": true});
    let is_pro = model.contains("pro");
    if let Some(effort) = effort {
        match (version >= (3, 0), effort) {
            (true, Effort::None) if is_pro => config["thinkingLevel"] = json!("low"),
            (true, Effort::None) => config["thinkingLevel"] = json!("minimal"),
            (true, Effort::Medium) if is_pro && version < (3, 1) => {
                config["thinkingLevel"] = json!("high");
            }
            (true, effort) => config["thinkingLevel"] = json!(effort),
            (false, Effort::None) if is_pro => config["thinkingBudget"] = json!(128),
            (false, Effort::None) => config["thinkingBudget"] = json!(0),
            (false, Effort::Low) => config["thinkingBudget"] = json!(1_024),
            (false, Effort::Medium) => config["thinkingBudget"] = json!(8_192),
            (false, Effort::High) => config["thinkingBudget"] = json!(24_576),
        }
    }
    Some(config)
}

fn contents(request: &Request) -> Vec<Content<'_>> {
    let mut names = BTreeMap::new();
    let mut contents = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message.role {
            Role::Assistant => {
                let parts = said(message, request, &mut names);
                contents.push(Content {
                    role: Some("model"),
                    parts,
                });
            }
            Role::User | Role::Tool => {
                let parts = heard(message, &names);
                contents.push(Content {
                    role: Some("user"),
                    parts,
                });
            }
        }
    }
    contents.retain(|content| !content.parts.is_empty());
    contents
}

/// What the model said; the names of its calls are noted.
fn said<'a>(
    message: &'a Message,
    request: &Request,
    names: &mut BTreeMap<&'a str, &'a str>,
) -> Vec<Piece<'a>> {
    let wants_signature = version(request.model_name()) >= (3, 0);
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut signature = None;
    let mut calls = 0;
    for part in &message.parts {
        match part {
            Part::Text { text } => pieces.push(Piece {
                thought_signature: signature.take(),
                ..words(text_of(text))
            }),
            Part::Reasoning {
                text,
                signature: seal,
            } => {
                let seal = seal.as_ref();
                match seal.and_then(|seal| Seal::read(seal, &request.model)) {
                    Some(seal) if seal.kind == Kind::Next => signature = Some(seal.value),
                    Some(seal) if seal.kind == Kind::Thought => pieces.push(Piece {
                        thought: true,
                        thought_signature: Some(seal.value),
                        ..words(text_of(text))
                    }),
                    _ => {}
                }
            }
            Part::ToolCall(call) => {
                names.insert(&call.id, &call.name);
                let args = RawValue::from_string(arguments_object(&call.arguments));
                // Of calls made together only the first is signed.
                let unsigned = (wants_signature && calls == 0).then_some(UNSIGNED);
                calls += 1;
                pieces.push(Piece {
                    function_call: Some(Call {
                        id: &call.id,
                        name: &call.name,
                        args: args.expect("it was made to be an object"),
                    }),
                    thought_signature: signature.take().or(unsigned),
                    ..Piece::default()
                });
            }
            // A model says nothing else.
            Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    // A signature at the very end is on words that never came.
    pieces.extend(signature.map(|signature| Piece {
        thought_signature: Some(signature),
        ..words("")
    }));
    pieces
}

/// What the model is told: results first, then what there is to see and read.
fn heard<'a>(message: &'a Message, names: &BTreeMap<&'a str, &'a str>) -> Vec<Piece<'a>> {
    let (mut results, mut others) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text } => others.push(words(text_of(text))),
            Part::Image(shown) => others.push(image(shown)),
            Part::ToolResult(result) => {
                let name = names.get(result.id.as_str());
                results.push(answered(result, name.copied().unwrap_or("unknown")));
                others.extend(result.images.iter().map(image));
            }
            Part::Reasoning { .. } | Part::ToolCall(_) => {}
        }
    }
    results.append(&mut others);
    results
}

fn answered<'a>(result: &'a ToolResult, name: &'a str) -> Piece<'a> {
    let text = text_of(&result.content);
    let response = match result.is_error {
        true => json!({ "error": text }),
        false => json!({ "output": text }),
    };
    Piece {
        function_response: Some(Answered {
            id: &result.id,
            name,
            response,
        }),
        ..Piece::default()
    }
}

fn words(text: &str) -> Piece<'_> {
    Piece {
        text: Some(text),
        ..Piece::default()
    }
}

fn image(image: &Image) -> Piece<'_> {
    Piece {
        inline_data: Some(InlineData {
            mime_type: &image.media_type,
            data: text_of(&image.data),
        }),
        ..Piece::default()
    }
}

fn tool(tool: &ToolDefinition) -> Tool<'_> {
    Tool {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: Ordered::new(Cow::Owned(for_gemini(&tool.schema))),
    }
}

/// The 3 and the 8 of `gemini-3.8-flash`; a name without a number is of the newest.
fn version(model: &str) -> (u32, u32) {
    let numbered = model.split('-').find_map(|word| {
        let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    match numbered {
        Some(version) if model.starts_with("gemini") => version,
        None if model.starts_with("gemini") => (u32::MAX, 0),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_generation_is_in_its_name() {
        assert_eq!(version("gemini-3.8-flash"), (3, 8));
        assert_eq!(version("gemini-4-argon"), (4, 0));
        assert!(version("gemini-flash-latest") > version("gemini-4-argon"));
        assert_eq!(version("gemma-3-27b-it"), (0, 0));
    }
}
