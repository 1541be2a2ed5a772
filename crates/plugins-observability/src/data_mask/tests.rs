//! Masked parts of calls.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

fn masked(
    rules: Value,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> (String, Vec<String>, Option<String>) {
    let filter = build(&DataMask, &json!({ "rules": rules, "max_form_fields": 3 })).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    exchange.request.body = body.map(|body| body.as_bytes().to_vec());
    if filter.phases().request {
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    }
    let body = masked_body(&mut exchange).map(|body| String::from_utf8_lossy(&body).into_owned());
    filter.on_log(&mut exchange, &record(), &mut Vec::new());
    let query = exchange.request.query.clone().unwrap_or_default();
    (
        String::from_utf8_lossy(&query).into_owned(),
        lines(&exchange.request.headers),
        body,
    )
}

#[test]
fn queries_and_headers_are_masked() {
    let regex = json!({"regex": {"pattern": "^(..).*", "replacement": "$1***"}});
    for (rules, query, headers) in [
        (
            json!([{"part": "query", "name": "a", "action": "remove"}]),
            "b=x%20y&c",
            vec!["X-A: secret", "X-A: other"],
        ),
        (
            json!([{"part": "query", "name": "a", "action": {"replace": "*"}}]),
            "a=*&b=x%20y&c&a=*",
            vec!["X-A: secret", "X-A: other"],
        ),
        (
            json!([{"part": "query", "name": "b", "action": regex}]),
            "a=1&b=x%20***&c&a=2",
            vec!["X-A: secret", "X-A: other"],
        ),
        (
            json!([{"part": "header", "name": "x-a", "action": "remove"}]),
            "a=1&b=x%20y&c&a=2",
            vec![],
        ),
        (
            json!([{"part": "header", "name": "x-a", "action": regex}]),
            "a=1&b=x%20y&c&a=2",
            vec!["x-a: se***", "x-a: ot***"],
        ),
        (
            json!([{"part": "query", "name": "none", "action": "remove"}]),
            "a=1&b=x%20y&c&a=2",
            vec!["X-A: secret", "X-A: other"],
        ),
    ] {
        let call = [("X-A", "secret"), ("X-A", "other")];
        let found = masked(rules.clone(), "GET /?a=1&b=x%20y&c&a=2", &call, None);
        let headers: Vec<String> = headers.into_iter().map(str::to_owned).collect();
        assert_eq!((found.0.as_str(), found.1), (query, headers), "{rules}");
    }
}

#[test]
fn bodies_are_masked_or_not_logged() {
    let json_type = ("Content-Type", "application/json");
    let form_type = ("Content-Type", "application/x-www-form-urlencoded");
    let rule =
        |part: &str, name: &str, action: Value| json!([{"part": part, "name": name, "action": action}]);
    let body = r#"{"user":{"card":"1234"},"list":[{"k":1},{"k":2}]}"#;
    for (rules, content_type, body, expected) in [
        (
            rule("body_json", "$.user.card", json!({"replace": "*"})),
            json_type,
            body,
            Some(r#"{"user":{"card":"*"},"list":[{"k":1},{"k":2}]}"#),
        ),
        (
            rule("body_json", "$..k", json!("remove")),
            json_type,
            body,
            Some(r#"{"user":{"card":"1234"},"list":[{},{}]}"#),
        ),
        (
            rule("body_json", "$.list[*]", json!("remove")),
            json_type,
            body,
            Some(r#"{"user":{"card":"1234"},"list":[]}"#),
        ),
        (
            rule(
                "body_json",
                "$.user.card",
                json!({"regex": {"pattern": "^..", "replacement": "**"}}),
            ),
            json_type,
            body,
            Some(r#"{"user":{"card":"**34"},"list":[{"k":1},{"k":2}]}"#),
        ),
        (
            rule("body_json", "$.user.card", json!("remove")),
            json_type,
            "no json",
            None,
        ),
        (
            rule("body_form", "a", json!("remove")),
            form_type,
            "a=1&b=2",
            Some("b=2"),
        ),
        (
            rule("body_form", "a", json!("remove")),
            form_type,
            "a=1&b=2&c=3&d=4",
            Some("b=2&c=3"),
        ),
        (
            rule("body_form", "e", json!("remove")),
            form_type,
            "a=1&b=2&c=3&d=4",
            Some("a=1&b=2&c=3"),
        ),
        // What begins as JSON is masked as such, whatever the caller calls it.
        (
            rule("body_json", "$.user.card", json!("remove")),
            form_type,
            body,
            Some(r#"{"user":{},"list":[{"k":1},{"k":2}]}"#),
        ),
        (
            rule("body_json", "$.user.card", json!("remove")),
            ("Content-Type", "text/plain"),
            " {broken",
            None,
        ),
        (
            rule("body_json", "$.user.card", json!("remove")),
            ("Content-Type", "text/plain"),
            "words",
            Some("words"),
        ),
        (
            rule("body_form", "a", json!("remove")),
            json_type,
            "{}",
            Some("{}"),
        ),
        (rule("query", "a", json!("remove")), json_type, "x", Some("x")),
    ] {
        let found = masked(rules.clone(), "POST /", &[content_type], Some(body));
        assert_eq!(found.2.as_deref(), expected, "{rules} {body}");
    }
}

/// The defect: places were sorted as texts, so that 10 came before 9 and stayed in the log.
#[test]
fn all_items_of_a_long_list_are_removed() {
    let json_type = ("Content-Type", "application/json");
    let body = json!({ "cards": (0..25).collect::<Vec<_>>() }).to_string();
    let rules = json!([{"part": "body_json", "name": "$.cards[*]", "action": "remove"}]);
    let found = masked(rules, "POST /", &[json_type], Some(&body));
    assert_eq!(found.2.as_deref(), Some(r#"{"cards":[]}"#));
}

/// The defect: a body of 660 bytes took three seconds and 500 MB.
#[test]
fn bodies_with_too_many_places_for_a_path_are_not_logged() {
    let json_type = ("Content-Type", "application/json");
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    for (path, depth, is_logged) in [
        ("$..a", 110, true),
        ("$..a..a", 40, true),
        ("$..a..a..a", 110, false),
        ("$..a..a..a..a..a..a", 110, false),
    ] {
        let rules = json!([{"part": "body_json", "name": path, "action": {"replace": "*"}}]);
        let found = masked(rules, "POST /", &[json_type], Some(&nested(depth)));
        assert_eq!(found.2.is_some(), is_logged, "{path} {depth}");
    }
}

/// Loggers leave to the rules what the rules have changed, and only that.
#[test]
fn names_are_reported_if_all_their_values_are_changed() {
    let digits = json!({"regex": {"pattern": "\\d", "replacement": "*"}});
    for (part, name, action, arguments, headers) in [
        ("query", "a", json!({"replace": "*"}), vec!["a"], vec![]),
        ("query", "a", digits.clone(), vec![], vec![]),
        ("query", "b", digits.clone(), vec!["b"], vec![]),
        ("query", "c", json!({"replace": "*"}), vec![], vec![]),
        ("header", "X-A", digits.clone(), vec![], vec!["X-A"]),
        ("header", "X-B", digits, vec![], vec![]),
    ] {
        let rules = json!([{"part": part, "name": name, "action": action}]);
        let filter = build(&DataMask, &json!({ "rules": rules })).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /?a=1&a=x&b=2", &[("X-A", "1"), ("X-B", "x")]);
        filter.on_log(&mut exchange, &record(), &mut Vec::new());
        let found = masked_names(&mut exchange).unwrap_or_default();
        assert_eq!(
            (found.arguments, found.headers),
            (
                arguments.into_iter().map(str::to_owned).collect::<Vec<_>>(),
                headers.into_iter().map(str::to_owned).collect::<Vec<_>>()
            ),
            "{rules}"
        );
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for rule in [
        json!({"part": "body_json", "name": "$.[", "action": "remove"}),
        json!({"part": "query", "name": "a", "action": {"regex": {"pattern": "(", "replacement": ""}}}),
    ] {
        assert_eq!(refused_at(&DataMask, &json!({ "rules": [rule] })), ["rules"]);
    }
    assert!(build(&DataMask, &example(include_str!("mod.rs"))).is_ok());
}
