//! A conversation grows by appending, byte for byte: providers cache what they
//! have seen before only up to the first byte that differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_model::{Message, Part, Request, Role, ToolDefinition, ToolResult};
use selvedge_testkit::{Reply, Wire};
use serde_json::json;
use serde_json::value::RawValue;

use crate::world::{WIRES, World, request};

/// Where a protocol keeps what grows.
fn growing(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi | Wire::Anthropic => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    }
}

/// What is sent in each of some turns, in which the model thinks, speaks and
/// calls two tools.
async fn turns(wire: Wire) -> Vec<BTreeMap<String, String>> {
    let world = World::new(wire).await;
    let tools: Vec<_> = ["read_file", "list_files"]
        .map(|name| ToolDefinition {
            name: name.into(),
            description: format!("Does {name}."),
            schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        })
        .into();
    let mut messages = vec![Arc::new(Message::user("Größe?"))];
    for turn in 0..4 {
        let request = Request {
            turn,
            messages: messages.clone().into(),
            tools: tools.clone().into(),
            ..request()
        };
        let reply = Reply::text(format!("Turn {turn}."))
            .reasoning("hm", "c2VhbA==")
            .call("read_file", r#"{ "path" : "a" }"#)
            .call("list_files", "{}");
        let said = world.ask_with(reply, &request).await.unwrap();
        let results = said.calls().map(|call| {
            Part::ToolResult(ToolResult {
                id: call.id.clone(),
                content: format!("result of {turn}").into(),
                is_error: turn == 2,
                images: Vec::new(),
            })
        });
        let results = Message {
            role: Role::Tool,
            parts: results.collect(),
        };
        messages.extend([Arc::new(said.message.clone()), Arc::new(results)]);
    }
    let requests = world.server.requests();
    let fields = requests.iter().map(|sent| {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(&sent.text).unwrap();
        let fields = fields.into_iter();
        fields
            .map(|(name, raw)| (name, raw.get().to_owned()))
            .collect()
    });
    fields.collect()
}

#[tokio::test]
async fn each_request_begins_as_the_one_before_it() {
    for wire in WIRES {
        let turns = turns(wire).await;
        for (earlier, later) in turns.iter().zip(&turns[1..]) {
            // Marks for the cache are not part of what is cached.
            let unmarked = |fields: &BTreeMap<String, String>| {
                fields[growing(wire)].replace(r#","cache_control":{"type":"ephemeral"}"#, "")
            };
            let (earlier_said, later_said) = (unmarked(earlier), unmarked(later));
            let prefix = earlier_said.strip_suffix(']').unwrap();
            assert!(
                later_said.starts_with(prefix),
                "{wire:?}: {prefix}\n{later_said}"
            );
            assert!(later_said.len() > earlier_said.len() + 100, "{wire:?}");
            for (name, value) in earlier.iter().filter(|(name, _)| *name != growing(wire)) {
                assert_eq!(Some(value), later.get(name), "{wire:?} {name}");
            }
        }
    }
}

#[tokio::test]
async fn anthropic_is_told_what_to_cache() {
    let turns = turns(Wire::Anthropic).await;
    let marks = |text: &str| text.matches("cache_control").count();
    for (turn, fields) in turns.iter().enumerate() {
        assert_eq!(marks(&fields["tools"]), 1);
        assert!(fields["tools"].ends_with(r#""cache_control":{"type":"ephemeral"}}]"#));
        assert_eq!(marks(&fields["system"]), 1);
        // The last message, and the one that was last in the request before.
        assert_eq!(marks(&fields["messages"]), if turn == 0 { 1 } else { 2 });
        assert!(fields["messages"].ends_with(r#""cache_control":{"type":"ephemeral"}}]}]"#));
        assert!(fields.values().map(|text| marks(text)).sum::<usize>() <= 4);
    }
}
