//! What is sent to a provider.

use std::sync::Arc;
use std::time::Duration;

use selvedge_model::{Effort, Message, Part, Request, Role, ToolCall, ToolDefinition, ToolResult};
use selvedge_testkit::{Reply, Wire};
use serde_json::{Value, json};

use crate::world::{KEY, World, provider, request};

fn tool_turn() -> Vec<Arc<Message>> {
    let call = |id: &str, arguments: &str| {
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: "lookup".into(),
            arguments: arguments.into(),
        })
    };
    let result = |id: &str, content: &str, is_error| {
        Part::ToolResult(ToolResult {
            id: id.into(),
            content: content.into(),
            is_error,
            images: Vec::new(),
        })
    };
    let text = |text: &str| Part::Text { text: text.into() };
    vec![
        Arc::new(Message::user("find both")),
        Arc::new(Message {
            role: Role::Assistant,
            parts: vec![
                text("Looking."),
                call("a", r#"{ "q": 1 }"#),
                call("b", r#"{"q": "#),
            ],
        }),
        Arc::new(Message {
            role: Role::Tool,
            parts: vec![result("a", "one", false), result("b", "bad JSON", true)],
        }),
        Arc::new(Message::user("hurry")),
    ]
}

fn full_request() -> Request {
    let schema = json!({"type": "object", "properties": {"q": {"type": "integer"}}});
    let tool = ToolDefinition {
        name: "lookup".into(),
        description: "Looks up.".into(),
        schema,
    };
    let answer = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"], "additionalProperties": false});
    Request {
        messages: tool_turn().into(),
        tools: Arc::from([tool]),
        output_schema: Some(Arc::new(answer)),
        temperature: Some(0.5),
        ..request()
    }
}

async fn sent(wire: Wire, request: &Request) -> Value {
    let world = World::new(wire).await;
    world.ask_with(Reply::text("ok"), request).await.unwrap();
    world.server.last_request().body
}

#[tokio::test]
async fn a_conversation_in_chat_completions() {
    let body = sent(Wire::OpenAi, &full_request()).await;
    let call = |id, arguments| json!({"id": id, "type": "function", "function": {"name": "lookup", "arguments": arguments}});
    assert_eq!(
        body,
        json!({
            "model": "model-1",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "find both"},
                {"role": "assistant", "content": "Looking.", "tool_calls": [
                    call("a", r#"{ "q": 1 }"#), call("b", r#"{"not_a_json_object":"{\"q\": "}"#),
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "one"},
                {"role": "tool", "tool_call_id": "b", "content": "error: bad JSON"},
                {"role": "user", "content": "hurry"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "lookup", "description": "Looks up.",
                "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}},
            }}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": {
                "type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
                "required": ["n"], "additionalProperties": false,
            }}},
            "max_tokens": 256,
            "temperature": 0.5,
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn a_conversation_in_messages() {
    let body = sent(Wire::Anthropic, &full_request()).await;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body,
        json!({
            "model": "model-1",
            "max_tokens": 256,
            "system": [{"type": "text", "text": "be brief", "cache_control": mark}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "find both", "cache_control": mark}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "a", "name": "lookup", "input": {"q": 1}},
                    {"type": "tool_use", "id": "b", "name": "lookup", "input": {"not_a_json_object": "{\"q\": "}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one", "is_error": false},
                    {"type": "tool_result", "tool_use_id": "b", "content": "bad JSON", "is_error": true},
                    {"type": "text", "text": "hurry", "cache_control": mark},
                ]},
            ],
            "tools": [{
                "name": "lookup", "description": "Looks up.",
                "input_schema": {"type": "object", "properties": {"q": {"type": "integer"}}},
                "cache_control": mark,
            }],
            "output_config": {"format": {"type": "json_schema", "schema": {
                "type": "object", "properties": {"n": {"type": "integer"}},
                "required": ["n"], "additionalProperties": false,
            }}},
            "temperature": 0.5,
            "stream": true,
        })
    );
}

#[tokio::test]
async fn a_conversation_in_responses() {
    let body = sent(Wire::Responses, &full_request()).await;
    let user = |text| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let call = |id, arguments| json!({"type": "function_call", "call_id": id, "name": "lookup", "arguments": arguments});
    let output = |id, text| json!({"type": "function_call_output", "call_id": id, "output": text});
    assert_eq!(
        body,
        json!({
            "model": "model-1",
            "instructions": "be brief",
            "input": [
                user("find both"),
                {"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": "Looking."}]},
                call("a", r#"{ "q": 1 }"#), call("b", r#"{"not_a_json_object":"{\"q\": "}"#),
                output("a", "one"), output("b", "error: bad JSON"),
                user("hurry"),
            ],
            "tools": [{
                "type": "function", "name": "lookup", "description": "Looks up.", "strict": false,
                "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}},
            }],
            "text": {"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": {
                "type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
                "required": ["n"], "additionalProperties": false,
            }}},
            "max_output_tokens": 256,
            "temperature": 0.5,
            "include": ["reasoning.encrypted_content"],
            "store": false,
            "stream": true,
        })
    );
}

