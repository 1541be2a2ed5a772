//! `confluent`: a record of every call to a topic of Confluent Cloud, instead of the upstream.

use super::kafka_fields::{self, Parts, Producer};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{EntityCheck, Field, Kind, Record, joined};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::target::{KafkaTarget, Mechanism, Sasl};

/// The definition of `confluent`.
pub const DEFINITION: Definition = Definition {
    name: "confluent",
    priority: 752,
    config: Record::of(&FIELDS),
    checks: &[EntityCheck::Test(kafka_fields::check_parts)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "kafka-upstream",
    translate,
};

/// The keys.
pub const KEYS: &[Field] = &[
    Field::new("cluster_api_key", Kind::String).required(),
    Field::new("cluster_api_secret", Kind::String).required(),
    Field::new("confluent_cloud_api_key", Kind::String),
    Field::new("confluent_cloud_api_secret", Kind::String),
];

const FIELDS: [Field; 23] = joined(&[
    kafka_fields::CONNECTION,
    KEYS,
    kafka_fields::FORWARDED,
    kafka_fields::PRODUCER,
]);

/// The key of the cluster. Those of the cloud are for its own API, which nothing here calls.
#[derive(Deserialize)]
struct ClusterKey {
    cluster_api_key: String,
    cluster_api_secret: String,
}

/// The user that the cluster's key stands for. The cloud takes its keys by PLAIN.
pub fn user(config: &Value) -> Result<Sasl, UnsupportedOption> {
    let key: ClusterKey = typed(config)?;
    Ok(Sasl {
        mechanism: Mechanism::Plain,
        user: key.cluster_api_key,
        password: key.cluster_api_secret,
    })
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let producer = Producer::read(config)?;
    let parts: Parts = typed(config)?;
    // It takes them only over TLS.
    let target = KafkaTarget {
        tls: true,
        sasl: Some(user(config)?),
        ..producer.target()?
    };
    Ok(untyped(producer.upstream(target, &parts)))
}
