//! `request-transformer-advanced`: `request-transformer` with types of JSON values, and a list of fields that bodies keep.

use super::enterprise_fields::flag;
use super::header_edits::{NAMES, NEW_NAMES, PAIRS, list};
use super::json_types::{JSON_TYPES, typed_value};
use super::request_transformer::{PAIR, TEXT, config_of};
use super::{Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{Check, Field, Kind, Record, text};
use serde_json::Value;
use weir_plugins::field_edits::FieldEdit;

/// The definition of `request-transformer-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "request-transformer-advanced",
    priority: 802,
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
    Field::new("allow", Kind::Record(&ALLOW)).required(),
    flag("dots_in_keys", true),
];

static REMOVE: Record = Record::of(&[list("body", &TEXT), NAMES, list("querystring", &TEXT)]);
static RENAME: Record = Record::of(&[list("body", &PAIR), NEW_NAMES, list("querystring", &PAIR)]);
static CHANGE: Record = Record::of(&[list("body", &PAIR), PAIRS, list("querystring", &PAIR), JSON_TYPES]);
static REPLACE: Record = Record::of(&[
    list("body", &PAIR),
    PAIRS,
    list("querystring", &PAIR),
    JSON_TYPES,
    Field::new("uri", Kind::String),
]);
static ALLOW: Record = Record::of(&[Field::new("body", Kind::Set(&TEXT))]);

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    if config["dots_in_keys"] == Value::Bool(false) {
        return Err(UnsupportedOption {
            field: "dots_in_keys",
            what: "a name with dots as a path".to_owned(),
        });
    }
    let value_of = |operation: &str, text: &str, index: usize| typed_value(config, operation, text, index);
    let mut made = config_of(config, &value_of);
    let kept = config["allow"]["body"].as_array().into_iter().flatten();
    let kept: Vec<String> = kept.filter_map(Value::as_str).map(str::to_owned).collect();
    if !kept.is_empty() {
        made.body.push(FieldEdit::Keep(kept));
    }
    Ok(untyped(made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_types_and_bodies_keep_fields() {
        let config = json!({
            "add": {"body": ["n:1.5", "b:true", "t:x"], "json_types": ["number", "boolean"]},
            "replace": {"uri": "/a"},
            "allow": {"body": ["n", "b"]},
            "dots_in_keys": true,
        });
        let made = translate(&config, &Consumers::NONE).expect("it is served");
        assert_eq!(
            made["body"],
            json!([{"add": {"n": 1.5}}, {"add": {"b": true}}, {"add": {"t": "x"}}, {"keep": ["n", "b"]}])
        );
        assert_eq!(made["path"], "/a");
        let dotted = translate(&json!({"dots_in_keys": false}), &Consumers::NONE);
        assert_eq!(dotted.expect_err("it is refused").field, "dots_in_keys");
    }
}
