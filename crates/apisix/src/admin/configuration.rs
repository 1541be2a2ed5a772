//! A whole configuration as clients send it: its lists, and reading it from a call.

use super::call::ApiCall;
use super::response::{ApiResponse, Outcome};
use serde_json::Value;
use weir_plugins::lenient_json;

/// The lists of a configuration.
pub const LISTS: [&str; 13] = [
    "upstreams",
    "plugins",
    "ssls",
    "stream_routes",
    "plugin_metadata",
    "routes",
    "services",
    "consumers",
    "global_rules",
    "protos",
    "plugin_configs",
    "consumer_groups",
    "secrets",
];

/// The field that holds a list's version.
pub fn version_field(list: &str) -> String {
    format!("{list}_conf_version")
}

/// The parsed body of a call, JSON or YAML.
///
/// # Errors
/// 400 in APISIX's words.
pub fn body(call: &ApiCall) -> Outcome<Value> {
    if call.body.is_empty() {
        return Err(ApiResponse::bad("invalid request body: empty request body"));
    }
    let is_yaml = call
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/yaml"));
    if is_yaml {
        let text = std::str::from_utf8(&call.body).unwrap_or_default();
        return match weir_model::document::parse(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(value),
            _ => Err(ApiResponse::bad(
                "invalid request body: invalid yaml request body",
            )),
        };
    }
    lenient_json::parse(&call.body)
        .map_err(|error| ApiResponse::bad(format!("invalid request body: {error}")))
}
