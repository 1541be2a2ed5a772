//! `jwt`: recognises consumers by a JSON Web Token.

use super::{Consumers, Definition, UnsupportedOption, challenge, identity, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Kind, Record, Requirement};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::jwt::{Config, MultipleTokens, TimeClaim, TokenLocation};

/// The definition of `jwt`.
pub const DEFINITION: Definition = Definition {
    name: "jwt",
    priority: 1450,
    config: Record::of(&[
        Field::new("uri_param_names", NAMES).or(Default::Texts(&["jwt"])),
        Field::new("cookie_names", NAMES).or(Default::Texts(&[])),
        Field::new("key_claim_name", Kind::String).or(Default::Text("iss")),
        Field::new("secret_is_base64", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new(
            "claims_to_verify",
            Kind::Set(&Field::element(Kind::String).check(&[Check::OneOf(&["exp", "nbf"])])),
        ),
        Field::new("anonymous", Kind::String),
        Field::new("run_on_preflight", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("maximum_expiration", Kind::Number)
            .or(Default::Integer(0))
            .check(&[Check::Between(0, 31_536_000)]),
        Field::new("header_names", NAMES).or(Default::Texts(&["authorization"])),
        Field::new("realm", Kind::String),
    ]),
    checks: &[EntityCheck::When {
        field: "config.maximum_expiration",
        is: FieldTest::Above(0),
        then: "config.claims_to_verify",
        must: Requirement::Contain("exp"),
    }],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "jwt",
    translate,
};

const NAMES: Kind = Kind::Set(&Field::element(Kind::String));

#[derive(Deserialize)]
struct Jwt {
    uri_param_names: Vec<String>,
    cookie_names: Vec<String>,
    key_claim_name: String,
    secret_is_base64: bool,
    claims_to_verify: Option<Vec<String>>,
    anonymous: Option<String>,
    run_on_preflight: bool,
    maximum_expiration: f64,
    header_names: Vec<String>,
    realm: Option<String>,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Jwt = typed(config)?;
    let in_queries = config.uri_param_names.into_iter().map(TokenLocation::Query);
    let in_cookies = config.cookie_names.into_iter().map(TokenLocation::Cookie);
    let in_headers = config.header_names.into_iter().map(TokenLocation::Header);
    let claims = config.claims_to_verify.unwrap_or_default();
    let realm = config.realm.as_deref();
    Ok(untyped(Config {
        locations: in_queries.chain(in_cookies).chain(in_headers).collect(),
        on_multiple: MultipleTokens::Refuse,
        schemes: ["Bearer", "bearer"].map(str::to_owned).to_vec(),
        scheme_required: true,
        key_claim: config.key_claim_name,
        key_in_header: true,
        check_typ: true,
        secret_is_base64: config.secret_is_base64,
        required_claims: claims
            .iter()
            .map(|claim| match claim.as_str() {
                "nbf" => TimeClaim::Nbf,
                _ => TimeClaim::Exp,
            })
            .collect(),
        checked_claims: Vec::new(),
        max_expiration_seconds: (config.maximum_expiration > 0.0).then_some(config.maximum_expiration as u64),
        challenge: Some(challenge("Bearer", realm)),
        token_challenge: Some(format!("{} error=\"invalid_token\"", challenge("Bearer", realm))),
        identity: identity(config.anonymous.as_deref(), config.run_on_preflight, consumers),
        ..Config::default()
    }))
}
