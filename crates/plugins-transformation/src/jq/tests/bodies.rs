//! Bodies on their way, and the options of the plugin.

use super::*;

#[test]
fn outputs_are_written_as_asked() {
    let run = |output: Value2| {
        let output: Output = serde_json::from_value(output).expect("options");
        let body = Program::read(".[]")
            .expect("a program")
            .run(r#"["é", {"b": 1, "a": 2}]"#.as_bytes(), &output);
        String::from_utf8(body.expect("outputs")).expect("text")
    };
    for (output, wanted) in [
        (json!({}), "\"é\"\n{\"b\":1,\"a\":2}"),
        (json!({"raw": true, "sort_keys": true}), "é\n{\"a\":2,\"b\":1}"),
        (json!({"join": true}), "é{\"b\":1,\"a\":2}"),
        (json!({"ascii": true}), "\"\\u00e9\"\n{\"b\":1,\"a\":2}"),
        (json!({"compact": false}), "\"é\"\n{\n  \"b\": 1,\n  \"a\": 2\n}"),
    ] {
        assert_eq!(run(output.clone()), wanted, "{output}");
    }
}

type Value2 = serde_json::Value;

#[test]
fn requests_are_changed_or_refused() {
    let config = json!({"request": {"program": "{n: (.n + 1)}"}, "max_body_bytes": 100});
    let filter = build(&Jq, &config).expect("valid");
    let mut exchange = exchange();
    for (media, body, wanted) in [
        ("application/json", Some("{\"n\": 1}"), "continue {\"n\":2}"),
        (
            "application/JSON; charset=utf-8",
            Some("{\"n\": 1}"),
            "continue {\"n\":2}",
        ),
        ("text/plain", Some("{\"n\": 1}"), "continue {\"n\": 1}"),
        ("application/json", Some(""), "continue "),
        ("application/json", Some("{"), "unacceptable 400 {"),
        ("application/json", Some("[]"), "unacceptable 400 []"),
        ("application/json", None, "body -"),
    ] {
        prepare(&mut exchange, "POST /", &[("Content-Type", media)]);
        exchange.request.has_body = true;
        exchange.request.body = body.map(|body| body.as_bytes().to_vec());
        let outcome = filter.on_request(&mut exchange);
        let left = exchange
            .request
            .body
            .as_deref()
            .map_or("-".into(), String::from_utf8_lossy);
        assert_eq!(format!("{} {left}", word(&outcome)), wanted, "{media} {body:?}");
    }
    exchange.request.content_length = Some(101);
    assert!(matches!(filter.on_request(&mut exchange), Outcome::Refuse(refusal) if refusal.status == 413));
}

#[test]
fn responses_are_changed_or_replaced() {
    let config = json!({"response": {"program": "del(.secret)", "statuses": [200]}, "max_body_bytes": 100});
    let filter = build(&Jq, &config).expect("valid");
    for (status, media, body, wanted) in [
        (
            200,
            "application/json",
            r#"{"a":1,"secret":2}"#,
            (200, r#"{"a":1}"#),
        ),
        (
            404,
            "application/json",
            r#"{"secret":2}"#,
            (404, r#"{"secret":2}"#),
        ),
        (200, "text/plain", r#"{"secret":2}"#, (200, r#"{"secret":2}"#)),
        (200, "application/json", "no JSON with a secret", (502, "")),
        (200, "application/json", &"1".repeat(101), (502, "")),
    ] {
        let mut exchange = exchange();
        exchange.response.status = status;
        exchange.response.headers = header_fields(&[("Content-Type", media)]);
        filter.on_response(&mut exchange);
        let passed = exchange.response.filter_whole(body.as_bytes().to_vec());
        let passed = String::from_utf8(passed).expect("text");
        assert_eq!(
            (exchange.response.status, passed.as_str()),
            wanted,
            "{status} {media} {body}"
        );
    }
}

/// Responses without a body, such as those to `HEAD`, stay as they are.
#[test]
fn empty_bodies_pass() {
    let filter = build(&Jq, &json!({"response": {"program": ".n"}})).expect("a good configuration");
    for (method, status, length) in [
        ("HEAD", 200, Some(17)),
        ("GET", 204, None),
        ("GET", 200, Some(0)),
        ("GET", 200, None),
    ] {
        let mut exchange = exchange();
        exchange.request.method = method.into();
        exchange.response.status = status;
        exchange.response.content_length = length;
        exchange.response.headers = header_fields(&[("Content-Type", "application/json")]);
        filter.on_response(&mut exchange);
        let passed = exchange.response.filter_whole(Vec::new());
        assert_eq!(
            (exchange.response.status, passed),
            (status, Vec::new()),
            "{method} {length:?}"
        );
    }
}

#[test]
fn configurations_are_checked() {
    assert!(build(&Jq, &example(include_str!("../mod.rs"))).is_ok());
    for (config, places) in [
        (json!({}), vec!["request"]),
        (
            json!({"request": {"program": "."}, "max_body_bytes": 16_777_217}),
            vec!["max_body_bytes"],
        ),
        (
            json!({"request": {"program": "("}, "response": {"program": "x"}}),
            vec!["request.program", "response.program"],
        ),
    ] {
        assert_eq!(refused_at(&Jq, &config), places, "{config}");
    }
}