#[tokio::test]
async fn a_conversation_in_gemini() {
    let request = Request {
        model: "test/gemini-3.8-flash".into(),
        ..full_request()
    };
    let body = sent(Wire::Gemini, &request).await;
    let call = |id, args| json!({"functionCall": {"id": id, "name": "lookup", "args": args}});
    let mut first = call("a", json!({"q": 1}));
    first["thoughtSignature"] = json!("skip_thought_signature_validator");
    let result = |id, response| json!({"functionResponse": {"id": id, "name": "lookup", "response": response}});
    assert_eq!(
        body,
        json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "find both"}]},
                {"role": "model", "parts": [
                    {"text": "Looking."},
                    first,
                    call("b", json!({"not_a_json_object": "{\"q\": "})),
                ]},
                {"role": "user", "parts": [
                    result("a", json!({"output": "one"})), result("b", json!({"error": "bad JSON"})),
                ]},
                {"role": "user", "parts": [{"text": "hurry"}]},
            ],
            "tools": [{"functionDeclarations": [{
                "name": "lookup", "description": "Looks up.",
                "parametersJsonSchema": {"type": "object", "properties": {"q": {"type": "integer"}}},
            }]}],
            "generationConfig": {
                "maxOutputTokens": 256,
                "temperature": 0.5,
                "responseMimeType": "application/json",
                "responseJsonSchema": {
                    "type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
                    "required": ["n"], "additionalProperties": false,
                },
                "thinkingConfig": {"includeThoughts": true},
            },
        })
    );
}

#[tokio::test]
async fn how_long_to_think_is_said_in_the_words_of_the_protocol() {
    let thinking = |model: &str, effort| Request {
        model: format!("test/{model}"),
        temperature: Some(0.5),
        effort: Some(effort),
        ..request()
    };
    let body = sent(Wire::OpenAi, &thinking("qwen3", Effort::Low)).await;
    assert_eq!(body["reasoning_effort"], "low");
    let body = sent(Wire::Responses, &thinking("gpt-5.4", Effort::High)).await;
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
    let body = sent(Wire::Responses, &thinking("gpt-4.1", Effort::High)).await;
    assert_eq!(body["reasoning"], Value::Null);

    let body = sent(
        Wire::Anthropic,
        &thinking("claude-sonnet-4-6", Effort::Medium),
    )
    .await;
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(body["output_config"], json!({"effort": "medium"}));
    assert_eq!(
        body["temperature"],
        Value::Null,
        "it is refused while thinking"
    );
    let body = sent(
        Wire::Anthropic,
        &thinking("claude-sonnet-4-6", Effort::None),
    )
    .await;
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
    assert_eq!(
        (&body["output_config"], &body["temperature"]),
        (&Value::Null, &json!(0.5))
    );
    let body = sent(
        Wire::Anthropic,
        &thinking("claude-3-7-sonnet", Effort::High),
    )
    .await;
    assert_eq!(
        (&body["thinking"], &body["output_config"]),
        (&Value::Null, &Value::Null)
    );

    for (model, effort, said) in [
        (
            "gemini-3.8-flash",
            Effort::None,
            json!({"includeThoughts": true, "thinkingLevel": "minimal"}),
        ),
        (
            "gemini-3-pro",
            Effort::Medium,
            json!({"includeThoughts": true, "thinkingLevel": "high"}),
        ),
        (
            "gemini-2.5-flash",
            Effort::None,
            json!({"includeThoughts": true, "thinkingBudget": 0}),
        ),
        ("gemini-2.0-flash", Effort::High, Value::Null),
    ] {
        let body = sent(Wire::Gemini, &thinking(model, effort)).await;
        assert_eq!(body["generationConfig"]["thinkingConfig"], said, "{model}");
    }
}

