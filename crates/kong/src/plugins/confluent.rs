//! `confluent`: a record of every call to a topic of Confluent Cloud, instead of the upstream.

use super::kafka_fields::{self, Parts, Producer};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::target::{KafkaTarget, Mechanism, Sasl};

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "confluent",
    priority: 752,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(kafka_fields::check_parts)],
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
    Field::new("cluster_api_key", Kind::String).required(),
    Field::new("cluster_api_secret", Kind::String).required(),
    Field::new("confluent_cloud_api_key", Kind::String),
    Field::new("confluent_cloud_api_secret", Kind::String),
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

/// The key of the cluster. Those of the cloud are for its own API, which nothing here calls.
#[derive(Deserialize)]
struct ClusterKey {
    cluster_api_key: String,
    cluster_api_secret: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let producer = Producer::read(config)?;
    let parts: Parts = typed(config)?;
    let key: ClusterKey = typed(config)?;
    // The cloud takes its keys by PLAIN, and only over TLS.
    let target = KafkaTarget {
        tls: true,
        sasl: Some(Sasl {
            mechanism: Mechanism::Plain,
            user: key.cluster_api_key,
            password: key.cluster_api_secret,
        }),
        ..producer.target()?
    };
    Ok(untyped(producer.upstream(target, &parts)))
}
