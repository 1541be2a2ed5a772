//! Upstreams that break the format: the client gets a 502, or if its answer has begun, an end that no client
//! can take for a proper one. What a bad upstream says never becomes a response of its own.

use crate::support::{Ended, TestGateway, Upstream, patch, simple_model, text};
use serde_json::json;
use weir_proxy::Limits;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// What an upstream sends, after which it closes; the client gets 502.
#[rustfmt::skip]
const REFUSED: &[&str] = &[
    "",
    "H",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
    "hello\r\n",
    "<html>hello</html>",
    "HTTP/0.9 200 OK\r\n\r\n",
    "HTTP/2.0 200 OK\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.2 200 OK\r\n\r\n",
    "http/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 -20 OK\r\n\r\n",
    "HTTP/1.1  200 OK\r\n\r\n",
    "HTTP/1.1\t200 OK\r\n\r\n",
    " HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 O\x00K\r\n\r\n",
    "HTTP/1.1 200 OK\n\n",
    "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n",
    "HTTP/1.1 200 OK\rContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\rC: d\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA B: c\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\x01\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 3 \t3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 garbage\r\n\r\n",
];

#[test]
fn broken_response_heads_become_502() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"services": {"retries": 0}}),
    );
    let gateway = TestGateway::start(model);
    let mut failures = Vec::new();
    for bytes in REFUSED {
        let mut client = gateway.connect();
        client.send(GET);
        let mut server = upstream.accept();
        server.request().unwrap();
        let _ = server.try_send(bytes);
        let _ = server.stream.shutdown(std::net::Shutdown::Write);
        let outcome = loop {
            match client.response() {
                Ok(answer) if answer.status() < 200 => {}
                Ok(answer) if answer.status() != 502 => {
                    break Err(format!("{} {}", answer.head.line, text(&answer.body)));
                }
                Ok(_) => break Ok(()),
                Err(ended) => break Err(format!("{ended:?}")),
            }
        };
        if let Err(what) = outcome {
            failures.push(format!("{}\n  {what}", text(bytes.as_bytes())));
            continue;
        }
        // Only the upstream's fault: the client's connection goes on.
        client.send(GET);
        let mut server = upstream.accept();
        server.request().unwrap();
        // The next case would find this connection idle.
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnext");
        assert_eq!(
            text(&client.response().unwrap().body),
            "next",
            "after {}",
            text(bytes.as_bytes())
        );
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        REFUSED.len(),
        failures.join("\n")
    );
}

/// What an upstream sends behind a good head, after which it closes.
const TRUNCATED: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n012345678",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nA: b\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n-1\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\n\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdefg\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n10000000000000000\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0;\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nA : b\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nno colon\r\n\r\n",
];

#[test]
fn truncated_responses_never_end_properly() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for bytes in TRUNCATED {
        // A client of HTTP/1.0 knows the end of what was chunked by the connection's alone: only a reset shows the
        // truncation.
        for version in ["1.1", "1.0"] {
            let mut client = gateway.connect();
            client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
            let mut server = upstream.accept();
            server.request().unwrap();
            server.send(bytes);
            server.finish();
            assert!(
                client.response().is_err(),
                "{version}: {}",
                text(bytes.as_bytes())
            );
            assert!(
                upstream.is_untouched(),
                "tried again after an answer had begun: {}",
                text(bytes.as_bytes())
            );
        }
    }
}

/// Bytes one by one, each with a long extension, would have the gateway read without end.
#[test]
fn a_response_of_framing_never_ends_properly() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunks = format!("1;{}\r\na\r\n", "x".repeat(4000)).repeat(6);
    // The gateway may have closed before all of it is sent.
    let _ = server.try_send(format!("{chunks}0\r\n\r\n"));
    assert!(client.response().is_err());
}

#[test]
fn a_reset_upstream_resets_or_truncates() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
    ] {
        for version in ["1.1", "1.0"] {
            let mut client = gateway.connect();
            client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
            let mut server = upstream.accept();
            server.request().unwrap();
            server.send(head);
            // The answer is on its way before its end is cut off.
            let answer = client.head().unwrap();
            assert_eq!(answer.status(), 200);
            server.reset();
            let (rest, ended) = client.rest();
            assert!(
                ended == Ended::Reset || (version == "1.1" && !text(&rest).ends_with("0\\r\\n\\r\\n")),
                "{version} {head}"
            );
        }
    }
}

#[test]
fn bytes_behind_a_response_are_not_the_next_one() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let mut client = gateway.connect();
        client.send(GET);
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send(format!("{head}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
        assert!(client.response().unwrap().body.is_empty());
        client.send(GET);
        let mut fresh = upstream.accept();
        fresh.request().unwrap();
        fresh.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood");
        assert_eq!(text(&client.response().unwrap().body), "good");
        server.rest();
    }
}

#[test]
fn response_heads_are_bounded() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"services": {"retries": 0}}),
    );
    let gateway = TestGateway::with(model, |options| {
        options.limits = Limits {
            max_head_bytes: 20_000,
            ..Limits::default()
        }
    });
    for fields in [
        format!("A: {}\r\n", "a".repeat(64 * 1024)),
        "A: b\r\n".repeat(129),
        "A: b\r\n".repeat(20_000),
        "a".repeat(64 * 1024),
    ] {
        let mut client = gateway.connect();
        client.send(GET);
        let mut server = upstream.accept();
        server.request().unwrap();
        let _ = server.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n"));
        assert_eq!(client.response().unwrap().status(), 502, "{}", &fields[..20]);
    }
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    server.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: {}\r\n\r\n",
        "a".repeat(19_000)
    ));
    assert_eq!(client.response().unwrap().head.get("A").unwrap().len(), 19_000);
}

#[test]
fn endless_interim_responses_are_given_up() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &json!({"services": {"retries": 0}}),
    );
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    server.request().unwrap();
    let _ = server.try_send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1000));
    let mut interim = 0;
    let answer = loop {
        let answer = client.response().unwrap();
        if answer.status() != 103 {
            break answer;
        }
        interim += 1;
    };
    assert_eq!(answer.status(), 502);
    assert!((1..100).contains(&interim), "{interim} interim responses");
}

#[test]
fn responses_may_arrive_in_any_pieces() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let fixed = "HTTP/1.1 200 OK\r\nA:\r\nB: c\r\nContent-Length: 3\r\n\r\nabc";
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n1\r\nc\r\n0\r\nT: u\r\n\r\n";
    let interim =
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let mut client = gateway.connect();
    client.send(GET);
    let mut server = upstream.accept();
    for response in [fixed, chunked, interim] {
        for split in 0..=response.len() {
            server.request().unwrap();
            server.send(&response[..split]);
            server.send(&response[split..]);
            let mut answer = client.response().unwrap();
            if answer.status() == 103 {
                answer = client.response().unwrap();
            }
            assert_eq!(
                (answer.status(), text(&answer.body).as_str()),
                (200, "abc"),
                "split at {split}"
            );
            client.send(GET);
        }
        server.request().unwrap();
        server.trickle(response);
        while client.response().unwrap().status() != 200 {}
        client.send(GET);
    }
}
