//! The Redis of limits: Kong's record of settings, and what it is in the catalogue.

use super::Shorthand;
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use weir_plugins::redis::{OnUnavailable, Password, Redis, Tls};

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
pub static REDIS: Record = Record::of(&[
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
]);

/// The settings as they are read.
#[derive(Deserialize)]
pub struct Settings {
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
    pub fn redis(self) -> Redis {
        // The original has one time for connecting, sending and reading each.
        let timeout_ms = self.timeout.unwrap_or(2000).clamp(1, 60_000);
        Redis {
            host: self.host,
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
            connect_timeout_ms: timeout_ms,
            timeout_ms,
            ..Redis::default()
        }
    }
}

/// The fate of calls while the Redis is away.
pub fn on_unavailable(fault_tolerant: bool) -> OnUnavailable {
    match fault_tolerant {
        true => OnUnavailable::Pass,
        false => OnUnavailable::Refuse,
    }
}
