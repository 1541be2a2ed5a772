//! `kafka-upstream`: a record of every call to a topic of Kafka, instead of the upstream.

use super::kafka_fields::{self, Parts, Producer};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{EntityCheck, Field, Record};
use serde_json::Value;

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "kafka-upstream",
    priority: 751,
    config: Record::of(FIELDS),
    checks: &[
        EntityCheck::Test(kafka_fields::check_user),
        EntityCheck::Test(kafka_fields::check_parts),
    ],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "kafka-upstream",
    translate,
};

const FIELDS: &[Field] = &[
    kafka_fields::BOOTSTRAP_SERVERS,
    kafka_fields::TOPIC,
    kafka_fields::TIMEOUT,
    kafka_fields::KEEPALIVE,
    kafka_fields::KEEPALIVE_ENABLED,
    kafka_fields::AUTHENTICATION,
    kafka_fields::SECURITY,
    kafka_fields::FORWARD_METHOD,
    kafka_fields::FORWARD_URI,
    kafka_fields::FORWARD_HEADERS,
    kafka_fields::FORWARD_BODY,
    kafka_fields::ACKS,
    kafka_fields::REQUEST_TIMEOUT,
    kafka_fields::MESSAGES_PER_REQUEST,
    kafka_fields::BYTES_PER_REQUEST,
    kafka_fields::MAX_ATTEMPTS,
    kafka_fields::BACKOFF,
    kafka_fields::ASYNC,
    kafka_fields::FLUSH_TIMEOUT,
    kafka_fields::MESSAGES_IN_MEMORY,
    kafka_fields::CLUSTER_NAME,
];

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let producer = Producer::read(config)?;
    let parts: Parts = typed(config)?;
    Ok(untyped(producer.upstream(producer.target()?, &parts)))
}
