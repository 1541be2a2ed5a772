//! `response-transformer`: changes headers and JSON bodies of responses.

use super::header_edits::{NEW_NAMES, field_steps, is_pair, list, steps};
use super::json_types::{JSON_TYPES, typed_value};
use super::{Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{Check, Field, Kind, Record};
use serde_json::Value;
use weir_plugins::response_rewrite::Config;

/// The definition of `response-transformer`.
pub const DEFINITION: Definition = Definition {
    name: "response-transformer",
    priority: 800,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "response-rewrite",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("remove", Kind::Record(&REMOVE)).required(),
    Field::new("rename", Kind::Record(&RENAME)).required(),
    Field::new("replace", Kind::Record(&CHANGE)).required(),
    Field::new("add", Kind::Record(&CHANGE)).required(),
    Field::new("append", Kind::Record(&CHANGE)).required(),
];

static REMOVE: Record = Record::of(&[list("json", &TEXT), list("headers", &TEXT)]);
static RENAME: Record = Record::of(&[list("json", &PAIR), NEW_NAMES]);
static CHANGE: Record = Record::of(&[list("json", &PAIR), JSON_TYPES, list("headers", &PAIR)]);

const TEXT: Field = Field::element(Kind::String);
const PAIR: Field = Field::element(Kind::String).check(&[Check::Text(is_pair)]);
fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(untyped(config_of(config)))
}

/// The catalogue's configuration.
pub fn config_of(config: &Value) -> Config {
    let typed = |operation: &str, text: &str, index: usize| typed_value(config, operation, text, index);
    Config {
        headers: steps(config, |_| false),
        json: field_steps(config, "json", &typed),
        variables: false,
        // The original has no bound; a larger body is refused, as a part of it would be no JSON.
        max_body_bytes: 64 << 20,
        ..Config::default()
    }
}
