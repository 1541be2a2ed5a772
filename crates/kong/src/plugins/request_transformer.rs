//! `request-transformer`: changes method, path, query, headers and body of requests. Functions in templates are not
//! available yet.

use super::header_edits::{NAMES, PAIRS, field_steps, list, split, steps, texts};
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

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, Unfit> {
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let hosts = texts(config, "replace", "headers").map(split);
    let host = hosts
        .filter(|(name, value)| is_host(name) && !value.is_empty())
        .last();
    let as_text = |_: &str, text: &str, _: usize| (!text.is_empty()).then(|| Value::from(text));
    let method = config["http_method"].as_str();
    Ok(untyped(Config {
        path: config["replace"]["uri"].as_str().map(str::to_owned),
        method: method.map(str::to_owned),
        host: host.map(|(_, value)| value.to_owned()),
        headers: steps(config, is_host),
        query: field_steps(config, "querystring", &as_text),
        body: field_steps(config, "body", &as_text),
        form_to_query: matches!(method, Some("GET" | "HEAD" | "TRACE")),
        // Kong sets these headers after all plugins.
        about_client: false,
        variables: false,
        expressions: true,
        ..Config::default()
    }))
}
