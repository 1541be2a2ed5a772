//! `redirect`: Kong's fields and defaults for `redirect` of the catalogue, which sends callers elsewhere.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::redirect::Config;

/// The definition of `redirect`.
pub const DEFINITION: Definition = Definition {
    name: "redirect",
    priority: 779,
    config: Record::of(&[
        Field::new("status_code", Kind::Integer)
            .required()
            .or(Default::Integer(301))
            .check(&[Check::Between(100, 599)]),
        Field::new("location", Kind::String)
            .required()
            .check(&[Check::Text(check_location)]),
        Field::new("keep_incoming_path", Kind::Boolean).or(Default::Boolean(false)),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "redirect",
    translate,
};

fn check_location(text: &str) -> Result<(), String> {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    match rest.split(['/', '?', '#']).next() {
        Some(host) if !host.is_empty() => Ok(()),
        _ => Err("missing host in url".to_owned()),
    }
}

#[derive(Deserialize)]
struct Redirect {
    status_code: u16,
    location: String,
    keep_incoming_path: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Redirect = typed(config)?;
    Ok(untyped(Config {
        location: Some(config.location),
        keep_path: config.keep_incoming_path,
        variables: false,
        // The original can be configured with interim statuses, which end no call.
        status: config.status_code.max(200),
        body: Some("redirecting".to_owned()),
        ..Config::default()
    }))
}
