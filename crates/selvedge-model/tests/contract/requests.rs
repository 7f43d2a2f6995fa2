//! What is sent to a provider.

use std::sync::Arc;

use selvedge_model::{Message, Part, Request, Role, ToolCall, ToolDefinition, ToolResult};
use selvedge_testkit::{Reply, Wire};
use serde_json::{Value, json};

use crate::world::{KEY, World, request};

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
        messages: tool_turn(),
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
async fn reasoning_goes_back_sealed_to_the_model_that_made_it_and_to_no_other() {
    let world = World::new(Wire::Anthropic).await;
    let reply = Reply::text("")
        .reasoning("hm", "c2VhbA==")
        .call("lookup", "{}");
    let said = world.ask(reply).await.unwrap().message;
    let answer = |model: &str| {
        let result = ToolResult {
            id: "toolu_0".into(),
            content: "one".into(),
            is_error: false,
        };
        let results = Message {
            role: Role::Tool,
            parts: vec![Part::ToolResult(result)],
        };
        let messages = vec![
            Arc::new(Message::user("hello")),
            Arc::new(said.clone()),
            Arc::new(results),
        ];
        Request {
            model: model.into(),
            messages,
            ..request()
        }
    };
    world
        .ask_with(Reply::text("ok"), &answer("test/model-1"))
        .await
        .unwrap();
    let sent = &world.server.last_request().body["messages"][1]["content"];
    assert_eq!(
        sent[0],
        json!({"type": "thinking", "thinking": "hm", "signature": "c2VhbA=="})
    );
    world
        .ask_with(Reply::text("ok"), &answer("test/model-2"))
        .await
        .unwrap();
    let sent = &world.server.last_request().body["messages"][1]["content"];
    assert_eq!(sent[0]["type"], "tool_use");
    let openai = World::new(Wire::OpenAi).await;
    openai
        .ask_with(Reply::text("ok"), &answer("test/model-1"))
        .await
        .unwrap();
    assert!(!openai.server.last_request().body.to_string().contains("hm"));
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
}
