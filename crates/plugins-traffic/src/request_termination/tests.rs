//! `request-termination` as its users see it.

use super::*;
use weir_plugins_testkit::*;

#[test]
fn calls_are_answered() {
    let problem = r#"{"type":"about:blank","status":301,"detail":"moved"}"#;
    for (config, line, headers, expected) in [
        (json!({}), "GET /", vec![], Some((503, "", ""))),
        (
            json!({"status": 301, "message": "moved"}),
            "GET /",
            vec![],
            Some((301, "application/problem+json", problem)),
        ),
        (
            json!({"status": 200, "body": "<p>", "content_type": "text/html"}),
            "GET /",
            vec![],
            Some((200, "text/html", "<p>")),
        ),
        (
            json!({"body": "plain"}),
            "HEAD /",
            vec![],
            Some((503, "", "plain")),
        ),
        (json!({"trigger": "x-stop"}), "GET /", vec![], None),
        (
            json!({"trigger": "x-stop"}),
            "GET /",
            vec![("X-Stop", "")],
            Some((503, "", "")),
        ),
        (
            json!({"trigger": "x-stop"}),
            "GET /?a=1&x-stop",
            vec![],
            Some((503, "", "")),
        ),
        (json!({"trigger": "x-stop"}), "GET /?x-stopped=1", vec![], None),
    ] {
        let filter = build(&RequestTermination, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, line, &headers);
        let found = match filter.on_request(&mut exchange) {
            Outcome::Reply(reply) => Some((reply.status, reply.content_type.into_owned(), reply.body)),
            _ => None,
        };
        let expected =
            expected.map(|(status, kind, body)| (status, kind.to_owned(), body.as_bytes().to_vec()));
        assert_eq!(found, expected, "{config} {line}");
    }
}

/// They are counted as refusals, and the dialect gives them their words and the call's id.
#[test]
fn errors_with_a_message_are_refusals() {
    for (config, headers, expected) in [
        (json!({"message": "noon"}), vec![], Some((503, "noon"))),
        (
            json!({"status": 403, "message": "paused"}),
            vec![],
            Some((403, "paused")),
        ),
        (json!({"status": 400, "message": "m"}), vec![], Some((400, "m"))),
        (json!({"status": 399, "message": "m"}), vec![], None),
        (json!({"status": 403, "body": "m"}), vec![], None),
        (json!({"status": 403, "message": "m", "echo": true}), vec![], None),
        (
            json!({"status": 403, "message": "m", "trigger": "x-stop"}),
            vec![],
            None,
        ),
        (
            json!({"status": 403, "message": "m", "trigger": "x-stop"}),
            vec![("x-stop", "1")],
            Some((403, "m")),
        ),
    ] {
        let filter = build(&RequestTermination, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &headers);
        let found = match filter.on_request(&mut exchange) {
            Outcome::Refuse(refusal) => {
                Some((refusal.status, refusal.message.unwrap_or_default(), refusal.kind))
            }
            _ => None,
        };
        let kind = RefusalKind::Answered {
            plugin: "request-termination",
        };
        let expected = expected.map(|(status, message)| (status, message.to_owned(), kind));
        assert_eq!(found, expected, "{config}");
    }
}

/// What ends at a time is refused from that second on.
#[test]
fn calls_are_answered_from_the_time_in_a_label_on() {
    let label = |text: Option<&str>| {
        let labels = text.map(|text| ("ends".to_owned(), text.to_owned()));
        let consumer = weir_plugin::ConsumerIdentity {
            labels: labels.into_iter().collect(),
            ..Default::default()
        };
        weir_plugin::Identity {
            consumer: Arc::new(consumer),
            credential_id: None,
        }
    };
    let config = json!({"status": 403, "message": "over", "from_label": "ends"});
    let filter = build(&RequestTermination, &config).expect("valid");
    for (caller, now_ms, expected) in [
        (Some(label(Some("100"))), 99_999, "continue"),
        (Some(label(Some("100"))), 100_000, "answered 403"),
        (Some(label(Some("soon"))), 1, "answered 403"),
        (Some(label(None)), 100_000, "continue"),
        (None, 100_000, "continue"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[]);
        exchange.set_unix_ms(now_ms);
        exchange.identity = caller;
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{now_ms}");
    }
}

/// Programs tell refusals of plans apart by their kinds.
#[test]
fn a_reason_is_the_kind_of_the_refusal() {
    let config = json!({"status": 403, "message": "m", "reason": "subscription-paused"});
    let filter = build(&RequestTermination, &config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", &[]);
    let Outcome::Refuse(refusal) = filter.on_request(&mut exchange) else {
        panic!("expected a refusal");
    };
    let kind = RefusalKind::NotOpen {
        plugin: "request-termination",
        reason: NotOpen::SubscriptionPaused,
    };
    assert_eq!((refusal.status, refusal.kind), (403, kind));
}

#[test]
fn echoes_show_the_call() {
    let config = json!({"status": 404, "echo": true, "message": "m"});
    let filter = build(&RequestTermination, &config).expect("valid");
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        "POST /x?a=1&b=2&b=3&c",
        &[("X-A", "1"), ("x-a", "2")],
    );
    exchange.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    exchange.request.body = Some(b"payload".to_vec());
    let Outcome::Reply(reply) = filter.on_request(&mut exchange) else {
        panic!("expected an answer");
    };
    let account: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(account["message"], "m");
    let expected = json!({
        "scheme": "http", "host": "api.example", "port": 8000, "method": "POST", "path": "/x",
        "query": {"a": "1", "b": ["2", "3"], "c": true}, "headers": {"x-a": ["1", "2"]}, "raw_body": "payload",
    });
    assert_eq!(account["request"], expected);
}

#[test]
fn configurations_are_checked() {
    assert!(build(&RequestTermination, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({"status": 100}), vec!["status"]),
        (
            json!({"message": "a", "body": "b", "echo": true}),
            vec!["message", "body"],
        ),
        (
            json!({"content_type": "a\nb", "trigger": ""}),
            vec!["content_type", "trigger"],
        ),
        (json!({"reason": "retired"}), vec!["reason"]),
        (
            json!({"reason": "retired", "message": "m", "status": 301}),
            vec!["reason"],
        ),
        (json!({"reason": "unpaid", "message": "m"}), vec!["reason"]),
        (json!({"code": 500}), vec!["code"]),
    ] {
        assert_eq!(refused_at(&RequestTermination, &config), places, "{config}");
    }
}
