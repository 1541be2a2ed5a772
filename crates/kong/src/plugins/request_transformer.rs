//! `request-transformer`: changes the method and the headers of requests. Its changes of queries, bodies and paths,
//! and its templates, are not available yet.

use super::header_edits::{NAMES, PAIRS, headers, list, refuse_parts, steps};
use super::{Consumers, Definition, Unfit, untyped};
use crate::schema::{Check, Field, Kind, Record, text};
use serde_json::Value;
use weir_plugins::request_rewrite::Config;

/// The plugin.
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
    Field::new("rename", Kind::Record(&CHANGE)).required(),
    Field::new("replace", Kind::Record(&REPLACE)).required(),
    Field::new("add", Kind::Record(&CHANGE)).required(),
    Field::new("append", Kind::Record(&CHANGE)).required(),
];

static REMOVE: Record = Record::of(&[BODY, NAMES, QUERY]);
static CHANGE: Record = Record::of(&[BODY, PAIRS, QUERY]);
static REPLACE: Record = Record::of(&[BODY, PAIRS, QUERY, Field::new("uri", Kind::String)]);

const BODY: Field = list("body", &Field::element(Kind::String));
const QUERY: Field = list("querystring", &Field::element(Kind::String));

const OPERATIONS: [&str; 5] = ["remove", "rename", "replace", "add", "append"];

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, Unfit> {
    refuse_parts(config, &["body", "querystring", "uri"])?;
    for operation in OPERATIONS {
        for text in headers(config, operation) {
            let name = text.split(':').next().unwrap_or_default();
            let what = if text.contains("$(") {
                "a template"
            } else if name.eq_ignore_ascii_case("host") {
                "changing \"Host\""
            } else {
                continue;
            };
            return Err(Unfit {
                field: operation,
                what: format!("{what} in \"{operation}.headers\" of a transformer"),
            });
        }
    }
    Ok(untyped(Config {
        method: config["http_method"].as_str().map(str::to_owned),
        headers: steps(config)?,
        variables: false,
        ..Config::default()
    }))
}
