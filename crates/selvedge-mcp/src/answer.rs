//! What a server answers, as the answer of a tool: text for the model, facts for
//! programs, and a word for what is neither.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use selvedge_tool::ToolOutput;
use serde_json::{Value, json};

/// An answer with more parts than this is cut.
const PARTS_MAX: usize = 500;
/// Structure longer than this is in the text only.
const STRUCTURE_BYTES_MAX: usize = 16 * 1024;

/// The answer to a call.
pub(crate) fn of_call(server: &str, tool: &str, result: CallToolResult) -> ToolOutput {
    let mut text = parts(&result.content);
    let structure = result.structured_content.filter(|s| !s.is_null());
    if let (true, Some(structure)) = (text.trim().is_empty(), &structure) {
        text = structure.to_string();
    }
    if text.trim().is_empty() {
        text = "[it answered with nothing]".into();
    }
    let mut facts = json!({"server": server, "tool": tool});
    if let Some(structure) = structure
        && structure.to_string().len() <= STRUCTURE_BYTES_MAX
    {
        facts["structure"] = structure;
    }
    ToolOutput {
        is_error: result.is_error == Some(true),
        ..ToolOutput::ok(text)
    }
    .with_facts(facts)
}

/// The text of parts, in their order.
pub(crate) fn parts(content: &[ContentBlock]) -> String {
    let mut texts: Vec<String> = content.iter().take(PARTS_MAX).map(part).collect();
    if content.len() > PARTS_MAX {
        texts.push(format!(
            "[{} more parts were left out]",
            content.len() - PARTS_MAX
        ));
    }
    texts.join("\n")
}

fn part(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => unshown("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => unshown("sound", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => resource(&embedded.resource),
        ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
        _ => "[a part of a kind that is not known here]".into(),
    }
}

/// The text of a resource.
pub(crate) fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let kind = mime_type.as_deref().unwrap_or("of no known type");
            format!("[{uri}]\n{}", unshown("data", kind, blob.len()))
        }
        _ => "[a resource of a kind that is not known here]".into(),
    }
}

fn unshown(what: &str, kind: &str, base64_chars: usize) -> String {
    let kind: String = kind.chars().filter(|c| !c.is_control()).take(60).collect();
    let kilobytes = (base64_chars * 3 / 4).div_ceil(1024);
    format!("[{what}, {kind}, {kilobytes} KB: not shown]")
}

/// A list, an item a line.
pub(crate) fn list(items: Vec<(String, String)>, what: &str) -> ToolOutput {
    if items.is_empty() {
        return ToolOutput::ok(format!("[there are no {what}]"));
    }
    let line = |(name, about): &(String, String)| match about.is_empty() {
        true => name.clone(),
        false => format!("{name}: {about}"),
    };
    let lines: Vec<String> = items.iter().map(line).collect();
    let names: Vec<Value> = items.into_iter().map(|(name, _)| name.into()).collect();
    ToolOutput::ok(lines.join("\n")).with_facts(json!({ "names": names }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: Value) -> ToolOutput {
        of_call("crm", "find", serde_json::from_value(result).unwrap())
    }

    #[test]
    fn text_is_told_structure_is_kept_and_the_rest_is_named() {
        let output = answer(json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "A".repeat(4096), "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "note://1", "text": "two"}},
                {"type": "resource_link", "uri": "note://2", "name": "second"},
            ],
            "structuredContent": {"count": 2},
        }));
        assert_eq!(
            output.text,
            "one\n[image, image/png, 3 KB: not shown]\n[note://1]\ntwo\n[resource second: note://2]"
        );
        assert_eq!(output.facts["structure"], json!({"count": 2}));
        assert!(!output.is_error);
    }

    #[test]
    fn structure_alone_is_told_and_an_error_is_one() {
        let output = answer(json!({"content": [], "structuredContent": {"ok": 1}}));
        assert_eq!(output.text, r#"{"ok":1}"#);
        let text = json!([{"type": "text", "text": "no such customer"}]);
        let output = answer(json!({"content": text, "isError": true}));
        assert!(output.is_error && output.text == "no such customer");
        let many: Vec<Value> = (0..600)
            .map(|_| json!({"type": "text", "text": "x"}))
            .collect();
        let output = answer(json!({ "content": many }));
        assert!(output.text.ends_with("[100 more parts were left out]"));
    }
}
