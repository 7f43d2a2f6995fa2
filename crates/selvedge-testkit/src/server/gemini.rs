//! A reply in Google's Gemini.

use selvedge_model::Stop;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frames::{Frames, pieces};
use super::reply::Reply;
use super::wire::Asked;

/// The reply as a stream.
pub(super) fn frames(asked: &Asked, reply: &Reply) -> Frames {
    let mut content = Vec::new();
    if let Some((reasoning, _)) = &reply.reasoning {
        for piece in pieces(reasoning) {
            content.push(json!({"text": piece, "thought": true}).to_string());
        }
    }
    for piece in pieces(&reply.text) {
        content.push(json!({"text": piece}).to_string());
    }
    content.extend(calls(reply));
    // Words that lead to no call are signed at their end, on nothing.
    let signed = signature(reply).filter(|_| reply.calls.is_empty());
    content.extend(signed.map(|seal| json!({"text": "", "thoughtSignature": seal}).to_string()));
    Frames {
        open: Vec::new(),
        content: content
            .iter()
            .map(|part| event(asked, reply, part, false))
            .collect(),
        stop: vec![event(asked, reply, r#"{"text":""}"#, true)],
        done: Vec::new(),
    }
}

/// The reply in one piece.
pub(super) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let mut parts = Vec::new();
    if let Some((reasoning, _)) = &reply.reasoning {
        parts.push(json!({"text": reasoning, "thought": true}));
    }
    if !reply.text.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    parts.extend(
        calls(reply)
            .iter()
            .filter_map(|call| serde_json::from_str(call).ok()),
    );
    let content = json!({"role": "model", "parts": parts});
    json!({
        "candidates": [{"index": 0, "content": content, "finishReason": finish_reason(reply)}],
        "usageMetadata": usage(reply), "modelVersion": asked.model, "responseId": "resp_1",
    })
}

/// The calls as JSON text: their arguments stay as they were written.
fn calls(reply: &Reply) -> Vec<String> {
    let calls = reply.calls.iter().enumerate();
    let written = calls.map(|(i, (name, arguments))| {
        let args: &str = match serde_json::from_str::<&RawValue>(arguments) {
            Ok(_) => arguments,
            Err(_) => r#"{"half": "#,
        };
        let id = Reply::call_id(i);
        // Of calls made together only the first is signed.
        let signed = signature(reply).filter(|_| i == 0);
        let signed = signed.map(|seal| format!(r#","thoughtSignature":{}"#, json!(seal)));
        let signed = signed.unwrap_or_default();
        let name = json!(name);
        format!(r#"{{"functionCall":{{"id":"{id}","name":{name},"args":{args}}}{signed}}}"#)
    });
    written.collect()
}

fn event(asked: &Asked, reply: &Reply, part: &str, last: bool) -> Vec<u8> {
    let finish = match last {
        true => format!(r#","finishReason":"{}""#, finish_reason(reply)),
        false => String::new(),
    };
    let content = format!(r#"{{"parts":[{part}],"role":"model"}}"#);
    let (usage, model) = (usage(reply), json!(asked.model));
    format!(
        "data: {{\"candidates\":[{{\"index\":0,\"content\":{content}{finish}}}],\
         \"usageMetadata\":{usage},\"modelVersion\":{model},\"responseId\":\"resp_1\"}}\n\n"
    )
    .into_bytes()
}

fn signature(reply: &Reply) -> Option<&str> {
    let (_, signature) = reply.reasoning.as_ref()?;
    Some(signature)
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop_reason() {
        Stop::End | Stop::Tools => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Filtered => "SAFETY",
    }
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    json!({
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.total(),
    })
}
