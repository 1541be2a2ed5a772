//! Protocol Buffers definitions, which plugins that speak gRPC name.

use crate::schema::{Shape, id, label_map, long_text, object, short_text, text, timestamp};
use std::sync::LazyLock;

/// What a definition's document must look like.
pub fn shape() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
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
