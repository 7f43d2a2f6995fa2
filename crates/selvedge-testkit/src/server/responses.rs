//! A reply in OpenAI's Responses.

use selvedge_model::Stop;
use serde_json::{Value, json};

use super::frames::{Frames, named, pieces};
use super::reply::Reply;
use super::wire::Asked;

/// The reply as a stream.
pub(super) fn frames(asked: &Asked, reply: &Reply) -> Frames {
    let mut opening = whole(asked, reply);
    opening["status"] = json!("in_progress");
    opening["output"] = json!([]);
    opening["usage"] = Value::Null;
    opening["incomplete_details"] = Value::Null;
    let mut written = Written::default();
    written.add("created", json!({"response": opening}));
    written.add("in_progress", json!({"response": opening}));
    let open = std::mem::take(&mut written.frames);
    for (index, item) in items(reply).into_iter().enumerate() {
        written.item(index, item);
    }
    let content = std::mem::take(&mut written.frames);
    let end = match reply.stop_reason() {
        Stop::End | Stop::Tools => "completed",
        Stop::Length | Stop::Filtered => "incomplete",
    };
    written.add(end, json!({"response": whole(asked, reply)}));
    Frames {
        open,
        content,
        stop: written.frames,
        done: Vec::new(),
    }
}

/// The reply in one piece.
pub(super) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let (status, details) = match reply.stop_reason() {
        Stop::End | Stop::Tools => ("completed", Value::Null),
        Stop::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
        Stop::Filtered => ("incomplete", json!({"reason": "content_filter"})),
    };
    let usage = &reply.usage;
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": asked.model,
        "status": status, "incomplete_details": details, "error": null, "instructions": null,
        "metadata": {}, "output": items(reply), "parallel_tool_calls": true, "temperature": null,
        "tool_choice": "auto", "tools": [], "top_p": null,
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.total(),
        },
    })
}

fn items(reply: &Reply) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some((text, sealed)) = &reply.reasoning {
        let summary = json!([{"type": "summary_text", "text": text}]);
        items.push(json!({
            "type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": sealed,
        }));
    }
    if !reply.text.is_empty() {
        let content = json!([{"type": "output_text", "text": reply.text, "annotations": []}]);
        items.push(json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": content,
        }));
    }
    for (i, (name, arguments)) in reply.calls.iter().enumerate() {
        items.push(json!({
            "type": "function_call", "id": format!("fc_{i}"), "call_id": Reply::call_id(i),
            "name": name, "arguments": arguments, "status": "completed",
        }));
    }
    items
}

#[derive(Default)]
struct Written {
    sequence: u64,
    frames: Vec<Vec<u8>>,
}

impl Written {
    fn add(&mut self, kind: &str, mut event: Value) {
        event["type"] = json!(format!("response.{kind}"));
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.frames.push(named(&event));
    }

    fn item(&mut self, index: usize, item: Value) {
        let mut opening = item.clone();
        opening["status"] = json!("in_progress");
        let place = |more: Value| {
            let mut event = json!({"output_index": index, "item_id": item["id"]});
            for (name, value) in more.as_object().into_iter().flatten() {
                event[name] = value.clone();
            }
            event
        };
        match item["type"].as_str() {
            Some("message") => {
                opening["content"] = json!([]);
                self.add("output_item.added", place(json!({"item": opening})));
                let text = item["content"][0]["text"].as_str().unwrap_or_default();
                let empty = json!({"type": "output_text", "text": "", "annotations": []});
                let at = |more| {
                    let mut event = place(more);
                    event["content_index"] = json!(0);
                    event
                };
                self.add("content_part.added", at(json!({"part": empty})));
                for piece in pieces(text) {
                    let delta = json!({"delta": piece, "logprobs": []});
                    self.add("output_text.delta", at(delta));
                }
                self.add(
                    "output_text.done",
                    at(json!({"text": text, "logprobs": []})),
                );
                self.add("content_part.done", at(json!({"part": item["content"][0]})));
            }
            Some("reasoning") => {
                opening["summary"] = json!([]);
                opening["encrypted_content"] = Value::Null;
                self.add("output_item.added", place(json!({"item": opening})));
                let text = item["summary"][0]["text"].as_str().unwrap_or_default();
                let at = |more| {
                    let mut event = place(more);
                    event["summary_index"] = json!(0);
                    event
                };
                let part = |text: &str| json!({"part": {"type": "summary_text", "text": text}});
                self.add("reasoning_summary_part.added", at(part("")));
                for piece in pieces(text) {
                    self.add("reasoning_summary_text.delta", at(json!({"delta": piece})));
                }
                self.add("reasoning_summary_text.done", at(json!({"text": text})));
                self.add("reasoning_summary_part.done", at(part(text)));
            }
            _ => {
                opening["arguments"] = json!("");
                self.add("output_item.added", place(json!({"item": opening})));
                let arguments = item["arguments"].as_str().unwrap_or_default();
                for piece in pieces(arguments) {
                    let event = place(json!({"delta": piece}));
                    self.add("function_call_arguments.delta", event);
                }
                let event = place(json!({"arguments": arguments, "name": item["name"]}));
                self.add("function_call_arguments.done", event);
            }
        }
        self.add("output_item.done", place(json!({"item": item})));
    }
}
