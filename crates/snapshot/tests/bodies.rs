//! Conditions over the request's body: who waits for it, and who does not.

mod common;

use common::{call, routes_of, snapshot};
use serde_json::json;

#[test]
fn bodies_are_awaited_where_they_decide() {
    let snapshot = snapshot(routes_of(&[
        json!({"path": "/api", "methods": ["POST"], "precedence": 5, "when": ["post_arg.n", ">", 5]}),
        json!({"path": "/api", "hosts": ["x.com"], "precedence": 9, "headers": [{"name": "a"}]}),
        json!({"path": "/api", "precedence": 1}),
        json!({"path": "/api/low", "precedence": 7}),
        json!({"path": "/other", "when": [["arg_a", "==", "1"], ["graphql_name", "==", "q"]]}),
    ]));
    let table = &snapshot.tables[0];
    assert!(table.needs_body());
    for (text, body, awaits, wanted) in [
        ("POST h/api", r#"{"n": 6}"#, true, Some(0)),
        ("POST h/api", r#"{"n": 5}"#, true, Some(2)),
        ("PUT h/api", r#"{"n": 6}"#, false, Some(2)),
        ("POST x.com/api | a: 1", r#"{"n": 6}"#, false, Some(1)),
        ("POST x.com/api", r#"{"n": 6}"#, true, Some(0)),
        ("POST h/api/low", r#"{"n": 6}"#, false, Some(3)),
        ("POST h/other", r#"{"query": "query q { a }"}"#, false, None),
        ("POST h/other?a=1", r#"{"query": "query q { a }"}"#, true, Some(4)),
        ("POST h/nothing", r#"{"n": 6}"#, false, None),
    ] {
        let mut exchange = call(text);
        exchange
            .request
            .headers
            .append(b"Content-Type", b"application/json");
        exchange.request.has_body = true;
        assert_eq!(table.awaits_body(&exchange), awaits, "{text}");
        exchange.request.body = Some(body.into());
        assert!(!table.awaits_body(&exchange), "{text}");
        assert_eq!(table.find(&mut exchange).map(|it| it.route), wanted, "{text}");
    }
}

#[test]
fn tables_without_such_conditions_need_no_body() {
    let plain = snapshot(routes_of(&[json!({"path": "/a", "when": ["arg_a", "==", "1"]})]));
    assert!(!plain.tables[0].needs_body());
    let mut exchange = call("POST h/a?a=1");
    exchange.request.has_body = true;
    assert!(!plain.tables[0].awaits_body(&exchange));
}

#[test]
fn chains_know_whether_they_need_the_body() {
    for (condition, needs_body) in [
        (json!(["post_arg.a", "==", "1"]), true),
        (
            json!(["OR", ["arg_a", "==", "1"], ["graphql_name", "==", "q"]]),
            true,
        ),
        (json!(["arg_a", "==", "1"]), false),
    ] {
        let plugin = json!({"use": {"name": "phased", "config": {"response": true}, "when": condition}});
        let route =
            json!({"name": "r", "match": [{}], "to": {"respond": {"status": 503}}, "plugins": [plugin]});
        let snapshot = snapshot(json!({"routes": [route]}));
        let chain = &snapshot.routes[0].chain;
        assert_eq!(chain.needs_body, needs_body, "{condition}");
        // It has to be read before there is a response.
        assert_eq!(chain.has_request_work, needs_body, "{condition}");
    }
}
