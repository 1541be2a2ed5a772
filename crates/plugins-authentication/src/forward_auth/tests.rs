//! `forward-auth` as its users see it.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

#[test]
fn the_server_gets_the_facts_of_the_call() {
    let config = json!({
        "url": "http://auth:81/check?x",
        "request_headers": ["Authorization", "Host", "X-Forwarded-For", "X-None"],
        "extra_headers": {"X-Tenant": "$http_x_t", "X-Forwarded-Proto": "own"},
    });
    let filter = build(&ForwardAuth, &config).expect("valid");
    let mut exchange = exchange();
    let headers = [
        ("Host", "h"),
        ("X-T", "tt"),
        ("Authorization", "a"),
        ("X-Forwarded-For", "spoof"),
    ];
    prepare(&mut exchange, "PUT /p?a=1", &headers);
    let Outcome::Subrequest(subrequest) = filter.on_request(&mut exchange) else {
        panic!("no subrequest");
    };
    assert_eq!(
        (subrequest.host.as_str(), subrequest.port, subrequest.tls),
        ("auth", 81, None)
    );
    assert_eq!(
        String::from_utf8_lossy(&subrequest.message),
        "GET /check?x HTTP/1.1\r\nHost: auth:81\r\nUser-Agent: weir\r\nX-Forwarded-Method: PUT\r\n\
         X-Forwarded-Host: api.example\r\nX-Forwarded-Uri: /p?a=1\r\nX-Forwarded-For: 10.0.0.1\r\n\
         X-Forwarded-Proto: own\r\nX-Tenant: tt\r\nAuthorization: a\r\n\r\n"
    );
}

#[test]
fn bodies_are_sent_when_asked_for() {
    let filter = build(
        &ForwardAuth,
        &json!({"url": "https://a", "send_body": true, "pool_size": 0}),
    );
    let filter = filter.expect("valid");
    let mut exchange = exchange();
    exchange.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    exchange.request.body = Some(b"hello".to_vec());
    let Outcome::Subrequest(subrequest) = filter.on_request(&mut exchange) else {
        panic!("no subrequest");
    };
    assert_eq!(
        (subrequest.port, subrequest.tls, subrequest.keep),
        (443, Some(Verify::Yes), None)
    );
    let message = String::from_utf8_lossy(&subrequest.message);
    assert!(message.starts_with("POST / HTTP/1.1\r\nHost: a\r\n"), "{message}");
    assert!(
        message.ends_with("\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
        "{message}"
    );
}

#[test]
fn the_answer_decides() {
    let answer = |status, headers: &[(&str, &str)]| {
        let mut answer = SubrequestResponse {
            status,
            body: b"no".to_vec(),
            ..SubrequestResponse::default()
        };
        for (name, value) in headers {
            answer.headers.append(name.as_bytes(), value.as_bytes());
        }
        Some(Some(answer))
    };
    let strict = json!({"url": "http://a", "upstream_headers": ["X-User"], "client_headers": ["Location"]});
    let lax = json!({"url": "http://a", "pass_on_failure": true});
    let own = json!({"url": "http://a", "failure_status": 503});
    for (config, answer, expected) in [
        (&strict, answer(200, &[]), "continue"),
        (&strict, answer(401, &[("Location", "/login")]), "reply 401"),
        (&strict, answer(302, &[]), "reply 302"),
        (&strict, Some(None), "forbidden 403"),
        (&own, Some(None), "forbidden 503"),
        (&lax, Some(None), "continue"),
    ] {
        let filter = build(&ForwardAuth, config).expect("valid");
        let mut exchange = exchange();
        exchange.subrequest_response = answer;
        let outcome = filter.on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{config}");
        if let Outcome::Reply(reply) = outcome
            && reply.status == 401
        {
            assert_eq!(reply.headers, [("Location".to_owned(), b"/login".to_vec())]);
            assert_eq!(reply.body, b"no");
        }
    }
    for (headers, left) in [(&[("X-User", "u")][..], &["X-User: u"][..]), (&[], &[])] {
        let filter = build(&ForwardAuth, &strict).expect("valid");
        let mut exchange = exchange();
        prepare(
            &mut exchange,
            "GET /",
            &[("x-user", "spoof"), ("X_User", "spoof")],
        );
        exchange.subrequest_response = answer(204, headers);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(lines(&exchange.request.headers), left);
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({}), &[""][..]),
        (
            json!({"url": "auth/check", "timeout_ms": 0, "client_headers": ["a b"]}),
            &["url", "client_headers[0]", "timeout_ms"],
        ),
    ] {
        assert_eq!(refused_at(&ForwardAuth, &config), places, "{config}");
    }
    for url in [
        "http://",
        "http://a:x",
        "ftp://a",
        "http://a b/",
        "http://u@a/",
        "http://a:0/",
    ] {
        assert_eq!(HttpServer::parse(url), None, "{url}");
    }
    let parsed = HttpServer::parse("https://[::1]:8443/x").expect("an address");
    assert_eq!((parsed.host.as_str(), parsed.port), ("::1", 8443));
    assert!(build(&ForwardAuth, &example(include_str!("mod.rs"))).is_ok());
}
