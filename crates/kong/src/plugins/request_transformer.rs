//! `request-transformer`: changes method, path, query, headers and body of requests. Functions in templates are not
//! available yet.

use super::header_edits::{NAMES, NEW_NAMES, PAIRS, field_steps, list, split, steps, texts};
use super::{Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{Check, Field, Kind, Record, text};
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::header_edits::HeaderEdit;
use weir_plugins::request_rewrite::{Config, expression_fault};

/// The definition of `request-transformer`.
pub const DEFINITION: Definition = Definition {
    name: "request-transformer",
    priority: 801,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "request-rewrite",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("http_method", Kind::String).check(&[Check::Text(text::method)]),
    Field::new("remove", Kind::Record(&REMOVE)).required(),
    Field::new("rename", Kind::Record(&RENAME)).required(),
    Field::new("replace", Kind::Record(&REPLACE)).required(),
    Field::new("add", Kind::Record(&CHANGE)).required(),
    Field::new("append", Kind::Record(&CHANGE)).required(),
];

static REMOVE: Record = Record::of(&[list("body", &TEXT), NAMES, list("querystring", &TEXT)]);
static RENAME: Record = Record::of(&[list("body", &PAIR), NEW_NAMES, list("querystring", &PAIR)]);
static CHANGE: Record = Record::of(&[list("body", &PAIR), PAIRS, list("querystring", &PAIR)]);
static REPLACE: Record = Record::of(&[
    list("body", &PAIR),
    PAIRS,
    list("querystring", &PAIR),
    Field::new("uri", Kind::String),
]);

pub const TEXT: Field = Field::element(Kind::String);
pub const PAIR: Field = Field::element(Kind::String).check(&[Check::Text(check_pair)]);

/// A name with a value, which is a template that can be read.
fn check_pair(pair: &str) -> Result<(), String> {
    let (name, value) = split(pair);
    if value.is_empty() {
        return Err(format!("key '{name}' has no value"));
    }
    match expression_fault(value) {
        None => Ok(()),
        Some(fault) => Err(format!(
            "value '{value}' is not in supported format, error:{fault}"
        )),
    }
}

/// A template that cannot be read is only found out by a call, which it fails.
fn template(text: &str) -> &str {
    match expression_fault(text) {
        None => text,
        Some(_) => "$(template.fault)",
    }
}

fn with_template(step: HeaderEdit) -> HeaderEdit {
    let templates = |lines: BTreeMap<String, String>| {
        let lines = lines.into_iter();
        lines
            .map(|(name, text)| (name, template(&text).to_owned()))
            .collect()
    };
    match step {
        HeaderEdit::Replace(lines) => HeaderEdit::Replace(templates(lines)),
        HeaderEdit::Add(lines) => HeaderEdit::Add(templates(lines)),
        HeaderEdit::Append(lines) => HeaderEdit::Append(templates(lines)),
        other => other,
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let as_text = |_: &str, text: &str, _: usize| (!text.is_empty()).then(|| Value::from(text));
    Ok(untyped(config_of(config, &as_text)))
}

/// The catalogue's configuration. `value_of` makes a value of a body's field of its text and its place in the list of an
/// operation.
pub fn config_of(config: &Value, value_of: &dyn Fn(&str, &str, usize) -> Option<Value>) -> Config {
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let hosts = texts(config, "replace", "headers").map(split);
    let host = hosts
        .filter(|(name, value)| is_host(name) && !value.is_empty())
        .last();
    let as_text = |_: &str, text: &str, _: usize| (!text.is_empty()).then(|| Value::from(text));
    let method = config["http_method"].as_str();
    Config {
        path: config["replace"]["uri"]
            .as_str()
            .map(|uri| template(uri).to_owned()),
        method: method.map(str::to_owned),
        host: host.map(|(_, value)| template(value).to_owned()),
        headers: steps(config, is_host).into_iter().map(with_template).collect(),
        query: field_steps(config, "querystring", &as_text),
        body: field_steps(config, "body", value_of),
        form_to_query: matches!(method, Some("GET" | "HEAD" | "TRACE")),
        // Kong sets these headers after all plugins.
        about_client: false,
        variables: false,
        expressions: true,
        ..Config::default()
    }
}
