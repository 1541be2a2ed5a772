//! Schemas and values, with the words for what does not match.

use super::*;
use serde_json::{Map, json};

/// A schema with all that schemas can say.
fn everything() -> Value {
    json!({
        "type": "object",
        "required": ["name", "z"],
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "age": {"type": "integer", "minimum": 1, "maximum": 100},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true},
            "e": {"enum": ["a", 1]},
            "p": {"type": "string", "pattern": "^x"},
            "n": {"type": ["null", "number"], "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 0.5},
            "x": {"anyOf": [{"required": ["a"]}, {"type": "string"}]},
            "o": {"oneOf": [{"type": "integer"}, {"minimum": 5}]},
            "u": {"not": {"type": "string"}},
            "i": {"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "number"}},
            "c": {"const": {"a": [1]}},
            "l": {"items": [{"type": "string"}], "additionalItems": false, "contains": {"const": "q"}},
            "a": {"allOf": [true, {"minProperties": 1, "maxProperties": 1}]},
            "f": {"format": "ipv4"},
            "never": false,
        },
        "patternProperties": {"^s_": {"type": "string"}},
        "additionalProperties": {"type": "boolean"},
        "dependencies": {"age": ["name"], "p": {"required": ["tags"]}},
    })
}

/// The fault that is reported for the field `field` of an otherwise valid value.
fn fault_of(field: &str, value: &Value) -> String {
    let schema = Schema::read(&everything(), false).expect("a schema");
    let mut whole = json!({"name": "ok", "z": true});
    whole[field] = value.clone();
    schema
        .check(&mut whole, &WorkBudget::default())
        .err()
        .unwrap_or_default()
}

/// Checks the messages about the values of properties; no words: none.
fn check_properties(cases: &[(&str, Value, &str)]) {
    for (field, value, words) in cases {
        let expected = match words.is_empty() {
            true => String::new(),
            false => format!("property \"{field}\" validation failed: {words}"),
        };
        assert_eq!(fault_of(field, value), expected, "{field}: {value}");
    }
}

#[test]
fn texts_and_fixed_values_are_checked() {
    check_properties(&[
        ("name", json!("ab"), ""),
        ("name", json!(1), "wrong type: expected string, got number"),
        ("name", json!("é"), "string too short, expected at least 2, got 1"),
        (
            "name",
            json!("abcdef"),
            "string too long, expected at most 5, got 6",
        ),
        ("name", json!(null), "wrong type: expected string, got userdata"),
        ("e", json!(1.0), ""),
        ("e", json!("b"), "matches none of the enum values"),
        ("p", json!("y"), "failed to match pattern \"^x\" with \"y\""),
        ("c", json!({"a": [2]}), "failed to check const value"),
        ("c", json!({"a": [1.0]}), ""),
        ("c", json!({"a": [1]}), ""),
        ("f", json!("1.2.3"), "expect valid ipv4 format but got: 1.2.3"),
    ]);
}

#[test]
fn numbers_are_checked() {
    check_properties(&[
        ("age", json!(1.0), ""),
        ("age", json!(0), "expected 0 to be at least 1"),
        ("age", json!(101), "expected 101 to be at most 100"),
        ("age", json!(1.5), "wrong type: expected integer, got number"),
        ("n", json!(null), ""),
        ("n", json!(1.5), ""),
        ("n", json!(0), "expected 0 to be greater than 0"),
        ("n", json!(9), "expected 9 to be smaller than 9"),
        ("n", json!(0.3), "expected 0.3 to be a multiple of 0.5"),
        (
            "n",
            json!("a"),
            "wrong type: expected one of null, number, got string",
        ),
    ]);
}

#[test]
fn lists_are_checked() {
    check_properties(&[
        ("tags", json!(["a"]), ""),
        ("tags", json!([]), "expect array to have at least 1 items"),
        (
            "tags",
            json!(["a", 1]),
            "failed to validate item 2: wrong type: expected string, got number",
        ),
        (
            "tags",
            json!(["a", "b", "a"]),
            "expected unique items but items 1 and 3 are equal",
        ),
        ("l", json!(["q"]), ""),
        ("l", json!(["x"]), "failed to check contains"),
        ("l", json!(["q", 1]), "found unexpected extra items in array"),
    ]);
}

