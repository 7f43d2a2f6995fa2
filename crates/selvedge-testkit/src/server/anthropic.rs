//! A reply in Anthropic's Messages.

use selvedge_model::Stop;
use serde_json::{Value, json};

use super::frames::{Frames, named, pieces};
use super::reply::Reply;
use super::wire::Asked;

/// The reply as a stream.
pub(super) fn frames(asked: &Asked, reply: &Reply) -> Frames {
    let mut message = whole(asked, reply);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    let open = vec![
        named(&json!({"type": "message_start", "message": message})),
        named(&json!({"type": "ping"})),
    ];
    let mut blocks = Blocks::default();
    if let Some((reasoning, signature)) = &reply.reasoning {
        let mut deltas: Vec<Value> = pieces(reasoning)
            .iter()
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        blocks.add(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        );
    }
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text)
            .into_iter()
            .map(|piece| json!({"type": "text_delta", "text": piece}));
        blocks.add(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (i, (name, arguments)) in reply.calls.iter().enumerate() {
        let delta = |piece| json!({"type": "input_json_delta", "partial_json": piece});
        let block =
            json!({"type": "tool_use", "id": format!("toolu_{i}"), "name": name, "input": {}});
        blocks.add(block, pieces(arguments).into_iter().map(delta).collect());
    }
    let usage = json!({
        "output_tokens": reply.usage.output,
        "output_tokens_details": {"thinking_tokens": reply.usage.reasoning},
    });
    let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    Frames {
        open,
        content: blocks.frames,
        stop: vec![named(
            &json!({"type": "message_delta", "delta": delta, "usage": usage}),
        )],
        done: vec![named(&json!({"type": "message_stop"}))],
    }
}

/// The reply in one piece.
pub(super) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let mut content = Vec::new();
    if let Some((thinking, signature)) = &reply.reasoning {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": signature}));
    }
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    for (i, (name, arguments)) in reply.calls.iter().enumerate() {
        let input: Value = serde_json::from_str(arguments).unwrap_or(json!({}));
        content.push(
            json!({"type": "tool_use", "id": format!("toolu_{i}"), "name": name, "input": input}),
        );
    }
    let usage = &reply.usage;
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
        "content": content, "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_written),
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": usage.cache_written,
            "output_tokens": usage.output,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
        },
    })
}

#[derive(Default)]
struct Blocks {
    count: usize,
    frames: Vec<Vec<u8>>,
}

impl Blocks {
    fn add(&mut self, block: Value, deltas: Vec<Value>) {
        let index = self.count;
        self.count += 1;
        self.frames.push(named(
            &json!({"type": "content_block_start", "index": index, "content_block": block}),
        ));
        for delta in deltas {
            self.frames.push(named(
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
        }
        self.frames.push(named(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.stop_reason() {
        Stop::End => "end_turn",
        Stop::Tools => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Filtered => "refusal",
    }
}
