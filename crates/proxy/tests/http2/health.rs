//! Probes by gRPC's health service.

use super::peer::{Answer, Upstream};
use super::support::{TestGateway, eventually};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use weir_proxy::health::Status;

/// What the service says of itself.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(u8)]
enum Says {
    Serving,
    NotServing,
    NoSuchService,
    Nothing,
    Unimplemented,
    NotFound,
}

const ALL: [Says; 6] = [
    Says::Serving,
    Says::NotServing,
    Says::NoSuchService,
    Says::Nothing,
    Says::Unimplemented,
    Says::NotFound,
];

fn answer(says: Says) -> Answer {
    let ok = |message: &[u8]| Answer {
        fields: vec![("content-type", "application/grpc".to_owned())],
        trailers: vec![("grpc-status", "0")],
        ..Answer::ok([&[0, 0, 0, 0, message.len() as u8], message].concat())
    };
    let failed = |code: &str| Answer {
        status: 200,
        fields: vec![("grpc-status", code.to_owned())],
        ..Answer::default()
    };
    match says {
        Says::Serving => ok(b"\x08\x01"),
        Says::NotServing => ok(b"\x08\x02"),
        Says::Nothing => ok(b""),
        Says::NoSuchService => failed("5"),
        Says::Unimplemented => failed("12"),
        Says::NotFound => Answer {
            status: 404,
            ..Answer::default()
        },
    }
}

#[test]
fn services_answer_whether_they_serve() {
    let says = Arc::new(AtomicU8::new(Says::Serving as u8));
    let upstream = Upstream::serve({
        let says = Arc::clone(&says);
        move |_| answer(ALL[usize::from(says.load(SeqCst))])
    });
    let gateway = TestGateway::start(json!({
        "upstreams": [{
            "name": "upstream",
            "scheme": "grpc",
            "targets": [{"host": "127.0.0.1", "port": upstream.address.port()}],
            "checks": {"active": {
                "type": "grpc",
                "service": "a.B",
                "host": "health.test",
                "headers": [["X-Probe", "1"]],
                "timeout_ms": 5000,
                "healthy": {"interval_ms": 10, "successes": 2},
                "unhealthy": {"interval_ms": 10, "http_failures": 2, "tcp_failures": 2},
            }},
        }],
        "services": [{"name": "service", "upstream": "upstream"}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    }));
    let stands = || gateway.gateway().upstream_health("upstream").unwrap().targets[0].status;
    for (word, expected) in [
        (Says::NotServing, Status::Unhealthy),
        (Says::Serving, Status::Healthy),
        (Says::NoSuchService, Status::Unhealthy),
        // Who has no such service cannot say; that it answers is enough.
        (Says::Unimplemented, Status::Healthy),
        (Says::Nothing, Status::Unhealthy),
        (Says::Serving, Status::Healthy),
        (Says::NotFound, Status::Unhealthy),
    ] {
        says.store(word as u8, SeqCst);
        eventually(&format!("{word:?}"), || stands() == expected);
    }
    let probe = upstream.last();
    assert_eq!(probe.uri, "http://health.test/grpc.health.v1.Health/Check");
    assert_eq!(probe.body, b"\0\0\0\0\x05\x0a\x03a.B");
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("grpc-timeout", "5000m"),
        ("x-probe", "1"),
    ] {
        assert_eq!(probe.get(name).as_deref(), Some(value));
    }
}
