//! `kafka-upstream`: a record of every call to a topic of Kafka, instead of the upstream.

use super::kafka_fields::{self, Parts, Producer};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{EntityCheck, Field, Record, joined};
use serde_json::Value;

/// The definition of `kafka-upstream`.
pub const DEFINITION: Definition = Definition {
    name: "kafka-upstream",
    priority: 751,
    config: Record::of(&FIELDS),
    checks: &[
        EntityCheck::Test(kafka_fields::check_user),
        EntityCheck::Test(kafka_fields::check_parts),
    ],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "kafka-upstream",
    translate,
};

const FIELDS: [Field; 21] = joined(&[
    kafka_fields::CONNECTION,
    kafka_fields::USER,
    kafka_fields::FORWARDED,
    kafka_fields::PRODUCER,
]);

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let producer = Producer::read(config)?;
    let parts: Parts = typed(config)?;
    Ok(untyped(producer.upstream(producer.target()?, &parts)))
}
