//! Bodies and trailers in every combination of versions, and what happens when one side stops.

use super::peer::{Answer, Client, Upstream, fields, run, send_all};
use super::support::{self, TestGateway, answer, patch, simple_model};
use bytes::Bytes;
use h2::Reason;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// One route to a service that speaks HTTP/2.
fn http2_model(upstream: SocketAddr) -> Value {
    let url = format!("grpc://{upstream}");
    patch(simple_model(upstream), &json!({"services": {"url": url}}))
}

const SIZES: [usize; 6] = [1, 1000, 16_384, 70_000, 300_000, 3_000_000];

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

#[test]
fn bodies_pass_whole_from_http2_to_http1() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|request| answer(&request.body));
    run(async {
        let client = Client::connect(gateway.address).await;
        for size in SIZES {
            let body = pattern(size);
            let length = size.to_string();
            for list in [&[("content-length", length.as_str())][..], &[]] {
                let request = client.request("POST", "/", list);
                let came = client.call(request, &body, &[]).await.unwrap();
                assert_eq!(came.get("content-length"), Some(length.clone()));
                assert!(came.body == body, "{size} {list:?}");
            }
        }
    });
}

#[test]
fn bodies_pass_whole_from_http2_to_http2() {
    let upstream = Upstream::serve(|request| Answer::ok(request.body.clone()));
    let gateway = TestGateway::start(http2_model(upstream.address));
    run(async {
        let client = Client::connect(gateway.address).await;
        for size in SIZES {
            let body = pattern(size);
            let request = client.request("POST", "/", &[]);
            let came = client.call(request, &body, &[]).await.unwrap();
            assert!(came.body == body, "{size}");
        }
        assert_eq!(*upstream.connections.lock().unwrap(), 1);
    });
}

#[test]
fn bodies_pass_whole_from_http1_to_http2() {
    let upstream = Upstream::serve(|request| Answer::ok(request.body.clone()));
    let gateway = TestGateway::start(http2_model(upstream.address));
    let mut wire = gateway.connect();
    for size in SIZES {
        let body = pattern(size);
        let mut sender = wire.sender();
        let sent = body.clone();
        let sending = std::thread::spawn(move || {
            sender.send(format!(
                "POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n"
            ));
            sender.send(sent);
        });
        let response = wire.response().unwrap();
        sending.join().unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.body == body, "{size}");
        let request = upstream.last();
        assert_eq!(request.get("content-length"), Some(size.to_string()));
        assert!(request.uri.ends_with("/a?b"), "{}", request.uri);
    }
}

/// Trailers that come, and those of them that go on.
const TRAILERS: [(&str, &str); 3] = [("x-sum", "1"), ("grpc-status", "0"), ("content-length", "5")];

#[test]
fn trailers_pass_both_ways() {
    let upstream = Upstream::serve(|_| Answer {
        trailers: TRAILERS.to_vec(),
        ..Answer::ok("abc")
    });
    let gateway = TestGateway::start(http2_model(upstream.address));
    run(async {
        let client = Client::connect(gateway.address).await;
        for (size, is_stated) in [
            (0, false),
            (3, false),
            (100_000, false),
            (0, true),
            (3, true),
            (100_000, true),
        ] {
            let length = size.to_string();
            let stated = [("content-length", length.as_str())];
            let request = client.request("POST", "/", if is_stated { &stated } else { &[] });
            let came = client
                .call_with_trailers(request, &pattern(size), fields(&TRAILERS))
                .await
                .unwrap();
            let request = upstream.last();
            assert_eq!(request.body.len(), size);
            for came in [&came, &request] {
                assert_eq!(came.trailer("x-sum").as_deref(), Some("1"), "{size} {is_stated}");
                assert_eq!(came.trailer("grpc-status").as_deref(), Some("0"));
                assert_eq!(came.trailer("content-length"), None);
            }
        }
    });
    for (te, wanted) in [
        (
            "TE: trailers\r\n",
            "3\r\nabc\r\n0\r\nx-sum: 1\r\ngrpc-status: 0\r\n\r\n",
        ),
        ("", "3\r\nabc\r\n0\r\n\r\n"),
    ] {
        let mut wire = gateway.connect();
        wire.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{te}\r\n"));
        let head = wire.head().unwrap();
        assert_eq!(head.get("Transfer-Encoding").as_deref(), Some("chunked"));
        let body = wire.read(wanted.len()).unwrap();
        assert_eq!(support::text(&body), support::text(wanted.as_bytes()));
    }
}

