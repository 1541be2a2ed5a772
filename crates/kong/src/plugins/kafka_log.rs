//! `kafka-log`: a log record of every call to a topic of Kafka.

use super::kafka_fields::{self, Producer};
use super::logging::base;
use super::unserved::shared::CUSTOM_FIELDS_BY_LUA;
use super::{Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{EntityCheck, Field, Record, joined};
use serde_json::Value;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::Target;

/// The definition of `kafka-log`.
pub const DEFINITION: Definition = Definition {
    name: "kafka-log",
    priority: 5,
    config: Record::of(&FIELDS),
    checks: &[EntityCheck::Test(kafka_fields::check_user)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "logger",
    translate,
};

const FIELDS: [Field; 18] = joined(&[
    kafka_fields::CONNECTION,
    kafka_fields::USER,
    kafka_fields::PRODUCER,
    &[CUSTOM_FIELDS_BY_LUA],
]);

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let producer = Producer::read(config)?;
    let batch = producer.batch();
    Ok(untyped(Config {
        target: Target::Kafka(producer.target()?),
        form: Form::Separated,
        batch,
        ..base(config)?
    }))
}
