//! Routes of connections rather than of calls.

use super::{Id, Plugins, Upstream};
use crate::schema::{
    Schema, address, array, having, host, id, integer, label_map, long_text, object, short_text, text,
    timestamp,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;

/// A stream route, with defaults filled in.
#[derive(Debug, Deserialize)]
pub struct StreamRoute {
    pub remote_addr: Option<String>,
    pub server_addr: Option<String>,
    pub server_port: Option<u16>,
    pub sni: Option<String>,
    pub upstream: Option<Upstream>,
    pub upstream_id: Option<Id>,
    pub service_id: Option<Id>,
    #[serde(default)]
    pub plugins: Plugins,
    pub protocol: Option<Value>,
}

/// The shape of a stream route.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("name", short_text()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("remote_addr", address().described("client IP")),
            ("server_addr", address().described("server IP")),
            (
                "server_port",
                integer().at_least(1).at_most(65_535).described("server port"),
            ),
            ("sni", host().described("server name indication")),
            ("upstream", super::upstream::new_shape()),
            ("upstream_id", id()),
            ("service_id", id()),
            ("plugins", object([])),
            ("protocol", protocol()),
        ])
        .closed()
    });
    &SHAPE
}

/// A protocol that is spoken on the connection.
fn protocol() -> Schema {
    let logger = object([
        ("name", text()),
        (
            "filter",
            array(crate::schema::any()).described("logger filter rules"),
        ),
        ("conf", object([]).described("logger plugin configuration")),
    ])
    .of_any_kind()
    .if_present("name", having(["conf"]))
    .closed();
    object([
        ("name", text()),
        ("superior_id", id()),
        ("conf", object([]).described("protocol-specific configuration")),
        ("logger", array(logger)),
    ])
    .required(["name"])
}
