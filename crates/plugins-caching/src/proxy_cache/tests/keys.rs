//! What distinguishes responses: values, variants, callers, methods.

use super::*;

#[test]
fn values_of_one_name_are_not_taken_for_those_of_another() {
    let key = json!({"key": ["$uri"], "query": {"only": ["a", "b"]}, "headers": ["X-A", "X-B"]});
    let kept = cache(&key);
    let vary = [("Vary", "X-C, X-D")];
    for (line, request) in [
        ("GET /v?a=", vec![]),
        ("GET /v?b=", vec![]),
        ("GET /v", vec![("X-A", "")]),
        ("GET /v", vec![("X-B", "")]),
        ("GET /v", vec![("X-C", "1"), ("X-D", "+"), ("X-D", "3")]),
        ("GET /v", vec![("X-C", "1"), ("X-C", "+"), ("X-D", "3")]),
    ] {
        let found = call(&kept, line, &request, &vary, "x");
        assert_eq!(found, "200 miss x", "{line} {request:?}");
        assert_eq!(call(&kept, line, &request, &vary, "y"), "200 hit x");
    }
}

#[test]
fn variants_and_consumers_are_kept_separately() {
    let cache = cache(&json!({"headers": ["X-Tenant"]}));
    let vary = [("Vary", "Accept-Language, X-A")];
    let ask = |request: &[(&str, &str)], body: &str| call(&cache, "GET /v", request, &vary, body);
    assert_eq!(ask(&[("Accept-Language", "de")], "de"), "200 miss de");
    assert_eq!(ask(&[("Accept-Language", "en")], "en"), "200 miss en");
    assert_eq!(ask(&[("Accept-Language", "de")], "x"), "200 hit de");
    assert_eq!(ask(&[("Accept-Language", "de"), ("X-A", "")], "a"), "200 miss a");
    assert_eq!(
        ask(&[("Accept-Language", "de"), ("X-Tenant", "t")], "t"),
        "200 miss t"
    );
    // Those that others have marked, too, and those that show the service something of their own.
    for (mark, header, expected) in [
        ("carol", "", "200 miss carol"),
        ("dave", "", "200 miss dave"),
        ("carol", "", "reply 200"),
        ("", "", "200 miss "),
        ("", "Basic YTpi", "200 miss "),
        ("", "Basic YTpi", "reply 200"),
        ("", "Basic YTpj", "200 miss "),
    ] {
        let mut exchange = exchange();
        prepare(
            &mut exchange,
            "GET /own",
            &[("Authorization", header)][..usize::from(!header.is_empty())],
        );
        if !mark.is_empty() {
            exchange.add_fingerprint(mark.as_bytes());
        }
        let found = match cache.on_request(&mut exchange) {
            Outcome::Continue => answer(&cache, &mut exchange, 200, &[], mark),
            other => word(&other),
        };
        assert_eq!(found, expected, "{mark} {header}");
    }
    for (consumer, expected) in [
        ("alice", "200 miss alice"),
        ("bob", "200 miss bob"),
        ("alice", "reply 200"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /own", &[]);
        exchange.identity = Some(identity(consumer, None));
        let found = match cache.on_request(&mut exchange) {
            Outcome::Continue => answer(&cache, &mut exchange, 200, &[], consumer),
            other => word(&other),
        };
        assert_eq!(found, expected);
    }
    // Two callers without a known credential are not the same caller; nor are two without a fingerprint.
    for (is_marked, header, expected) in [
        (false, "Bearer alice", "200 miss Bearer alice"),
        (false, "Bearer bob", "200 miss Bearer bob"),
        (false, "Bearer alice", "reply 200"),
        (true, "Bearer alice", "200 miss Bearer alice"),
        (true, "Bearer bob", "200 miss Bearer bob"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /guest", &[("Authorization", header)]);
        match is_marked {
            true => exchange.add_fingerprint(b""),
            false => exchange.identity = Some(identity("guest", None)),
        }
        assert!(!exchange.has_fingerprint());
        let found = match cache.on_request(&mut exchange) {
            Outcome::Continue => answer(&cache, &mut exchange, 200, &[], header),
            other => word(&other),
        };
        assert_eq!(found, expected, "{is_marked} {header}");
    }
}

#[test]
fn methods_are_kept_separately_if_more_than_reading_is_answered() {
    let cache = cache(&json!({"methods": ["GET", "HEAD", "POST"]}));
    for (line, expected) in [
        ("POST /m", "200 miss POST /m"),
        ("GET /m", "200 miss GET /m"),
        ("POST /m", "200 hit POST /m"),
        ("HEAD /m", "200 hit GET /m"),
    ] {
        assert_eq!(call(&cache, line, &[], &[], line), expected, "{line}");
    }
}
