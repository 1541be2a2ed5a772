//! Conditions and templates over variables that are in the request's body.

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_model::Predicate;
use weir_plugin::{Condition, Exchange, JsonPath, Template, Variable, multipart, system_clock};

const JSON: &str = "application/json; charset=utf-8";
const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=X";
const OBJECT: &str = r#"{"n": 6, "s": "5", "f": 1.5, "t": true, "z": null, "list": ["a", 2], "user": {"name": "jack"},
    "messages": [{"role": "system", "tags": [1]}, {"role": "user", "tags": ["x"]}]}"#;

fn post(content_type: &str, body: &[u8]) -> Exchange {
    let mut exchange = Exchange::new(system_clock, 1);
    exchange.request.method = b"POST".to_vec();
    exchange.request.has_body = true;
    exchange.request.body = Some(body.to_vec());
    if !content_type.is_empty() {
        exchange
            .request
            .headers
            .append(b"Content-Type", content_type.as_bytes());
    }
    exchange
}

fn condition(value: &Value) -> Condition {
    Condition::compile(&Predicate::parse(value).expect("valid")).expect("valid")
}

/// Content type, body, condition, and whether it holds.
type Case<'c> = (&'c str, &'c str, Value, bool);

#[track_caller]
fn check(cases: &[Case<'_>]) {
    for (content_type, body, rule, holds) in cases {
        let compiled = condition(rule);
        assert!(compiled.needs_body());
        let mut exchange = post(content_type, body.as_bytes());
        assert_eq!(
            compiled.holds(&exchange),
            *holds,
            "{content_type}: {body}: {rule}"
        );
        exchange.request.forget_parsed_body();
        assert_eq!(compiled.holds(&exchange), *holds, "once more: {rule}");
    }
}

#[test]
fn conditions_read_forms() {
    check(&[
        (
            FORM,
            "name=jack&x=1",
            json!(["post_arg.name", "==", "jack"]),
            true,
        ),
        (FORM, "name=j%61ck", json!(["post_arg_name", "==", "jack"]), true),
        (FORM, "x=10", json!(["post_arg.x", ">", 9]), true),
        (FORM, "x=1", json!(["post_arg.x", "==", 1]), true),
        (FORM, "x=1", json!(["post_arg.x", "in", [1]]), false),
        (FORM, "x=1", json!(["post_arg.y", "==", null]), true),
        (FORM, "name=a&name=b", json!(["post_arg.name", "has", "b"]), true),
        (FORM, "name=a&name=b", json!(["post_arg.name", "==", "a"]), false),
        (FORM, "name=a&name=b", json!(["post_arg_name", "==", "a"]), true),
        (FORM, "flag", json!(["post_arg.flag", "==", true]), true),
        (FORM, "a.b=1", json!(["post_arg.a.b", "==", "1"]), false),
        (
            PARTS,
            "--X\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\njack\r\n--X--\r\n",
            json!(["post_arg.name", "==", "jack"]),
            true,
        ),
    ]);
}

#[test]
fn conditions_read_json() {
    check(&[
        (JSON, OBJECT, json!(["post_arg_n", "==", 6]), false),
        (JSON, OBJECT, json!(["post_arg.n", ">", 5]), true),
        (JSON, OBJECT, json!(["post_arg.n", ">", 6]), false),
        (JSON, OBJECT, json!(["post_arg.n", "==", 6]), true),
        (JSON, OBJECT, json!(["post_arg.n", "==", "6"]), false),
        (JSON, OBJECT, json!(["post_arg.n", "in", ["6", 6]]), true),
        (JSON, OBJECT, json!(["post_arg.n", "in", ["6"]]), false),
        (JSON, OBJECT, json!(["post_arg.n", "~~", "^6$"]), true),
        (JSON, OBJECT, json!(["post_arg.s", "==", 5]), true),
        (JSON, OBJECT, json!(["post_arg.t", "==", true]), true),
        (JSON, OBJECT, json!(["post_arg.t", "==", "true"]), false),
        (JSON, OBJECT, json!(["post_arg.t", "~=", false]), true),
        (JSON, OBJECT, json!(["post_arg.z", "==", null]), false),
        (JSON, OBJECT, json!(["post_arg.z", "~=", "x"]), true),
        (JSON, OBJECT, json!(["post_arg.user.name", "==", "jack"]), true),
        (JSON, OBJECT, json!(["post_arg.user", "~=", "jack"]), true),
        (JSON, OBJECT, json!(["post_arg.list", "has", "a"]), true),
        (JSON, OBJECT, json!(["post_arg.list", "has", 2]), true),
        (JSON, OBJECT, json!(["post_arg.list", "has", "2"]), false),
        (JSON, OBJECT, json!(["post_arg.list", "!", "has", "b"]), true),
        (JSON, OBJECT, json!(["post_arg.list", "in", ["a", 2]]), false),
        (JSON, OBJECT, json!(["post_arg.s", "has", "5"]), false),
        (
            JSON,
            OBJECT,
            json!(["post_arg.messages[*].role", "has", "user"]),
            true,
        ),
        (
            JSON,
            OBJECT,
            json!(["post_arg.messages[0].role", "has", "user"]),
            false,
        ),
        (
            JSON,
            OBJECT,
            json!(["post_arg.messages[*].tags[*]", "has", "x"]),
            true,
        ),
        (JSON, OBJECT, json!(["post_arg.user..name", "has", "jack"]), true),
        (JSON, OBJECT, json!(["post_arg.messages[9]", "==", null]), true),
        (JSON, "not json", json!(["post_arg.n", "==", null]), true),
        ("text/plain", OBJECT, json!(["post_arg.n", ">", 5]), false),
    ]);
}

#[test]
fn conditions_read_graphql() {
    let mutation = "mutation m { repo { id } other: owner }";
    let wrapped = json!({"query": mutation}).to_string();
    check(&[
        ("", mutation, json!(["graphql_operation", "==", "mutation"]), true),
        ("", mutation, json!(["graphql_name", "==", "m"]), true),
        ("", mutation, json!(["graphql_root_fields", "has", "owner"]), true),
        (
            "",
            mutation,
            json!(["graphql_root_fields", "has", "other"]),
            false,
        ),
        (
            "",
            mutation,
            json!(["graphql_root_fields", "in", ["owner"]]),
            false,
        ),
        ("", "{ a }", json!(["graphql_name", "==", ""]), true),
        (
            JSON,
            &wrapped,
            json!(["graphql_root_fields", "has", "repo"]),
            true,
        ),
        (JSON, mutation, json!(["graphql_operation", "==", null]), true),
        (
            "application/graphql",
            "no document",
            json!(["graphql_operation", "==", null]),
            true,
        ),
    ]);
}

#[test]
fn graphql_comes_in_a_query_too() {
    let mut exchange = Exchange::new(system_clock, 1);
    exchange.request.method = b"GET".to_vec();
    exchange.request.query = Some(b"query=query%20q+%7Ba%7D".to_vec());
    for (rule, holds) in [
        (json!(["graphql_name", "==", "q"]), true),
        (json!(["graphql_root_fields", "has", "a"]), true),
    ] {
        assert_eq!(condition(&rule).holds(&exchange), holds, "{rule}");
        assert!(!condition(&rule).awaits_body(&exchange), "{rule}");
    }
    exchange.clear();
    exchange.request.method = b"PUT".to_vec();
    exchange.request.has_body = true;
    exchange.request.body = Some(b"{ a }".to_vec());
    assert!(!condition(&json!(["graphql_operation", "==", "query"])).holds(&exchange));
}

#[test]
fn a_body_that_is_too_long_for_graphql_has_no_query() {
    let graphql = condition(&json!(["graphql_name", "==", "q"]));
    let fields = condition(&json!(["post_arg.query", "~~", "query q"]));
    let body = br#"{"query": "query q {a}"}"#;
    for (most, holds) in [(body.len(), true), (body.len() - 1, false)] {
        let mut exchange = post(JSON, body);
        exchange.request.max_graphql_bytes = most;
        assert_eq!(graphql.holds(&exchange), holds, "{most}");
        assert_eq!(graphql.evaluate_strict(&exchange).is_ok(), holds, "{most}");
        assert_eq!(fields.evaluate_strict(&exchange), Ok(true), "{most}");
    }
}

#[test]
fn a_body_is_awaited_only_where_it_decides() {
    let fits = json!(["arg_a", "==", "1"]);
    let fails = json!(["arg_a", "==", "2"]);
    let body = json!(["post_arg.n", ">", 5]);
    let graphql = json!(["graphql_name", "==", "q"]);
    for (rule, content_type, awaits) in [
        (body.clone(), JSON, true),
        (body.clone(), FORM, true),
        (body.clone(), PARTS, true),
        (body.clone(), "text/plain", false),
        (body.clone(), "", false),
        (graphql.clone(), "", true),
        (json!([fits, body]), JSON, true),
        (json!([fails, body]), JSON, false),
        (json!(["OR", fits, body]), JSON, false),
        (json!(["OR", fails, body]), JSON, true),
        (json!(["!AND", fails, body]), JSON, false),
        (json!(["AND", fails, ["OR", body, graphql]]), JSON, false),
        (fits.clone(), JSON, false),
    ] {
        let condition = condition(&rule);
        let mut exchange = post(content_type, b"");
        exchange.request.query = Some(b"a=1".to_vec());
        assert!(!condition.awaits_body(&exchange), "read: {rule}");
        exchange.request.body = None;
        assert_eq!(condition.awaits_body(&exchange), awaits, "{content_type}: {rule}");
        exchange.request.has_body = false;
        assert!(!condition.awaits_body(&exchange), "no body: {rule}");
    }
}

#[test]
fn templates_read_the_body() {
    let exchange = post(JSON, OBJECT.as_bytes());
    for (template, text) in [
        ("$post_arg.user.name/${post_arg.n}", "jack/6"),
        ("${post_arg.f}${post_arg.t}", "1.5true"),
        ("${post_arg.list}${post_arg.z}${post_arg.messages[*].role}", ""),
        ("${post_arg.nothing ?? none}", "none"),
    ] {
        let template = Template::parse(template);
        assert!(template.needs_body());
        let mut out = Vec::new();
        template.render(&exchange, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), text, "{template:?}");
    }
    assert!(!Template::parse("$arg_a ${uri}").needs_body());
}

