//! What a model thought goes back to it, and to nobody else.

use std::sync::Arc;

use selvedge_model::{Message, Part, Request, Role, ToolResult};
use selvedge_testkit::{Reply, Wire};
use serde_json::{Value, json};

use crate::world::{WIRES, World, request};

const SEAL: &str = "c2VhbA==";

fn thoughtful() -> Reply {
    Reply::text("Looking.")
        .reasoning("hm", SEAL)
        .call("lookup", "{}")
        .call("lookup", r#"{"q":2}"#)
}

/// The next request after `said`, its calls answered.
fn next(said: &Message, model: &str) -> Request {
    let results = said.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(Part::ToolResult(ToolResult {
            id: call.id.clone(),
            content: "one".into(),
            is_error: false,
            images: Vec::new(),
        })),
        _ => None,
    });
    let results = Message {
        role: Role::Tool,
        parts: results.collect(),
    };
    let messages = vec![
        Arc::new(Message::user("hello")),
        Arc::new(said.clone()),
        Arc::new(results),
    ];
    Request {
        model: model.into(),
        messages: messages.into(),
        ..request()
    }
}

/// What `wire` sends of the message that `from` said.
async fn sent_back(from: Wire, wire: Wire, model: &str) -> Value {
    let said = World::new(from).await.ask(thoughtful()).await.unwrap();
    let world = World::new(wire).await;
    let request = next(&said.message, model);
    world.ask_with(Reply::text("ok"), &request).await.unwrap();
    world.server.last_request().body
}

#[tokio::test]
async fn anthropic_gets_its_thinking_back_with_its_signature() {
    let body = sent_back(Wire::Anthropic, Wire::Anthropic, "test/model-1").await;
    assert_eq!(
        body["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "hm", "signature": SEAL})
    );
}

#[tokio::test]
async fn responses_gets_its_item_back_before_what_followed_from_it() {
    let body = sent_back(Wire::Responses, Wire::Responses, "test/model-1").await;
    let kinds = body["input"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "message",
            "reasoning",
            "message",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output"
        ]
    );
    assert_eq!(
        body["input"][1],
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": SEAL,
            "summary": [{"type": "summary_text", "text": "hm"}]})
    );
}

#[tokio::test]
async fn gemini_gets_each_signature_back_on_the_part_it_came_with() {
    let body = sent_back(Wire::Gemini, Wire::Gemini, "test/model-1").await;
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"text": "Looking."},
            {"functionCall": {"id": "call_0", "name": "lookup", "args": {}}, "thoughtSignature": SEAL},
            {"functionCall": {"id": "call_1", "name": "lookup", "args": {"q": 2}}},
        ])
    );
    // Words that led to no call are signed at their end.
    let world = World::new(Wire::Gemini).await;
    let reply = Reply::text("Done.").reasoning("hm", SEAL);
    let said = world.ask(reply).await.unwrap().message;
    let request = next(&said, "test/model-1");
    world.ask_with(Reply::text("ok"), &request).await.unwrap();
    assert_eq!(
        world.server.last_request().body["contents"][1]["parts"],
        json!([{"text": "Done.", "thoughtSignature": SEAL}])
    );
}

#[tokio::test]
async fn chat_completions_gets_its_reasoning_back_in_the_field_it_came_in() {
    let body = sent_back(Wire::OpenAi, Wire::OpenAi, "test/model-1").await;
    let said = &body["messages"][2];
    assert_eq!(said["reasoning_content"], "hm", "{body}");
    assert_eq!(
        (&said["role"], &said["content"]),
        (&json!("assistant"), &json!("Looking."))
    );
}

#[tokio::test]
async fn nobody_else_gets_it() {
    for from in WIRES {
        for wire in WIRES {
            let model = if from == wire {
                "test/model-2"
            } else {
                "test/model-1"
            };
            let body = sent_back(from, wire, model).await;
            let text = body.to_string();
            let foreign = text.contains(SEAL) || text.contains("hm");
            assert!(!foreign, "{from:?} to {wire:?} {model}: {text}");
            assert!(text.contains("Looking."), "{from:?} to {wire:?}");
        }
        let elsewhere = sent_back(from, from, "other/model-1").await.to_string();
        assert!(!elsewhere.contains(SEAL), "{from:?}: {elsewhere}");
    }
}

#[tokio::test]
async fn a_call_of_another_model_is_one_that_gemini_takes() {
    let body = sent_back(Wire::OpenAi, Wire::Gemini, "test/gemini-4-argon").await;
    let parts = &body["contents"][1]["parts"];
    assert_eq!(
        parts[1]["thoughtSignature"],
        "skip_thought_signature_validator"
    );
    assert_eq!(parts[2]["thoughtSignature"], Value::Null);
}

#[tokio::test]
async fn what_words_were_for_is_kept() {
    let world = World::new(Wire::Responses).await;
    let phase = json!({"type": "response.output_item.done", "output_index": 0, "item": {
        "type": "message", "role": "assistant", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Looking."}]}});
    let events = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
        phase,
        json!({"type": "response.completed", "response": {"id": "resp_1"}}),
    ];
    let events: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let reply = Reply::text("").with_fault(selvedge_testkit::ReplyFault::ErrorEvent(events));
    let said = world.ask(reply).await.unwrap().message;
    let request = next(&said, "test/model-1");
    world.ask_with(Reply::text("ok"), &request).await.unwrap();
    assert_eq!(
        world.server.last_request().body["input"][1],
        json!({"type": "message", "role": "assistant", "phase": "commentary",
            "content": [{"type": "output_text", "text": "Looking."}]})
    );
}
