//! Field steps on every kind of named values.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

fn steps(steps: &Value) -> FieldEdits {
    let steps: Vec<FieldEdit> = serde_json::from_value(steps.clone()).expect("steps");
    FieldEdits::compile(&steps, TemplateSyntax::Expressions, &DocPath::root()).expect("valid")
}

#[test]
fn queries_are_changed() {
    for (todo, query, expected) in [
        (json!([]), "b=1&a=+%2f&c", "a=%20%2F&b=1&c"),
        (
            json!([{"add": {"x": "a b&c", "e": "n"}}]),
            "e=o&e=p",
            "e=o&e=p&x=a%20b%26c",
        ),
        (json!([{"append": {"e": "n", "f": 1}}]), "e=o", "e=o&e=n&f=1"),
        (json!([{"append": {"e": "n"}}]), "e&k", "e=n&k"),
        (json!([{"replace": {"e": "n", "f": 1}}]), "e=o&e=p", "e=n"),
        (json!([{"remove": ["e", "f"]}]), "e=o&e&k=v", "k=v"),
        (json!([{"rename": {"e": "r"}}]), "e=1&e=2&r=3", "r=1&r=2"),
        (json!([{"rename": {"x": "k"}}]), "k=v", ""),
        (json!([{"add": {"h": "$(headers.none)"}}]), "", "h="),
    ] {
        let mut pairs = Pairs::read(query.as_bytes());
        steps(&todo).apply(&mut pairs, &exchange()).expect("evaluates");
        assert_eq!(
            String::from_utf8_lossy(&pairs.write()),
            expected,
            "{todo} {query}"
        );
    }
}

#[test]
fn objects_are_changed() {
    for (todo, object, expected) in [
        (
            json!([{"add": {"n": 5, "e": "x"}}]),
            json!({"e": "o"}),
            Some(json!({"e": "o", "n": 5})),
        ),
        (
            json!([{"add": {"e": "x"}}]),
            json!({"e": false}),
            Some(json!({"e": "x"})),
        ),
        (json!([{"add": {"e": "x"}}]), json!({"e": null}), None),
        (
            json!([{"replace": {"e": "x", "m": "y"}}]),
            json!({"e": 1}),
            Some(json!({"e": "x"})),
        ),
        (json!([{"replace": {"m": "y"}}]), json!({}), None),
        (
            json!([{"append": {"a": "z", "s": "z", "n": "z"}}]),
            json!({"a": [1], "s": "o"}),
            Some(json!({"a": [1, "z"], "s": ["o", "z"], "n": ["z"]})),
        ),
        (json!([{"append": {"o": "z"}}]), json!({"o": {}}), None),
        (
            json!([{"remove": ["a.b"]}, {"rename": {"k": "l"}}]),
            json!({"a.b": 1, "a": {"b": 2}, "k": 3}),
            Some(json!({"a": {"b": 2}, "l": 3})),
        ),
    ] {
        let Value::Object(mut map) = object.clone() else {
            panic!("an object")
        };
        let changed = steps(&todo).apply(&mut map, &exchange()).expect("evaluates");
        assert_eq!(changed, expected.is_some(), "{todo} {object}");
        assert_eq!(Value::Object(map), expected.unwrap_or(object), "{todo}");
    }
}

#[test]
fn parts_are_changed() {
    let body = "--B\r\nContent-Disposition: form-data; name=\"e\"\r\n\r\nold\r\n--B--\r\n";
    for (todo, expected) in [
        (
            json!([{"replace": {"e": "new", "m": "r"}}]),
            body.replace("old", "new"),
        ),
        (json!([{"rename": {"e": "f"}}]), body.replace("\"e\"", "\"f\"")),
        (json!([{"remove": ["e"]}]), String::new()),
        (json!([{"append": {"e": "x"}}]), body.to_owned()),
    ] {
        let mut parts = Multipart::read(body.as_bytes(), b"B");
        steps(&todo).apply(&mut parts, &exchange()).expect("evaluates");
        assert_eq!(String::from_utf8_lossy(&parts.write()), expected, "{todo}");
    }
}

#[test]
fn faults_are_reported() {
    let todo: Vec<FieldEdit> = serde_json::from_value(json!([{"add": {"a": "$(1 +)"}}])).expect("steps");
    let faults =
        FieldEdits::compile(&todo, TemplateSyntax::Expressions, &DocPath::root()).expect_err("wrong");
    assert_eq!(faults[0].path.to_string(), "[0].add.a");
    let failing = steps(&json!([{"add": {"a": "$(nothing.x)"}}]));
    assert!(failing.apply(&mut Pairs::default(), &exchange()).is_err());
}
