//! `standard-webhooks`: lets webhooks pass that are signed.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::webhook_signature::Config;

/// The definition of `standard-webhooks`.
pub const DEFINITION: Definition = Definition {
    name: "standard-webhooks",
    priority: 760,
    config: Record::of(&[
        Field::new("secret_v1", Kind::String).required(),
        Field::new("tolerance_second", Kind::Integer)
            .required()
            .or(Default::Integer(300))
            .check(&[Check::Above(-1)]),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "webhook-signature",
    translate,
};

#[derive(Deserialize)]
struct StandardWebhooks {
    secret_v1: String,
    tolerance_second: u64,
}

/// The original signs with the secret as it is written, and takes one signature alone.
fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: StandardWebhooks = typed(config)?;
    Ok(untyped(Config {
        secret_is_base64: false,
        tolerance_seconds: config.tolerance_second,
        allow_future: true,
        allow_multiple: false,
        ..Config::new(config.secret_v1)
    }))
}
