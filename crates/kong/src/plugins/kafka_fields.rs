//! The common part of the plugins that send records to Kafka: `kafka-log`, `kafka-upstream` and `confluent`.

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
    // Brokers that know where the topic is.
    Field::new("bootstrap_servers", Kind::Set(&ONE_SERVER)),
    // The topic.
    Field::new("topic", Kind::String).required(),
    // Milliseconds that a connection may take.
    Field::new("timeout", Kind::Integer).or(Default::Integer(10_000)),
    // Milliseconds that an idle connection is kept.
    Field::new("keepalive", Kind::Integer).or(Default::Integer(60_000)),
    // Whether idle connections are kept.
    flag("keepalive_enabled", false),
];
/// Who the gateway is to the brokers, and whether they are met over TLS.
pub const USER: &[Field] = &[
    // Who the gateway is to the brokers.
    Field::new("authentication", Kind::Record(&AUTHENTICATION_FIELDS)).required(),
    // Whether brokers are met over TLS.
    Field::new("security", Kind::Record(&SECURITY_FIELDS)).required(),
];
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
    #[serde(default)]
    authentication: Authentication,
    #[serde(default)]
    security: Security,
    producer_request_acks: i16,
    producer_request_limits_messages_per_request: usize,
    producer_request_limits_bytes_per_request: usize,
    producer_request_retries_max_attempts: u32,
    producer_request_retries_backoff_timeout: u64,
    producer_async: bool,
    producer_async_flush_timeout: u64,
    producer_async_buffering_limits_messages_in_memory: usize,
}

#[derive(Deserialize)]
struct Server {
    host: String,
    port: u16,
}

#[derive(Default, Deserialize)]
struct Authentication {
    strategy: Option<String>,
    mechanism: Option<String>,
    tokenauth: Option<bool>,
    user: Option<String>,
    password: Option<String>,
}

#[derive(Default, Deserialize)]
struct Security {
    certificate_id: Option<String>,
    ssl: Option<bool>,
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
        let unfit = |field: &'static str, what: &str| UnsupportedOption {
            field,
            what: what.to_owned(),
        };
        if self.security.certificate_id.is_some() {
            return Err(unfit("security", "a client certificate for Kafka"));
        }
        let authentication = &self.authentication;
        if authentication.tokenauth == Some(true) {
            return Err(unfit("authentication", "delegation tokens of Kafka"));
        }
        let servers = self.bootstrap_servers.as_deref().unwrap_or_default();
        if servers.is_empty() {
            return Err(unfit("bootstrap_servers", "a topic without servers"));
        }
        let user = authentication.user.clone().zip(authentication.password.clone());
        let sasl = authentication.strategy.as_ref().and(user);
        Ok(KafkaTarget {
            brokers: servers
                .iter()
                .map(|server| Broker {
                    host: server.host.clone(),
                    port: server.port,
                })
                .collect(),
            topic: self.topic.clone(),
            acks: self.producer_request_acks,
            tls: self.security.ssl == Some(true),
            sasl: sasl.map(|(user, password)| Sasl {
                mechanism: match authentication.mechanism.as_deref() {
                    Some("SCRAM-SHA-256") => Mechanism::ScramSha256,
                    Some("SCRAM-SHA-512") => Mechanism::ScramSha512,
                    _ => Mechanism::Plain,
                },
                user,
                password,
            }),
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
