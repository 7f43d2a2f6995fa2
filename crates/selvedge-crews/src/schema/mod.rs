//! Schemas of what agents say, made from types. Fields keep their order.
//!
//! A model writes fields in the order in which its schema has them, so a verdict that is
//! declared last is given last. JSON values here keep their keys sorted; the order is said
//! beside the properties, and followed where a provider's request is written.

mod fields;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, transform};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use fields::Shape;

/// The keyword that says in which order the properties beside it stand.
const ORDER: &str = "propertyOrdering";

/// The JSON Schema of `T`, self-contained and without decoration.
pub(crate) fn of<T: JsonSchema + DeserializeOwned>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    plain(&mut schema);
    schema.remove("description");
    let mut schema = schema.to_value();
    say_order(&mut schema, &Shape::of::<T>());
    schema
}

fn plain(schema: &mut schemars::Schema) {
    schema.remove("title");
    // `uint32` and the like are not formats that models know.
    schema.remove("format");
    transform::transform_subschemas(&mut plain, schema);
}

fn say_order(schema: &mut Value, shape: &Shape) {
    // What may be left out is one of two.
    if let Some(options) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        options
            .iter_mut()
            .for_each(|option| say_order(option, shape));
    }
    match shape {
        Shape::List(item) => {
            if let Some(items) = schema.get_mut("items") {
                say_order(items, item);
            }
        }
        Shape::Struct(fields) => {
            let Some(properties) = schema.get_mut("properties") else {
                return;
            };
            for (name, shape) in fields {
                if let Some(property) = properties.get_mut(name) {
                    say_order(property, shape);
                }
            }
            let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
            schema[ORDER] = json!(names);
        }
        Shape::Other => {}
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every object of a schema that has properties without a place in an order.
    pub(crate) fn unordered(schema: &Value, at: &str, found: &mut Vec<String>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let order = schema.get(ORDER).and_then(Value::as_array);
            let has = |name: &String| order.is_some_and(|o| o.iter().any(|n| n == name.as_str()));
            let lost = properties.keys().filter(|name| !has(name));
            found.extend(lost.map(|name| format!("{at}/{name}")));
            for (name, child) in properties {
                unordered(child, &format!("{at}/{name}"), found);
            }
        }
        if let Some(items) = schema.get("items") {
            unordered(items, &format!("{at}[]"), found);
        }
        let options = schema.get("anyOf").and_then(Value::as_array);
        for option in options.into_iter().flatten() {
            unordered(option, at, found);
        }
    }
}
