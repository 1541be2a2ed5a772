//! Calls with bodies: a body that is not part of the key must not decide what others get.

use super::*;

/// The result of a call, in the form of `call`. `body`: whether the call has one, and the part that is read.
fn with_body(cache: &Cache, line: &str, body: Option<&str>, answered: &str) -> String {
    let mut exchange = exchange();
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    prepare(&mut exchange, line, &[form]);
    exchange.request.has_body = true;
    exchange.request.body = body.map(|body| body.as_bytes().to_vec());
    match cache.on_request(&mut exchange) {
        Outcome::Continue => answer(cache, &mut exchange, 200, &[], answered),
        other => word(&other),
    }
}

#[test]
fn calls_for_another_protocol_pass_by() {
    for config in [json!({}), json!({"cache_control": true})] {
        let cache = cache(&config);
        let aged = [("Cache-Control", "max-age=60")];
        let upgrading = || {
            let mut exchange = exchange();
            prepare(&mut exchange, "GET /a", &[]);
            exchange.request.wants_upgrade = true;
            match cache.on_request(&mut exchange) {
                Outcome::Continue => answer(&cache, &mut exchange, 200, &aged, "for sockets"),
                other => word(&other),
            }
        };
        let plain = |body: &str| call(&cache, "GET /a", &[], &aged, body);
        assert_eq!(upgrading(), "200 bypass for sockets", "{config}");
        assert_eq!(plain("own"), "200 miss own", "{config}");
        assert_eq!(plain("other"), "200 hit own", "{config}");
        assert_eq!(upgrading(), "200 bypass for sockets", "{config}");
    }
}

#[test]
fn calls_with_a_body_pass_by() {
    let graphql = "GET /a?query=%7Ba%7D";
    for (config, line) in [
        (json!({}), "GET /a"),
        (json!({}), "HEAD /a"),
        (json!({"disk": {"path": "/none", "size": 1 << 20}}), "GET /a"),
        (json!({"cache_control": true}), "GET /a"),
        (json!({"methods": ["GET", "POST"]}), "POST /a"),
        // A key of which only the body of some calls is a part.
        (
            json!({"key": ["$uri", "$post_arg_x"], "methods": ["GET", "POST"]}),
            "GET /a",
        ),
        (json!({"graphql": true, "methods": ["GET", "POST"]}), graphql),
    ] {
        let cache = cache(&config);
        let aged = [("Cache-Control", "max-age=60")];
        let plain = |body: &str| call(&cache, line, &[], &aged, body);
        // Neither is it kept, nor does it get what is.
        assert_eq!(
            with_body(&cache, line, None, "evil"),
            "200 bypass evil",
            "{config}"
        );
        assert_eq!(
            with_body(&cache, line, Some("x"), "evil"),
            "200 bypass evil",
            "{config}"
        );
        assert_eq!(plain("good"), "200 miss good", "{config}");
        assert_eq!(
            with_body(&cache, line, None, "evil"),
            "200 bypass evil",
            "{config}"
        );
    }
}

#[test]
fn a_body_in_the_key_distinguishes_calls() {
    let cache = cache(&json!({"key": ["$uri", "$post_arg_x"], "methods": ["POST"]}));
    for (body, answered, wanted) in [
        ("x=a", "1", "200 miss 1"),
        ("x=b", "2", "200 miss 2"),
        ("x=a", "3", "reply 200"),
    ] {
        assert_eq!(
            with_body(&cache, "POST /a", Some(body), answered),
            wanted,
            "{body}"
        );
    }
}
