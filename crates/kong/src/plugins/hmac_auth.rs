//! `hmac-auth`: recognises consumers by a signature.

use super::{Consumers, Definition, UnsupportedOption, challenge, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::hmac_auth::{Algorithm, Config, Form};

/// The definition of `hmac-auth`.
pub const DEFINITION: Definition = Definition {
    name: "hmac-auth",
    priority: 1030,
    config: Record::of(&[
        Field::new("hide_credentials", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("clock_skew", Kind::Number)
            .or(Default::Integer(300))
            .check(&[Check::Above(0)]),
        Field::new("anonymous", Kind::String),
        Field::new("validate_request_body", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("enforce_headers", Kind::Array(&Field::element(Kind::String))).or(Default::Texts(&[])),
        Field::new(
            "algorithms",
            Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(ALGORITHMS)])),
        )
        .or(Default::Texts(ALGORITHMS)),
        Field::new("realm", Kind::String),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "hmac-auth",
    translate,
};

const ALGORITHMS: &[&str] = &["hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"];

#[derive(Deserialize)]
struct HmacAuth {
    hide_credentials: bool,
    clock_skew: f64,
    anonymous: Option<String>,
    validate_request_body: bool,
    enforce_headers: Option<Vec<String>>,
    algorithms: Vec<Algorithm>,
    realm: Option<String>,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: HmacAuth = typed(config)?;
    Ok(untyped(Config {
        form: Form::Hmac,
        headers: ["Proxy-Authorization", "Authorization"]
            .map(str::to_owned)
            .to_vec(),
        algorithms: config.algorithms,
        clock_skew_seconds: (config.clock_skew as u64).max(1),
        required_headers: config.enforce_headers.unwrap_or_default(),
        check_body: config.validate_request_body,
        strip: config.hide_credentials,
        challenge: Some(challenge("hmac", config.realm.as_deref())),
        identity: identity(config.anonymous.as_deref(), true, consumers),
        ..Config::default()
    }))
}
