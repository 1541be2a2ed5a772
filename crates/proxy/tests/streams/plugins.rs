//! What plugins do with sessions: they send them elsewhere, and log them when they are over.

use crate::ends::*;
use crate::support::eventually;
use serde_json::{Value, json};
use weir_snapshot::StreamTransport::{Tcp, Udp};

/// A model whose sessions have a plugin with this configuration, with a second service.
fn with_plugin(scheme: &str, own: std::net::SocketAddr, other: std::net::SocketAddr, config: Value) -> Value {
    let plugins = json!([{"use": {"id": "", "name": "puppet", "config": config}}]);
    let mut model = model(
        &format!("{scheme}://{own}"),
        json!({"plugins": plugins, "udp_responses": 1}),
    );
    let other = json!({"name": "other", "url": format!("{scheme}://{other}")});
    model["services"].as_array_mut().unwrap().push(other);
    model
}

#[test]
fn a_plugin_sends_sessions_to_another_service() {
    for (config, expected) in [(json!({}), "own"), (json!({"to": "other"}), "other")] {
        let gateway = gateway(Tcp, with_plugin("tcp", named("own"), named("other"), config));
        assert_eq!(read_all(connect(&gateway)), expected.as_bytes());
    }
    let socket = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (own, other, client) = (socket(), socket(), socket());
    let model = with_plugin(
        "udp",
        own.local_addr().unwrap(),
        other.local_addr().unwrap(),
        json!({"to": "other"}),
    );
    let gateway = gateway(Udp, model);
    client.send_to(b"ping", address(&gateway)).unwrap();
    other.set_read_timeout(Some(crate::support::TIMEOUT)).unwrap();
    let mut piece = [0; 16];
    let (length, _) = other.recv_from(&mut piece).unwrap();
    assert_eq!(&piece[..length], b"ping");
}

#[test]
fn datagrams_are_not_sent_in_the_clear_to_a_service_over_tls() {
    let socket = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (own, other, client) = (socket(), socket(), socket());
    let config = json!({"to": "other"});
    let (own, at) = (own.local_addr().unwrap(), other.local_addr().unwrap());
    let mut model = with_plugin("udp", own, at, config);
    model["services"][1]["url"] = format!("tls://{at}").into();
    let gateway = gateway(Udp, model);
    client.send_to(b"ping", address(&gateway)).unwrap();
    wait_for_ended(&gateway, "udp", "no_route", 1);
    other.set_nonblocking(true).unwrap();
    assert!(other.recv_from(&mut [0; 16]).is_err(), "nothing has come");
}

#[test]
fn sessions_are_logged_when_they_are_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for (fields, expected) in [
        (json!({}), " 200 true;"),
        (json!({"reply": "no"}), " 403 false;"),
        (json!({"to": "closed"}), " 502 false;"),
    ] {
        let mut config = json!({"log": {"file": path.to_str().unwrap()}});
        config
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let mut model = with_plugin("tcp", named("x"), named("y"), config);
        // No server is there: the listener ends with this statement.
        let (_, closed) = target();
        let closed = json!({"name": "closed", "url": format!("tcp://{closed}")});
        model["services"].as_array_mut().unwrap().push(closed);
        let gateway = gateway(Tcp, model);
        read_all(connect(&gateway));
        eventually("an entry", || {
            std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with(expected))
        });
        std::fs::remove_file(&path).unwrap();
    }
}
