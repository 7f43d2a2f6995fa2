//! The part of JSON Schema that providers can hold a model to.
//!
//! Each supports its own portion and refuses the request for the rest. The
//! caller checks the answer against the whole schema anyway, so what a provider
//! cannot enforce may be left out of what it is told.

use serde_json::{Map, Value};

use super::ordered::ORDER;

/// What OpenAI takes in strict mode.
const STRICT: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// What Anthropic takes.
const PLAIN: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "format",
    "items",
    "properties",
    "required",
    "title",
    "type",
];

/// What Gemini takes.
const GEMINI: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "prefixItems",
    "properties",
    "required",
    "title",
    "type",
];

/// Whether OpenAI's strict mode would take the schema as it is.
pub(super) fn fits_strict(schema: &Value) -> bool {
    let Value::Object(fields) = schema else {
        return false;
    };
    let known = fields
        .keys()
        .all(|key| STRICT.contains(&key.as_str()) || key == "$schema" || key == ORDER);
    known && closed(fields) && children(fields).all(|(_, child)| fits_strict(child))
}

/// The schema without what Anthropic would refuse: its objects are closed.
pub(super) fn simplified(schema: &Value) -> Value {
    reduced(schema, PLAIN, true)
}

/// The schema without what Gemini would refuse.
pub(super) fn for_gemini(schema: &Value) -> Value {
    reduced(schema, GEMINI, false)
}

/// The schema with only the `kept` words in it.
fn reduced(schema: &Value, kept: &[&str], close: bool) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let again = |child: &Value| reduced(child, kept, close);
    let mut simple = Map::new();
    for (key, value) in fields {
        let key = match key.as_str() {
            "oneOf" => "anyOf",
            "const" if !kept.contains(&"const") => {
                simple.insert("enum".to_owned(), Value::Array(vec![value.clone()]));
                continue;
            }
            key => key,
        };
        // What is told of it is for whoever writes the request to say.
        if !kept.contains(&key) && key != ORDER {
            continue;
        }
        let value = match (key, value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => Value::Object(
                named
                    .iter()
                    .map(|(name, child)| (name.clone(), again(child)))
                    .collect(),
            ),
            ("anyOf" | "allOf" | "prefixItems", Value::Array(options)) => {
                options.iter().map(again).collect()
            }
            ("items", child) => again(child),
            (_, other) => other.clone(),
        };
        simple.insert(key.to_owned(), value);
    }
    if close && is_object(fields) {
        simple.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(simple)
}

/// Whether an object names all it may hold, and needs all it names.
fn closed(fields: &Map<String, Value>) -> bool {
    if !is_object(fields) {
        return true;
    }
    let empty = Map::new();
    let properties = fields
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required = fields
        .get("required")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let needed = |name: &String| required.iter().any(|needed| needed == name.as_str());
    fields.get("additionalProperties") == Some(&Value::Bool(false)) && properties.keys().all(needed)
}

fn is_object(fields: &Map<String, Value>) -> bool {
    fields.get("type").is_some_and(|kind| kind == "object") || fields.contains_key("properties")
}

fn children(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    fields
        .iter()
        .flat_map(|(key, value)| -> Vec<(&str, &Value)> {
            match (key.as_str(), value) {
                ("properties" | "$defs", Value::Object(named)) => named
                    .iter()
                    .map(|(name, child)| (name.as_str(), child))
                    .collect(),
                ("anyOf", Value::Array(options)) => {
                    options.iter().map(|child| ("anyOf", child)).collect()
                }
                ("items", child) => vec![("items", child)],
                _ => vec![],
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_mode_needs_closed_objects_all_the_way_down() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false});
        assert!(fits_strict(&closed));
        let nested = |inner: &Value| {
            json!({"type": "object", "properties": {"list": {"type": "array", "items": inner}},
                "required": ["list"], "additionalProperties": false})
        };
        assert!(fits_strict(&nested(&closed)));
        assert!(!fits_strict(&nested(
            &json!({"type": "object", "properties": {"a": {}}})
        )));
        assert!(!fits_strict(&nested(
            &json!({"type": "string", "minLength": 3})
        )));
    }

    #[test]
    fn what_anthropic_refuses_is_left_out_and_objects_are_closed() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["n"],
            "properties": {
                "n": {"type": "integer", "minimum": 3},
                "minimum": {"oneOf": [{"type": "object", "properties": {}}, {"type": "null"}]},
            },
        });
        let simple = json!({
            "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {
                "n": {"type": "integer"},
                "minimum": {"anyOf": [
                    {"type": "object", "properties": {}, "additionalProperties": false}, {"type": "null"},
                ]},
            },
        });
        assert_eq!(simplified(&schema), simple);
    }

    #[test]
    fn what_gemini_refuses_is_left_out_and_a_constant_is_an_enum_of_one() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["n"],
            "properties": {
                "n": {"type": "integer", "minimum": 3, "exclusiveMinimum": 2},
                "k": {"const": "a"},
            },
        });
        let simple = json!({
            "type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer", "minimum": 3}, "k": {"enum": ["a"]}},
        });
        assert_eq!(for_gemini(&schema), simple);
    }
}
