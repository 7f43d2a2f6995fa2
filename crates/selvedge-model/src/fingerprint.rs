//! What a request is, in a few hashes: whether two are the same, and if not, in
//! what they differ.
//!
//! Text is hashed as text, however it is stored. Who asks and at which turn is
//! not part of it: the same request is the same, whoever makes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::{Effort, Message, Part, Request, Role};

/// Bytes of a hash that are kept: more than enough to tell requests apart.
const HASH_BYTES: usize = 16;

/// A request, in a few hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    pub(crate) model: String,
    system: String,
    messages: Vec<String>,
    tools: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<String>,
    output_tokens_max: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
}

impl Fingerprint {
    /// The fingerprint of `request`, as if it went to `model`.
    pub(crate) fn of(request: &Request, model: &str) -> Self {
        let tools = serde_json::to_vec(&*request.tools).expect("definitions have string keys");
        let schema = |schema: &Value| hash(|h| h.text(&schema.to_string()));
        Self {
            model: model.to_owned(),
            system: hash(|h| h.text(&request.system)),
            messages: request.messages.iter().map(|m| of_message(m)).collect(),
            tools: hash(|h| h.bytes(&tools)),
            output_schema: request.output_schema.as_deref().map(schema),
            output_tokens_max: request.output_tokens_max,
            temperature: request.temperature,
            effort: request.effort,
        }
    }

    /// One hash for all of it.
    pub(crate) fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("plain data");
        hash(|h| h.bytes(&json))
    }

    /// In what `asked` differs from this, in words.
    pub(crate) fn differences(&self, asked: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.model != asked.model {
            let (recorded, now) = (&self.model, &asked.model);
            found.push(format!("the model was `{recorded}` and is `{now}`"));
        }
        let same = [
            ("the system prompt", self.system == asked.system),
            ("the list of tools", self.tools == asked.tools),
            (
                "the output schema",
                self.output_schema == asked.output_schema,
            ),
            (
                "the limit on output tokens",
                self.output_tokens_max == asked.output_tokens_max,
            ),
            ("the temperature", self.temperature == asked.temperature),
            ("how long it thinks", self.effort == asked.effort),
        ];
        let others = same.into_iter().filter(|(_, is_same)| !is_same);
        found.extend(others.map(|(what, _)| format!("{what} differs")));
        let (was, is) = (self.messages.len(), asked.messages.len());
        let pairs = self.messages.iter().zip(&asked.messages);
        let first = pairs.enumerate().find(|(_, (was, is))| was != is);
        if let Some((n, _)) = first {
            found.push(format!("message {} of {is} differs", n + 1));
        } else if was != is {
            found.push(format!("there were {was} messages and are {is}"));
        }
        found
    }
}

fn of_message(message: &Message) -> String {
    hash(|h| {
        h.text(match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        });
        for part in &message.parts {
            match part {
                Part::Text { .. } => h.text("text"),
                Part::Image(image) => {
                    h.text("image");
                    h.text(&image.media_type);
                }
                Part::Reasoning { .. } => h.text("reasoning"),
                Part::ToolCall(call) => {
                    h.text("call");
                    h.text(&call.id);
                    h.text(&call.name);
                }
                Part::ToolResult(result) => {
                    h.text(if result.is_error { "error" } else { "result" });
                    h.text(&result.id);
                }
            }
            for payload in part.payloads() {
                h.text(payload.text().map_or("", |text| text));
            }
        }
    })
}

/// A hash over pieces, each with its length, so that none runs into the next.
struct Pieces(blake3::Hasher);

impl Pieces {
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

fn hash(fill: impl FnOnce(&mut Pieces)) -> String {
    let mut pieces = Pieces(blake3::Hasher::new());
    fill(&mut pieces);
    let hash = pieces.0.finalize();
    hash.to_hex()[..2 * HASH_BYTES].to_owned()
}
