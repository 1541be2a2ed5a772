//! Plans as owners write them, and answers as subscribers give them.

use super::*;
use serde_json::json;

fn plan(fields: Value) -> Plan {
    crate::entities::parse(&fields).expect("a plan")
}

#[test]
fn settings_belong_to_their_kind_and_are_whole() {
    let oauth = |more: Value| {
        let mut settings = json!({"discovery": "https://id.example"});
        settings
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        json!({"security": "oauth2", "oauth2": settings})
    };
    for (fields, places) in [
        (json!({}), &[][..]),
        (json!({"security": "basic"}), &[]),
        (json!({"security": "oauth2"}), &["oauth2.discovery"]),
        (oauth(json!({})), &[]),
        (oauth(json!({"discovery": "id.example"})), &["oauth2.discovery"]),
        (
            oauth(json!({"check": "introspection"})),
            &["oauth2.client_id", "oauth2.client_secret"],
        ),
        (
            oauth(json!({"check": "introspection", "client_id": "g", "client_secret": "s"})),
            &[],
        ),
        (
            oauth(json!({"scopes": ["a b"], "introspection_endpoint": "x"})),
            &["oauth2.introspection_endpoint", "oauth2.scopes"],
        ),
        (json!({"hmac": {}}), &["hmac"]),
        (
            json!({"security": "hmac", "hmac": {"headers": ["x-a", "a b"]}}),
            &["hmac.headers[1]"],
        ),
        (
            json!({"security": "mtls", "mtls": {"authorities": ["x"]}}),
            &["mtls.authorities[0]"],
        ),
        (json!({"security": "mtls", "key_lifetime": 5}), &["key_lifetime"]),
        (json!({"key_lifetime": 0}), &["key_lifetime"]),
        (json!({"key_lifetime": 1}), &[]),
        (
            json!({"limits": [{"count": 5, "per": "day"}, {"count": 1, "per": "hour"}, {"count": 7, "per": "day"}]}),
            &["limits[2].per"],
        ),
        (
            json!({"operation_limits": {"a": [{"count": 5, "per": "day"}, {"count": 5, "per": "day"}]}}),
            &["operation_limits.a[1].per"],
        ),
        (
            json!({"security": "keyless", "form": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            &["form"],
        ),
    ] {
        let found: Vec<String> = check(&plan(fields.clone())).into_iter().map(|it| it.0).collect();
        assert_eq!(found, places, "{fields}");
    }
}

#[test]
fn forms_are_questions_that_a_page_can_ask() {
    let question = |schema: Value| json!({"type": "object", "properties": {"q": schema}});
    for (form, places) in [
        (
            question(
                json!({"type": "string", "title": "Why?", "maxLength": 9, "pattern": "^a", "enum": ["a"]}),
            ),
            &[][..],
        ),
        (
            json!({"type": "object", "properties": {"q": {"type": "boolean"}}, "required": ["q"]}),
            &[],
        ),
        (json!([]), &["form"]),
        (json!({"properties": {"q": {"type": "string"}}}), &["form.type"]),
        (json!({"type": "object"}), &["form.properties"]),
        (
            json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["r"], "allOf": []}),
            &["form.allOf", "form.required[0]"],
        ),
        (question(json!({"type": "object"})), &["form.properties.q.type"]),
        (
            question(json!({"type": "string", "$ref": "#/x"})),
            &["form.properties.q.$ref"],
        ),
        (
            question(json!({"type": "string", "pattern": "("})),
            &["form.properties.q.pattern"],
        ),
        (
            question(json!({"type": "string", "enum": []})),
            &["form.properties.q.enum"],
        ),
        (
            question(json!({"type": "string", "description": "x".repeat(20_000)})),
            &["form"],
        ),
    ] {
        let found: Vec<String> = check(&plan(json!({"form": form})))
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(found, places, "{form}");
    }
}

#[test]
fn answers_are_what_the_form_and_the_comment_ask_for() {
    let form = json!({"type": "object", "required": ["team"], "properties": {
        "team": {"type": "string", "minLength": 2}, "calls": {"type": "integer", "minimum": 1}}});
    for (comment, form, request, answers, expected) in [
        ("asked", None, "", json!({}), None),
        ("none", None, " ", json!({}), None),
        ("none", None, "hello", json!({}), Some("accepts no reason")),
        ("required", None, " ", json!({}), Some("requires a reason")),
        ("required", None, "hello", json!({}), None),
        ("asked", None, "", json!({"team": "x"}), Some("has no questions")),
        (
            "asked",
            Some(&form),
            "",
            json!({"team": "blue", "calls": 3}),
            None,
        ),
        ("asked", Some(&form), "", json!({"calls": 3}), Some("team")),
        ("asked", Some(&form), "", json!({"team": "b"}), Some("answers")),
        (
            "asked",
            Some(&form),
            "",
            json!({"team": "blue", "calls": 0.5}),
            Some("answers"),
        ),
        (
            "asked",
            Some(&form),
            "",
            json!({"team": "blue", "x": 1}),
            Some("answers.x: the plan 'gold' has no such question"),
        ),
    ] {
        let plan = plan(json!({"name": "gold", "comment": comment, "form": form}));
        let found = check_answers(&plan, request, answers.as_object().expect("a map"));
        match (found, expected) {
            (Ok(()), None) => {}
            (Err(refusal), Some(part)) => assert!(refusal.to_string().contains(part), "{refusal}"),
            (found, _) => panic!("{comment} {request} {answers}: {found:?}, not {expected:?}"),
        }
    }
}
