//! `grpc-gateway`: `grpc-transcode` of the catalogue, by the rules of a `.proto` file.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::grpc_transcode::{Config, ErrorBody, Errors, Refusals};
use weir_plugins::protobuf::{Definitions, Enums, Integers, JsonForm, Mapping, Names};

/// The definition of `grpc-gateway`.
pub const DEFINITION: Definition = Definition {
    name: "grpc-gateway",
    priority: 998,
    config: Record::of(&[Field::new("proto", Kind::String)]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "grpc-transcode",
    translate,
};

/// Most bytes of a body that is held; the original has no bound.
pub(super) const MOST: usize = 64 << 20;

/// JSON as the original's library for messages has it.
pub(super) const JSON: JsonForm = JsonForm {
    mapping: Mapping::FieldsAndTimes,
    names: Names::Proto,
    integers: Integers::Number,
    enums: Enums::Name,
    defaults: true,
};

/// The definitions in a file.
pub(super) fn definitions(file: Option<String>) -> Option<Definitions> {
    file.map(|file| Definitions {
        file: Some(file),
        ..Definitions::default()
    })
}

#[derive(Deserialize)]
struct GrpcGateway {
    proto: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: GrpcGateway = typed(config)?;
    Ok(untyped(Config {
        proto: definitions(config.proto),
        method: None,
        deadline_ms: 0,
        json: JSON,
        errors: Errors {
            body: ErrorBody::None,
            unimplemented_status: 500,
            ..Errors::default()
        },
        refusals: Refusals::Text,
        any_origin: true,
        joined: true,
        max_request_bytes: MOST,
        max_message_bytes: MOST,
    }))
}