#[tokio::test]
async fn the_key_travels_in_the_header_of_the_protocol() {
    let world = World::new(Wire::OpenAi).await;
    world.ask(Reply::text("ok")).await.unwrap();
    let recorded = world.server.last_request();
    assert_eq!(recorded.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(recorded.path, "/v1/chat/completions");
    let world = World::new(Wire::Anthropic).await;
    world.ask(Reply::text("ok")).await.unwrap();
    let recorded = world.server.last_request();
    assert_eq!(recorded.headers["x-api-key"], KEY);
    assert_eq!(recorded.headers["anthropic-version"], "2023-06-01");
    assert_eq!(recorded.path, "/v1/messages");
    let world = World::new(Wire::Responses).await;
    world.ask(Reply::text("ok")).await.unwrap();
    let recorded = world.server.last_request();
    assert_eq!(recorded.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(recorded.path, "/v1/responses");
    let world = World::new(Wire::Gemini).await;
    world.ask(Reply::text("ok")).await.unwrap();
    let recorded = world.server.last_request();
    assert_eq!(recorded.headers["x-goog-api-key"], KEY);
    assert_eq!(
        recorded.path,
        "/v1beta/models/model-1:streamGenerateContent"
    );
    assert_eq!(recorded.query, "alt=sse");
}

/// The names that stand as properties in a text, in the order of the text.
fn properties_in<'a>(text: &str, names: &[&'a str]) -> Vec<&'a str> {
    let place = |name: &&str| text.find(&format!("\"{name}\":{{"));
    let mut found: Vec<&str> = names.to_vec();
    found.retain(|name| place(name).is_some());
    found.sort_by_key(place);
    found
}

#[tokio::test]
async fn fields_are_sent_in_the_order_in_which_they_are_to_be_answered() {
    let order = ["why", "list", "z_inner", "certain", "a_verdict"];
    let schema = json!({
        "type": "object",
        "properties": {
            "a_verdict": { "type": "string" },
            "list": { "type": "array", "items": {
                "type": "object",
                "properties": { "certain": { "type": "boolean" }, "z_inner": { "type": "string" } },
                "propertyOrdering": ["z_inner", "certain"],
                "required": ["z_inner", "certain"], "additionalProperties": false,
            } },
            "why": { "type": "string" },
        },
        "propertyOrdering": ["why", "list", "a_verdict"],
        "required": ["why", "list", "a_verdict"], "additionalProperties": false,
    });
    let tool = ToolDefinition {
        name: "judge".into(),
        description: String::new(),
        schema: schema.clone(),
    };
    let as_answer = Request {
        output_schema: Some(Arc::new(schema)),
        ..request()
    };
    let as_tool = Request {
        tools: Arc::from([tool]),
        ..request()
    };
    for wire in Wire::ALL {
        for (request, knows) in [(&as_answer, wire == Wire::Gemini), (&as_tool, false)] {
            let world = World::new(wire).await;
            world.ask_with(Reply::text("ok"), request).await.unwrap();
            let sent = world.server.last_request();
            assert_eq!(properties_in(&sent.text, &order), order, "{}", sent.text);
            // Others refuse a keyword that they do not know.
            assert_eq!(sent.text.contains("propertyOrdering"), knows, "{wire:?}");
            let is_strict = |at: &str| sent.body.pointer(at) == Some(&json!(true));
            if knows || request.output_schema.is_none() || wire == Wire::Anthropic {
                continue;
            }
            assert!(
                is_strict("/text/format/strict")
                    || is_strict("/response_format/json_schema/strict")
            );
        }
    }
}

#[test]
fn a_provider_knows_which_models_can_be_told_how_long_to_think() {
    let official = "https://api.openai.com/v1";
    for (wire, base_url, model, takes) in [
        (Wire::OpenAi, official, "gpt-5.2", true),
        (Wire::OpenAi, official, "gpt-4.1", false),
        // It would have to leave its tools.
        (Wire::OpenAi, official, "gpt-5.4", false),
        // Nobody knows what somebody's own server makes of a name.
        (Wire::OpenAi, "http://127.0.0.1:1/v1", "gpt-4.1", true),
        (Wire::Responses, official, "gpt-5.4", true),
        (Wire::Responses, official, "gpt-4o-mini", false),
        (
            Wire::Anthropic,
            "http://127.0.0.1:1",
            "claude-sonnet-4-6",
            true,
        ),
        (
            Wire::Anthropic,
            "http://127.0.0.1:1",
            "claude-3-7-sonnet",
            false,
        ),
        (Wire::Gemini, "http://127.0.0.1:1", "gemini-2.5-pro", true),
        (
            Wire::Gemini,
            "http://127.0.0.1:1",
            "gemini-2.0-flash",
            false,
        ),
    ] {
        let provider = provider(wire, base_url.to_owned(), Duration::ZERO);
        assert_eq!(provider.takes_effort(model), takes, "{wire:?}: {model}");
    }
}
