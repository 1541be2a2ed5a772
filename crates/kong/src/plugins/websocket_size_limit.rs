//! `websocket-size-limit` of the paid edition: closes WebSockets whose messages are too long.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::websocket_validation::{Config, MessageRules};

/// The definition of `websocket-size-limit`.
pub const DEFINITION: Definition = Definition {
    name: "websocket-size-limit",
    priority: 1003,
    config: Record::of(&[limit("client_max_payload"), limit("upstream_max_payload")]),
    checks: &[EntityCheck::AtLeastOneOf(&[
        "config.client_max_payload",
        "config.upstream_max_payload",
    ])],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "websocket-validation",
    translate,
};

const fn limit(name: &'static str) -> Field {
    Field::new(name, Kind::Integer).check(&[Check::Between(1, 33_554_432)])
}

#[derive(Deserialize)]
struct Options {
    client_max_payload: Option<usize>,
    upstream_max_payload: Option<usize>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let rules = |max_bytes| MessageRules {
        max_bytes,
        ..MessageRules::default()
    };
    Ok(untyped(Config {
        client: rules(options.client_max_payload),
        upstream: rules(options.upstream_max_payload),
    }))
}
