//! Routes and filters that look into the request's body, and the body afterwards.

use crate::support::{Ended, Message, TestGateway, Upstream, Wire, answer, json_body, text};
use serde_json::{Value, json};

const MEGABYTE: usize = 1 << 20;

/// Routes to `/large` for bodies whose `n` is more than 5 and else to `/other`; `changes` go into the first.
fn model(upstream: &Upstream, changes: Value) -> Value {
    let service = |name: &str| json!({"name": name, "url": format!("http://{}/{name}", upstream.address)});
    let mut large = json!({"name": "large", "match": [{"precedence": 2, "when": ["post_arg.n", ">", 5]}], "to": {"service": "large"}});
    for (name, change) in changes.as_object().expect("an object") {
        large[name] = change.clone();
    }
    json!({
        "services": [service("large"), service("other")],
        "routes": [large, {"name": "other", "match": [{"precedence": 1}], "to": {"service": "other"}}],
    })
}

fn request(body: &[u8], content_type: &str, is_chunked: bool) -> Vec<u8> {
    let head = format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\n");
    let mut bytes = head.into_bytes();
    if is_chunked {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(10_000) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    } else {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
    }
    bytes
}

/// Sends concurrently with reading, so that neither side waits for the other, and returns the answer.
fn exchange(client: &mut Wire, request: Vec<u8>) -> Message {
    let mut sender = client.sender();
    let sending = std::thread::spawn(move || sender.try_send(request));
    let answer = client.response().expect("an answer");
    let _ = sending.join().expect("no panic");
    answer
}

/// The defect: the setting of a dialect for the longest query did not reach conditions.
#[test]
fn a_dialect_says_how_long_a_body_with_a_query_may_be() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let service = |name: &str| json!({"name": name, "url": format!("http://{address}/{name}")});
    let when = json!(["graphql_name", "==", "q"]);
    let guarded = json!([{"use": {"name": "puppet", "when": when, "config": {"reply": "own"}}}]);
    let routes = json!([
        {"name": "query", "match": [{"precedence": 2, "path": "/x", "when": when}], "to": {"service": "query"}},
        {"name": "other", "match": [{"precedence": 1, "path": "/x"}], "to": {"service": "other"}},
        {"name": "guarded", "match": [{"path": "/guarded"}], "to": {"service": "other"}, "plugins": guarded},
    ]);
    let seen = upstream.serve(|_| answer("ok"));
    let query = |size: usize| {
        let mut body = br#"{"query": "query q {a}"}"#.to_vec();
        body.resize(body.len().max(size), b' ');
        body
    };
    for (settings, size, is_found) in [
        (json!({}), MEGABYTE, true),
        (json!({}), MEGABYTE + 1, false),
        (json!({"graphql_max_bytes": 100}), 100, true),
        (json!({"graphql_max_bytes": 100}), 101, false),
        (json!({"graphql_max_bytes": 3 * MEGABYTE}), 3 * MEGABYTE, true),
        (
            json!({"graphql_max_bytes": 3 * MEGABYTE}),
            3 * MEGABYTE + 1,
            false,
        ),
    ] {
        let gateway = TestGateway::start(json!({
            "services": [service("query"), service("other")], "routes": routes, "dialect_settings": [settings],
        }));
        for is_chunked in [false, true] {
            let call = |path: &str| {
                let request = request(&query(size), "application/json", is_chunked);
                let request = [format!("POST {path}").as_bytes(), &request[b"POST /x".len()..]].concat();
                exchange(&mut gateway.connect(), request).status()
            };
            assert_eq!(call("/x"), 200);
            let line = seen.lock().expect("no panic").pop().expect("a call").head.line;
            assert_eq!(
                line.contains("/query/"),
                is_found,
                "{settings} {size} {is_chunked}: {line}"
            );
            // What is to be refused by a query is refused where it cannot be read.
            let status = if is_found { 200 } else { 413 };
            assert_eq!(call("/guarded"), status, "{settings} {size} {is_chunked}");
        }
    }
}

#[test]
fn a_body_that_is_awaited_is_invited() {
    let upstream = Upstream::bind();
    let model = model(&upstream, json!({}));
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head().expect("an invitation").status(), 100);
    client.send("{\"n\": 6}");
    assert_eq!(client.response().expect("an answer").status(), 200);
    assert!(seen.lock().expect("no panic")[0].head.line.contains("/large/x"));
}

#[test]
fn a_body_that_breaks_off_is_refused() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(model(&upstream, json!({})));
    let mut client = gateway.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_eq!(client.response().expect("an answer").status(), 400);
    assert_eq!(client.expect_end(), Ended::Cleanly);
    let mut client = gateway.connect();
    client
        .send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    client.finish();
    client.expect_end();
    assert!(upstream.is_untouched());
}

#[test]
fn the_routes_bound_holds_for_what_was_read_before() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(model(&upstream, json!({"max_body_bytes": 10})));
    for is_chunked in [false, true] {
        let mut client = gateway.connect();
        let answer = exchange(
            &mut client,
            request(&json_body(6, 100), "application/json", is_chunked),
        );
        assert_eq!(answer.status(), 413);
    }
    assert!(upstream.is_untouched());
}

#[test]
fn filters_read_on_and_conditions_read_too() {
    let upstream = Upstream::bind();
    let plugins = json!([
        {"use": {"name": "puppet", "when": ["post_arg.n", "==", 7], "config": {"reply": "own"}}},
        {"use": {"name": "puppet", "config": {"need_body": 2 * MEGABYTE}}},
    ]);
    let model = json!({
        "services": [{"name": "s", "url": format!("http://{}", upstream.address)}],
        "routes": [{"name": "r", "match": [{}], "to": {"service": "s"}, "plugins": plugins}],
    });
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    for is_chunked in [false, true] {
        let own = exchange(
            &mut client,
            request(&json_body(7, 100), "application/json", is_chunked),
        );
        assert_eq!(text(&own.body), "own");
        const JSON: &str = "application/json";
        // What has no fields hangs on none.
        for (kind, size) in [
            (JSON, 100),
            (JSON, MEGABYTE),
            ("text/plain", MEGABYTE + 1),
            ("text/plain", MEGABYTE + 500_000),
            ("text/plain", 2 * MEGABYTE),
        ] {
            let body = json_body(6, size);
            assert_eq!(
                exchange(&mut client, request(&body, kind, is_chunked)).status(),
                200
            );
            let request = seen.lock().expect("no panic").pop().expect("a request");
            assert_eq!(
                request.head.get("X-Body-Seen"),
                Some(size.to_string()),
                "{is_chunked}"
            );
            assert!(
                request.body == body,
                "{} of {size} bytes arrived",
                request.body.len()
            );
        }
    }
}

#[test]
fn a_body_that_cannot_be_judged_passes_no_condition() {
    let upstream = Upstream::bind();
    let plugins =
        json!([{"use": {"name": "puppet", "when": ["post_arg.n", "==", 7], "config": {"reply": "own"}}}]);
    let model = json!({
        "services": [{"name": "s", "url": format!("http://{}", upstream.address)}],
        "routes": [{"name": "r", "match": [{}], "to": {"service": "s"}, "plugins": plugins}],
    });
    let gateway = TestGateway::start(model);
    for is_chunked in [false, true] {
        for n in [6, 7] {
            let mut client = gateway.connect();
            let body = json_body(n, MEGABYTE + 1);
            let answer = exchange(&mut client, request(&body, "application/json", is_chunked));
            assert_eq!(answer.status(), 413, "{n} {is_chunked}");
        }
    }
    assert!(upstream.is_untouched());
}
