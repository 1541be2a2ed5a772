//! `confluent-consume`: the records of topics of Confluent Cloud as the answers to calls.

use super::consume_fields::{self, Reading};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use super::{confluent, kafka_fields};
use crate::schema::{Field, Record, joined};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::kafka_consume::Config;

/// The definition of `confluent-consume`.
pub const DEFINITION: Definition = Definition {
    name: "confluent-consume",
    priority: 754,
    config: Record::of(&FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "kafka-consume",
    translate,
};

const FIELDS: [Field; 20] = joined(&[
    &[kafka_fields::SERVERS, consume_fields::start("earliest")],
    kafka_fields::TIMES,
    confluent::KEYS,
    consume_fields::READING,
]);

#[derive(Deserialize)]
struct Timeout {
    timeout: u64,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let Timeout { timeout } = typed(config)?;
    Ok(untyped(Config {
        tls: true,
        sasl: Some(confluent::user(config)?),
        timeout_ms: timeout.max(1),
        ..Reading::read(config)?.plugin()?
    }))
}