#[test]
fn schemas_of_schemas_are_checked() {
    check_properties(&[
        ("x", json!({"a": 1}), ""),
        ("x", json!({}), "object matches none of the required: [\"a\"]"),
        ("o", json!(1), ""),
        (
            "o",
            json!(6),
            "value should match only one schema, but matches both schemas 1 and 2",
        ),
        (
            "o",
            json!(1.5),
            "value should match only one schema, but matches none",
        ),
        ("u", json!("s"), "value wasn't supposed to match schema"),
        ("i", json!(""), "then clause did not match"),
        ("i", json!(true), "else clause did not match"),
        (
            "a",
            json!({}),
            "allOf 2 failed: expect object to have at least 1 properties",
        ),
        ("never", json!(1), "expect false always"),
    ]);
}

#[test]
fn objects_are_checked() {
    for (field, value, words) in [
        (
            "p",
            json!("x"),
            "failed to validate dependent schema for \"p\": property \"tags\" is required",
        ),
        (
            "s_a",
            json!(1),
            "failed to validate s_a (matching \"^s_\"): wrong type: expected string, got number",
        ),
        ("other", json!(true), ""),
        (
            "other",
            json!(1),
            "failed to validate additional property other: wrong type: expected boolean, got number",
        ),
    ] {
        assert_eq!(fault_of(field, &value), words, "{field}: {value}");
    }
    let schema = Schema::read(&everything(), false).expect("a schema");
    for (mut value, words) in [
        (json!({"name": "ok"}), "property \"z\" is required"),
        (json!({"z": true}), "property \"name\" is required"),
        (json!([1]), "wrong type: expected object, got table"),
        (json!("s"), "wrong type: expected object, got string"),
    ] {
        assert_eq!(
            schema.check(&mut value, &WorkBudget::default()).err().as_deref(),
            Some(words),
            "{value}"
        );
    }
}

#[test]
fn items_are_compared_by_what_they_mean() {
    let schema = Schema::read(&json!({"uniqueItems": true}), false).expect("a schema");
    for (mut value, holds) in [
        (json!([1, "1", [1], {"a": 1}, null, "null"]), true),
        (json!([1, 1.0]), false),
        (json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), false),
    ] {
        assert_eq!(
            schema.check(&mut value, &WorkBudget::default()).is_ok(),
            holds,
            "{value}"
        );
    }
}

#[test]
fn defaults_are_filled_in() {
    let schema = json!({"properties": {"a": {"default": "d"}, "b": {"properties": {"c": {"default": 1}}}}});
    let schema = Schema::read(&schema, false).expect("a schema");
    for (mut value, filled) in [
        (json!({}), json!({"a": "d"})),
        (json!({"a": "x", "b": {}}), json!({"a": "x", "b": {"c": 1}})),
    ] {
        assert_eq!(schema.check(&mut value, &WorkBudget::default()), Ok(()));
        assert_eq!(value, filled);
    }
}

#[test]
fn references_are_followed() {
    let schema = json!({
        "definitions": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/definitions/tree"}}}},
        "properties": {"t": {"$ref": "#/definitions/tree"}, "loop": {"allOf": [{"$ref": "#/properties/loop"}]}},
    });
    let schema = Schema::read(&schema, false).expect("a schema");
    assert_eq!(
        schema.check(&mut json!({"t": {"left": {"left": {}}}}), &WorkBudget::default()),
        Ok(())
    );
    assert!(
        schema
            .check(&mut json!({"t": {"left": {"left": 1}}}), &WorkBudget::default())
            .is_err()
    );
    assert!(
        schema
            .check(&mut json!({"loop": 1}), &WorkBudget::default())
            .is_err()
    );
}