#[test]
fn deep_json_is_no_json() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let exchange = post(JSON, deep.as_bytes());
    assert!(!condition(&json!(["post_arg.a..b", "has", 1])).holds(&exchange));
}

/// Bytes that look like the bodies that are read.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<Vec<u8>>(),
        prop::sample::select(vec![
            "--X",
            "--X--",
            "\r\n",
            "\n\n",
            "Content-Disposition: form-data; name=\"a\"",
            "\"",
            "\\",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            "...",
            "on",
            "#",
            "\"\"\"",
            "query",
            "mutation q",
            "fragment",
            "a",
            ":",
            "=",
            "&",
            "%4",
            "1e9",
            "{\"query\":\"",
            "é",
            "@",
            "$",
            ",",
            ";",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_body_panics(body in body(), content_type in prop::sample::select(vec!["", FORM, JSON, PARTS])) {
        let exchange = post(content_type, &body);
        for name in [
            "post_arg_a", "post_arg.a", "post_arg.a.b[0]", "post_arg.a..b", "post_arg.*", "graphql_operation", "graphql_name",
            "graphql_root_fields",
        ] {
            let _ = Variable::parse(name).read(&exchange);
            let _ = condition(&json!([name, "has", "a"])).holds(&exchange);
        }
        let _ = multipart::parts(&body, b"X");
        let _ = multipart::boundary(&body);
    }

    #[test]
    fn no_path_panics(path in "([a-z.*'\"\\[\\]0-9]|é){0,24}") {
        let exchange = post(JSON, OBJECT.as_bytes());
        let _ = JsonPath::parse(&path);
        let _ = Variable::parse(&format!("post_arg.{path}")).read(&exchange);
    }
}
