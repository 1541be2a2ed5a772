//! Protocol Buffers definitions, which plugins that speak gRPC name.

use super::item::ItemError;
use crate::schema::{Schema, id, label_map, long_text, object, short_text, text, timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_model::DocPath;
use weir_plugins::protobuf::{self, Definitions};

/// A definition.
#[derive(Debug, Deserialize)]
pub struct Proto {
    pub content: String,
}

/// The shape of a definition's document.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("name", short_text()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("content", text().length(1, 1 << 20)),
        ])
        .required(["content"])
        .closed()
    });
    &SHAPE
}

/// The form of a content: definitions as a text, or compiled and in Base64, which no text can be taken for.
pub fn definitions(content: &str) -> Definitions {
    let decoded = STANDARD.decode(content.trim());
    let given = Some(content.to_owned());
    match decoded.is_ok_and(|bytes| !bytes.is_empty()) {
        true => Definitions {
            descriptor_set: given,
            ..Definitions::default()
        },
        false => Definitions {
            text: given,
            ..Definitions::default()
        },
    }
}

/// Checks a content.
///
/// # Errors
/// What is wrong with it.
pub fn check_content(content: &str) -> Result<(), String> {
    protobuf::check(&definitions(content)).map_err(|error| format!("invalid content: {error}"))
}

/// Checks a definition beyond its shape.
///
/// # Errors
/// In APISIX's words.
pub fn check(document: &Map<String, Value>, place: &DocPath) -> Result<(), ItemError> {
    let content = document
        .get("content")
        .and_then(Value::as_str)
        .unwrap_or_default();
    check_content(content).map_err(|error| (place.field("content"), error))
}
