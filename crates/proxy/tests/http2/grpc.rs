//! gRPC: its statuses in answers of the gateway itself, its deadlines, and answers of trailers only.

use super::peer::{Answer, Client, ReceivedMessage, Upstream, receive, run};
use super::support::{self, TestGateway, patch, simple_model};
use bytes::Bytes;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

fn model(upstream: SocketAddr) -> Value {
    let url = format!("grpc://{upstream}");
    let changes = json!({"services": {"url": url, "retries": 0, "timeouts": {"read_ms": 300}}});
    patch(simple_model(upstream), &changes)
}

async fn call(gateway: &TestGateway, list: &[(&str, &str)]) -> ReceivedMessage {
    let client = Client::connect(gateway.address).await;
    let request = client.request("POST", "/service/Method", list);
    client.call(request, b"\0\0\0\0\0", &[]).await.unwrap()
}

const GRPC: (&str, &str) = ("content-type", "application/grpc");

#[test]
fn trailers_only_answers_pass() {
    let upstream = Upstream::serve(|_| Answer {
        status: 200,
        fields: vec![
            ("content-type", "application/grpc".to_owned()),
            ("grpc-status", "5".to_owned()),
            ("grpc-message", "none".to_owned()),
        ],
        ..Answer::default()
    });
    let gateway = TestGateway::start(model(upstream.address));
    let came = run(call(&gateway, &[GRPC, ("te", "trailers")]));
    assert_eq!(came.get("grpc-status").as_deref(), Some("5"));
    assert_eq!(came.get("content-length"), None);
    assert_eq!(upstream.last().get("te").as_deref(), Some("trailers"));
}

#[test]
fn faults_are_answered_as_statuses_of_grpc() {
    let broken = Upstream::serve(|_| Answer {
        reset: Some(h2::Reason::INTERNAL_ERROR),
        ..Answer::default()
    });
    let silent = Upstream::serve(|_| {
        loop {
            std::thread::park();
        }
    });
    let mut nowhere = model(broken.address);
    nowhere["routes"][0]["to"] = json!({"respond": {"status": 503}});
    let elsewhere = json!({"routes": {"match": [{"hosts": ["other"]}]}});
    for (model, status) in [
        (model(broken.address), "14"),
        (model(silent.address), "4"),
        (nowhere, "14"),
        (patch(model(broken.address), &elsewhere), "12"),
    ] {
        let gateway = TestGateway::start(model);
        let came = run(call(&gateway, &[GRPC]));
        assert_eq!((came.status, came.body.len()), (200, 0));
        assert_eq!(came.get("content-type").as_deref(), Some("application/grpc"));
        assert_eq!(came.get("grpc-status").as_deref(), Some(status));
        assert!(came.get("grpc-message").is_some());
        // What is no gRPC is answered as ever.
        let came = run(call(&gateway, &[("content-type", "text/plain")]));
        assert_eq!((came.status >= 400, came.get("grpc-status")), (true, None));
    }
}

#[test]
fn deadlines_are_kept() {
    let upstream = Arc::new(support::Upstream::bind());
    let gateway = TestGateway::to(upstream.address);
    run(async {
        for (begins, timeout) in [(false, "50m"), (true, "200m")] {
            let list = [GRPC, ("grpc-timeout", timeout)];
            let calling = call(&gateway, &list);
            let upstream = Arc::clone(&upstream);
            let playing = tokio::task::spawn_blocking(move || {
                let mut wire = upstream.accept();
                wire.head().unwrap();
                if begins {
                    wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
                }
                wire
            });
            let (came, _wire) = tokio::join!(calling, playing);
            assert_eq!(came.status, 200);
            let status = came.get("grpc-status").or(came.trailer("grpc-status"));
            assert_eq!(status.as_deref(), Some("4"), "{begins}");
        }
    });
}

#[test]
fn deadlines_are_kept_while_the_request_is_under_way() {
    let reads = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": {"need_body": 100}}}]}});
    // `(whether a filter wants the body, whether the upstream has begun to answer)`.
    for (is_read, begins) in [(false, false), (false, true), (true, false)] {
        let upstream = support::Upstream::bind();
        let changes = if is_read { reads.clone() } else { json!({}) };
        let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
        run(async {
            let client = Client::connect(gateway.address).await;
            let request = client.request("POST", "/", &[GRPC, ("grpc-timeout", "200m")]);
            let (response, mut stream) = client.begin(request, false).await.unwrap();
            stream.send_data(Bytes::from_static(b"\0\0"), false).unwrap();
            let playing = tokio::task::spawn_blocking(move || {
                let mut wire = (!is_read).then(|| upstream.accept());
                if let Some(wire) = &mut wire {
                    wire.head().unwrap();
                }
                if let (Some(wire), true) = (&mut wire, begins) {
                    wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
                }
                (upstream, wire)
            });
            let (response, _played) = tokio::join!(response, playing);
            let (parts, body) = response.unwrap().into_parts();
            let came = receive(parts, body).await.unwrap();
            let status = came.get("grpc-status").or(came.trailer("grpc-status"));
            assert_eq!(status.as_deref(), Some("4"), "{is_read} {begins}");
        });
    }
}

#[test]
fn deadlines_are_kept_while_the_client_does_not_read() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    const LONG: usize = 16 << 20;
    upstream.serve(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{LONG:x}\r\n");
        [head.as_bytes(), &vec![7; LONG], b"\r\n0\r\n\r\n"].concat()
    });
    run(async {
        let client = Client::connect(gateway.address).await;
        // On a busy machine the shorter time may be over before the answer has begun.
        let mut answered = None;
        for timeout in ["200m", "2S", "20S"] {
            let request = client.request("POST", "/", &[GRPC, ("grpc-timeout", timeout)]);
            let (response, _) = client.begin(request, true).await.unwrap();
            let response = response.await.unwrap();
            if !response.headers().contains_key("grpc-status") {
                answered = Some(response);
                break;
            }
        }
        let mut body = answered.expect("an answer in time").into_body();
        // What was read makes no room. Trailers need none.
        let mut length = 0;
        while let Some(data) = body.data().await {
            length += data.unwrap().len();
        }
        assert!(length < LONG, "it had room for all");
        let trailers = body.trailers().await.unwrap().unwrap();
        assert_eq!(trailers.get("grpc-status").unwrap(), "4");
    });
}

#[test]
fn routes_may_take_grpc_only() {
    let upstream = Upstream::serve(|_| Answer::ok("ok"));
    let only = json!({"routes": {"grpc_only_status": 415}});
    let gateway = TestGateway::start(patch(model(upstream.address), &only));
    assert_eq!(run(call(&gateway, &[GRPC])).text(), "ok");
    assert_eq!(run(call(&gateway, &[("content-type", "text/plain")])).status, 415);
    let mut wire = gateway.connect();
    wire.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.response().unwrap().status(), 415);
}
