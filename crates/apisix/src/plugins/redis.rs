//! The Redis of limits: APISIX's settings for each policy, and what they are in the catalogue.

use super::Warnings;
use crate::schema::{Schema, any, array, boolean, integer, object, text};
use serde::Deserialize;
use weir_plugins::redis::{OnUnavailable, Password, Redis, Sentinel, Tls};

/// The settings as they are read; which are used depends on the policy.
#[derive(Deserialize)]
pub struct Settings {
    policy: String,
    #[serde(default)]
    allow_degradation: bool,
    redis_host: Option<String>,
    redis_port: Option<u16>,
    redis_username: Option<String>,
    redis_password: Option<String>,
    redis_database: Option<u32>,
    redis_timeout: Option<u64>,
    redis_keepalive_timeout: Option<u64>,
    redis_ssl: Option<bool>,
    redis_ssl_verify: Option<bool>,
    #[serde(default)]
    redis_cluster_nodes: Vec<String>,
    redis_cluster_ssl: Option<bool>,
    redis_cluster_ssl_verify: Option<bool>,
    #[serde(default)]
    redis_sentinels: Vec<Address>,
    redis_master_name: Option<String>,
    redis_role: Option<String>,
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
    redis_connect_timeout: Option<u64>,
    redis_read_timeout: Option<u64>,
}

#[derive(Deserialize)]
struct Address {
    host: String,
    port: u16,
}

impl Settings {
    /// The Redis of the catalogue; `None`: the policy is another one.
    pub fn redis(&self, notes: &mut Warnings) -> Option<Redis> {
        let timeout = |time: Option<u64>| time.unwrap_or(1_000).clamp(1, 60_000);
        let tls = |is_on: Option<bool>, verify: Option<bool>| {
            is_on.unwrap_or(false).then_some(Tls {
                verify: verify.unwrap_or(false),
                server_name: None,
            })
        };
        let common = Redis {
            password: self.redis_password.clone().map(Password),
            connect_timeout_ms: timeout(self.redis_timeout),
            timeout_ms: timeout(self.redis_timeout),
            idle_timeout_ms: self.redis_keepalive_timeout.unwrap_or(10_000),
            ..Redis::default()
        };
        match self.policy.as_str() {
            "redis" => Some(Redis {
                host: self.redis_host.clone(),
                port: self.redis_port.unwrap_or(6379),
                username: self.redis_username.clone(),
                database: self.redis_database.unwrap_or(0),
                tls: tls(self.redis_ssl, self.redis_ssl_verify),
                ..common
            }),
            "redis-cluster" => Some(Redis {
                cluster: self.redis_cluster_nodes.clone(),
                tls: tls(self.redis_cluster_ssl, self.redis_cluster_ssl_verify),
                ..common
            }),
            "redis-sentinel" => {
                if self.redis_role.as_deref() == Some("slave") {
                    notes.not_available("redis_role", "counting in a replica");
                }
                let sentinels = self.redis_sentinels.iter();
                Some(Redis {
                    sentinel: Some(Sentinel {
                        master: self.redis_master_name.clone().unwrap_or_default(),
                        sentinels: sentinels
                            .map(|address| format!("{}:{}", address.host, address.port))
                            .collect(),
                        username: self.sentinel_username.clone(),
                        password: self.sentinel_password.clone().map(Password),
                    }),
                    username: self.redis_username.clone(),
                    database: self.redis_database.unwrap_or(0),
                    connect_timeout_ms: timeout(self.redis_connect_timeout),
                    timeout_ms: timeout(self.redis_read_timeout),
                    ..common
                })
            }
            _ => None,
        }
    }

    /// The fate of calls while the Redis is away.
    pub fn on_unavailable(&self) -> OnUnavailable {
        match self.allow_degradation {
            true => OnUnavailable::Pass,
            false => OnUnavailable::Refuse,
        }
    }
}

/// If the policy is this one.
fn policy(name: &'static str) -> Schema {
    object([("policy", any().options([name]))])
}

fn pool() -> [(&'static str, Schema); 3] {
    [
        ("redis_timeout", integer().at_least(1).or(1000)),
        ("redis_keepalive_timeout", integer().at_least(1000).or(10_000)),
        ("redis_keepalive_pool", integer().at_least(1).or(100)),
    ]
}

fn single(key_ttl: bool) -> Schema {
    let [timeout, keepalive_timeout, keepalive_pool] = pool();
    let shape = object([
        ("redis_host", text().longer(2)),
        ("redis_port", integer().at_least(1).or(6379)),
        ("redis_username", text().longer(1)),
        ("redis_password", text()),
        ("redis_database", integer().at_least(0).or(0)),
        ("redis_ssl", boolean().or(false)),
        ("redis_ssl_verify", boolean().or(false)),
        timeout,
        keepalive_timeout,
        keepalive_pool,
    ])
    .required(["redis_host"]);
    with_time(shape, key_ttl)
}

fn cluster(key_ttl: bool) -> Schema {
    let [timeout, keepalive_timeout, keepalive_pool] = pool();
    let shape = object([
        (
            "redis_cluster_nodes",
            array(text().longer(2).shorter(100)).min_items(1),
        ),
        ("redis_cluster_name", text()),
        ("redis_password", text()),
        ("redis_cluster_ssl", boolean().or(false)),
        ("redis_cluster_ssl_verify", boolean().or(false)),
        timeout,
        keepalive_timeout,
        keepalive_pool,
    ])
    .required(["redis_cluster_nodes", "redis_cluster_name"]);
    with_time(shape, key_ttl)
}

fn with_time(shape: Schema, key_ttl: bool) -> Schema {
    match key_ttl {
        true => shape.field("key_ttl", integer().or(3600)),
        false => shape,
    }
}

fn sentinel() -> Schema {
    let address = object([
        ("host", text().longer(2)),
        ("port", integer().at_least(1).at_most(65_535)),
    ])
    .required(["host", "port"])
    .closed();
    object([
        ("redis_sentinels", array(address).min_items(1)),
        ("redis_master_name", text().longer(1)),
        ("redis_role", text().options(["master", "slave"]).or("master")),
        ("redis_username", text().longer(1)),
        ("redis_password", text()),
        ("redis_database", integer().at_least(0).or(0)),
        ("redis_connect_timeout", integer().at_least(1).or(1000)),
        ("redis_read_timeout", integer().at_least(1).or(1000)),
        ("redis_keepalive_timeout", integer().at_least(1).or(60_000)),
        ("sentinel_username", text().longer(1)),
        ("sentinel_password", text()),
    ])
    .required(["redis_sentinels", "redis_master_name"])
}

/// A shape whose settings depend on the policy. `with_sentinel`: a third policy is there. `key_ttl`: places are
/// forgotten after a time.
pub fn with_policies(shape: Schema, with_sentinel: bool, key_ttl: bool) -> Schema {
    let otherwise = match with_sentinel {
        true => any().when(policy("redis-sentinel"), sentinel(), any()),
        false => any(),
    };
    let otherwise = any().when(policy("redis-cluster"), cluster(key_ttl), otherwise);
    shape.when(policy("redis"), single(key_ttl), otherwise)
}
