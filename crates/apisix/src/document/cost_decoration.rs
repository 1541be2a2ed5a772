//! The cost of a part of a GraphQL schema, for limits by cost. They belong to services.

use crate::schema::{Schema, array, id, label_map, long_text, number, object, short_text, text, timestamp};
use serde::Deserialize;
use std::sync::LazyLock;

/// A decoration, with defaults filled in.
#[derive(Debug, Clone, Deserialize)]
pub struct CostDecoration {
    pub field_path: String,
    pub add_value: f64,
    #[serde(default)]
    pub add_arguments: Vec<String>,
    pub mul_value: f64,
    #[serde(default)]
    pub mul_arguments: Vec<String>,
}

/// The shape of a decoration.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        let arguments = || array(text().longer(1));
        object([
            ("id", id()),
            ("service_id", id()),
            (
                "field_path",
                text().pattern(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"),
            ),
            ("add_value", number().at_least(0).or(1)),
            ("add_arguments", arguments()),
            ("mul_value", number().at_least(0).or(1)),
            ("mul_arguments", arguments()),
            ("name", short_text()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
        ])
        .required(["field_path"])
        .closed()
    });
    &SHAPE
}
