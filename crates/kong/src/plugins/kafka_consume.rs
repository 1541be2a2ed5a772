//! `kafka-consume`: the records of topics of Kafka as the answers to calls.

use super::consume_fields::{self, Reading};
use super::kafka_fields::{self, User};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{EntityCheck, Field, Kind, Record, joined};
use serde_json::Value;
use weir_plugins::kafka_consume::Config;

/// The definition of `kafka-consume`.
pub const DEFINITION: Definition = Definition {
    name: "kafka-consume",
    priority: 753,
    config: Record::of(&FIELDS),
    checks: &[EntityCheck::Test(kafka_fields::check_user)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "kafka-consume",
    translate,
};

const USER: &[Field] = &[
    // Who the gateway is to the brokers.
    kafka_fields::AUTHENTICATION,
    // Whether brokers are met over TLS.
    Field::new("security", Kind::Record(&kafka_fields::VERIFIED_SECURITY)).required(),
];

const FIELDS: [Field; 15] = joined(&[
    &[kafka_fields::SERVERS.required(), consume_fields::start("latest")],
    USER,
    consume_fields::READING,
]);

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let user: User = typed(config)?;
    user.check()?;
    Ok(untyped(Config {
        tls: user.security.ssl == Some(true),
        verify_tls: user.security.ssl_verify == Some(true),
        sasl: user.authentication.sasl(),
        ..Reading::read(config)?.plugin()?
    }))
}
