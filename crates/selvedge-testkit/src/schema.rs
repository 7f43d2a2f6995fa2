//! A value that fits a JSON Schema, by chance.
//!
//! It knows what the schemas of this project use. What fits is still whatever a model
//! might come up with: paths that lead out, empty texts, texts that look like JSON.

use serde_json::{Map, Value, json};

use crate::sim::Dice;

/// Lists are no longer than this, and optional parts end at this depth.
const ITEMS_MAX: u64 = 3;
const DEPTH_MAX: u32 = 6;

/// What a model might write where a text is wanted.
const TEXTS: [&str; 22] = [
    "",
    " ",
    "a",
    "notes.txt",
    "src/main.sh",
    "sub/new.txt",
    ".",
    "..",
    "../outside/escaped",
    "../../escaped",
    "/etc/selvedge-escaped",
    "link/escaped",
    ".git/config",
    "@result/t0.0",
    "two\nlines",
    "\u{0}",
    "ünïcödé 🧵",
    "{\"task\": 1}",
    "null",
    "done",
    "x\u{202e}y",
    "build it, and test it",
];

/// A value that fits `schema`; any value where the schema does not say.
pub fn fitting(schema: &Value, dice: &Dice) -> Value {
    value(schema, dice, 0)
}

fn value(schema: &Value, dice: &Dice, depth: u32) -> Value {
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    for one_of in ["enum", "oneOf", "anyOf"] {
        let Some(choices) = schema.get(one_of).and_then(Value::as_array) else {
            continue;
        };
        let chosen = &choices[pick(choices.len(), dice)];
        return match one_of {
            "enum" => chosen.clone(),
            _ => value(chosen, dice, depth),
        };
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds[pick(kinds.len(), dice)].as_str(),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("object") => object(schema, dice, depth),
        Some("array") => {
            let least = number(schema, "minItems").unwrap_or(0).unsigned_abs();
            let more = if depth < DEPTH_MAX { ITEMS_MAX } else { 0 };
            let items =
                (0..least + dice.below(more + 1)).map(|_| value(&schema["items"], dice, depth + 1));
            Value::Array(items.collect())
        }
        Some("integer" | "number") => {
            let least = number(schema, "minimum").unwrap_or(0);
            let most = number(schema, "maximum").unwrap_or(least.saturating_add(1000));
            let span = most.saturating_sub(least).unsigned_abs().saturating_add(1);
            json!(least.saturating_add(dice.below(span).cast_signed()))
        }
        Some("boolean") => json!(dice.percent(50)),
        Some("null") => Value::Null,
        // A text, or anything at all.
        _ => json!(TEXTS[pick(TEXTS.len(), dice)]),
    }
}

fn object(schema: &Value, dice: &Dice, depth: u32) -> Value {
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let mut fields = Map::new();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let is_wanted = required(name) || (depth < DEPTH_MAX && dice.percent(40));
        if is_wanted {
            fields.insert(name.clone(), value(inner, dice, depth + 1));
        }
    }
    Value::Object(fields)
}

fn number(schema: &Value, name: &str) -> Option<i64> {
    let number = schema.get(name)?;
    number
        .as_i64()
        .or_else(|| number.as_f64().map(|n| n as i64))
}

fn pick(count: usize, dice: &Dice) -> usize {
    usize::try_from(dice.below(count as u64)).expect("below a length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_value_and_it_has_what_is_required() {
        let schema = json!({
            "type": "object",
            "required": ["name", "kind", "list"],
            "properties": {
                "name": { "type": "string" },
                "kind": { "oneOf": [{ "const": "a" }, { "enum": ["b", "c"] }] },
                "list": { "type": "array", "minItems": 1, "items": { "type": "integer" } },
                "more": { "type": ["boolean", "null"] },
            },
        });
        for seed in 0..200 {
            let made = fitting(&schema, &Dice::new(seed, "schema"));
            assert_eq!(made, fitting(&schema, &Dice::new(seed, "schema")));
            assert!(
                made["name"].is_string() && made["list"][0].is_i64(),
                "{made}"
            );
            assert!(["a", "b", "c"].contains(&made["kind"].as_str().unwrap()));
            let more = made.get("more");
            assert!(more.is_none_or(|more| more.is_boolean() || more.is_null()));
        }
    }
}
