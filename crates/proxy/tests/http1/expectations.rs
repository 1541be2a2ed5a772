//! `Expect: 100-continue` and interim responses.

use crate::support::{Ended, TestGateway, Upstream, answer, patch, simple_model, text};
use serde_json::json;

#[test]
fn expect_is_answered_by_the_upstream() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let expecting = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
    // With an invitation.
    let mut client = gateway.connect();
    client.send(expecting);
    let mut server = upstream.accept();
    assert_eq!(
        server.head().unwrap().get("Expect").as_deref(),
        Some("100-continue")
    );
    server.send("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.response().unwrap().head.line, "HTTP/1.1 100 Continue");
    client.send("abc");
    assert_eq!(server.read(3), Ok(b"abc".to_vec()));
    server.send(answer("one"));
    assert_eq!(text(&client.response().unwrap().body), "one");
    // The client does not wait, and both connections go on.
    client.send(format!("{expecting}abc"));
    assert_eq!(text(&server.request().unwrap().body), "abc");
    server.send("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 100);
    server.send(answer("two"));
    assert_eq!(text(&client.response().unwrap().body), "two");
    // Refused before the body: whether it follows is unknown, so both connections end.
    client.send(expecting);
    server.head().unwrap();
    server.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let refusal = client.response().unwrap();
    assert_eq!((refusal.status(), text(&refusal.body).as_str()), (403, "no"));
    assert_eq!(refusal.head.get("Connection").as_deref(), Some("close"));
    assert_eq!(client.expect_end(), Ended::Cleanly);
    server.expect_end();
}

#[test]
fn a_route_table_may_have_expect_answered_here() {
    let upstream = Upstream::bind();
    let changes = json!({"dialect_settings": [{"answer_expect": true}], "routes": {"max_body_bytes": 5}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let expecting = |length: u32| {
        format!("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut client = gateway.connect();
    let mut server = None;
    for _ in 0..2 {
        client.send(expecting(3));
        assert_eq!(client.response().unwrap().head.line, "HTTP/1.1 100 Continue");
        client.send("abc");
        let server = server.get_or_insert_with(|| upstream.accept());
        let request = server.request().unwrap();
        assert_eq!(
            (text(&request.body).as_str(), request.head.get("Expect")),
            ("abc", None)
        );
        // No client waits for a second invitation.
        server.send("HTTP/1.1 100 Continue\r\n\r\n");
        server.send(answer("ok"));
        assert_eq!(text(&client.response().unwrap().body), "ok");
    }
    // Nothing is invited that is going to be refused.
    client.send(expecting(6));
    assert_eq!(client.response().unwrap().status(), 413);
    client.expect_end();
}

#[test]
fn expect_is_left_out_where_there_is_nothing_to_wait_for() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    for request in [
        "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let mut client = gateway.connect();
        client.send(request);
        assert_eq!(client.response().unwrap().status(), 200, "{request:?}");
        assert_eq!(
            seen.lock().unwrap().pop().unwrap().head.get("Expect"),
            None,
            "{request:?}"
        );
    }
}

#[test]
fn a_filter_that_wants_the_body_invites_it() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"routes": {"plugins": [
            {"use": {"name": "puppet", "config": {"need_body": 100}}},
        ]}}),
    );
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 100);
    assert!(upstream.is_untouched());
    client.send("abc");
    let mut server = upstream.accept();
    let request = server.request().unwrap();
    assert_eq!(
        (text(&request.body).as_str(), request.head.get("Expect")),
        ("abc", None)
    );
    server.send(answer("ok"));
    assert_eq!(text(&client.response().unwrap().body), "ok");
}

#[test]
fn interim_responses_reach_those_who_know_them() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";
    for (version, wanted) in [("1.1", &[103, 102, 200][..]), ("1.0", &[200])] {
        let mut client = gateway.connect();
        client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
        let mut server = upstream.accept();
        server.request().unwrap();
        // No client asked for an invitation to send a body.
        server.send(format!("HTTP/1.1 100 Continue\r\n\r\n{hints}"));
        if version == "1.1" {
            // They do not wait for the final one.
            let early = client.response().unwrap();
            assert_eq!(
                (early.status(), early.head.get("Link").as_deref()),
                (103, Some("</a>"))
            );
            assert_eq!(early.head.names(), ["Link"]);
            assert_eq!(client.response().unwrap().status(), 102);
        }
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        let last = client.response().unwrap();
        assert_eq!(
            (last.status(), text(&last.body).as_str()),
            (*wanted.last().unwrap(), "ok")
        );
    }
}
