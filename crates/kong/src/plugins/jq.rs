//! `jq` of the paid edition: programs that change JSON bodies.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::jq::{Config, Output, Work, fault};

/// The definition of `jq`.
pub const DEFINITION: Definition = Definition {
    name: "jq",
    priority: 811,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::AtLeastOneOf(&[
        "config.request_jq_program",
        "config.response_jq_program",
    ])],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "jq",
    translate,
};

const FIELDS: &[Field] = &[
    program("request_jq_program"),
    Field::new("request_jq_program_options", Kind::Record(&OPTIONS)).required(),
    Field::new("request_if_media_type", Kind::Array(&TEXT)).or(Default::Texts(&["application/json"])),
    program("response_jq_program"),
    Field::new("response_jq_program_options", Kind::Record(&OPTIONS)).required(),
    Field::new("response_if_media_type", Kind::Array(&TEXT)).or(Default::Texts(&["application/json"])),
    Field::new("response_if_status_code", Kind::Array(&STATUS)).or(Default::Integers(&[200])),
];

const TEXT: Field = Field::element(Kind::String);
const STATUS: Field = Field::element(Kind::Integer).check(&[Check::Between(100, 599)]);

static OPTIONS: Record = Record::of(&[
    option("compact_output", true),
    option("raw_output", false),
    option("join_output", false),
    option("ascii_output", false),
    option("sort_keys", false),
]);

const fn program(name: &'static str) -> Field {
    Field::new(name, Kind::String).check(&[Check::Text(check_program)])
}

const fn option(name: &'static str, default: bool) -> Field {
    Field::new(name, Kind::Boolean)
        .required()
        .or(Default::Boolean(default))
}

fn check_program(text: &str) -> Result<(), String> {
    match fault(text) {
        None => Ok(()),
        Some(message) => Err(format!("invalid jq program: {message}")),
    }
}

#[derive(Deserialize)]
struct Fields {
    request_jq_program: Option<String>,
    request_jq_program_options: Options,
    request_if_media_type: Option<Vec<String>>,
    response_jq_program: Option<String>,
    response_jq_program_options: Options,
    response_if_media_type: Option<Vec<String>>,
    response_if_status_code: Option<Vec<u16>>,
}

#[derive(Deserialize)]
struct Options {
    compact_output: bool,
    raw_output: bool,
    join_output: bool,
    ascii_output: bool,
    sort_keys: bool,
}

impl Options {
    fn output(self) -> Output {
        Output {
            compact: self.compact_output,
            raw: self.raw_output,
            join: self.join_output,
            ascii: self.ascii_output,
            sort_keys: self.sort_keys,
        }
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let fields: Fields = typed(config)?;
    let media = |types: Option<Vec<String>>| types.unwrap_or_else(|| vec!["application/json".to_owned()]);
    Ok(untyped(Config {
        request: fields.request_jq_program.map(|program| Work {
            program,
            media_types: media(fields.request_if_media_type),
            statuses: Vec::new(),
            output: fields.request_jq_program_options.output(),
        }),
        response: fields.response_jq_program.map(|program| Work {
            program,
            media_types: media(fields.response_if_media_type),
            statuses: fields.response_if_status_code.unwrap_or_else(|| vec![200]),
            output: fields.response_jq_program_options.output(),
        }),
        ..Config::default()
    }))
}
