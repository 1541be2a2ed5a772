//! The common part of the plugins that send records to Kafka, `kafka-log`, `kafka-upstream` and `confluent`, and in
//! part of those that read them.

use super::enterprise_fields::flag;
use super::unserved::shared::PORT;
use super::{UnsupportedOption, typed};
use crate::schema::{Check, Default, Field, Fields, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::kafka_upstream;
use weir_plugins::logger::Batch;
use weir_plugins::logger::target::{Broker, KafkaTarget, Mechanism, Sasl};

/// Where the brokers are, and how connections to them are kept.
pub const CONNECTION: &[Field] = &[
    SERVERS,
    // The topic.
    Field::new("topic", Kind::String).required(),
    TIMES[0],
    TIMES[1],
    TIMES[2],
];
/// Brokers that know where the topic is.
pub const SERVERS: Field = Field::new("bootstrap_servers", Kind::Set(&ONE_SERVER));
/// How long connections may take, and how they are kept.
pub const TIMES: &[Field] = &[
    // Milliseconds that a connection may take.
    Field::new("timeout", Kind::Integer).or(Default::Integer(10_000)),
    // Milliseconds that an idle connection is kept.
    Field::new("keepalive", Kind::Integer).or(Default::Integer(60_000)),
    // Whether idle connections are kept.
    flag("keepalive_enabled", false),
];
/// Who the gateway is to the brokers, and whether they are met over TLS.
pub const USER: &[Field] = &[
    AUTHENTICATION,
    // Whether brokers are met over TLS.
    Field::new("security", Kind::Record(&SECURITY_FIELDS)).required(),
];
/// Who the gateway is to the brokers.
pub const AUTHENTICATION: Field =
    Field::new("authentication", Kind::Record(&AUTHENTICATION_FIELDS)).required();
/// Which parts of calls records have.
pub const FORWARDED: &[Field] = &[
    // Whether records have the method.
    flag("forward_method", false),
    // Whether records have the path and the query.
    flag("forward_uri", false),
    // Whether records have the headers.
    flag("forward_headers", false),
    // Whether records have the body.
    flag("forward_body", true),
];
/// How records are sent.
pub const PRODUCER: &[Field] = &[
    // Who must have stored a record.
    Field::new("producer_request_acks", Kind::Integer)
        .or(Default::Integer(1))
        .check(&[Check::OneOfNumbers(&[-1, 0, 1])]),
    // Milliseconds that brokers may take to store records.
    number("producer_request_timeout", 2_000),
    // Records of a request at most.
    number("producer_request_limits_messages_per_request", 200),
    // Bytes of a request at most.
    number("producer_request_limits_bytes_per_request", 1_048_576),
    // How often a request is sent again.
    number("producer_request_retries_max_attempts", 10),
    // Milliseconds before it is sent again.
    number("producer_request_retries_backoff_timeout", 100),
    // Whether records wait for others.
    flag("producer_async", true),
    // Milliseconds that a record waits.
    number("producer_async_flush_timeout", 1_000),
    // Records that wait at most.
    number("producer_async_buffering_limits_messages_in_memory", 50_000),
    // A name for the brokers.
    Field::new("cluster_name", Kind::String),
];

const fn number(name: &'static str, default: i64) -> Field {
    Field::new(name, Kind::Integer).or(Default::Integer(default))
}

const ONE_SERVER: Field = Field::element(Kind::Record(&SERVER));
static SERVER: Record = Record::of(&[
    Field::new("host", Kind::String)
        .required()
        .check(&[Check::Text(text::host)]),
    Field::new("port", Kind::Integer).required().check(PORT),
]);

static AUTHENTICATION_FIELDS: Record = Record::of(&[
    Field::new("strategy", Kind::String).check(&[Check::OneOf(&["sasl"])]),
    Field::new("mechanism", Kind::String).check(&[Check::OneOf(&[
        "PLAIN",
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
    ])]),
    Field::new("tokenauth", Kind::Boolean),
    Field::new("user", Kind::String),
    Field::new("password", Kind::String),
]);

static SECURITY_FIELDS: Record = Record::of(&[
    Field::new("certificate_id", Kind::Uuid),
    Field::new("ssl", Kind::Boolean),
]);

/// The same for plugins that can verify brokers.
pub static VERIFIED_SECURITY: Record = Record::of(&[
    Field::new("certificate_id", Kind::Uuid),
    Field::new("ssl", Kind::Boolean),
    flag("ssl_verify", false),
]);

/// Whether a user is complete.
pub fn check_user(instance: &Fields) -> Result<(), String> {
    let Some(config) = instance.get("config") else {
        return Ok(());
    };
    let authentication = &config["authentication"];
    let lacks = |field: &str| !authentication[field].is_string();
    match authentication["strategy"] == "sasl" && ["mechanism", "user", "password"].into_iter().any(lacks) {
        true => Err(
            "if authentication strategy is SASL, then mechanism, user and password must be set".to_owned(),
        ),
        false => Ok(()),
    }
}

/// Whether records hold anything.
pub fn check_parts(instance: &Fields) -> Result<(), String> {
    let Some(config) = instance.get("config") else {
        return Ok(());
    };
    let parts = ["forward_method", "forward_uri", "forward_headers", "forward_body"];
    // What is absent has its default, and the body is sent by default.
    let is_sent = |part: &str| config[part].as_bool().unwrap_or(part == "forward_body");
    match parts.into_iter().any(is_sent) {
        true => Ok(()),
        false => Err(format!(
            "at least one of these attributes must be set to true: {}",
            parts.join(", ")
        )),
    }
}

/// How records are sent.
#[derive(Deserialize)]
pub struct Producer {
    bootstrap_servers: Option<Vec<Server>>,
    topic: String,
    timeout: u64,
    #[serde(flatten)]
    user: User,
    producer_request_acks: i16,
    producer_request_limits_messages_per_request: usize,
    producer_request_limits_bytes_per_request: usize,
    producer_request_retries_max_attempts: u32,
    producer_request_retries_backoff_timeout: u64,
    producer_async: bool,
    producer_async_flush_timeout: u64,
    producer_async_buffering_limits_messages_in_memory: usize,
}

/// Who the gateway is to the brokers, and how they are met.
#[derive(Deserialize)]
pub struct User {
    #[serde(default)]
    pub authentication: Authentication,
    #[serde(default)]
    pub security: Security,
}

impl User {
    /// Whether it can be served.
    pub fn check(&self) -> Result<(), UnsupportedOption> {
        let unfit = |field: &'static str, what: &str| UnsupportedOption {
            field,
            what: what.to_owned(),
        };
        if self.security.certificate_id.is_some() {
            return Err(unfit("security", "a client certificate for Kafka"));
        }
        match self.authentication.tokenauth {
            Some(true) => Err(unfit("authentication", "delegation tokens of Kafka")),
            _ => Ok(()),
        }
    }
}

