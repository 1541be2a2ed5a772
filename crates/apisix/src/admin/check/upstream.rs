//! The rules for an upstream, by itself or inside of another document.

use super::{CheckContext, ssl};
use crate::document::{id_text, split_port, upstream_rules, upstream_shape};
use serde_json::Value;
use std::net::Ipv6Addr;

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
    let fields = upstream.as_object();
    fields.map_or(Ok(()), upstream_rules::check_host)?;
    let tls = |name: &str| upstream.get("tls")?.get(name)?.as_str();
    if let Some(certificate) = tls("client_cert") {
        ssl::check_pair(certificate, tls("client_key"))?;
    }
    fields.map_or(Ok(()), upstream_rules::check_hash_key)
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
