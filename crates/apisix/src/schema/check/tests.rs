//! Violations of shapes, and their words.

use super::super::*;
use serde_json::json;

fn example() -> Schema {
    object([
        ("count", integer().at_least(1).at_most(9)),
        ("name", text().length(2, 4).pattern("^[a-z]+$").or("abc")),
        ("tags", array(text()).min_items(1).unique()),
        ("mode", text().options(["a", "b"])),
        ("rest", object([])),
        ("x", any()),
        ("y", any()),
    ])
    .closed()
    .unless(having(["x", "y"]))
}

#[test]
fn violations_are_reported_in_the_originals_words() {
    for (value, words) in [
        (
            json!({"count": "1"}),
            "property \"count\" validation failed: wrong type: expected integer, got string",
        ),
        (
            json!({"count": 1.5}),
            "property \"count\" validation failed: wrong type: expected integer, got number",
        ),
        (
            json!({"count": 0}),
            "property \"count\" validation failed: expected 0 to be at least 1",
        ),
        (
            json!({"count": 10}),
            "property \"count\" validation failed: expected 10 to be at most 9",
        ),
        (
            json!({"name": "a"}),
            "property \"name\" validation failed: string too short, expected at least 2, got 1",
        ),
        (
            json!({"name": "abcde"}),
            "property \"name\" validation failed: string too long, expected at most 4, got 5",
        ),
        (
            json!({"name": "AB"}),
            "property \"name\" validation failed: failed to match pattern \"^[a-z]+$\" with \"AB\"",
        ),
        (
            json!({"tags": []}),
            "property \"tags\" validation failed: expect array to have at least 1 items",
        ),
        (
            json!({"tags": ["a", 1]}),
            "property \"tags\" validation failed: failed to validate item 2: wrong type: expected string, got number",
        ),
        (
            json!({"tags": ["a", "b", "a"]}),
            "property \"tags\" validation failed: expected unique items but items 1 and 3 are equal",
        ),
        (
            json!({"mode": "c"}),
            "property \"mode\" validation failed: matches none of the enum values",
        ),
        (json!({"z": 1}), "additional properties forbidden, found z"),
        (json!({"x": 1, "y": 1}), "value wasn't supposed to match schema"),
        (json!([1]), "wrong type: expected object, got table"),
    ] {
        let mut filled = value.clone();
        assert_eq!(example().check(&mut filled), Err(words.to_owned()), "{value}");
    }
}

#[test]
fn alternatives_are_counted() {
    let shape = one_of([having(["a"]), having(["b"])]);
    for (value, outcome) in [
        (json!({"a": 1}), Ok(())),
        (
            json!({}),
            Err("value should match only one schema, but matches none"),
        ),
        (
            json!([]),
            Err("value should match only one schema, but matches none"),
        ),
        (
            json!({"a": 1, "b": 1}),
            Err("value should match only one schema, but matches both schemas 1 and 2"),
        ),
    ] {
        assert_eq!(
            shape.check(&mut value.clone()),
            outcome.map_err(str::to_owned),
            "{value}"
        );
    }
    assert_eq!(
        any_of([having(["a", "b"]), having(["c"])]).check(&mut json!({})),
        Err("object matches none of the required: [\"a\",\"b\"] or [\"c\"]".to_owned())
    );
}

#[test]
fn defaults_are_filled_in_and_empty_tables_take_the_wanted_kind() {
    let mut value = json!({"rest": []});
    example().check(&mut value).expect("valid");
    assert_eq!(value, json!({"rest": {}, "name": "abc"}));
}
