//! Models, and bodies for them, that several tests use.
#![allow(dead_code, reason = "few tests ask")]

use super::patch;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

/// A service whose upstream has these targets, each with a weight.
pub fn balanced(targets: &[(SocketAddr, u32)], changes: &Value) -> Value {
    let targets: Vec<Value> = targets
        .iter()
        .map(|(address, weight)| json!({"host": address.ip().to_string(), "port": address.port(), "weight": weight}))
        .collect();
    let model = json!({
        "upstreams": [{"name": "upstream", "targets": targets}],
        "services": [{"name": "service", "upstream": "upstream"}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    });
    patch(model, changes)
}

/// An address without a listener: the kernel gives such a port to no other test.
pub fn dead() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 1).into()
}

/// An object of JSON with this `n`, of so many bytes.
pub fn json_body(n: u32, size: usize) -> Vec<u8> {
    let mut body = format!("{{\"n\": {n}, \"fill\": \"").into_bytes();
    body.resize(size.max(body.len() + 2) - 2, b'x');
    body.extend_from_slice(b"\"}");
    body
}
