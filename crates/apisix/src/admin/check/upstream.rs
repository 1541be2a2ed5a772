//! The rules for an upstream, by itself or inside of another document.

use super::{CheckContext, ssl};
use crate::document::{id_text, split_port, upstream_shape};
use crate::schema::{Schema, text};
use serde_json::Value;
use std::net::Ipv6Addr;
use std::sync::LazyLock;

/// Checks an upstream and fills in defaults.
///
/// # Errors
/// In APISIX's words.
pub fn check(upstream: &mut Value, around: CheckContext<'_>) -> Result<(), String> {
    check_addresses(upstream)
        .and_then(|()| upstream_shape().check(upstream))
        .map_err(|error| format!("invalid configuration: {error}"))?;
    check_ports(upstream)?;
    check_certificate_id(upstream, around)?;
    let field = |name: &str| upstream.get(name).and_then(Value::as_str);
    if field("pass_host") == Some("rewrite") && field("upstream_host").is_none_or(str::is_empty) {
        return Err("`upstream_host` can't be empty when `pass_host` is `rewrite`".to_owned());
    }
    let tls = |name: &str| upstream.get("tls")?.get(name)?.as_str();
    if let Some(certificate) = tls("client_cert") {
        ssl::check_pair(certificate, tls("client_key"))?;
    }
    check_hash_key(upstream)
}

/// Nodes of a list have their ports in a field of their own, but their hosts are written as in URLs all the same.
fn check_addresses(upstream: &Value) -> Result<(), String> {
    let nodes = upstream.get("nodes").and_then(Value::as_array);
    let mut hosts = nodes
        .into_iter()
        .flatten()
        .filter_map(|node| node.get("host")?.as_str());
    match hosts.any(|host| host.parse::<Ipv6Addr>().is_ok()) {
        true => Err("IPv6 address must be enclosed with '[' and ']'".to_owned()),
        false => Ok(()),
    }
}

/// Nodes of a map carry their ports in their names.
fn check_ports(upstream: &Value) -> Result<(), String> {
    let nodes = upstream.get("nodes").and_then(Value::as_object);
    for address in nodes.into_iter().flat_map(serde_json::Map::keys) {
        let port = address.rsplit_once(':').and_then(|(host, port)| {
            let is_port = !host.contains(':') || host.ends_with(']');
            port.parse::<u64>().ok().filter(|_| is_port)
        });
        match (port, split_port(address)) {
            (Some(0), _) | (Some(_), (_, None)) => {
                return Err(format!("invalid port {}", port.unwrap_or_default()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_certificate_id(upstream: &Value, around: CheckContext<'_>) -> Result<(), String> {
    let id = upstream.pointer("/tls/client_cert_id").and_then(id_text);
    let (Some(id), Some(state)) = (id, around.state) else {
        return Ok(());
    };
    let about = format!("failed to fetch ssl info by ssl id [{id}]");
    match state.get(&format!("ssls/{id}")) {
        None => Err(format!("{about}, response code: 404")),
        Some(ssl) if ssl.value.get("type").and_then(Value::as_str) != Some("client") => {
            Err(format!("{about}, wrong ssl type"))
        }
        Some(_) => Ok(()),
    }
}

fn check_hash_key(upstream: &Value) -> Result<(), String> {
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
