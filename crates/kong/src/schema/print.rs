//! Descriptions in the form of Kong's schemas for clients (`GET /schemas/…`), from which they fill in
//! defaults and compare what they wrote with what is there.

use super::{Check, Default, EntityCheck, Field, FieldTest, Kind, Record, Requirement};
use serde_json::{Map, Value, json};

/// A record as a schema of its own: `entity_checks` and `fields`.
pub fn record(record: &Record) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("entity_checks".to_owned(), checks(record.checks));
    schema.insert("fields".to_owned(), fields(record));
    schema
}

/// The fields of a record, each a map of its name to what holds for it.
pub fn fields(record: &Record) -> Value {
    let named = |it: &Field| json!({ it.name: field(it) });
    record.fields.iter().map(named).collect()
}

/// Checks over several fields. Those that are code are left out.
pub fn checks(checks: &[EntityCheck]) -> Value {
    checks.iter().filter_map(entity_check).collect()
}

/// The description of a field's value, its name aside.
pub fn field(field: &Field) -> Map<String, Value> {
    let mut printed = kind(field.kind);
    let mut set = |name: &str, value: Value| {
        printed.insert(name.to_owned(), value);
    };
    if field.required {
        set("required", true.into());
    }
    if !matches!(field.default, Default::None) {
        set("default", field.default.value());
    }
    if field.unique {
        set("unique", true.into());
    }
    if field.auto {
        set("auto", true.into());
        if matches!(field.kind, Kind::Integer | Kind::Number) {
            set("timestamp", true.into());
        }
    }
    for check in field.checks {
        if let Some((name, value)) = single_check(check) {
            set(name, value);
        }
    }
    printed
}

