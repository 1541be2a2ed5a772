//! Shapes that are kept as APISIX prints them, and configurations that have been checked by a shape.

use super::meta;
use crate::schema::Schema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The shape of a plugin whose schemas are kept as APISIX prints them; `which` is `schema`, `consumer_schema` or
/// `metadata_schema`.
pub fn printed_shape(text: &'static str, which: &str) -> Schema {
    let schemas: Value = serde_json::from_str(text).unwrap_or_default();
    // Shapes live as long as the process.
    let schema: &'static Value = Box::leak(Box::new(schemas[which].clone()));
    let shape = Schema::from_json_schema(schema);
    match which {
        "schema" => shape.field("_meta", meta::shape()),
        _ => shape,
    }
}

/// Reads a configuration that has been checked.
pub fn read<T: DeserializeOwned>(config: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(config)
}
