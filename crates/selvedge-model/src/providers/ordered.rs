//! Schemas whose fields are sent in the order in which they are to be answered.
//!
//! A model writes the fields of an answer in the order of its schema, and what it writes
//! first it argues for afterwards. So reasons have to stand before a verdict. A JSON value
//! here keeps its keys sorted, in the ledger and in every hash. Therefore the order is data
//! of its own, the keyword `propertyOrdering`, and is followed where the request is written.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// The keyword that says in which order the properties beside it stand.
pub(super) const ORDER: &str = "propertyOrdering";

/// A schema as it is written into a request.
#[derive(Debug)]
pub(super) struct Ordered<'a> {
    schema: Cow<'a, Value>,
    says_order: bool,
}

impl<'a> Ordered<'a> {
    /// For a provider that does not know the keyword: it is left out.
    pub(super) fn new(schema: Cow<'a, Value>) -> Self {
        Self {
            schema,
            says_order: false,
        }
    }

    /// For a provider that knows the keyword: it stays.
    pub(super) fn saying_so(schema: Cow<'a, Value>) -> Self {
        Self {
            says_order: true,
            ..Self::new(schema)
        }
    }
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = Node {
            value: &self.schema,
            kind: Kind::Schema,
            says_order: self.says_order,
        };
        whole.serialize(serializer)
    }
}

/// What a value within a schema is: only schemas have keywords.
#[derive(Clone, Copy)]
enum Kind<'v> {
    Schema,
    Schemas,
    /// Schemas by name, in this order.
    Named(&'v [Value]),
    Data,
}

#[derive(Clone, Copy)]
struct Node<'v> {
    value: &'v Value,
    kind: Kind<'v>,
    says_order: bool,
}

impl<'v> Node<'v> {
    fn under(&self, value: &'v Value, kind: Kind<'v>) -> Self {
        Self {
            value,
            kind,
            ..*self
        }
    }

    fn keyword(&self, fields: &'v Map<String, Value>, key: &str, value: &'v Value) -> Self {
        let order = || fields.get(ORDER).and_then(Value::as_array);
        let kind = match key {
            "properties" => Kind::Named(order().map_or(&[], Vec::as_slice)),
            "$defs" | "definitions" | "patternProperties" => Kind::Named(&[]),
            "anyOf" | "allOf" | "oneOf" | "prefixItems" => Kind::Schemas,
            "items" | "additionalProperties" | "not" => Kind::Schema,
            _ => Kind::Data,
        };
        self.under(value, kind)
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.kind, self.value) {
            (Kind::Schema, Value::Object(fields)) => {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in fields {
                    if key != ORDER || self.says_order {
                        map.serialize_entry(key, &self.keyword(fields, key, value))?;
                    }
                }
                map.end()
            }
            (Kind::Schemas, Value::Array(schemas)) => {
                let mut all = serializer.serialize_seq(Some(schemas.len()))?;
                for schema in schemas {
                    all.serialize_element(&self.under(schema, Kind::Schema))?;
                }
                all.end()
            }
            (Kind::Named(order), Value::Object(named)) => {
                let mut map = serializer.serialize_map(Some(named.len()))?;
                let first = order.iter().filter_map(Value::as_str);
                let first = first.filter_map(|name| named.get_key_value(name));
                let is_first = |name: &String| order.iter().any(|known| known == name.as_str());
                let rest = named.iter().filter(|(name, _)| !is_first(name));
                for (name, schema) in first.chain(rest) {
                    map.serialize_entry(name, &self.under(schema, Kind::Schema))?;
                }
                map.end()
            }
            (_, data) => data.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_provider_that_knows_the_keyword_is_told_it() {
        let schema = json!({
            "properties": {
                "findings": { "items": { "properties": { "b": {}, "a": {} },
                    "propertyOrdering": ["b", "a"] } },
                "reasons": { "type": "string" },
            },
            "propertyOrdering": ["reasons", "findings"],
        });
        let said = |ordered: &Ordered<'_>| serde_json::to_string(ordered).unwrap();
        assert!(!said(&Ordered::new(Cow::Borrowed(&schema))).contains(ORDER));
        assert_eq!(
            said(&Ordered::saying_so(Cow::Borrowed(&schema)))
                .matches(ORDER)
                .count(),
            2
        );
    }

    #[test]
    fn a_field_that_is_named_like_the_keyword_is_a_field() {
        let schema = json!({
            "properties": { "propertyOrdering": { "const": { "propertyOrdering": ["b", "a"] } } },
        });
        let text = serde_json::to_string(&Ordered::new(Cow::Borrowed(&schema))).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), schema);
    }

    #[test]
    fn a_name_that_is_no_field_and_a_field_without_a_place_do_no_harm() {
        let schema = json!({
            "properties": { "b": {}, "a": {}, "c": {} }, "propertyOrdering": ["c", "x"],
        });
        let text = serde_json::to_string(&Ordered::new(Cow::Borrowed(&schema))).unwrap();
        assert_eq!(text, r#"{"properties":{"c":{},"a":{},"b":{}}}"#);
    }
}
