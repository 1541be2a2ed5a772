//! `response-transformer-advanced`: `response-transformer` for some statuses, with a new body, and a list of members that
//! bodies keep.

use super::enterprise_fields::flag;
use super::header_edits::{NEW_NAMES, OPERATIONS, is_pair, list};
use super::json_types::JSON_TYPES;
use super::response_transformer::config_of;
use super::{Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{Check, Field, Kind, Record};
use serde_json::{Value, json};
use weir_plugins::field_edits::FieldEdit;

/// The definition of `response-transformer-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "response-transformer-advanced",
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
    Field::new("replace", Kind::Record(&REPLACE)).required(),
    Field::new("add", Kind::Record(&CHANGE)).required(),
    Field::new("append", Kind::Record(&CHANGE)).required(),
    Field::new("allow", Kind::Record(&ALLOW)).required(),
    Field::new("transform", Kind::Record(&TRANSFORM)).required(),
    flag("dots_in_keys", true),
];

static REMOVE: Record = Record::of(&[list("headers", &TEXT), list("json", &TEXT), STATUSES]);
static RENAME: Record = Record::of(&[NEW_NAMES, list("json", &PAIR), STATUSES]);
static CHANGE: Record = Record::of(&[list("headers", &PAIR), list("json", &PAIR), JSON_TYPES, STATUSES]);
static REPLACE: Record = Record::of(&[
    Field::new("body", Kind::String),
    list("headers", &PAIR),
    list("json", &PAIR),
    JSON_TYPES,
    STATUSES,
]);
static ALLOW: Record = Record::of(&[Field::new("json", Kind::Set(&TEXT))]);
static TRANSFORM: Record = Record::of(&[list("functions", &TEXT), list("json", &TEXT), STATUSES]);

const TEXT: Field = Field::element(Kind::String);
const PAIR: Field = Field::element(Kind::String).check(&[Check::Text(is_pair)]);
const STATUSES: Field = list("if_status", &STATUS);
const STATUS: Field = Field::element(Kind::String).check(&[Check::Text(check_status)]);

fn check_status(text: &str) -> Result<(), String> {
    match range(text) {
        Some(_) => Ok(()),
        None => Err(format!(
            "value '{text}' is neither status code nor status code range"
        )),
    }
}

/// `200`, or `200-299`.
fn range(text: &str) -> Option<(u16, u16)> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let status = |text: &str| {
        text.trim()
            .parse::<u16>()
            .ok()
            .filter(|status| (100..=599).contains(status))
    };
    status(low).zip(status(high)).filter(|(low, high)| low <= high)
}

/// The condition that statuses are.
fn condition(statuses: &Value) -> Option<Value> {
    let statuses = statuses.as_array().filter(|statuses| !statuses.is_empty())?;
    let ranges = statuses.iter().filter_map(Value::as_str).filter_map(range);
    let conditions = ranges.map(|(low, high)| json!(["AND", ["status", ">=", low], ["status", "<=", high]]));
    Some([json!("OR")].into_iter().chain(conditions).collect())
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let unfit = |field: &'static str, what: &str| UnsupportedOption {
        field,
        what: what.to_owned(),
    };
    if config["dots_in_keys"] == Value::Bool(false) {
        return Err(unfit("dots_in_keys", "a name with dots as a path"));
    }
    let is_used = |operation: &str, part: &str| {
        let part = &config[operation][part];
        part.is_string() || part.as_array().is_some_and(|items| !items.is_empty())
    };
    if is_used("transform", "functions") {
        return Err(unfit("transform", "code in Lua"));
    }
    let operations = ["remove"].into_iter().chain(OPERATIONS);
    let used: Vec<&Value> = operations
        .filter(|operation| {
            ["headers", "json", "body"]
                .iter()
                .any(|part| is_used(operation, part))
        })
        .map(|operation| &config[operation]["if_status"])
        .collect();
    let first = used.first().copied().unwrap_or(&Value::Null);
    let conditions: Vec<Option<Value>> = used.iter().map(|statuses| condition(statuses)).collect();
    if conditions.iter().any(|other| *other != condition(first)) {
        return Err(unfit("replace", "another 'if_status' for each operation"));
    }
    let mut made = config_of(config);
    made.body = config["replace"]["body"].as_str().map(str::to_owned);
    if made.body.is_some() {
        // Nothing is left of the members.
        made.json.clear();
    }
    let kept = config["allow"]["json"].as_array().into_iter().flatten();
    let kept: Vec<String> = kept.filter_map(Value::as_str).map(str::to_owned).collect();
    if !kept.is_empty() && made.body.is_none() {
        made.json.push(FieldEdit::Keep(kept));
    }
    let mut made = untyped(made);
    if let Some(condition) = condition(first) {
        made["when"] = condition;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_bodies_are_translated() {
        let both = json!(["200", "400-499"]);
        let config = json!({
            "replace": {"body": "x", "if_status": both},
            "add": {"headers": ["X-A:1"], "if_status": both},
            "dots_in_keys": true,
        });
        let made = translate(&config, &Consumers::NONE).expect("it is served");
        assert_eq!(made["body"], "x");
        let of_range = |low: u16, high: u16| json!(["AND", ["status", ">=", low], ["status", "<=", high]]);
        assert_eq!(
            made["when"],
            json!(["OR", of_range(200, 200), of_range(400, 499)])
        );
        for (config, field) in [
            (
                json!({"add": {"headers": ["X-A:1"], "if_status": ["200"]}, "remove": {"headers": ["X-B"]}}),
                "replace",
            ),
            (json!({"transform": {"functions": ["return"]}}), "transform"),
        ] {
            assert_eq!(
                translate(&config, &Consumers::NONE)
                    .expect_err("it is refused")
                    .field,
                field
            );
        }
        assert!(check_status("200-299").is_ok() && check_status("2xx").is_err());
    }
}