#[test]
fn names_of_headers_have_no_case() {
    let schema = json!({"required": ["X-Need"], "properties": {"X-Tag": {"enum": ["a"]}}});
    let schema = Schema::read(&schema, true).expect("a schema");
    for (mut value, words) in [
        (json!({"x-need": "1", "x-tag": "a"}), ""),
        (
            json!({"x-need": "1", "x-tag": "b"}),
            "property \"X-Tag\" validation failed: matches none of the enum values",
        ),
        (json!({}), "property \"X-Need\" is required"),
    ] {
        assert_eq!(
            schema
                .check(&mut value, &WorkBudget::default())
                .err()
                .unwrap_or_default(),
            words
        );
    }
}

#[test]
fn formats_are_checked() {
    use formats::Format;
    for (name, text, holds) in [
        ("email", "a.b@c.de", true),
        ("email", "a@b", false),
        ("ipv6", "::1", true),
        ("hostname", "a-b.c", true),
        ("hostname", "a_b", false),
        ("uuid", "c0ffee00-0000-4000-8000-000000000001", true),
        ("uuid", "c0ffee00-0000-4000-8000-00000000000", false),
        ("date", "2026-02-31", true),
        ("date", "2026-13-01", false),
        ("date-time", "2026-11-20T15:30:00.5+01:00", true),
        ("date-time", "2026-11-20 15:30:00Z", false),
        ("uri", "mailto:a", true),
        ("uri", "/a", false),
    ] {
        let format = Format::named(name).expect("known");
        assert_eq!(format.holds(text), holds, "{name} {text}");
    }
    assert_eq!(Format::named("x"), None);
}

#[test]
fn bad_schemas_are_refused() {
    for (schema, words) in [
        (json!({"type": "nope"}), "invalid JSON type: nope"),
        (
            json!({"type": 1}),
            "invalid \"type\" type: expected a text or a list",
        ),
        (json!(1), "expected a schema: a map, true or false"),
        (
            json!({"properties": {"a": {"minLength": -1}}}),
            "expected a number of at least 0 in \"minLength\"",
        ),
        (
            json!({"$ref": "http://x"}),
            "failed to resolve the reference \"http://x\"",
        ),
        (
            json!({"$ref": "#/nope"}),
            "failed to resolve the reference \"#/nope\"",
        ),
        (json!({"anyOf": {}}), "expected a list in \"anyOf\""),
        (
            json!({"properties": {"a": {}}, "required": "a"}),
            "expected a list in \"required\"",
        ),
    ] {
        assert_eq!(
            Schema::read(&schema, false).err().as_deref(),
            Some(words),
            "{schema}"
        );
    }
    assert!(Schema::read(&json!({"pattern": "("}), false).is_err());
}

/// The charged work is the real work: a small map is not checked for each of many optional properties.
#[test]
fn sparse_bodies_pass_schemas_with_many_optional_properties() {
    let properties: Map<String, Value> = (0..400)
        .map(|number| (format!("p{number:03}"), json!({"type": "integer"})))
        .collect();
    let schema = json!({
        "type": "array",
        "items": {"properties": properties, "required": ["p007"], "additionalProperties": false},
    });
    let schema = Schema::read(&schema, false).expect("a schema");
    let count = 40_000;
    let mut body = Value::from(vec![json!({"p007": 1}); count]);
    let work = WorkBudget::default();
    work.allow_pass(body.to_string().len());
    assert_eq!(schema.check(&mut body, &work), Ok(()));
    assert!(work.done() < 8 * count as u64, "{}", work.done());
    for (value, words) in [
        (json!({"p300": "x", "p001": "x"}), "\"p001\" validation failed"),
        (json!({"p300": 1}), "property \"p007\" is required"),
        (
            json!({"p007": 1, "other": 1}),
            "additional properties forbidden, found other",
        ),
    ] {
        let outcome = schema.check(&mut json!([value]), &WorkBudget::default());
        let outcome = format!("{outcome:?}").replace('\\', "");
        assert!(outcome.contains(words), "{value}: {outcome}");
    }
}
