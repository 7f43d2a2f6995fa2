//! A reply in OpenAI's Chat Completions.

use selvedge_model::Stop;
use serde_json::{Value, json};

use super::frames::{Frames, data, pieces};
use super::reply::Reply;
use super::wire::Asked;

/// The reply as a stream.
pub(super) fn frames(asked: &Asked, reply: &Reply) -> Frames {
    let chunk = |choices: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": asked.model, "choices": choices,
        })
    };
    let delta = |delta: Value| {
        data(&chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
        ))
    };
    let mut content = Vec::new();
    if let Some((reasoning, _)) = &reply.reasoning {
        content.extend(
            pieces(reasoning)
                .iter()
                .map(|piece| delta(json!({"reasoning_content": piece}))),
        );
    }
    content.extend(
        pieces(&reply.text)
            .iter()
            .map(|piece| delta(json!({"content": piece}))),
    );
    for (i, (name, arguments)) in reply.calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let opening =
            json!({"index": i, "id": Reply::call_id(i), "type": "function", "function": function});
        content.push(delta(json!({"tool_calls": [opening]})));
        for piece in pieces(arguments) {
            content.push(delta(
                json!({"tool_calls": [{"index": i, "function": {"arguments": piece}}]}),
            ));
        }
    }
    let finish = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}]);
    let mut stop = vec![data(&chunk(finish))];
    if asked.counts && !reply.usage.is_estimated {
        let mut last = chunk(json!([]));
        last["usage"] = usage(reply);
        stop.push(data(&last));
    }
    let open = vec![delta(json!({"role": "assistant", "content": ""}))];
    Frames {
        open,
        content,
        stop,
        done: vec![b"data: [DONE]\n\n".to_vec()],
    }
}

/// The reply in one piece.
pub(super) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let call = |(i, (name, arguments)): (usize, &(String, String))| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": Reply::call_id(i), "type": "function", "function": function})
    };
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.calls.is_empty() {
        message["tool_calls"] = reply.calls.iter().enumerate().map(call).collect();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
        "usage": usage(reply),
    })
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop_reason() {
        Stop::End => "stop",
        Stop::Tools => "tool_calls",
        Stop::Length => "length",
        Stop::Filtered => "content_filter",
    }
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