/// A broker.
#[derive(Deserialize)]
pub struct Server {
    host: String,
    port: u16,
}

/// Who the gateway is to the brokers.
#[derive(Default, Deserialize)]
pub struct Authentication {
    strategy: Option<String>,
    mechanism: Option<String>,
    tokenauth: Option<bool>,
    user: Option<String>,
    password: Option<String>,
}

impl Authentication {
    /// The user, if there is one.
    pub fn sasl(&self) -> Option<Sasl> {
        let user = self.user.clone().zip(self.password.clone());
        let (user, password) = self.strategy.as_ref().and(user)?;
        Some(Sasl {
            mechanism: match self.mechanism.as_deref() {
                Some("SCRAM-SHA-256") => Mechanism::ScramSha256,
                Some("SCRAM-SHA-512") => Mechanism::ScramSha512,
                _ => Mechanism::Plain,
            },
            user,
            password,
        })
    }
}

/// How brokers are met.
#[derive(Default, Deserialize)]
pub struct Security {
    certificate_id: Option<String>,
    pub ssl: Option<bool>,
    pub ssl_verify: Option<bool>,
}

/// The brokers.
pub fn brokers(servers: &[Server]) -> Result<Vec<Broker>, UnsupportedOption> {
    if servers.is_empty() {
        return Err(UnsupportedOption {
            field: "bootstrap_servers",
            what: "a topic without servers".to_owned(),
        });
    }
    let broker = |server: &Server| Broker {
        host: server.host.clone(),
        port: server.port,
    };
    Ok(servers.iter().map(broker).collect())
}

/// What records hold of a call.
#[derive(Deserialize)]
pub struct Parts {
    forward_method: bool,
    forward_uri: bool,
    forward_headers: bool,
    forward_body: bool,
}

impl Producer {
    /// Reads it from a configuration.
    pub fn read(config: &Value) -> Result<Self, UnsupportedOption> {
        typed(config)
    }

    /// The topic, and where it is.
    pub fn target(&self) -> Result<KafkaTarget, UnsupportedOption> {
        self.user.check()?;
        Ok(KafkaTarget {
            brokers: brokers(self.bootstrap_servers.as_deref().unwrap_or_default())?,
            topic: self.topic.clone(),
            acks: self.producer_request_acks,
            tls: self.user.security.ssl == Some(true),
            sasl: self.user.authentication.sasl(),
            timeout_ms: self.timeout.max(1),
            ..KafkaTarget::default()
        })
    }

    /// How records of a log wait to be sent.
    pub fn batch(&self) -> Batch {
        Batch {
            max_entries: self.producer_request_limits_messages_per_request.max(1),
            delay_ms: self.producer_async_flush_timeout,
            max_pending: self.producer_async_buffering_limits_messages_in_memory,
            retries: self.producer_request_retries_max_attempts,
            retry_delay_ms: self.producer_request_retries_backoff_timeout,
            max_retry_delay_ms: self.producer_request_retries_backoff_timeout,
            ..Batch::default()
        }
    }

    /// The plugin that sends calls to this topic as records with these parts.
    pub fn upstream(&self, target: KafkaTarget, parts: &Parts) -> kafka_upstream::Config {
        let limit = self.producer_request_limits_bytes_per_request;
        kafka_upstream::Config {
            kafka: target,
            method: parts.forward_method,
            uri: parts.forward_uri,
            headers: parts.forward_headers,
            body: parts.forward_body,
            wait: !self.producer_async,
            max_record_bytes: limit.min(kafka_upstream::MAX_RECORD_BYTES),
            max_entries: self.producer_request_limits_messages_per_request.max(1),
            delay_ms: self.producer_async_flush_timeout,
            max_pending: self.producer_async_buffering_limits_messages_in_memory,
            retries: self.producer_request_retries_max_attempts,
            retry_delay_ms: self.producer_request_retries_backoff_timeout,
        }
    }
}
