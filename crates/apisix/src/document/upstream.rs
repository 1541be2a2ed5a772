//! Upstreams: groups of nodes, by themselves or inside of a route or a service.

use crate::schema::{
    Schema, any, any_of, array, boolean, having, host, id, integer, label_map, long_text, method, not,
    number, object, short_text, text, timeout, timestamp,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::LazyLock;

/// An upstream, with defaults filled in.
#[derive(Debug, Clone, Deserialize)]
pub struct Upstream {
    #[serde(rename = "type")]
    pub algorithm: String,
    #[serde(default, deserialize_with = "nodes_of")]
    pub nodes: Option<Vec<Node>>,
    pub hash_on: String,
    pub key: Option<String>,
    pub retries: Option<u32>,
    pub retry_timeout: Option<f64>,
    pub timeout: Option<Timeout>,
    pub scheme: String,
    pub pass_host: String,
    pub upstream_host: Option<String>,
    pub keepalive_pool: Option<KeepalivePool>,
    pub service_name: Option<String>,
    pub discovery_type: Option<String>,
    pub checks: Option<Value>,
    pub tls: Option<Value>,
}

impl Upstream {
    /// The host of its node, if it has one node.
    pub fn only_host(&self) -> Option<String> {
        match self.nodes.as_deref()? {
            [node] => Some(node.host.clone()),
            _ => None,
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Node {
    pub host: String,
    pub port: Option<u16>,
    pub weight: u64,
    pub priority: i64,
}

/// Time-outs in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Timeout {
    pub connect: f64,
    pub send: f64,
    pub read: f64,
}

/// Bounds of idle connections; the time-out is in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct KeepalivePool {
    pub size: u32,
    pub idle_timeout: f64,
    pub requests: u64,
}

/// Reads nodes: `host:port` to weight, or a list. Those of a map without a port have none.
fn nodes_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Node>>, D::Error> {
    let nodes = match Value::deserialize(deserializer)? {
        Value::Object(map) => map
            .iter()
            .map(|(address, weight)| Node::of(address, weight))
            .collect(),
        list => {
            let mut nodes: Vec<Node> = Vec::deserialize(list).map_err(|_| {
                serde::de::Error::custom("data did not match any variant of untagged enum Nodes")
            })?;
            nodes.iter_mut().for_each(Node::split_host);
            nodes
        }
    };
    Ok(Some(nodes))
}

impl Node {
    fn of(address: &str, weight: &Value) -> Self {
        let (host, port) = split_port(address);
        Self {
            host: host.to_owned(),
            port,
            weight: weight.as_u64().unwrap_or(0),
            priority: 0,
        }
    }

    /// Splits a port from the host.
    fn split_host(&mut self) {
        if self.port.is_none()
            && let (host, port @ Some(_)) = split_port(&self.host)
        {
            (self.host, self.port) = (host.to_owned(), port);
        }
    }
}

/// Splits `host:port`, `[::1]:port` and names without a port.
pub fn split_port(address: &str) -> (&str, Option<u16>) {
    match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (address, None),
        },
        _ => (address, None),
    }
}

/// The shape of an upstream.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(new_shape);
    &SHAPE
}

/// A new copy of the shape, for routes and services.
pub fn new_shape() -> Schema {
    object([
        ("id", id()),
        ("name", short_text()),
        ("desc", long_text()),
        ("labels", label_map()),
        ("create_time", timestamp()),
        ("update_time", timestamp()),
        (
            "type",
            text()
                .or("roundrobin")
                .described("algorithms of load balancing"),
        ),
        ("nodes", nodes()),
        (
            "hash_on",
            text()
                .options(["vars", "header", "cookie", "consumer", "vars_combinations"])
                .or("vars"),
        ),
        (
            "key",
            text().described("the key of chash for dynamic load balancing"),
        ),
        ("retries", integer().at_least(0)),
        ("retry_timeout", number().at_least(0)),
        ("timeout", timeout()),
        (
            "scheme",
            any()
                .options(["grpc", "grpcs", "http", "https", "tcp", "tls", "udp", "kafka"])
                .or("http")
                .described(
                    "The scheme of the upstream. For L7 proxy, it can be one of grpc/grpcs/http/https. For L4 proxy, \
                     it can be one of tcp/tls/udp. For specific protocols, it can be kafka.",
                ),
        ),
        (
            "pass_host",
            text()
                .options(["pass", "node", "rewrite"])
                .or("pass")
                .described("mod of host passing"),
        ),
        ("upstream_host", host()),
        ("keepalive_pool", keepalive_pool()),
        ("service_name", short_text()),
        ("discovery_type", text().described("discovery type")),
        (
            "discovery_args",
            object([
                ("namespace_id", text().described("namespace id")),
                ("group_name", text().described("group name")),
            ]),
        ),
        ("checks", checks()),
        ("tls", tls()),
    ])
    .closed()
    .one_of([having(["nodes"]), having(["service_name", "discovery_type"])])
}

