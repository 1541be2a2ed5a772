//! Client connections: many streams, draining, idling, and clients that misbehave.

use super::peer::{Client, run};
use super::support::{TestGateway, Upstream, answer, simple_model};
use std::time::Duration;
use weir_proxy::Limits;

#[test]
fn streams_are_served_side_by_side() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|request| answer(&request.head.line));
    run(async {
        let client = Client::connect(gateway.address).await;
        // Until then it is unknown how many streams there may be.
        assert_eq!(client.get("/", &[]).await.status, 200);
        let mut calls = tokio::task::JoinSet::new();
        for index in 0..500 {
            let client = client.clone();
            calls.spawn(async move { (index, client.get(&format!("/{index}"), &[]).await) });
        }
        while let Some(call) = calls.join_next().await {
            let (index, came) = call.unwrap();
            assert_eq!(came.text(), format!("GET /{index} HTTP/1.1"));
        }
    });
    let totals = gateway.totals();
    assert_eq!(totals.connections_accepted, 1);
}

#[test]
fn draining_lets_calls_finish_and_takes_no_more() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::with(simple_model(upstream.address), |options| {
        options.drain_timeout = Duration::from_secs(10);
    });
    let address = gateway.address;
    run(async {
        let client = Client::connect(address).await;
        let request = client.request("GET", "/", &[]);
        let (response, _) = client.begin(request, true).await.unwrap();
        let mut wire = upstream.accept();
        wire.request().unwrap();
        let draining = gateway.drain();
        // The connection says that it goes; then no stream can be begun.
        loop {
            let request = client.request("GET", "/", &[]);
            match client.begin(request, true).await {
                Ok((refused, _)) => drop(refused),
                Err(error) => {
                    assert!(error.is_go_away(), "{error}");
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        wire.send(answer("ok"));
        assert_eq!(response.await.unwrap().status(), 200);
        tokio::task::spawn_blocking(move || draining.join().unwrap())
            .await
            .unwrap();
    });
}

#[test]
fn an_idle_connection_ends() {
    let upstream = Upstream::bind();
    let limits = Limits {
        idle_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    upstream.serve(|_| answer("ok"));
    run(async {
        let client = Client::connect(gateway.address).await;
        assert_eq!(client.get("/", &[]).await.status, 200);
        while gateway.totals().connections_active > 0 {
            tokio::task::yield_now().await;
        }
        let request = client.request("GET", "/", &[]);
        let ended = client.call(request, b"", &[]).await.unwrap_err();
        assert!(ended.is_go_away() || ended.is_io(), "{ended}");
    });
}

#[test]
fn both_versions_share_a_port() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer("ok"));
    let mut wire = gateway.connect();
    wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(wire.response().unwrap().status(), 200);
    run(async {
        let came = Client::connect(gateway.address).await.get("/", &[]).await;
        assert_eq!(came.status, 200);
    });
    // Only a connection's first bytes show the version.
    wire.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(wire.response().unwrap().status(), 505);
}

#[test]
fn a_preface_must_come_whole_and_in_time() {
    let upstream = Upstream::bind();
    let limits = Limits {
        header_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let gateway = TestGateway::with(simple_model(upstream.address), |options| options.limits = limits);
    for bytes in [
        "PRI * HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        let mut wire = gateway.connect();
        wire.send(bytes);
        let (answer, _) = wire.rest();
        assert!(!answer.starts_with(b"HTTP"), "{bytes}");
    }
    assert!(upstream.is_untouched());
}
