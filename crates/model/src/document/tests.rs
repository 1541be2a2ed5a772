//! Reading texts into values.

use super::*;
use serde_json::json;

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (text, value) in [
        ("1", json!(1)),
        ("-3", json!(-3)),
        ("0x10", json!(16)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000.0)),
        ("1.2.3", json!("1.2.3")),
        ("127.0.0.1:80", json!("127.0.0.1:80")),
        ("yes", json!("yes")),
        ("~", json!(null)),
        ("true", json!(true)),
        ("'1'", json!("1")),
        ("!!str 1", json!("1")),
        ("-", json!([null])),
    ] {
        assert_eq!(parse(text).expect("valid"), value, "{text}");
    }
}

#[test]
fn documents_read_into_values() {
    let text = "a: &x {b: [1, two]}\nc: *x\nd:\n  <<: *x\n  e: f\n";
    assert_eq!(
        parse(text).expect("valid"),
        json!({"a": {"b": [1, "two"]}, "c": {"b": [1, "two"]}, "d": {"b": [1, "two"], "e": "f"}})
    );
    assert_eq!(parse("").expect("valid"), Value::Null);
}

#[test]
fn syntax_errors_carry_their_line() {
    assert_eq!(parse("a: 1\nb: [1\nc: 2\n").expect_err("refused").line, Some(3));
    assert!(parse("a: 1\n---\nb: 2\n").is_err());
    assert!(parse(&"[".repeat(1000)).is_err());
}

#[test]
fn repeated_keys_are_reported() {
    let large: String = (0..40).map(|it| format!("k{it}: 1\n")).collect();
    for (text, repeats) in [
        ("a: 1\nb: {c: 1}\nc: 2\n", vec![]),
        ("a: 1\nb: 2\na: 3\n", vec![(3, "'a'", "line 1")]),
        ("- b: 1\n  c: {d: 1, d: 2}\n- b: 1\n", vec![(2, "'d'", "line 2")]),
        (
            "1: a\n'1': b\n0x1: c\n",
            vec![(2, "'1'", "line 1"), (3, "'1'", "line 2")],
        ),
        ("&x a: 1\n*x : 2\n", vec![(2, "'a'", "line 1")]),
        (
            "x: &x {a: 1}\ny: &y {b: 1}\nz:\n  <<: *x\n  <<: *y\n  a: 2\n",
            vec![],
        ),
        (&format!("{large}k0: 2\n"), vec![(41, "'k0'", "line 1")]),
    ] {
        let (_, found) = parse_noting_repeats(text).expect("valid");
        assert_eq!(found.len(), repeats.len(), "{text}: {found:?}");
        for (found, (line, key, first)) in found.iter().zip(repeats) {
            assert_eq!(found.line, Some(line), "{text}");
            assert!(
                found.message.contains(key) && found.message.contains(first),
                "{found:?}"
            );
        }
    }
}

#[test]
fn aliases_cannot_blow_up() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(parse(&text).is_err());
    // Neither by long texts, however few values they are.
    let long = "x".repeat(1 << 20);
    let aliases = |count: usize| vec!["*a"; count].join(", ");
    assert!(parse(&format!("- &a {long}\n- [{}]\n", aliases(10))).is_ok());
    assert!(parse(&format!("- &a {long}\n- [{}]\n", aliases(100_000))).is_err());
    // What aliases stand for costs memory by the length of the text, and not by their nesting.
    let nested = |levels: usize| {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..levels {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        text
    };
    assert!(parse(&nested(3)).is_ok());
    assert!(parse(&nested(6)).is_err());
    let shared: String = (0..40).map(|number| format!("f{number}: x, ")).collect();
    let routes = "- {name: a-route-with-a-name-of-its-own, paths: [/a/path], plugin: *p}\n".repeat(5_000);
    assert!(parse(&format!("p: &p {{{shared}}}\nroutes:\n{routes}")).is_ok());
    let open: String = (0..100).map(|level| format!("&a{level} [")).collect();
    assert!(parse(&format!("{open}{long}{}", "]".repeat(100))).is_err());
}
