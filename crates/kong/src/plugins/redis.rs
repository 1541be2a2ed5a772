//! The Redis of limits and caches: Kong's records of settings, and what they are in the catalogue. Plugins of the paid
//! edition have more settings than others.

use super::{Shorthand, UnsupportedOption};
use crate::schema::{Check, Default, Field, Kind, Record, joined};
use serde::Deserialize;
use weir_plugins::redis::{OnUnavailable, Password, Redis, Sentinel, Tls};

/// Names from before the settings of Redis had a record of their own.
pub const SHORTHANDS: &[Shorthand] = &[
    ("redis_host", "redis", "host"),
    ("redis_port", "redis", "port"),
    ("redis_password", "redis", "password"),
    ("redis_username", "redis", "username"),
    ("redis_ssl", "redis", "ssl"),
    ("redis_ssl_verify", "redis", "ssl_verify"),
    ("redis_server_name", "redis", "server_name"),
    ("redis_timeout", "redis", "timeout"),
    ("redis_database", "redis", "database"),
];

/// The settings.
pub static REDIS: Record = Record::of(FIELDS);
/// The settings in plugins of the paid edition.
pub static ADVANCED_REDIS: Record =
    Record::of(&joined::<{ FIELDS.len() + ADVANCED.len() }>(&[FIELDS, ADVANCED]));

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String),
    Field::new("port", Kind::Integer)
        .or(Default::Integer(6379))
        .check(&[Check::Between(0, 65_535)]),
    Field::new("timeout", Kind::Integer)
        .or(Default::Integer(2000))
        .check(&[Check::Between(0, 2_147_483_646)]),
    Field::new("username", Kind::String),
    Field::new("password", Kind::Text),
    Field::new("database", Kind::Integer).or(Default::Integer(0)),
    Field::new("ssl", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("ssl_verify", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("server_name", Kind::String),
];

const TIMEOUT: &[Check] = &[Check::Between(0, 2_147_483_646)];

const ADVANCED: &[Field] = &[
    Field::new("connect_timeout", Kind::Integer).check(TIMEOUT),
    Field::new("send_timeout", Kind::Integer).check(TIMEOUT),
    Field::new("read_timeout", Kind::Integer).check(TIMEOUT),
    Field::new("keepalive_pool_size", Kind::Integer)
        .or(Default::Integer(256))
        .check(&[Check::Between(1, 2_147_483_646)]),
    Field::new("keepalive_backlog", Kind::Integer).check(TIMEOUT),
    Field::new("connection_is_proxied", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("sentinel_master", Kind::String),
    Field::new("sentinel_role", Kind::String).check(&[Check::OneOf(&["master", "slave", "any"])]),
    Field::new("sentinel_username", Kind::String),
    Field::new("sentinel_password", Kind::String),
    Field::new(
        "sentinel_nodes",
        Kind::Array(&Field::element(Kind::Record(&SENTINEL))),
    ),
    Field::new("cluster_nodes", Kind::Array(&Field::element(Kind::Record(&NODE)))),
    Field::new("cluster_max_redirections", Kind::Integer).or(Default::Integer(5)),
];

const SENTINEL: Record = Record::of(&[
    Field::new("host", Kind::String)
        .required()
        .or(Default::Text("127.0.0.1")),
    PORT,
]);
const NODE: Record = Record::of(&[
    Field::new("ip", Kind::String)
        .required()
        .or(Default::Text("127.0.0.1")),
    PORT,
]);
const PORT: Field = Field::new("port", Kind::Integer)
    .or(Default::Integer(6379))
    .check(&[Check::Between(0, 65_535)]);

/// A server of several.
#[derive(Deserialize)]
struct Node {
    #[serde(alias = "ip")]
    host: String,
    port: u16,
}

/// The settings as they are read.
#[derive(Deserialize)]
pub struct Settings {
    connect_timeout: Option<u64>,
    send_timeout: Option<u64>,
    read_timeout: Option<u64>,
    connection_is_proxied: Option<bool>,
    sentinel_master: Option<String>,
    sentinel_role: Option<String>,
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
    sentinel_nodes: Option<Vec<Node>>,
    cluster_nodes: Option<Vec<Node>>,
    host: Option<String>,
    port: Option<u16>,
    timeout: Option<u64>,
    username: Option<String>,
    password: Option<String>,
    database: Option<i64>,
    ssl: Option<bool>,
    ssl_verify: Option<bool>,
    server_name: Option<String>,
}

impl Settings {
    /// The Redis of the catalogue.
    ///
    /// # Errors
    /// What Weir's Redis cannot do.
    pub fn redis(self) -> Result<Redis, UnsupportedOption> {
        let refuse = |what: &str| {
            Err(UnsupportedOption {
                field: "redis",
                what: what.to_owned(),
            })
        };
        if self.connection_is_proxied == Some(true) {
            return refuse("`connection_is_proxied` of a Redis");
        }
        let address = |node: Node| format!("{}:{}", node.host, node.port);
        let sentinels: Vec<String> = self.sentinel_nodes.into_iter().flatten().map(address).collect();
        let cluster: Vec<String> = self.cluster_nodes.into_iter().flatten().map(address).collect();
        let is_other = self.sentinel_role.as_deref().is_some_and(|role| role != "master");
        let sentinel = match (self.sentinel_master, sentinels.is_empty()) {
            (None, true) => None,
            (Some(_), false) if is_other => return refuse("`sentinel_role` other than \"master\""),
            (Some(master), false) => Some(Sentinel {
                master,
                sentinels,
                username: self.sentinel_username,
                password: self.sentinel_password.map(Password),
            }),
            _ => return refuse("only one of `sentinel_master` and `sentinel_nodes`"),
        };
        let is_single = sentinel.is_none() && cluster.is_empty();
        // The original has one time for connecting, sending and reading each.
        let all = self.timeout.unwrap_or(2000);
        let io = (self.send_timeout.unwrap_or(all)).max(self.read_timeout.unwrap_or(all));
        Ok(Redis {
            host: self.host.filter(|_| is_single),
            sentinel,
            cluster,
            port: self.port.unwrap_or(6379),
            username: self.username,
            password: self.password.map(Password),
            database: self
                .database
                .and_then(|number| number.try_into().ok())
                .unwrap_or(0),
            tls: self.ssl.unwrap_or(false).then_some(Tls {
                verify: self.ssl_verify.unwrap_or(false),
                server_name: self.server_name,
            }),
            connect_timeout_ms: self.connect_timeout.unwrap_or(all).clamp(1, 60_000),
            timeout_ms: io.clamp(1, 60_000),
            ..Redis::default()
        })
    }
}

/// The fate of calls while the Redis is away.
pub fn on_unavailable(fault_tolerant: bool) -> OnUnavailable {
    match fault_tolerant {
        true => OnUnavailable::Pass,
        false => OnUnavailable::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The defect: these settings of the paid edition were unknown fields.
    #[test]
    fn settings_of_the_paid_edition_are_read() {
        for (settings, pointer, expected) in [
            (
                json!({"host": "r", "connect_timeout": 5}),
                "/connect_timeout_ms",
                json!(5),
            ),
            (
                json!({"host": "r", "connect_timeout": 5}),
                "/timeout_ms",
                json!(2000),
            ),
            (
                json!({"host": "r", "send_timeout": 5, "read_timeout": 7}),
                "/timeout_ms",
                json!(7),
            ),
            (
                json!({"host": "r", "timeout": 9}),
                "/connect_timeout_ms",
                json!(9),
            ),
            (
                json!({"host": "r", "cluster_nodes": [{"ip": "a", "port": 1}]}),
                "/cluster",
                json!(["a:1"]),
            ),
            (
                json!({"host": "r", "cluster_nodes": [{"ip": "a", "port": 1}]}),
                "/host",
                json!(null),
            ),
            (
                json!({"sentinel_master": "m", "sentinel_nodes": [{"host": "a", "port": 1}], "sentinel_password": "p"}),
                "/sentinel",
                json!({"master": "m", "sentinels": ["a:1"], "password": "p"}),
            ),
        ] {
            let read: Settings = serde_json::from_value(settings.clone()).expect("settings");
            let made = serde_json::to_value(read.redis().expect("it is served")).expect("JSON");
            assert_eq!(
                made.pointer(pointer).cloned().unwrap_or_default(),
                expected,
                "{settings}"
            );
        }
        for settings in [
            json!({"connection_is_proxied": true}),
            json!({"sentinel_master": "m"}),
            json!({"sentinel_nodes": [{"host": "a", "port": 1}]}),
            json!({"sentinel_master": "m", "sentinel_role": "any", "sentinel_nodes": [{"host": "a", "port": 1}]}),
        ] {
            let read: Settings = serde_json::from_value(settings.clone()).expect("settings");
            assert_eq!(read.redis().expect_err("refused").field, "redis", "{settings}");
        }
    }
}
