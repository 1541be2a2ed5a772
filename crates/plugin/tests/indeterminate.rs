//! Conditions that must be evaluated without guessing: what holds, what does not, and what cannot be decided.

use serde_json::{Value, json};
use weir_model::Predicate;
use weir_plugin::Indeterminate::{Ambiguous, Encoded, TooLarge};
use weir_plugin::{Condition, Exchange, Indeterminate, RefusalKind, Template, system_clock};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// A call; without a body to look at, it has one that is too large.
fn call(line: &str, content_type: &str, body: Option<&str>) -> Exchange {
    let (method, query) = line.split_once(' ').expect("two words");
    let mut exchange = Exchange::new(system_clock, 1);
    let request = &mut exchange.request;
    request.method = method.as_bytes().to_vec();
    request.query = (!query.is_empty()).then(|| query.as_bytes().to_vec());
    request.has_body = method != "GET";
    request.body = body.map(|body| body.as_bytes().to_vec());
    request.headers.append(b"Content-Type", content_type.as_bytes());
    exchange
}

fn judge(rule: &Value, exchange: &Exchange) -> Result<bool, Indeterminate> {
    let predicate = Predicate::parse(rule).expect("valid");
    Condition::compile(&predicate)
        .expect("valid")
        .evaluate_strict(exchange)
}

#[test]
fn large_bodies_decide_nothing() {
    let is_admin = json!(["post_arg.role", "==", "admin"]);
    let is_other = json!(["arg_a", "==", "2"]);
    let is_one = json!(["arg_a", "==", "1"]);
    for (rule, content_type, expected) in [
        (is_admin.clone(), JSON, Err(TooLarge)),
        (is_admin.clone(), FORM, Err(TooLarge)),
        (is_admin.clone(), "text/plain", Ok(false)),
        (json!(["post_arg.role", "~=", "admin"]), JSON, Err(TooLarge)),
        (json!(["post_arg_role", "==", "x"]), FORM, Err(TooLarge)),
        (
            json!(["graphql_operation", "==", "mutation"]),
            "text/plain",
            Err(TooLarge),
        ),
        (json!([is_admin, is_other]), JSON, Ok(false)),
        (json!([is_other, is_admin]), JSON, Ok(false)),
        (json!([is_admin, is_one]), JSON, Err(TooLarge)),
        (json!(["OR", is_admin, is_one]), JSON, Ok(true)),
        (json!(["OR", is_admin, is_other]), JSON, Err(TooLarge)),
        (json!(["!OR", is_admin, is_other]), JSON, Err(TooLarge)),
        (json!(["!AND", is_admin, is_other]), JSON, Ok(true)),
    ] {
        let exchange = call("POST a=1", content_type, None);
        assert_eq!(judge(&rule, &exchange), expected, "{content_type}: {rule}");
    }
}

#[test]
fn packed_bodies_decide_nothing() {
    for (rule, content_type, expected) in [
        (json!(["post_arg.role", "==", "admin"]), JSON, Err(Encoded)),
        (json!(["post_arg.role", "==", "admin"]), "text/plain", Ok(false)),
        (json!(["graphql_operation", "==", "mutation"]), JSON, Err(Encoded)),
        (json!(["arg_a", "==", "1"]), JSON, Ok(true)),
    ] {
        let mut exchange = call("POST a=1", content_type, Some("{}"));
        exchange.request.headers.append(b"Content-Encoding", b"gzip");
        assert_eq!(judge(&rule, &exchange), expected, "{rule}");
    }
}

#[test]
fn requests_with_several_operations_decide_nothing() {
    let operation = json!(["graphql_operation", "==", "mutation"]);
    let fields = json!(["graphql_root_fields", "has", "b"]);
    const TWO: &str = r#"{"query": "query q {a} mutation m {b}", "operationName": "m"}"#;
    for (rule, line, content_type, body, expected) in [
        (
            &operation,
            "POST ",
            JSON,
            r#"{"query": "mutation {b}"}"#,
            Ok(true),
        ),
        (
            &operation,
            "POST ",
            JSON,
            r#"{"query": "{a} fragment f on T {b}"}"#,
            Ok(false),
        ),
        (&operation, "POST ", JSON, TWO, Err(Ambiguous)),
        (&fields, "POST ", JSON, TWO, Err(Ambiguous)),
        (
            &operation,
            "POST ",
            "application/graphql",
            "{a} mutation {b}",
            Err(Ambiguous),
        ),
        (
            &operation,
            "POST ",
            JSON,
            r#"[{"query": "{a}"}, {"query": "mutation {b}"}]"#,
            Err(Ambiguous),
        ),
        (&operation, "POST ", JSON, "[1]", Ok(false)),
        (
            &operation,
            "POST query=mutation%7Bb%7D",
            JSON,
            r#"{"query": "{a}"}"#,
            Err(Ambiguous),
        ),
        (
            &operation,
            "POST query=plain",
            JSON,
            r#"{"query": "{a}"}"#,
            Ok(false),
        ),
        (&operation, "POST ", FORM, "query=mutation%7Bb%7D", Err(Ambiguous)),
        (&operation, "POST ", FORM, "a=1", Ok(false)),
        (&operation, "GET query=%7Ba%7D", JSON, "", Ok(false)),
        (
            &operation,
            "GET query=%7Ba%7D&query=mutation%7Bb%7D",
            JSON,
            "",
            Err(Ambiguous),
        ),
        (&operation, "GET query=%7Ba%7D%7Bb%7D", JSON, "", Err(Ambiguous)),
        (&operation, "PUT ", JSON, TWO, Ok(false)),
        (
            &fields,
            "POST ",
            JSON,
            r#"{"query": "mutation {...f} fragment f on T {b}"}"#,
            Err(Ambiguous),
        ),
        (
            &operation,
            "POST ",
            JSON,
            r#"{"query": "mutation {...f} fragment f on T {b}"}"#,
            Ok(true),
        ),
    ] {
        let exchange = call(line, content_type, Some(body));
        assert_eq!(judge(rule, &exchange), expected, "{line} {content_type} {body}");
    }
}

#[test]
fn texts_report_what_they_depend_on() {
    for (text, expected) in [
        ("$post_arg.a $uri", Some(TooLarge)),
        ("${post_arg.a ?? 1}", Some(TooLarge)),
        ("$uri", None),
    ] {
        let exchange = call("POST ", JSON, None);
        assert_eq!(Template::parse(text).indeterminate(&exchange), expected, "{text}");
    }
    for (reason, status) in [(TooLarge, 413), (Encoded, 400), (Ambiguous, 400)] {
        assert_eq!(
            weir_plugin::Refusal::new(RefusalKind::from(reason)).status,
            status
        );
    }
}
