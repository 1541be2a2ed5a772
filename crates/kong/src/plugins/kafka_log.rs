//! `kafka-log`: a log record of every call to a topic of Kafka.

use super::enterprise_fields::flag;
use super::logging::base;
use super::unserved::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{Broker, KafkaTarget, Mechanism, Sasl, Target};
use weir_plugins::logger::{Batch, Config};

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "kafka-log",
    priority: 5,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(check_user)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("bootstrap_servers", Kind::Set(&ONE_SERVER)),
    Field::new("topic", Kind::String).required(),
    Field::new("timeout", Kind::Integer).or(Default::Integer(10_000)),
    Field::new("keepalive", Kind::Integer).or(Default::Integer(60_000)),
    flag("keepalive_enabled", false),
    Field::new("authentication", Kind::Record(&AUTHENTICATION)).required(),
    Field::new("security", Kind::Record(&SECURITY)).required(),
    Field::new("producer_request_acks", Kind::Integer)
        .or(Default::Integer(1))
        .check(&[Check::OneOfNumbers(&[-1, 0, 1])]),
    Field::new("producer_request_timeout", Kind::Integer).or(Default::Integer(2_000)),
    Field::new("producer_request_limits_messages_per_request", Kind::Integer).or(Default::Integer(200)),
    Field::new("producer_request_limits_bytes_per_request", Kind::Integer).or(Default::Integer(1_048_576)),
    Field::new("producer_request_retries_max_attempts", Kind::Integer).or(Default::Integer(10)),
    Field::new("producer_request_retries_backoff_timeout", Kind::Integer).or(Default::Integer(100)),
    flag("producer_async", true),
    Field::new("producer_async_flush_timeout", Kind::Integer).or(Default::Integer(1_000)),
    Field::new(
        "producer_async_buffering_limits_messages_in_memory",
        Kind::Integer,
    )
    .or(Default::Integer(50_000)),
    Field::new("cluster_name", Kind::String),
    CUSTOM_FIELDS_BY_LUA,
];

const ONE_SERVER: Field = Field::element(Kind::Record(&SERVER));
static SERVER: Record = Record::of(&[
    Field::new("host", Kind::String)
        .required()
        .check(&[Check::Text(text::host)]),
    Field::new("port", Kind::Integer).required().check(PORT),
]);

static AUTHENTICATION: Record = Record::of(&[
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

static SECURITY: Record = Record::of(&[
    Field::new("certificate_id", Kind::Uuid),
    Field::new("ssl", Kind::Boolean),
]);

fn check_user(instance: &Fields) -> Result<(), String> {
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

#[derive(Deserialize)]
struct Options {
    bootstrap_servers: Option<Vec<Server>>,
    topic: String,
    timeout: u64,
    authentication: Authentication,
    security: Security,
    producer_request_acks: i16,
    producer_request_limits_messages_per_request: usize,
    producer_request_retries_max_attempts: u32,
    producer_request_retries_backoff_timeout: u64,
    producer_async_flush_timeout: u64,
    producer_async_buffering_limits_messages_in_memory: usize,
}

#[derive(Deserialize)]
struct Server {
    host: String,
    port: u16,
}

#[derive(Deserialize)]
struct Authentication {
    strategy: Option<String>,
    mechanism: Option<String>,
    tokenauth: Option<bool>,
    user: Option<String>,
    password: Option<String>,
}

#[derive(Deserialize)]
struct Security {
    certificate_id: Option<String>,
    ssl: Option<bool>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let unfit = |field: &'static str, what: &str| UnsupportedOption {
        field,
        what: what.to_owned(),
    };
    if options.security.certificate_id.is_some() {
        return Err(unfit("security", "a client certificate for Kafka"));
    }
    let authentication = options.authentication;
    if authentication.tokenauth == Some(true) {
        return Err(unfit("authentication", "delegation tokens of Kafka"));
    }
    let servers = options.bootstrap_servers.unwrap_or_default();
    if servers.is_empty() {
        return Err(unfit("bootstrap_servers", "a topic without servers"));
    }
    let user = authentication.user.zip(authentication.password);
    let sasl = authentication.strategy.and(user).map(|(user, password)| Sasl {
        mechanism: match authentication.mechanism.as_deref() {
            Some("SCRAM-SHA-256") => Mechanism::ScramSha256,
            Some("SCRAM-SHA-512") => Mechanism::ScramSha512,
            _ => Mechanism::Plain,
        },
        user,
        password,
    });
    Ok(untyped(Config {
        target: Target::Kafka(KafkaTarget {
            brokers: servers
                .into_iter()
                .map(|server| Broker {
                    host: server.host,
                    port: server.port,
                })
                .collect(),
            topic: options.topic,
            acks: options.producer_request_acks,
            tls: options.security.ssl == Some(true),
            sasl,
            timeout_ms: options.timeout.max(1),
            ..KafkaTarget::default()
        }),
        form: Form::Separated,
        batch: Batch {
            max_entries: options.producer_request_limits_messages_per_request.max(1),
            delay_ms: options.producer_async_flush_timeout,
            max_pending: options.producer_async_buffering_limits_messages_in_memory,
            retries: options.producer_request_retries_max_attempts,
            retry_delay_ms: options.producer_request_retries_backoff_timeout,
            max_retry_delay_ms: options.producer_request_retries_backoff_timeout,
            ..Batch::default()
        },
        ..base(config)?
    }))
}
