//! Further tries, health, reloads, draining and bounds.

use crate::ends::*;
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use weir_snapshot::StreamTransport::Tcp;

/// A route to several targets.
fn group(targets: &[SocketAddr], retries: u32, upstream: Value) -> Value {
    let targets = targets
        .iter()
        .map(|it| json!({"host": it.ip().to_string(), "port": it.port()}));
    let mut group = json!({"name": "group", "scheme": "tcp", "targets": targets.collect::<Vec<_>>()});
    group
        .as_object_mut()
        .unwrap()
        .extend(upstream.as_object().unwrap().clone());
    json!({
        "services": [{"name": "service", "upstream": "group", "retries": retries}],
        "upstreams": [group],
        "stream_routes": [{"name": "route", "service": "service"}],
    })
}

#[test]
fn another_target_is_tried_when_one_cannot_be_reached() {
    let model = group(&[absent(), named("here")], 1, json!({}));
    let gateway = gateway(Tcp, model);
    for _ in 0..4 {
        assert_eq!(read_all(connect(&gateway)), b"here");
    }
    let retries = gateway.totals().upstream_retries;
    assert!((1..=4).contains(&retries), "{retries} for 4 sessions");
}

#[test]
fn without_further_tries_the_session_ends() {
    let gateway = gateway(Tcp, group(&[absent()], 0, json!({})));
    assert_eq!(read_all(connect(&gateway)), b"");
    wait_for_ended(&gateway, "tcp", "upstream_connect", 1);
}

#[test]
fn sessions_share_their_targets() {
    let model = group(&[named("a"), named("b")], 0, json!({}));
    let gateway = gateway(Tcp, model);
    let mut seen: Vec<Vec<u8>> = (0..4).map(|_| read_all(connect(&gateway))).collect();
    seen.sort();
    assert_eq!(seen, [b"a", b"a", b"b", b"b"]);
    let model = group(
        &[named("a"), named("b")],
        0,
        json!({"algorithm": "consistent-hashing", "hash_on": ["ip"]}),
    );
    let gateway = crate::ends::gateway(Tcp, model);
    let first = read_all(connect(&gateway));
    for _ in 0..5 {
        assert_eq!(read_all(connect(&gateway)), first, "by the client's address");
    }
}

#[test]
fn the_least_busy_target_gets_the_next_session() {
    let (one, first) = target();
    let (other, second) = target();
    let model = group(&[first, second], 0, json!({"algorithm": "least-connections"}));
    let gateway = gateway(Tcp, model);
    let _clients: Vec<_> = (0..4).map(|_| connect(&gateway)).collect();
    let _held = [accept(&one), accept(&other), accept(&one), accept(&other)];
}

#[test]
fn a_target_that_cannot_be_reached_is_left_out() {
    let checks = json!({"checks": {"passive": {"unhealthy": {"tcp_failures": 1}}}});
    let gateway = gateway(Tcp, group(&[absent(), named("here")], 1, checks));
    for _ in 0..6 {
        assert_eq!(read_all(connect(&gateway)), b"here");
    }
    assert_eq!(gateway.totals().upstream_retries, 1, "it is tried once");
}

#[test]
fn a_reload_keeps_sessions() {
    let (listener, address) = target();
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), json!({})));
    let mut client = connect(&gateway);
    let server = accept(&listener);
    let other = named("other");
    gateway.publish(model(&format!("tcp://{other}"), json!({})));
    assert_eq!(read_all(connect(&gateway)), b"other");
    client.write_all(b"goes on").unwrap();
    assert_eq!(&read_some::<7>(&server), b"goes on");
    gateway.publish(json!({}));
    assert_eq!(read_all(connect(&gateway)), b"", "no route any more");
    client.write_all(b"and on").unwrap();
    assert_eq!(&read_some::<6>(&server), b"and on");
}

#[test]
fn draining_waits_for_sessions() {
    let (listener, address) = target();
    let gateway = gateway_with(Tcp, model(&format!("tcp://{address}"), json!({})), |options| {
        options.drain_timeout = crate::support::TIMEOUT;
    });
    let bound = crate::ends::address(&gateway);
    let mut client = connect(&gateway);
    let mut server = accept(&listener);
    // A client that is let in before the drain begins finds no target, and is not waited for.
    drop(listener);
    let drained = gateway.drain();
    crate::support::eventually("no other is let in", || {
        std::net::TcpStream::connect(bound).is_err()
    });
    client.write_all(b"late").unwrap();
    assert_eq!(&read_some::<4>(&server), b"late");
    server.write_all(b"later").unwrap();
    drop(server);
    assert_eq!(read_all(&client), b"later");
    drop(client);
    drained.join().unwrap();
}

#[test]
fn connections_are_bounded() {
    let (listener, address) = target();
    let gateway = gateway_with(Tcp, model(&format!("tcp://{address}"), json!({})), |options| {
        options.limits.max_connections = 1;
    });
    let first = connect(&gateway);
    let _server = accept(&listener);
    assert_eq!(crate::support::TIMEOUT, first.read_timeout().unwrap().unwrap());
    let mut second = connect(&gateway);
    // It may be closed before or after it is seen to be open.
    let mut byte = [0; 1];
    assert!(matches!(
        std::io::Read::read(&mut second, &mut byte),
        Ok(0) | Err(_)
    ));
}