fn kind(kind: Kind) -> Map<String, Value> {
    let printed = match kind {
        Kind::String => json!({ "type": "string" }),
        Kind::Text => json!({ "type": "string", "len_min": 0 }),
        Kind::Integer => json!({ "type": "integer" }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Uuid => json!({ "type": "string", "uuid": true }),
        Kind::Foreign(entity_type) => json!({ "type": "foreign", "reference": entity_type }),
        Kind::Array(element) => json!({ "type": "array", "elements": field(element) }),
        Kind::Set(element) => json!({ "type": "set", "elements": field(element) }),
        Kind::Map { keys, values } => {
            json!({ "type": "map", "keys": field(keys), "values": field(values) })
        }
        Kind::Record(record) => {
            let mut printed = json!({ "type": "record", "fields": fields(record) });
            if !record.checks.is_empty() {
                printed["entity_checks"] = checks(record.checks);
            }
            printed
        }
        Kind::ByType(records) => json!({ "type": "record", "fields": fields_by_type(records) }),
        Kind::OpenRecord => json!({ "type": "record", "abstract": true }),
        Kind::Any => json!({ "type": "json" }),
    };
    match printed {
        Value::Object(printed) => printed,
        _ => Map::new(),
    }
}

/// The fields of all forms of a record, without what holds only for one of them: clients would give a form what others have.
fn fields_by_type(records: &[(&str, Record)]) -> Value {
    let names: Vec<&str> = records.iter().map(|(name, _)| *name).collect();
    let mut all: Vec<(&str, Map<String, Value>)> = Vec::new();
    for described in records.iter().flat_map(|(_, record)| record.fields) {
        if let Some((_, known)) = all.iter_mut().find(|(known, _)| *known == described.name) {
            if described.name != "type" && *known != kind(described.kind) {
                *known = kind(Kind::Any);
            }
            continue;
        }
        let mut printed = kind(described.kind);
        if described.name == "type" {
            printed.insert("required".to_owned(), true.into());
            printed.insert("one_of".to_owned(), json!(names));
        }
        all.push((described.name, printed));
    }
    all.into_iter()
        .map(|(name, printed)| json!({ name: printed }))
        .collect()
}

/// The name and the value of a check; none for checks that are code.
fn single_check(check: &Check) -> Option<(&'static str, Value)> {
    Some(match check {
        Check::Between(low, high) => ("between", json!([low, high])),
        Check::Range(low, high) => ("between", json!([low, high])),
        Check::Above(low) => ("gt", json!(low)),
        Check::OneOf(texts) => ("one_of", json!(texts)),
        Check::OneOfNumbers(numbers) => ("one_of", json!(numbers)),
        Check::NotOneOf(texts) => ("not_one_of", json!(texts)),
        Check::StartsWith(prefix) => ("starts_with", json!(prefix)),
        Check::AtLeast(count) => ("len_min", json!(count)),
        _ => return None,
    })
}

fn entity_check(check: &EntityCheck) -> Option<Value> {
    Some(match check {
        EntityCheck::AtLeastOneOf(fields) => json!({ "at_least_one_of": fields }),
        EntityCheck::ExactlyOneOf(fields) => json!({ "only_one_of": fields }),
        EntityCheck::MutuallyExclusive(fields) => json!({ "mutually_exclusive": fields }),
        EntityCheck::MutuallyRequired(fields) => json!({ "mutually_required": fields }),
        EntityCheck::Distinct(fields) => json!({ "distinct": fields }),
        EntityCheck::When {
            field,
            is,
            then,
            must,
        } => json!({ "conditional": {
            "if_field": field,
            "if_match": condition(*is),
            "then_field": then,
            "then_match": consequence(*must),
        } }),
        _ => return None,
    })
}

fn condition(is: FieldTest) -> Value {
    match is {
        FieldTest::Equal(text) => json!({ "eq": text }),
        FieldTest::OneOf(texts) => json!({ "one_of": texts }),
        FieldTest::NotOneOf(texts) => json!({ "not_one_of": texts }),
        FieldTest::Above(low) => json!({ "gt": low }),
    }
}

fn consequence(must: Requirement) -> Value {
    match must {
        Requirement::BeNull => json!({ "eq": null }),
        Requirement::BeGiven | Requirement::BeText(_) => json!({ "required": true }),
        Requirement::Contain(text) => json!({ "contains": text }),
        Requirement::BeOneOf(texts) => json!({ "one_of": texts }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static INNER: Record = Record {
        fields: &[
            Field::new("a", Kind::Number)
                .or(Default::Json("0.5"))
                .check(&[Check::Range(0.001, 10.0)]),
            Field::new("b", Kind::Text),
        ],
        checks: &[EntityCheck::AtLeastOneOf(&["a", "b"])],
    };

    const LISTED: Field = Field::element(Kind::String).check(&[Check::OneOf(&["x"])]);

    #[test]
    fn fields_are_printed_as_kong_does() {
        let table = [
            (
                Field::new("id", Kind::Uuid).auto(),
                json!({ "type": "string", "uuid": true, "auto": true }),
            ),
            (
                Field::new("created_at", Kind::Integer).auto(),
                json!({ "type": "integer", "auto": true, "timestamp": true }),
            ),
            (
                Field::new("route", Kind::Foreign("routes")).required(),
                json!({ "type": "foreign", "reference": "routes", "required": true }),
            ),
            (
                Field::new("hosts", Kind::Set(&LISTED)).or(Default::Texts(&["x"])),
                json!({ "type": "set", "elements": { "type": "string", "one_of": ["x"] }, "default": ["x"] }),
            ),
            (
                Field::new("inner", Kind::Record(&INNER)).or(Default::Json(r#"{"a":2}"#)),
                json!({
                    "type": "record",
                    "fields": [
                        { "a": { "type": "number", "default": 0.5, "between": [0.001, 10.0] } },
                        { "b": { "type": "string", "len_min": 0 } },
                    ],
                    "entity_checks": [{ "at_least_one_of": ["a", "b"] }],
                    "default": { "a": 2 },
                }),
            ),
        ];
        for (described, expected) in table {
            assert_eq!(Value::Object(field(&described)), expected);
        }
    }
}
