//! Where the ids of a call come from.

use super::headers::ids;
use super::*;

const T: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const S: &str = "00f067aa0ba902b7";
const P: &str = "0000000000000abc";

#[test]
fn ids_come_from_where_they_are_to() {
    let hex = "0123456789abcdef0123456789abcdef";
    for (config, sent, expected) in [
        (json!({"id_header": "X-Request-Id"}), Some(hex), Some(hex)),
        (json!({"id_header": "X-Request-Id"}), Some("not an id"), None),
        (
            json!({"id_header": "X-Request-Id"}),
            Some("00000000000000000000000000000000"),
            None,
        ),
        (json!({}), Some(hex), None),
    ] {
        let mut exchange = exchange();
        let headers: Vec<(&str, &str)> = sent.iter().map(|id| ("X-Request-Id", *id)).collect();
        prepare(&mut exchange, "GET /", &headers);
        filter(&config).on_request(&mut exchange);
        let (trace, ..) = ids(&exchange);
        assert_eq!(trace == hex, expected.is_some(), "{config} {sent:?}");
        assert_ne!(trace, "0".repeat(32));
    }
    let mut exchange = exchange();
    filter(&json!({"id_header": "X-Request-Id"})).on_request(&mut exchange);
    assert_eq!(ids(&exchange).0, exchange.request_id());
    prepare(&mut exchange, "GET /", &[]);
    filter(&json!({"short_ids": true})).on_request(&mut exchange);
    assert!(ids(&exchange).0.starts_with(&"0".repeat(16)));
}

#[test]
fn a_span_is_shared_where_it_is_asked_for() {
    for (share, sent, span, parent) in [
        (true, ("b3", format!("{T}-{S}-1-{P}")), Some(S), P),
        (false, ("b3", format!("{T}-{S}-1-{P}")), None, S),
        // W3C carries the caller's span only.
        (true, ("traceparent", format!("00-{T}-{S}-01")), None, S),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[(sent.0, &sent.1)]);
        filter(&json!({"share_spans": share})).on_request(&mut exchange);
        let trace = exchange.trace.expect("a place");
        assert_eq!(format!("{:016x}", trace.parent_id), parent, "{sent:?}");
        assert_eq!(
            span.is_some_and(|span| format!("{:016x}", trace.span_id) == span),
            span.is_some()
        );
    }
}
