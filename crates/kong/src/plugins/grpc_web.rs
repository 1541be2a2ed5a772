//! `grpc-web`: Kong's fields and defaults for `grpc-web` of the catalogue.

use super::grpc_gateway::{JSON, MOST, definitions};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::grpc_web::{Config, CrossOrigin, NonGrpcPolicy, Path, Preflight, Trailers};

/// The definition of `grpc-web`.
pub const DEFINITION: Definition = Definition {
    name: "grpc-web",
    priority: 3,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "grpc-web",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("proto", Kind::String),
    Field::new("pass_stripped_path", Kind::Boolean),
    Field::new("allow_origin_header", Kind::String).or(Default::Text("*")),
];

#[derive(Deserialize)]
struct GrpcWeb {
    proto: Option<String>,
    pass_stripped_path: Option<bool>,
    allow_origin_header: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: GrpcWeb = typed(config)?;
    Ok(untyped(Config {
        proto: definitions(config.proto),
        json: JSON,
        // Without it, the original's server gets the path that the client has asked for.
        path: match config.pass_stripped_path {
            Some(true) => Path::Route,
            _ => Path::Client,
        },
        others: NonGrpcPolicy::Explain,
        cross_origin: config.allow_origin_header.map(|allow_origin| CrossOrigin {
            allow_origin,
            keep_existing: false,
            allow_methods: "POST".to_owned(),
            allow_headers: "content-type,x-grpc-web,x-user-agent".to_owned(),
            expose_headers: None,
            preflight: Preflight {
                status: 200,
                body: "OK".to_owned(),
                content_type: "application/grpc-web-text+proto".to_owned(),
            },
        }),
        trailers: Trailers::Status,
        refusals_as_status: false,
        max_request_bytes: MOST,
        max_message_bytes: MOST,
    }))
}
