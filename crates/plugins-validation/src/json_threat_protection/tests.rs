//! Texts beside limits.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

fn limits(depth: usize, members: usize, name_length: usize, items: usize, text_length: usize) -> Limits {
    Limits {
        depth,
        members,
        name_length,
        items,
        text_length,
    }
}

#[test]
fn limits_hold_and_what_is_no_json_is_found() {
    let none = limits(usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX);
    let tight = limits(2, 2, 3, 2, 4);
    for (text, with_none, with_tight) in [
        ("", "", ""),
        ("  ", "", ""),
        ("1", "", ""),
        (r#" {"a": [1, 2], "b": "abcd"} "#, "", ""),
        (r#"{"a": [[1]]}"#, "", "it is nested too deep"),
        (
            r#"{"a": 1, "b": 2, "c": 3}"#,
            "",
            "an object has too many members",
        ),
        (r#"{"abcd": 1}"#, "", "a name is too long"),
        (r#"[1, 2, 3]"#, "", "a list has too many items"),
        (r#"["abcde"]"#, "", "a text is too long"),
        // Characters count, not bytes.
        (r#"["äöüß"]"#, "", ""),
        (r#"["\u00e4\u00f6\n\""]"#, "", ""),
        (r#"["\u00e4\u00f6\n\"x"]"#, "", "a text is too long"),
        (r#"[{}, []]"#, "", ""),
        ("{", "the body is not valid JSON", "the body is not valid JSON"),
        ("[1,]", "the body is not valid JSON", "the body is not valid JSON"),
        ("[,1]", "the body is not valid JSON", "the body is not valid JSON"),
        (
            "[1 2]",
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"{"a" 1}"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"{"a": 1,}"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"{a: 1}"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        ("[1]]", "the body is not valid JSON", "the body is not valid JSON"),
        ("[1}", "the body is not valid JSON", "the body is not valid JSON"),
        ("tru", "the body is not valid JSON", "the body is not valid JSON"),
        ("01", "the body is not valid JSON", "the body is not valid JSON"),
        ("-", "the body is not valid JSON", "the body is not valid JSON"),
        ("1.", "the body is not valid JSON", "the body is not valid JSON"),
        ("1e", "the body is not valid JSON", "the body is not valid JSON"),
        (
            "1.5.2",
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        ("[1x]", "the body is not valid JSON", "the body is not valid JSON"),
        (
            "truely",
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"["a"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"["a\"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"["\u12"]"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"["\x"]"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
        (
            r#"["\u12"#,
            "the body is not valid JSON",
            "the body is not valid JSON",
        ),
    ] {
        let fault = |limits: &Limits| scan(text.as_bytes(), limits).err().unwrap_or_default();
        assert_eq!((fault(&none), fault(&tight)), (with_none, with_tight), "{text}");
    }
    let deep = "[".repeat(20_000);
    assert_eq!(scan(deep.as_bytes(), &none), Err("it is nested too deep"));
}

#[test]
fn what_a_parser_reads_passes_without_limits() {
    let none = limits(usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX);
    for text in [
        r#"{"a":{"b":[1,2.5e-3,-0,null,true,false,"x\\y\/"]},"":[]}"#,
        "[[],{},[[{}]]]",
        "\"\\\\\"",
        "-1.5E+10",
    ] {
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
        assert_eq!(scan(text.as_bytes(), &none), Ok(()), "{text}");
    }
}

fn call(config: &Value, headers: &[(&str, &str)], body: Option<&str>) -> String {
    let filter = build(&JsonThreatProtection, config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "POST /", headers);
    exchange.request.has_body = body.is_some();
    let mut outcome = filter.on_request(&mut exchange);
    if matches!(outcome, Outcome::NeedBody { .. }) {
        exchange.request.body = body
            .filter(|body| body.len() <= 8192)
            .map(|body| body.as_bytes().to_vec());
        outcome = filter.on_request(&mut exchange);
    }
    match outcome {
        Outcome::Refuse(refusal) => format!("{} {}", refusal.status, refusal.message.unwrap_or_default()),
        outcome => word(&outcome),
    }
}

#[test]
fn calls_beyond_a_limit_are_refused_or_logged() {
    let (block, log) = (json!({"max_items": 1}), json!({"max_items": 1, "action": "log"}));
    let own = json!({"max_items": 1, "status": 422, "message": "no"});
    let json_type = ("Content-Type", "application/problem+json; charset=utf-8");
    let long = "1".repeat(9000);
    for (config, headers, body, expected) in [
        (&block, &[json_type][..], Some("[1]"), "continue"),
        (&block, &[json_type], Some("[1,2]"), "400 Bad Request"),
        (&block, &[], Some("[1,2]"), "400 Bad Request"),
        (
            &block,
            &[("Content-Type", "text/plain")],
            Some("[1,2]"),
            "continue",
        ),
        (
            &block,
            &[("Content-Type", "text/plain"), json_type],
            Some("[1,2]"),
            "400 Bad Request",
        ),
        (&block, &[json_type], None, "continue"),
        (&block, &[json_type], Some(&long), "400 Bad Request"),
        (&log, &[json_type], Some("[1,2]"), "continue"),
        (&own, &[json_type], Some("[1,2]"), "422 no"),
    ] {
        assert_eq!(call(config, headers, body), expected, "{headers:?}");
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let bad = json!({"status": 200, "max_body_bytes": 1_u64 << 40});
    assert_eq!(
        refused_at(&JsonThreatProtection, &bad),
        ["status", "max_body_bytes"]
    );
    assert!(build(&JsonThreatProtection, &example(include_str!("mod.rs"))).is_ok());
}
