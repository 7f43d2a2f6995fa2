//! What a model thought, in the fields that servers have added for it.
//!
//! The protocol has none. DeepSeek and those after it say `reasoning_content`, others
//! `reasoning`, and OpenRouter also sends `reasoning_details`, which hold the seals of
//! whoever is behind it. Each of them wants it back as it came, in the same field, and
//! some refuse a conversation without it. So the field is kept with the thought, and
//! only the model that said it gets it back.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::providers::answer::text_of;
use crate::providers::seal::{Kind, Seal};
use crate::types::Part;

const CONTENT: &str = "reasoning_content";
const PLAIN: &str = "reasoning";

/// A piece of a thought.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Thought {
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Option<Vec<Map<String, Value>>>,
}

/// A thought on its way.
#[derive(Default)]
pub(super) struct Reasoning {
    text: String,
    field: Option<&'static str>,
    details: Vec<Map<String, Value>>,
}

impl Reasoning {
    /// Takes a piece; returns its words.
    pub(super) fn take(&mut self, piece: &mut Thought) -> Option<String> {
        let details = piece.reasoning_details.take().unwrap_or_default();
        let detailed: String = details.iter().filter_map(words).collect();
        details.into_iter().for_each(|detail| self.add(detail));
        let fields = [
            (CONTENT, piece.reasoning_content.take()),
            (PLAIN, piece.reasoning.take()),
        ];
        let mut said = fields
            .into_iter()
            .filter_map(|(field, text)| Some((field, text.filter(|text| !text.is_empty())?)));
        let text = match said.next() {
            Some((field, text)) => {
                self.field.get_or_insert(field);
                text
            }
            None => detailed,
        };
        self.text.push_str(&text);
        (!text.is_empty()).then_some(text)
    }

    /// Adds a detail, or what is new of one that has begun.
    fn add(&mut self, detail: Map<String, Value>) {
        let is_same = |last: &&mut Map<String, Value>| {
            let same = |name| last.get(name) == detail.get(name);
            detail.contains_key("index") && same("index") && same("type")
        };
        let Some(last) = self.details.last_mut().filter(is_same) else {
            return self.details.push(detail);
        };
        for (name, value) in detail {
            match (last.get_mut(&name), value) {
                (Some(Value::String(known)), Value::String(more)) if grows(&name) => {
                    known.push_str(&more);
                }
                (Some(_), Value::Null) => {}
                (_, value) => drop(last.insert(name, value)),
            }
        }
    }

    pub(super) fn into_part(self, model: &str) -> Option<Part> {
        let details = (!self.details.is_empty()).then(|| {
            let json = serde_json::to_string(&self.details).expect("it was JSON");
            Seal {
                kind: Kind::Details,
                value: &hidden(&json),
            }
            .write(model)
        });
        let field = self.field.map(|field| {
            Seal {
                kind: Kind::Field,
                value: field,
            }
            .write(model)
        });
        let signature = details.or(field);
        (signature.is_some() || !self.text.is_empty()).then(|| Part::Reasoning {
            text: self.text.into(),
            signature,
        })
    }
}

/// A thought as it goes back: in the field it came in.
#[derive(Default, Serialize)]
pub(super) struct Recalled<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Box<RawValue>>,
}

impl<'a> Recalled<'a> {
    /// Adds a part of a message, if it is a thought that `model` takes back.
    pub(super) fn add(&mut self, part: &'a Part, model: &str) {
        let Part::Reasoning {
            text,
            signature: Some(signature),
        } = part
        else {
            return;
        };
        match Seal::read(signature, model) {
            Some(Seal {
                kind: Kind::Field,
                value: CONTENT,
            }) => self.reasoning_content = Some(text_of(text)),
            Some(Seal {
                kind: Kind::Field,
                value: PLAIN,
            }) => self.reasoning = Some(text_of(text)),
            Some(Seal {
                kind: Kind::Details,
                value,
            }) => self.reasoning_details = RawValue::from_string(shown(value)).ok(),
            _ => {}
        }
    }
}

/// Whether pieces of a field are put one after the other.
fn grows(name: &str) -> bool {
    matches!(name, "text" | "summary" | "data")
}

/// What a detail says in words.
fn words(detail: &Map<String, Value>) -> Option<&str> {
    let named = |name| detail.get(name).and_then(Value::as_str);
    named("text").or_else(|| named("summary"))
}

/// JSON without a colon, as a seal needs it. Plain otherwise, so that what must not
/// be stored is found in it.
fn hidden(json: &str) -> String {
    json.replace('%', "%25").replace(':', "%3A")
}

fn shown(value: &str) -> String {
    value.replace("%3A", ":").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What was heard, and what goes back to `model`, of pieces that `here/one` said.
    fn back(pieces: &[Value], model: &str) -> (String, Value) {
        let mut reasoning = Reasoning::default();
        let mut heard = String::new();
        for piece in pieces {
            let mut thought = serde_json::from_value(piece.clone()).unwrap();
            heard.extend(reasoning.take(&mut thought));
        }
        let part = reasoning.into_part("here/one");
        let mut recalled = Recalled::default();
        if let Some(part) = &part {
            recalled.add(part, model);
        }
        (heard, serde_json::to_value(recalled).unwrap())
    }

    #[test]
    fn a_thought_goes_back_in_the_field_it_came_in() {
        for field in [CONTENT, PLAIN] {
            let pieces = [json!({field: "so: "}), json!({field: "50%"})];
            let (heard, sent) = back(&pieces, "here/one");
            assert_eq!(
                (heard.as_str(), sent),
                ("so: 50%", json!({field: "so: 50%"}))
            );
            assert_eq!(back(&pieces, "here/two").1, json!({}));
        }
        assert_eq!(back(&[json!({})], "here/one").1, json!({}));
    }

    #[test]
    fn details_go_back_put_together_with_their_seals() {
        let detail = |text: &str, signature: Value| {
            json!({"reasoning": text, "reasoning_details": [{
                "type": "reasoning.text", "index": 0, "text": text, "signature": signature,
            }]})
        };
        let pieces = [
            detail("one: ", Value::Null),
            detail("100%3A", json!("seal:1")),
            json!({"reasoning_details": [{
                "type": "reasoning.encrypted", "index": 1, "data": "ab==",
            }]}),
        ];
        let (heard, sent) = back(&pieces, "here/one");
        assert_eq!(heard, "one: 100%3A");
        assert_eq!(
            sent,
            json!({"reasoning_details": [
                {"type": "reasoning.text", "index": 0, "text": "one: 100%3A", "signature": "seal:1"},
                {"type": "reasoning.encrypted", "index": 1, "data": "ab=="},
            ]})
        );
        assert_eq!(back(&pieces, "there/one").1, json!({}));
    }
}
