//! What probes show: targets go out and come back without a call.

use crate::server::Server;
use crate::support::{TestGateway, eventually};
use crate::{call, kinds, model, model_of, status_of};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use weir_proxy::health::{HealthSelector, Status};

/// Checks of this kind, as fast as they can be.
fn checks(kind: &str) -> Value {
    json!({"checks": {"active": {
        "type": kind,
        "path": "/alive?now",
        "headers": [["X-Probe", "1"]],
        "timeout_ms": 5000,
        "healthy": {"interval_ms": 10, "successes": 2},
        "unhealthy": {"interval_ms": 10, "http_failures": 2, "tcp_failures": 2},
    }}})
}

#[test]
fn probes_take_a_target_out_and_back() {
    let (good, mut bad) = (Server::start("good"), Server::start("bad"));
    let gateway = TestGateway::start(model(&[&good, &bad], checks("http")));
    eventually("the target is probed", || {
        let requests = bad.take_requests();
        let probe = requests
            .iter()
            .find(|it| it.head.line == "GET /alive?now HTTP/1.1");
        probe.is_some_and(|probe| {
            let host = format!("127.0.0.1:{}", bad.address.port());
            probe.head.get("x-probe").as_deref() == Some("1")
                && probe.head.get("host") == Some(host)
                && probe.head.get("connection").as_deref() == Some("close")
        })
    });
    for round in 0..2 {
        bad.set_status(500);
        eventually("a status takes it out", || {
            status_of(&gateway) == [Status::Healthy, Status::Unhealthy]
        });
        assert_eq!(kinds(&gateway, 10), [(200, "good".to_owned())], "{round}");
        bad.set_status(204);
        eventually("a status brings it back", || {
            status_of(&gateway) == [Status::Healthy; 2]
        });
        bad.set_status(200);
        bad.kill();
        eventually("a closed port takes it out", || {
            status_of(&gateway) == [Status::Healthy, Status::Unhealthy]
        });
        assert_eq!(call(&gateway, "POST"), (200, "good".to_owned()), "{round}");
        bad.restart();
        eventually("an open port brings it back", || {
            status_of(&gateway) == [Status::Healthy; 2]
        });
        assert_eq!(kinds(&gateway, 10).len(), 2, "{round}");
    }
}

#[test]
fn a_connection_may_be_all_that_is_asked_for() {
    let mut only = Server::start("only");
    only.set_status(500);
    let gateway = TestGateway::start(model(&[&only], checks("tcp")));
    eventually("the target is probed", || only.times_connected() > 2);
    assert_eq!(status_of(&gateway), [Status::Healthy]);
    assert!(only.take_requests().is_empty());
    only.kill();
    eventually("a closed port takes it out", || {
        status_of(&gateway) == [Status::Unhealthy]
    });
    only.restart();
    eventually("an open port brings it back", || {
        status_of(&gateway) == [Status::Healthy]
    });
}

/// Whether one server gets no requests for as long as the other is probed three times.
fn is_left_alone(server: &Server, other: &Server) -> bool {
    server.take_requests();
    other.take_requests();
    let mut probes = 0;
    eventually("the other is probed", || {
        probes += other.take_requests().len();
        probes >= 3
    });
    server.take_requests().is_empty()
}

#[test]
fn probes_follow_the_configuration() {
    let (first, second) = (Server::start("first"), Server::start("second"));
    let gateway = TestGateway::start(model(&[&first], checks("http")));
    eventually("the target is probed", || !first.take_requests().is_empty());
    gateway.publish(model(&[&second], checks("http")));
    eventually("the new target is probed", || !second.take_requests().is_empty());
    eventually("the old target is not probed", || is_left_alone(&first, &second));
    // Without checks, while another upstream still has some.
    let mut unchecked = model(&[&second], json!({}));
    let mut checked = model(&[&first], checks("http"))["upstreams"][0].take();
    checked["name"] = json!("checked");
    unchecked["upstreams"].as_array_mut().unwrap().push(checked);
    gateway.publish(unchecked);
    eventually("without checks nothing is probed", || {
        is_left_alone(&second, &first)
    });
}

#[test]
fn a_slow_target_times_out() {
    let slow = crate::support::Upstream::bind();
    let target = json!({"host": "127.0.0.1", "port": slow.address.port()});
    let active = json!({
        "timeout_ms": 20,
        "healthy": {"interval_ms": 10},
        "unhealthy": {"interval_ms": 10, "timeouts": 2},
    });
    let checks = json!({"checks": {"active": active}});
    let gateway = TestGateway::start(model_of(json!([target]), checks));
    eventually("silence takes it out", || {
        status_of(&gateway) == [Status::Unhealthy]
    });
    let report = gateway.gateway().upstream_health("upstream").unwrap();
    assert_eq!(report.targets[0].addresses[0].health.timeouts, 2);
}

/// A server over TLS that answers every request with 200; its address, and its certificate in PEM.
fn secure_server() -> (std::net::SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(["alive.test".to_owned()]).unwrap();
    let chain = vec![made.cert.der().clone()];
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(tls, stream.unwrap());
            let mut request = [0; 1024];
            // A check that does not trust the server says so instead of asking.
            if stream.read(&mut request).is_ok_and(|count| count > 0) {
                let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    (address, made.cert.pem())
}

#[test]
fn probes_over_tls_trust_the_configured_authorities() {
    let (address, pem) = secure_server();
    for (tls, expected) in [
        (json!({"verify": false}), Status::Healthy),
        (
            json!({"authorities": pem, "server_name": "alive.test"}),
            Status::Healthy,
        ),
        (
            json!({"authorities": pem, "server_name": "other.test"}),
            Status::Unhealthy,
        ),
        (json!({"server_name": "alive.test"}), Status::Unhealthy),
    ] {
        let active = json!({
            "type": "https",
            "tls": tls,
            "timeout_ms": 5000,
            "healthy": {"interval_ms": 10, "successes": 1},
            "unhealthy": {"interval_ms": 10, "tcp_failures": 1},
        });
        let target = json!({"host": "127.0.0.1", "port": address.port()});
        let checks = json!({"checks": {"active": active}});
        let gateway = TestGateway::start(model_of(json!([target]), checks));
        let which = HealthSelector {
            upstream: "upstream",
            host: "127.0.0.1",
            port: address.port(),
            address: None,
        };
        // From the other side, so that it is a probe that says so.
        gateway
            .gateway()
            .set_health(&which, expected == Status::Unhealthy)
            .unwrap();
        eventually("a probe has said so", || status_of(&gateway) == [expected]);
    }
}