fn nodes() -> Schema {
    let weight = || integer().at_least(0).described("weight of node");
    let node = object([
        ("host", host()),
        (
            "port",
            integer().at_least(1).at_most(65_535).described("port of node"),
        ),
        ("weight", weight()),
        ("priority", integer().or(0).described("priority of node")),
        ("metadata", object([]).described("metadata of node")),
    ])
    .required(["host", "weight"]);
    any_of([object([]).each_field(".*", weight()), array(node)])
}

fn keepalive_pool() -> Schema {
    object([
        ("size", integer().at_least(1).or(320)),
        ("idle_timeout", number().at_least(0).or(60)),
        ("requests", integer().at_least(1).or(1000)),
    ])
}

fn tls() -> Schema {
    object([
        ("client_cert", text().length(128, 65_536)),
        ("client_key", text().length(64, 65_536)),
        ("client_cert_id", id()),
        (
            "verify",
            boolean().or(false).described(
                "Turn on server certificate verification, currently only kafka upstream is supported",
            ),
        ),
    ])
    .if_present("client_cert", having(["client_key"]))
    .if_present("client_key", having(["client_cert"]))
    .if_present("client_cert_id", not(having(["client_cert", "client_key"])))
}

fn checks() -> Schema {
    let count = |least: u32, default: i64| integer().at_least(least).at_most(254).or(default);
    let interval = || integer().at_least(1).or(1);
    let statuses = |default: Vec<i64>| {
        array(integer().at_least(200).at_most(599))
            .min_items(1)
            .unique()
            .or(default)
    };
    let kind = || text().options(["http", "https", "tcp"]).or("http");
    let active = object([
        ("type", kind()),
        ("timeout", number().or(1)),
        ("concurrency", integer().or(10)),
        ("host", host()),
        ("port", integer().at_least(1).at_most(65_535)),
        ("http_method", method().or("GET")),
        ("http_path", text().or("/")),
        ("http_req_body", text().or("")),
        ("https_verify_certificate", boolean().or(true)),
        ("req_headers", array(text()).min_items(1)),
        (
            "healthy",
            object([
                ("interval", interval()),
                ("http_statuses", statuses(vec![200, 302])),
                ("successes", count(1, 2)),
            ]),
        ),
        (
            "unhealthy",
            object([
                ("interval", interval()),
                (
                    "http_statuses",
                    statuses(vec![429, 404, 500, 501, 502, 503, 504, 505]),
                ),
                ("http_failures", count(1, 5)),
                ("tcp_failures", count(1, 2)),
                ("timeouts", count(1, 3)),
            ]),
        ),
    ]);
    let successes = (200..=208).chain([226]).chain(300..=308).collect();
    let passive = object([
        ("type", kind()),
        (
            "healthy",
            object([("http_statuses", statuses(successes)), ("successes", count(0, 5))]),
        ),
        (
            "unhealthy",
            object([
                ("http_statuses", statuses(vec![429, 500, 503])),
                ("http_failures", count(0, 5)),
                ("tcp_failures", count(0, 2)),
                ("timeouts", count(0, 7)),
            ]),
        ),
    ]);
    object([("active", active), ("passive", passive)])
        .any_of([having(["active"]), having(["active", "passive"])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_split() {
        for (address, host, port) in [
            ("127.0.0.1:80", "127.0.0.1", Some(80)),
            ("foo.com:8080", "foo.com", Some(8080)),
            ("foo.com", "foo.com", None),
            ("[::1]:80", "[::1]", Some(80)),
            ("[::1]", "[::1]", None),
            ("::1", "::1", None),
            ("foo:bar", "foo:bar", None),
        ] {
            assert_eq!(split_port(address), (host, port), "{address}");
        }
    }

    #[test]
    fn a_port_may_stand_behind_the_host_of_a_listed_node() {
        for (node, host, port) in [
            (
                r#"{"host":"a.test:81","weight":1,"priority":0}"#,
                "a.test",
                Some(81),
            ),
            (
                r#"{"host":"a.test:81","port":82,"weight":1,"priority":0}"#,
                "a.test:81",
                Some(82),
            ),
            (
                r#"{"host":"[::1]:81","weight":1,"priority":0}"#,
                "[::1]",
                Some(81),
            ),
            (r#"{"host":"::1","weight":1,"priority":0}"#, "::1", None),
        ] {
            let list: Value = serde_json::from_str(&format!("[{node}]")).expect("JSON");
            let nodes = nodes_of(list).expect("nodes").expect("a list");
            assert_eq!((nodes[0].host.as_str(), nodes[0].port), (host, port), "{node}");
        }
    }
}
