//! Routes as documents hold them: their fields, defaults and shape. The translation decides how they match.

use super::{Id, Plugins, Timeout, Upstream};
use crate::schema::{
    Schema, address, any_of, array, boolean, having, host, id, integer, label_map, long_text, methods, not,
    object, one_of, short_text, text, timeout, timestamp,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;

/// A route, with defaults filled in.
#[derive(Debug, Deserialize)]
pub struct Route {
    pub name: Option<String>,
    pub desc: Option<String>,
    pub labels: Option<Value>,
    pub uri: Option<String>,
    pub uris: Option<Vec<String>>,
    pub host: Option<String>,
    pub hosts: Option<Vec<String>>,
    pub remote_addr: Option<String>,
    pub remote_addrs: Option<Vec<String>>,
    pub methods: Option<Vec<String>>,
    pub priority: i64,
    pub vars: Option<Vec<Value>>,
    pub filter_func: Option<String>,
    pub script: Option<String>,
    pub status: u8,
    pub enable_websocket: Option<bool>,
    pub timeout: Option<Timeout>,
    #[serde(default)]
    pub plugins: Plugins,
    pub plugin_config_id: Option<Id>,
    pub service_id: Option<Id>,
    pub upstream_id: Option<Id>,
    pub upstream: Option<Upstream>,
}

/// The shape of a route.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("name", short_text()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("uri", text().length(1, 4096)),
            ("uris", array(text().described("HTTP uri")).min_items(1).unique()),
            ("host", host()),
            ("hosts", array(host()).min_items(1).unique()),
            ("remote_addr", address().described("client IP")),
            (
                "remote_addrs",
                array(address().described("client IP")).min_items(1).unique(),
            ),
            ("methods", methods()),
            ("priority", integer().or(0)),
            ("vars", array(crate::schema::any())),
            ("filter_func", text().longer(10).pattern("^function")),
            ("script", text().length(10, 102_400)),
            ("script_id", id()),
            (
                "status",
                integer()
                    .numbers([1, 0])
                    .or(1)
                    .described("route status, 1 to enable, 0 to disable"),
            ),
            (
                "enable_websocket",
                boolean().described("enable websocket for request"),
            ),
            ("timeout", timeout()),
            ("plugins", object([])),
            ("plugin_config_id", id()),
            ("service_id", id()),
            ("upstream_id", id()),
            ("upstream", super::upstream::new_shape()),
        ])
        .closed()
        .all_of([
            one_of([having(["uri"]), having(["uris"])]),
            at_most_one("host", "hosts"),
            at_most_one("remote_addr", "remote_addrs"),
        ])
        .any_of([
            having(["plugins", "uri"]),
            having(["upstream", "uri"]),
            having(["upstream_id", "uri"]),
            having(["service_id", "uri"]),
            having(["plugins", "uris"]),
            having(["upstream", "uris"]),
            having(["upstream_id", "uris"]),
            having(["service_id", "uris"]),
            having(["script", "uri"]),
            having(["script", "uris"]),
        ])
        .unless(any_of([
            having(["script", "plugins"]),
            having(["script", "plugin_config_id"]),
        ]))
    });
    &SHAPE
}

fn at_most_one(one: &'static str, several: &'static str) -> Schema {
    one_of([
        not(any_of([having([one]), having([several])])),
        having([one]),
        having([several]),
    ])
}

impl Route {
    /// The paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let one = self.uri.iter();
        one.chain(self.uris.iter().flatten()).map(String::as_str)
    }

    /// The route's own hosts; `None` if it names none, so that its service's count.
    pub fn own_hosts(&self) -> Option<Vec<&str>> {
        match (&self.hosts, &self.host) {
            (Some(hosts), _) => Some(hosts.iter().map(String::as_str).collect()),
            (None, Some(host)) => Some(vec![host]),
            (None, None) => None,
        }
    }

    /// The clients' addresses and networks.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let several = self.remote_addrs.iter().flatten();
        several.chain(&self.remote_addr).map(String::as_str)
    }
}
