//! Counts that several gateways share: they stand in a Redis, which each call asks or with which counts are settled now
//! and then. What limiters have in common there: the options, and the scripts that count in one step.

mod accumulator;
pub(crate) mod scripts;
pub(crate) mod windows;

pub(crate) use accumulator::Accumulator;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::{
    Exchange, Outcome, RedisAddress, RedisAnswer, RedisCall, RedisCommand, RedisScript, RedisServer,
    RedisTls, RedisTopology, Refusal, RefusalKind,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Where counts stand that several gateways share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The Redis.
    pub redis: Redis,
    /// What becomes of calls while the Redis is away.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// What callers are told who are refused for that reason, in place of the dialect's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_message: Option<String>,
}

impl Store {
    /// Counts in this Redis, with the defaults of all other options.
    pub fn new(redis: Redis) -> Self {
        Self {
            redis,
            on_unavailable: OnUnavailable::default(),
            unavailable_message: None,
        }
    }
}

/// Where counts of windows stand that several gateways share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowStore {
    /// The Redis.
    pub redis: Redis,
    /// What becomes of calls while the Redis is away.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// What callers are told who are refused for that reason, in place of the dialect's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_message: Option<String>,
    /// Seconds, 0.01 to 3600. No call asks the Redis then: each gateway counts for itself, and adds what it has counted
    /// to the common count so often, from which it learns of the others. Each other gateway may let as many calls pass
    /// beyond the limit as come to it in that time, and never more than the limit itself in a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 3600.0))]
    pub sync_interval_seconds: Option<f64>,
}

impl WindowStore {
    /// Counts in this Redis, which each call asks, with the defaults of all other options.
    pub fn new(redis: Redis) -> Self {
        Self {
            redis,
            on_unavailable: OnUnavailable::default(),
            unavailable_message: None,
            sync_interval_seconds: None,
        }
    }

    /// Makes the store ready; faults are told with their places.
    pub(crate) fn compile(self, faults: &mut ConfigErrors) -> Option<Shared> {
        if self
            .sync_interval_seconds
            .is_some_and(|seconds| !(0.01..=3600.0).contains(&seconds))
        {
            faults.add_at(
                &["store", "sync_interval_seconds"],
                "expected 0.01 to 3600 seconds",
            );
        }
        let seconds = self.sync_interval_seconds;
        let store = Store {
            redis: self.redis,
            on_unavailable: self.on_unavailable,
            unavailable_message: self.unavailable_message,
        };
        let shared = store.compile(faults)?;
        Some(Shared {
            sync_interval: seconds
                .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1))),
            ..shared
        })
    }
}

/// What becomes of calls while a Redis is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnavailable {
    /// The gateway counts them for itself.
    #[default]
    Local,
    /// They pass uncounted.
    Pass,
    /// They are refused with status 500.
    Refuse,
}

/// How a Redis is reached (version 5 or later). One of `host`, `sentinel` and `cluster` says where it is.
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
    /// As whom it is used; left out: as the default user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password, where it asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// The number of the database; a cluster has only 0.
    pub database: u32,
    /// How it is met over TLS; left out: without.
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
    /// As whom they are asked; left out: as the default user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Their password, where they ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
}

/// How a Redis is met over TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Whether its certificate must be good.
    #[serde(default = "weir_plugins_shared::yes")]
    pub verify: bool,
    /// The name that it is asked for; left out: its host.
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

/// A store made ready for many calls.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) server: Arc<RedisServer>,
    pub(crate) prefix: Arc<[u8]>,
    pub(crate) on_unavailable: OnUnavailable,
    unavailable_message: Option<String>,
    pub(crate) sync_interval: Option<Duration>,
}

