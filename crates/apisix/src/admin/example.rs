//! `example-plugin`: it does nothing, but its configuration is checked, by which tools try an API out.

use crate::schema::{Shape, array, integer, number, object, text};
use std::sync::LazyLock;

/// The name of the plugin.
pub const NAME: &str = "example-plugin";

/// What its configuration must look like.
pub fn shape() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
        object([
            ("i", number().at_least(0)),
            ("s", text()),
            ("t", array(crate::schema::any()).min_items(1)),
            ("ip", text()),
            ("port", integer()),
        ])
        .required(["i"])
    });
    &SHAPE
}

/// What its metadata must look like.
pub fn metadata_shape() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
        object([("ikey", number().at_least(0)), ("skey", text())]).required(["ikey", "skey"])
    });
    &SHAPE
}
