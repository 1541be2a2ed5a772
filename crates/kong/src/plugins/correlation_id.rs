//! `correlation-id`: gives every call an id.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::request_id::{Config, Echo, Generator};

/// The definition of `correlation-id`.
pub const DEFINITION: Definition = Definition {
    name: "correlation-id",
    priority: 100_001,
    config: Record::of(&[
        Field::new("header_name", Kind::String).or(Default::Text("Kong-Request-ID")),
        Field::new("generator", Kind::String)
            .required()
            .or(Default::Text("uuid#counter"))
            .check(&[Check::OneOf(&["uuid", "uuid#counter", "tracker"])]),
        Field::new("echo_downstream", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "request-id",
    translate,
};

#[derive(Deserialize)]
struct CorrelationId {
    header_name: String,
    generator: String,
    echo_downstream: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: CorrelationId = typed(config)?;
    Ok(untyped(Config {
        header: config.header_name,
        generator: match config.generator.as_str() {
            "uuid" => Generator::Uuid,
            "tracker" => Generator::Tracker,
            _ => Generator::UuidCounter,
        },
        keep_client_id: true,
        echo: if config.echo_downstream {
            Echo::Replace
        } else {
            Echo::No
        },
    }))
}
