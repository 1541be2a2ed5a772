//! The bound of a whole call, and the bandwidth of bodies.

use super::support::{TestGateway, Upstream, answer, patch, simple_model, text};
use super::{GET, call, status_and_body};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_call_ends_in_time_however_it_goes_on() {
    let timeouts = json!({"connect_ms": 60_000, "write_ms": 60_000, "read_ms": 60_000, "total_ms": 150});
    let changes = json!({"services": {"retries": 3, "timeouts": timeouts}});
    // No answer.
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    assert_eq!(
        status_and_body(&gateway, GET),
        (504, "upstream_timeout".to_owned())
    );
    let _server = upstream.accept();
    assert!(upstream.is_untouched(), "there is no time for another try");
    // A client that does not send its body.
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc");
    assert_eq!(client.response().unwrap().status(), 504);
    // An answer that never ends: each read of it is in time.
    let upstream = Upstream::bind();
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let dripping = std::thread::spawn(move || {
        let began = Instant::now();
        while server.try_send(b"1\r\nx\r\n").is_ok() {
            std::thread::yield_now();
        }
        began.elapsed()
    });
    let body = text(&client.rest().0);
    assert!(
        body.contains("200 OK") && !body.ends_with("0\\r\\n\\r\\n"),
        "it is cut off"
    );
    assert!(dripping.join().unwrap() >= Duration::from_millis(100));
    // A call that is fast enough is not touched.
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"services": {"timeouts": {"total_ms": 20_000}}}),
    );
    upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::start(model);
    for _ in 0..3 {
        assert_eq!(status_and_body(&gateway, GET), (200, "ok".to_owned()));
    }
}

#[test]
fn bodies_pass_at_the_bound() {
    let body: String = (0..4_000).map(|n| format!("{n:09} ")).collect();
    let bound = json!({"request_bytes_per_second": 80_000, "response_bytes_per_second": 80_000});
    let changes = json!({"routes": {"bandwidth": bound}});
    for is_chunked in [false, true] {
        let upstream = Upstream::bind();
        let model = patch(simple_model(upstream.address), &changes);
        let gateway = TestGateway::start(model);
        let sent = body.clone();
        let seen = upstream.serve(move |_| match is_chunked {
            false => answer(&sent),
            true => {
                let length = sent.len();
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                format!("{head}{length:x}\r\n{sent}\r\n0\r\n\r\n").into_bytes()
            }
        });
        let began = Instant::now();
        let answered = call(&gateway, GET);
        assert_eq!(text(&answered.body), body);
        // 40,000 bytes in five pieces: all but the first have to wait.
        assert!(
            began.elapsed() > Duration::from_millis(350),
            "{:?}",
            began.elapsed()
        );
        let began = Instant::now();
        let mut client = gateway.connect();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client.send(head + &body);
        client.response().unwrap();
        assert!(
            began.elapsed() > Duration::from_millis(350),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(text(&seen.lock().unwrap()[1].body), body);
    }
}
