//! HTTP/2 to upstreams: connections that calls share, refusals, and tries.

use super::peer::{Answer, Client, Upstream, fields, in_order, run};
use super::support::{TestGateway, balanced, eventually, patch, simple_model};
use h2::Reason;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Barrier;

fn model(upstream: SocketAddr, changes: Value) -> Value {
    let url = format!("grpc://{upstream}");
    let model = patch(simple_model(upstream), &json!({"services": {"url": url}}));
    patch(model, &changes)
}

#[test]
fn calls_share_a_connection() {
    let upstream = Upstream::serve(|request| Answer::ok(request.uri.clone()));
    let gateway = TestGateway::start(model(upstream.address, json!({})));
    run(async {
        let client = Client::connect(gateway.address).await;
        let mut calls = tokio::task::JoinSet::new();
        for index in 0..100 {
            let client = client.clone();
            calls.spawn(async move { (index, client.get(&format!("/{index}"), &[]).await) });
        }
        while let Some(call) = calls.join_next().await {
            let (index, came) = call.unwrap();
            assert!(came.text().ends_with(&format!("/{index}")), "{}", came.text());
        }
    });
    assert_eq!(*upstream.connections.lock().unwrap(), 1);
}

#[test]
fn a_connection_carries_no_more_than_its_upstream_allows() {
    // They are answered once all are there.
    let all = Arc::new(Barrier::new(20));
    let upstream = Upstream::serve_up_to(2, move |request| Answer {
        with: (request.uri.ends_with("/together")).then(|| Arc::clone(&all)),
        ..Answer::ok("")
    });
    let gateway = TestGateway::start(model(upstream.address, json!({})));
    run(async {
        let client = Client::connect(gateway.address).await;
        // Before the first answer it is unknown what the upstream allows.
        assert_eq!(client.get("/", &[]).await.status, 200);
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let client = client.clone();
            calls.spawn(async move { client.get("/together", &[]).await.status });
        }
        while let Some(status) = calls.join_next().await {
            assert_eq!(status.unwrap(), 200);
        }
    });
    assert!(*upstream.connections.lock().unwrap() >= 10);
}

#[test]
fn idle_connections_are_kept_as_many_as_are_wanted() {
    for size in [0, 2] {
        let all = Arc::new(Barrier::new(8));
        let upstream = Upstream::serve_up_to(1, move |request| Answer {
            with: (request.uri.ends_with("/together")).then(|| Arc::clone(&all)),
            ..Answer::ok("")
        });
        let group = json!({"upstreams": {"scheme": "h2c", "keepalive": {"size": size}}});
        let gateway = TestGateway::start(balanced(&[(upstream.address, 1)], &group));
        run(async {
            let client = Client::connect(gateway.address).await;
            assert_eq!(client.get("/", &[]).await.status, 200);
            let mut calls = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let client = client.clone();
                calls.spawn(async move { client.get("/together", &[]).await.status });
            }
            while let Some(status) = calls.join_next().await {
                assert_eq!(status.unwrap(), 200);
            }
        });
        eventually("the others are closed", || {
            gateway.totals().upstream_connections_active <= size
        });
        assert_eq!(gateway.totals().upstream_connections_active, size);
    }
}

#[test]
fn what_an_upstream_did_not_look_at_is_tried_again() {
    let refuse = || Answer {
        status: 200,
        reset: Some(Reason::REFUSED_STREAM),
        ..Answer::default()
    };
    for (method, answers, wanted) in [
        ("GET", vec![refuse(), Answer::ok("ok")], 200),
        ("POST", vec![refuse(), Answer::ok("ok")], 200),
        ("POST", vec![refuse()], 502),
    ] {
        let upstream = Upstream::serve(in_order(answers));
        let gateway = TestGateway::start(model(upstream.address, json!({"services": {"retries": 1}})));
        run(async {
            let client = Client::connect(gateway.address).await;
            let request = client.request(method, "/", &[]);
            let came = client.call(request, b"", &[]).await.unwrap();
            assert_eq!(came.status, wanted, "{method}");
        });
    }
}

#[test]
fn trailers_without_a_body_are_sent_again() {
    let refuse = Answer {
        reset: Some(Reason::REFUSED_STREAM),
        ..Answer::default()
    };
    let upstream = Upstream::serve(in_order(vec![refuse, Answer::ok("ok")]));
    let gateway = TestGateway::start(model(upstream.address, json!({"services": {"retries": 1}})));
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("POST", "/", &[]);
        let trailers = fields(&[("x-sum", "1")]);
        let came = client.call_with_trailers(request, b"", trailers).await.unwrap();
        assert_eq!(came.text(), "ok");
    });
    let seen = upstream.seen.lock().unwrap();
    let trailers: Vec<_> = seen.iter().map(|it| it.trailer("x-sum")).collect();
    assert_eq!(trailers, [Some("1".to_owned()), Some("1".to_owned())]);
}

#[test]
fn failures_become_statuses() {
    let broken = Upstream::serve(|_| Answer {
        reset: Some(Reason::INTERNAL_ERROR),
        ..Answer::default()
    });
    let silent = Upstream::serve(|_| {
        loop {
            std::thread::park();
        }
    });
    // No server listens there, and the kernel gives such a port to no other test.
    let absent = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let no_retries = json!({"services": {"retries": 0, "timeouts": {"read_ms": 200}}});
    for (upstream, status) in [(broken.address, 502), (silent.address, 504), (absent, 502)] {
        let gateway = TestGateway::start(model(upstream, no_retries.clone()));
        run(async {
            let client = Client::connect(gateway.address).await;
            let came = client.get("/", &[]).await;
            assert_eq!(came.status, status, "{}", came.text());
        });
    }
}

#[test]
fn an_upstream_that_speaks_http1_is_no_use() {
    let upstream = super::support::Upstream::bind();
    let gateway = TestGateway::start(model(upstream.address, json!({"services": {"retries": 0}})));
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("GET", "/", &[]);
        let (response, _) = client.begin(request, true).await.unwrap();
        let mut wire = upstream.accept();
        wire.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        wire.finish();
        assert_eq!(response.await.unwrap().status(), 502);
    });
}
