//! The options of plugins that use a Redis, and what is wrong with them. What is done there belongs to the plugins,
//! and the connections to the engine.

use crate::config_checks::ConfigErrors;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use weir_plugin::{RedisAddress, RedisScript, RedisServer, RedisTls, RedisTopology};

/// A script with the name by which Redis knows it.
pub fn script(text: &'static str) -> RedisScript {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    let sha1 = digits.collect();
    RedisScript { text, sha1 }
}

/// The address of a Redis (version 5 or later), and how to use it. One of `host`, `sentinel` and `cluster` names the
/// server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Redis {
    /// Name or address of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
    /// A master that sentinels look after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<Sentinel>,
    /// Some servers of a cluster, as `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<String>,
    /// The user name; left out: the default user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password, if the server requires one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// The number of the database; a cluster has only 0.
    pub database: u32,
    /// Its TLS settings; left out: no TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The longest that it may take until a connection is ready for use, in milliseconds, 1 to 60,000.
    #[schemars(range(min = 1, max = 60_000))]
    pub connect_timeout_ms: u64,
    /// The longest that an answer may take, in milliseconds, 1 to 60,000. After that the Redis counts as away.
    #[schemars(range(min = 1, max = 60_000))]
    pub timeout_ms: u64,
    /// How long an idle connection is kept, in milliseconds.
    pub idle_timeout_ms: u64,
    /// Begins the names of all keys. Gateways share counts only under the same one.
    pub prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            host: None,
            port: 6379,
            sentinel: None,
            cluster: Vec::new(),
            username: None,
            password: None,
            database: 0,
            tls: None,
            connect_timeout_ms: 1_000,
            timeout_ms: 1_000,
            idle_timeout_ms: 60_000,
            prefix: "weir".to_owned(),
        }
    }
}

/// A master that sentinels look after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sentinel {
    /// The master's name.
    pub master: String,
    /// The sentinels, as `host:port`.
    pub sentinels: Vec<String>,
    /// The user name for the sentinels; left out: the default user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password for the sentinels, if they require one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
}

/// The TLS settings for a Redis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Whether its certificate is verified.
    #[serde(default = "crate::yes")]
    pub verify: bool,
    /// The name in the TLS handshake; left out: its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
}

/// A password. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

impl Redis {
    /// Builds the server description, and reports faults with their places, below `at`.
    pub fn compile(self, at: &[&str], faults: &mut ConfigErrors) -> Option<RedisServer> {
        let mut fault = |field: &[&str], message: &str| faults.add_at(&[at, field].concat(), message);
        let times = [
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("timeout_ms", self.timeout_ms),
        ];
        for (field, time) in times {
            if !(1..=60_000).contains(&time) {
                fault(&[field], "expected 1 to 60,000 milliseconds");
            }
        }
        let is_visible = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
        if self.prefix.len() > 64 || !self.prefix.bytes().all(is_visible) {
            fault(
                &["prefix"],
                "expected at most 64 visible characters without braces",
            );
        }
        let place = self.topology(fault)?;
        Some(RedisServer {
            place,
            username: self.username.filter(|it| !it.is_empty()),
            password: self.password.map(|it| it.0).filter(|it| !it.is_empty()),
            database: self.database,
            tls: self.tls.map(|tls| RedisTls {
                verify: tls.verify,
                server_name: tls.server_name,
            }),
            connect_timeout: Duration::from_millis(self.connect_timeout_ms),
            timeout: Duration::from_millis(self.timeout_ms),
            idle_timeout: Duration::from_millis(self.idle_timeout_ms.max(1_000)),
        })
    }

    fn topology(&self, mut fault: impl FnMut(&[&str], &str)) -> Option<RedisTopology> {
        let given = [
            self.host.is_some(),
            self.sentinel.is_some(),
            !self.cluster.is_empty(),
        ];
        if given.into_iter().filter(|is_given| *is_given).count() != 1 {
            fault(&[], "expected one of `host`, `sentinel` and `cluster`");
            return None;
        }
        if let Some(host) = &self.host {
            if host.is_empty() || self.port == 0 {
                fault(&["host"], "expected a host and a port");
            }
            return Some(RedisTopology::Single(RedisAddress {
                host: host.clone(),
                port: self.port,
            }));
        }
        let mut addresses = |texts: &[String], field: &[&str]| {
            let read: Option<Vec<_>> = texts.iter().map(|text| address(text)).collect();
            if read.as_ref().is_none_or(Vec::is_empty) {
                fault(field, "expected addresses as `host:port`");
            }
            read.filter(|read| !read.is_empty())
        };
        if let Some(sentinel) = &self.sentinel {
            return Some(RedisTopology::Sentinel {
                sentinels: addresses(&sentinel.sentinels, &["sentinel", "sentinels"])?,
                master: sentinel.master.clone(),
                username: sentinel.username.clone().filter(|it| !it.is_empty()),
                password: sentinel
                    .password
                    .clone()
                    .map(|it| it.0)
                    .filter(|it| !it.is_empty()),
            });
        }
        let nodes = addresses(&self.cluster, &["cluster"])?;
        if self.database != 0 {
            fault(&["database"], "a cluster has only database 0");
        }
        Some(RedisTopology::Cluster(nodes))
    }
}

fn address(text: &str) -> Option<RedisAddress> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    (!host.is_empty()).then_some(RedisAddress { host, port })
}
