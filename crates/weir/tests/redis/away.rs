//! A Redis that goes away and comes back, and one that takes connections and says nothing.

use crate::support::{Gateway, Redis, Upstream, is_installed, native, until};
use std::net::TcpListener;

fn limit(port: u16, more: &str) -> String {
    format!(
        "rate-limit: {{limits: [{{count: 2, per: day}}], store: {{redis: {{host: 127.0.0.1, port: {port}, timeout_ms: 300, connect_timeout_ms: 300}}, {more}}}}}"
    )
}

#[test]
fn calls_go_on_without_it_and_with_it_again() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    for (on_unavailable, before, away) in [
        ("local", [200, 200, 429], [200, 200, 429]),
        ("pass", [200, 200, 429], [200, 200, 200]),
        ("refuse", [200, 200, 429], [500, 500, 500]),
    ] {
        let mut redis = Redis::start(&[]);
        let gateway = Gateway::start(&native(
            &upstream,
            &limit(redis.port, &format!("on_unavailable: {on_unavailable}")),
        ));
        let calls = || [gateway.call("/"), gateway.call("/"), gateway.call("/")];
        assert_eq!(calls(), before, "{on_unavailable}");
        redis.kill();
        let server = format!("{{server=\"127.0.0.1:{}\"", redis.port);
        assert_eq!(calls(), away, "{on_unavailable}");
        assert_eq!(gateway.metric(&format!("weir_redis_up{server}")), 0);
        let connections = format!("weir_redis_connections_opened_total{server}");
        let earlier = gateway.metric(&connections);
        redis.restart();
        until("it is connected again", || gateway.metric(&connections) > earlier);
        // It has forgotten everything. Calls are counted there again as soon as both workers have noticed.
        until("calls are counted there", || {
            redis.ask("FLUSHALL");
            let up = gateway.metric(&format!("weir_redis_up{server}")) == 1;
            let failed = || {
                ["failed", "skipped"].map(|result| {
                    gateway.metric(&format!("weir_redis_calls_total{server},result=\"{result}\""))
                })
            };
            let earlier = failed();
            up && calls() == before && failed() == earlier
        });
        let log = gateway.log();
        assert_eq!(log.matches("Redis cannot be used").count(), 1, "{log}");
        assert_eq!(log.matches("Redis connected").count(), 2, "{log}");
    }
}

#[test]
fn a_silent_server_is_waited_for_once() {
    let upstream = Upstream::start("");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let gateway = Gateway::start(&native(&upstream, &limit(port, "on_unavailable: pass")));
    for _ in 0..60 {
        assert_eq!(gateway.call("/"), 200);
    }
    let count = |result: &str| {
        gateway.metric(&format!(
            "weir_redis_calls_total{{server=\"127.0.0.1:{port}\",result=\"{result}\""
        ))
    };
    // Each of two workers has waited once.
    let (failed, skipped) = (count("failed"), count("skipped"));
    assert!(failed <= 2 && failed > 0, "{failed} calls have waited");
    assert_eq!(failed + skipped, 60);
    assert_eq!(gateway.log().matches("Redis cannot be used").count(), 1);
}

#[test]
fn a_server_that_falls_silent_is_waited_for_once() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let redis = Redis::start(&[]);
    let gateway = Gateway::start(&native(&upstream, &limit(redis.port, "on_unavailable: pass")));
    // Both workers have a connection.
    let server = format!("{{server=\"127.0.0.1:{}\"", redis.port);
    until("both workers are connected", || {
        gateway.call("/");
        gateway.metric(&format!("weir_redis_connections_opened_total{server}")) == 2
    });
    redis.stop();
    for _ in 0..60 {
        assert_eq!(gateway.call("/"), 200);
    }
    let failed = gateway.metric(&format!("weir_redis_calls_total{server},result=\"failed\""));
    assert!(failed <= 2 && failed > 0, "{failed} calls have waited");
    redis.go_on();
    until("it is asked again", || gateway.call("/") == 429);
}

#[test]
fn what_is_no_redis_is_away() {
    let upstream = Upstream::start("");
    // It answers with HTTP.
    let port = upstream.address.port();
    let gateway = Gateway::start(&native(&upstream, &limit(port, "on_unavailable: refuse")));
    assert_eq!(gateway.call("/"), 500);
    assert!(
        gateway.log().contains("Redis cannot be used"),
        "{}",
        gateway.log()
    );
}