#[test]
fn trailers_of_http1_reach_those_who_can_take_them() {
    const CHUNKS: &str = "3\r\nabc\r\n0\r\nX-Sum: 1\r\nHost: h\r\n\r\n";
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNKS}").into_bytes());
    run(async {
        let came = Client::connect(gateway.address).await.get("/", &[]).await;
        assert_eq!(came.text(), "abc");
        assert_eq!(came.trailer("x-sum").as_deref(), Some("1"));
        assert_eq!(came.trailers.len(), 1);
    });
    let upstream = Upstream::serve(|_| Answer::ok("ok"));
    let gateway = TestGateway::start(http2_model(upstream.address));
    let mut wire = gateway.connect();
    wire.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.send(CHUNKS);
    assert_eq!(wire.response().unwrap().status(), 200);
    let request = upstream.last();
    assert_eq!(request.text(), "abc");
    assert_eq!(request.trailer("x-sum").as_deref(), Some("1"));
    assert_eq!(request.trailers.len(), 1);
}

#[test]
fn request_trailers_reach_an_http1_upstream() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("POST", "/", &[]);
        let calling = tokio::spawn(async move {
            client
                .call_with_trailers(request, b"abc", fields(&TRAILERS))
                .await
        });
        let playing = tokio::task::spawn_blocking(move || {
            let mut wire = upstream.accept();
            wire.head().unwrap();
            let wanted = "3\r\nabc\r\n0\r\nx-sum: 1\r\ngrpc-status: 0\r\n\r\n";
            let body = wire.read(wanted.len()).unwrap();
            assert_eq!(support::text(&body), support::text(wanted.as_bytes()));
            wire.send(answer("ok"));
        });
        playing.await.unwrap();
        assert_eq!(calling.await.unwrap().unwrap().status, 200);
    });
}

#[test]
fn a_cut_answer_is_never_a_whole_one() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        for head in [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ] {
            let request = client.request("GET", "/", &[]);
            let (response, _) = client.begin(request, true).await.unwrap();
            let mut wire = upstream.accept();
            wire.request().unwrap();
            wire.send(head);
            wire.finish();
            drop(wire);
            // The head may be lost with the stream.
            let came = match response.await {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    super::peer::receive(parts, body).await
                }
                Err(error) => Err(error),
            };
            assert!(came.is_err_and(|error| error.is_reset()), "{head}");
        }
    });
}

#[test]
fn an_upstreams_reset_reaches_the_client() {
    let upstream = Upstream::serve(|_| Answer {
        reset: Some(Reason::INTERNAL_ERROR),
        ..Answer::ok("abc")
    });
    let gateway = TestGateway::start(http2_model(upstream.address));
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("GET", "/", &[]);
        let came = client.call(request, b"", &[]).await;
        assert!(came.is_err_and(|error| error.is_reset()));
    });
}

#[test]
fn a_clients_reset_ends_the_upstreams_part() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("GET", "/", &[]);
        let (response, mut stream) = client.begin(request, true).await.unwrap();
        let mut wire = upstream.accept();
        wire.request().unwrap();
        stream.send_reset(Reason::CANCEL);
        drop(response);
        let ended = tokio::task::spawn_blocking(move || wire.rest().0);
        assert!(ended.await.unwrap().is_empty());
    });
}

#[test]
fn a_slow_client_holds_its_upstream_back() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("GET", "/", &[]);
        let (response, _) = client.begin(request, true).await.unwrap();
        let mut wire = upstream.accept();
        wire.request().unwrap();
        let total = 64 << 20;
        wire.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n"));
        // What the client does not read stays with the upstream, but for what buffers on the way hold.
        let stall = std::time::Duration::from_millis(100);
        wire.stream.set_write_timeout(Some(stall)).unwrap();
        let piece = vec![7; 64 << 10];
        let mut sent = 0;
        while sent < total
            && let Ok(count) = std::io::Write::write(&mut &wire.stream, &piece)
        {
            sent += count;
        }
        assert!(sent < total / 2, "{sent} bytes were taken");
        // Others are not held back.
        let other = client.request("GET", "/", &[]);
        let (other, _) = client.begin(other, true).await.unwrap();
        let mut second = upstream.accept();
        second.request().unwrap();
        second.send(answer("ok"));
        assert_eq!(other.await.unwrap().status(), 200);
        drop(response);
    });
}

#[test]
fn an_upstream_that_does_not_read_holds_the_client_back() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("POST", "/", &[]);
        let (response, mut stream) = client.begin(request, false).await.unwrap();
        let wire = upstream.accept();
        let body = Bytes::from(vec![7; 64 << 20]);
        let sending = send_all(&mut stream, body, true);
        let sent = tokio::time::timeout(std::time::Duration::from_millis(300), sending).await;
        assert!(sent.is_err(), "more was taken than there is room for");
        assert_eq!(gateway.totals().upstream_connections_active, 1);
        // Who gives it up need not wait for the upstream.
        stream.send_reset(Reason::CANCEL);
        drop(response);
        support::eventually("the upstream's part ends", || {
            gateway.totals().upstream_connections_active == 0
        });
        drop(wire);
    });
}
