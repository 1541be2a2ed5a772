//! `key-auth`: recognises consumers by an API key.

use super::{Consumers, Definition, UnsupportedOption, challenge, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::key_auth::{Config, KeyLocation, StripCredential};

/// The definition of `key-auth`.
pub const DEFINITION: Definition = Definition {
    name: "key-auth",
    priority: 1250,
    config: Record::of(&[
        Field::new(
            "key_names",
            Kind::Array(&Field::element(Kind::String).check(&[Check::Text(text::header_name)])),
        )
        .required()
        .or(Default::Texts(&["apikey"])),
        Field::new("hide_credentials", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("anonymous", Kind::String),
        Field::new("key_in_header", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("key_in_query", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("key_in_body", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("run_on_preflight", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("realm", Kind::String),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "key-auth",
    translate,
};

#[derive(Deserialize)]
struct KeyAuth {
    key_names: Vec<String>,
    hide_credentials: bool,
    anonymous: Option<String>,
    key_in_header: bool,
    key_in_query: bool,
    key_in_body: bool,
    run_on_preflight: bool,
    realm: Option<String>,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: KeyAuth = typed(config)?;
    Ok(untyped(Config {
        locations: config
            .key_names
            .iter()
            .flat_map(|name| places(name, &config))
            .collect(),
        strip: if config.hide_credentials {
            StripCredential::Everywhere
        } else {
            StripCredential::No
        },
        challenge: Some(challenge("Key", config.realm.as_deref())),
        identity: identity(config.anonymous.as_deref(), config.run_on_preflight, consumers),
        ..Config::default()
    }))
}

fn places(name: &str, config: &KeyAuth) -> Vec<KeyLocation> {
    let mut places = Vec::new();
    if config.key_in_header {
        places.push(KeyLocation::Header(name.to_owned()));
        // The original asks its web server for headers, for which `_` and `-` are the same.
        if name.contains('_') {
            places.push(KeyLocation::Header(name.replace('_', "-")));
        }
    }
    if config.key_in_query {
        places.push(KeyLocation::Query(name.to_owned()));
    }
    if config.key_in_body {
        places.push(KeyLocation::Body(name.to_owned()));
    }
    places
}
