//! Schemas of what agents say, made from types. Fields keep their order.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, transform};
use serde_json::Value;

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

fn plain(schema: &mut schemars::Schema) {
    schema.remove("title");
    // `uint32` and the like are not formats that models know.
    schema.remove("format");
    transform::transform_subschemas(&mut plain, schema);
}