impl Store {
    /// Makes the store ready; faults are told with their places.
    pub(crate) fn compile(self, faults: &mut ConfigErrors) -> Option<Shared> {
        let redis = self.redis;
        let times = [
            ("connect_timeout_ms", redis.connect_timeout_ms),
            ("timeout_ms", redis.timeout_ms),
        ];
        for (field, time) in times {
            if !(1..=60_000).contains(&time) {
                faults.add_at(&["store", "redis", field], "expected 1 to 60,000 milliseconds");
            }
        }
        if redis.prefix.len() > 64
            || !redis
                .prefix
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"{}".contains(&byte))
        {
            faults.add_at(
                &["store", "redis", "prefix"],
                "expected at most 64 visible characters without braces",
            );
        }
        let place = place(&redis, faults)?;
        Some(Shared {
            server: Arc::new(RedisServer {
                place,
                username: redis.username.filter(|it| !it.is_empty()),
                password: redis.password.map(|it| it.0).filter(|it| !it.is_empty()),
                database: redis.database,
                tls: redis.tls.map(|tls| RedisTls {
                    verify: tls.verify,
                    server_name: tls.server_name,
                }),
                connect_timeout: Duration::from_millis(redis.connect_timeout_ms),
                timeout: Duration::from_millis(redis.timeout_ms),
                idle_timeout: Duration::from_millis(redis.idle_timeout_ms.max(1_000)),
            }),
            prefix: redis.prefix.into_bytes().into(),
            on_unavailable: self.on_unavailable,
            unavailable_message: self.unavailable_message,
            sync_interval: None,
        })
    }
}

fn place(redis: &Redis, faults: &mut ConfigErrors) -> Option<RedisTopology> {
    let given = [
        redis.host.is_some(),
        redis.sentinel.is_some(),
        !redis.cluster.is_empty(),
    ];
    if given.into_iter().filter(|is_given| *is_given).count() != 1 {
        faults.add_at(
            &["store", "redis"],
            "expected one of `host`, `sentinel` and `cluster`",
        );
        return None;
    }
    if let Some(host) = &redis.host {
        if host.is_empty() || redis.port == 0 {
            faults.add_at(&["store", "redis", "host"], "expected a host and a port");
        }
        return Some(RedisTopology::Single(RedisAddress {
            host: host.clone(),
            port: redis.port,
        }));
    }
    let mut addresses = |texts: &[String], field: &[&str]| {
        let read: Option<Vec<_>> = texts.iter().map(|text| address(text)).collect();
        if read.as_ref().is_none_or(Vec::is_empty) {
            faults.add_at(field, "expected addresses as `host:port`");
        }
        read.filter(|read| !read.is_empty())
    };
    if let Some(sentinel) = &redis.sentinel {
        let field = ["store", "redis", "sentinel", "sentinels"];
        return Some(RedisTopology::Sentinel {
            sentinels: addresses(&sentinel.sentinels, &field)?,
            master: sentinel.master.clone(),
            username: sentinel.username.clone().filter(|it| !it.is_empty()),
            password: sentinel
                .password
                .clone()
                .map(|it| it.0)
                .filter(|it| !it.is_empty()),
        });
    }
    let nodes = addresses(&redis.cluster, &["store", "redis", "cluster"])?;
    if redis.database != 0 {
        faults.add_at(&["store", "redis", "database"], "a cluster has only database 0");
    }
    Some(RedisTopology::Cluster(nodes))
}

fn address(text: &str) -> Option<RedisAddress> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    (!host.is_empty()).then_some(RedisAddress { host, port })
}

impl Shared {
    /// The call of a script about counters of this name.
    pub(crate) fn call(&self, script: &'static RedisScript) -> RedisCall {
        RedisCall::new(&self.server, script)
    }

    /// What becomes of a call while the Redis is away; `None`: it is counted here.
    pub(crate) fn away(&self, plugin: &'static str) -> Option<Outcome> {
        match self.on_unavailable {
            OnUnavailable::Local => None,
            OnUnavailable::Pass => Some(Outcome::Continue),
            OnUnavailable::Refuse => {
                let reason = "the Redis that counts calls is away";
                let mut refusal = Refusal::new(RefusalKind::PluginFailed { plugin, reason });
                refusal.message.clone_from(&self.unavailable_message);
                Some(Outcome::Refuse(Box::new(refusal)))
            }
        }
    }
}

/// Has the engine run a script.
pub(crate) fn run(call: RedisCall) -> Outcome {
    Outcome::Redis(Box::new(RedisCommand::Run(call)))
}

/// What came of the script that was run last.
pub(crate) fn answer(exchange: &mut Exchange) -> Option<RedisAnswer> {
    exchange.redis.take().flatten()
}

#[cfg(test)]
mod tests;
