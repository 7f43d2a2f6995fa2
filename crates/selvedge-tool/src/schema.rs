//! A tool's schema, from the type of its arguments.
//!
//! The doc comments of the type are what the model reads, so there is one place
//! to write them. Schemas are sent with every request: what a model does not need
//! is left out.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, transform};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::ToolOutput;

/// The JSON Schema of `T`, self-contained and without decoration.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    plain(&mut schema);
    schema.remove("description");
    schema.to_value()
}

/// The arguments as their type.
///
/// They fit the schema, yet a schema is not quite a type: `1.0` is an integer to
/// it, and no integer is too large.
pub(crate) fn arguments<T: DeserializeOwned>(input: &Value) -> Result<T, ToolOutput> {
    T::deserialize(input)
        .map_err(|error| ToolOutput::error(format!("the arguments cannot be used: {error}")))
}

fn plain(schema: &mut schemars::Schema) {
    schema.remove("title");
    // `uint64` and the like are not formats that models know.
    schema.remove("format");
    transform::transform_subschemas(&mut plain, schema);
}
