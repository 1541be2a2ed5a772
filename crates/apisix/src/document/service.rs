//! Services: what several routes have in common.

use super::{Id, Plugins, Upstream};
use crate::schema::{
    Schema, array, boolean, host, id, label_map, long_text, object, short_text, text, timestamp,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;

/// A service, with defaults filled in.
#[derive(Debug, Deserialize)]
pub struct Service {
    pub name: Option<String>,
    pub desc: Option<String>,
    pub labels: Option<Value>,
    pub hosts: Option<Vec<String>>,
    #[serde(default)]
    pub plugins: Plugins,
    pub upstream_id: Option<Id>,
    pub upstream: Option<Upstream>,
    pub script: Option<String>,
    pub enable_websocket: Option<bool>,
}

/// The shape of a service.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("name", short_text()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("hosts", array(host()).min_items(1).unique()),
            ("plugins", object([])),
            ("upstream_id", id()),
            ("upstream", super::upstream::new_shape()),
            ("script", text().length(10, 102_400)),
            (
                "enable_websocket",
                boolean().described("enable websocket for request"),
            ),
        ])
        .closed()
    });
    &SHAPE
}
