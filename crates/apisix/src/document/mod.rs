//! The resources of an APISIX document, as their users wrote them and with APISIX's defaults filled in.
//!
//! Each resource has a file here with its shape and its type. Reading is as strict and as lenient as APISIX in
//! standalone mode: an item that is wrong is left out with APISIX's own words and the rest is served, of two items
//! with one id the last counts (in the place of the first), and unused documents are ignored.

mod consumer;
pub mod cost_decoration;
mod ignored_sections;
mod item;
mod plugin_set;
pub mod proto;
mod read;
mod route;
pub mod secret;
mod service;
pub mod ssl;
pub mod stream_route;
mod upstream;
pub mod upstream_rules;

pub use consumer::{Consumer, Credential, consumer_shape, credential_of, credential_shape};
pub use cost_decoration::CostDecoration;
pub use item::{Item, ItemError};
pub use plugin_set::{PluginSet, consumer_group_shape, global_rule_shape, plugin_config_shape};
pub use read::{Documents, check_route, name_upstreams, read, read_one};
pub use route::{Route, shape as route_shape};
pub use service::{Service, shape as service_shape};
pub use ssl::Ssl;
pub use stream_route::StreamRoute;
pub use upstream::{
    Node, Timeout, Upstream, new_shape as new_upstream_shape, shape as upstream_shape, split_port,
};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Plugins by name, as written.
pub type Plugins = Map<String, Value>;

/// All lists that a document may have at its top.
const SECTIONS: [&str; 13] = [
    "routes",
    "services",
    "upstreams",
    "consumers",
    "consumer_groups",
    "plugin_configs",
    "global_rules",
    "plugin_metadata",
    "plugins",
    "ssls",
    "stream_routes",
    "protos",
    "secrets",
];

/// Whether a document is one of APISIX: it has resources at its top and is neither Kong's (`_format_version`) nor
/// native (`weir`).
pub fn recognises(document: &Value) -> bool {
    let Value::Object(map) = document else {
        return false;
    };
    !map.contains_key("_format_version")
        && !map.contains_key("weir")
        && SECTIONS.iter().any(|section| map.contains_key(*section))
}

/// The id of a resource, or a reference to one. Numbers and texts are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(pub String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        id_text(&value)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("expected an id"))
    }
}

/// An id as a text.
pub fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_recognised() {
        for (document, wanted) in [
            (json!({"routes": []}), true),
            (json!({"global_rules": [], "x": 1}), true),
            (json!({"_format_version": "3.0", "routes": []}), false),
            (json!({"weir": 1, "routes": []}), false),
            (json!({"x": 1}), false),
            (json!([]), false),
            (json!(null), false),
        ] {
            assert_eq!(recognises(&document), wanted, "{document}");
        }
    }
}
