//! `websocket-validator` of the paid edition: closes WebSockets whose messages do not match a JSON Schema.

use super::request_validator::decode_schema;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_plugins::request_validator::check_schema;
use weir_plugins::websocket_validation::{Config, MessageRules};

/// The definition of `websocket-validator`.
pub const DEFINITION: Definition = Definition {
    name: "websocket-validator",
    priority: 1006,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::AtLeastOneOf(&[
        "config.client.text",
        "config.client.binary",
        "config.upstream.text",
        "config.upstream.binary",
    ])],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "websocket-validation",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("client", Kind::Record(&SIDE)),
    Field::new("upstream", Kind::Record(&SIDE)),
];

static SIDE: Record = Record::of(&[
    Field::new("text", Kind::Record(&SCHEMA)),
    Field::new("binary", Kind::Record(&SCHEMA)),
]);

static SCHEMA: Record = Record::of(&[
    Field::new("type", Kind::String)
        .required()
        .or(Default::Text("draft4"))
        .check(&[Check::OneOf(&["draft4"])]),
    Field::new("schema", Kind::String)
        .required()
        .check(&[Check::Text(check_text)]),
]);

fn check_text(text: &str) -> Result<(), String> {
    let schema = decode_schema(text)?;
    check_schema(&schema).map_err(|message| format!("not a valid JSONSchema draft 4 schema: {message}"))
}

#[derive(Deserialize)]
struct Options {
    client: Option<DirectionRules>,
    upstream: Option<DirectionRules>,
}

#[derive(Deserialize, std::default::Default)]
struct DirectionRules {
    text: Option<Rule>,
    binary: Option<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    schema: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    // A text that is no JSON is refused when it is written.
    let schema = |rule: Option<Rule>| rule.map(|rule| decode_schema(&rule.schema).unwrap_or(json!(false)));
    let rules = |side: Option<DirectionRules>| {
        let side = side.unwrap_or_default();
        MessageRules {
            max_bytes: None,
            text: schema(side.text),
            binary: schema(side.binary),
        }
    };
    Ok(untyped(Config {
        client: rules(options.client),
        upstream: rules(options.upstream),
    }))
}
