//! `response-transformer`: changes the headers of responses. Its changes of JSON bodies are not available yet.

use super::header_edits::{NAMES, PAIRS, list, refuse_parts, steps};
use super::{Consumers, Definition, Unfit, untyped};
use crate::schema::{Check, Field, Kind, Record};
use serde_json::Value;
use weir_plugins::response_rewrite::Config;

/// The plugin.
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

static REMOVE: Record = Record::of(&[list("json", &Field::element(Kind::String)), NAMES]);
static RENAME: Record = Record::of(&[list("json", &JSON_PAIR), PAIRS]);
static CHANGE: Record = Record::of(&[list("json", &JSON_PAIR), list("json_types", &JSON_TYPE), PAIRS]);

const JSON_PAIR: Field = Field::element(Kind::String).check(&[Check::Text(check_pair)]);
const JSON_TYPE: Field =
    Field::element(Kind::String).check(&[Check::OneOf(&["boolean", "number", "string"])]);

fn check_pair(text: &str) -> Result<(), String> {
    if text.contains(':') && !text.starts_with(':') {
        Ok(())
    } else {
        Err(format!("invalid value: {text}"))
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, Unfit> {
    refuse_parts(config, &["json"])?;
    Ok(untyped(Config {
        headers: steps(config)?,
        variables: false,
        ..Config::default()
    }))
}
