//! `basic-auth`: recognises consumers by a user name and a password.

use super::{Consumers, Definition, UnsupportedOption, challenge, identity, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::basic_auth::Config;

/// The definition of `basic-auth`.
pub const DEFINITION: Definition = Definition {
    name: "basic-auth",
    priority: 1100,
    config: Record::of(&[
        Field::new("anonymous", Kind::String),
        Field::new("hide_credentials", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("realm", Kind::String)
            .required()
            .or(Default::Text("service")),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "basic-auth",
    translate,
};

#[derive(Deserialize)]
struct BasicAuth {
    anonymous: Option<String>,
    hide_credentials: bool,
    realm: String,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: BasicAuth = typed(config)?;
    Ok(untyped(Config {
        headers: ["Proxy-Authorization", "Authorization"]
            .map(str::to_owned)
            .to_vec(),
        any_case: false,
        strip: config.hide_credentials,
        challenge: Some(challenge("Basic", Some(&config.realm))),
        identity: identity(config.anonymous.as_deref(), true, consumers),
        ..Config::default()
    }))
}
