//! What must hold for an upstream beyond its shape: the host that it sends, and what it hashes. Not whether its nodes can
//! be reached.

use super::{ItemError, ssl};
use crate::schema::{Schema, text};
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_model::DocPath;

/// Checks an upstream of the list of upstreams. APISIX serves those inside of other documents without these checks.
///
/// # Errors
/// What is wrong with it.
pub fn check_item(upstream: &Map<String, Value>, place: &DocPath) -> Result<(), ItemError> {
    ssl::check_upstream(upstream, place)?;
    check_host(upstream)
        .and_then(|()| check_hash_key(upstream))
        .map_err(|error| (place.clone(), error))
}

/// Checks that there is a host if one is to be sent.
///
/// # Errors
/// In APISIX's words.
pub fn check_host(upstream: &Map<String, Value>) -> Result<(), String> {
    let field = |name: &str| upstream.get(name).and_then(Value::as_str);
    match field("pass_host") == Some("rewrite") && field("upstream_host").is_none_or(str::is_empty) {
        true => Err("`upstream_host` can't be empty when `pass_host` is `rewrite`".to_owned()),
        false => Ok(()),
    }
}

/// Checks what consistent hashing hashes.
///
/// # Errors
/// In APISIX's words.
pub fn check_hash_key(upstream: &Map<String, Value>) -> Result<(), String> {
    static VARIABLE: LazyLock<Schema> = LazyLock::new(|| {
        text().pattern(
            r"^((uri|server_name|server_addr|request_uri|remote_port|remote_addr|query_string|host|hostname|mqtt_client_id)|arg_[0-9a-zA-z_-]+)$",
        )
    });
    static HEADER: LazyLock<Schema> = LazyLock::new(|| text().pattern("^[a-zA-Z0-9-_]+$"));
    let field = |name: &str| upstream.get(name).and_then(Value::as_str);
    if field("type") != Some("chash") {
        return Ok(());
    }
    let hash_on = field("hash_on").unwrap_or("vars");
    let Some(key) = upstream.get("key") else {
        return match hash_on {
            "consumer" => Ok(()),
            _ => Err("missing key".to_owned()),
        };
    };
    let shape = match hash_on {
        "vars" => &VARIABLE,
        "header" | "cookie" => &HEADER,
        _ => return Ok(()),
    };
    shape
        .check(&mut key.clone())
        .map_err(|error| format!("invalid configuration: {error}"))
}
