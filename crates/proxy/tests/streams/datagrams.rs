//! Datagrams.

use crate::ends::{LOCAL, address, gateway, gateway_with, model, wait_for_ended, wait_for_line};
use crate::support::TIMEOUT;
use serde_json::json;
use std::net::{SocketAddr, UdpSocket};
use weir_snapshot::StreamTransport::Udp;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(LOCAL).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// A target that answers each datagram so many times, with its number before it.
fn answering(times: u8) -> SocketAddr {
    let socket = socket();
    socket.set_read_timeout(None).unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for number in 0..times {
                let answer = [&[b'0' + number][..], &buffer[..length]].concat();
                socket.send_to(&answer, from).unwrap();
            }
        }
    });
    address
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = vec![0; 65_536];
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    buffer.truncate(length);
    (buffer, from)
}

#[test]
fn questions_are_answered_from_where_they_were_sent_to() {
    let target = answering(1);
    let fields = json!({"udp_responses": 1, "protocols": ["udp"]});
    let gateway = gateway(Udp, model(&format!("udp://{target}"), fields));
    let to = address(&gateway);
    let clients = [socket(), socket(), socket()];
    for round in 0..3 {
        for (number, client) in clients.iter().enumerate() {
            let question = format!("{round} of {number}");
            client.send_to(question.as_bytes(), to).unwrap();
            let (answer, from) = receive(client);
            assert_eq!(answer, format!("0{question}").as_bytes());
            assert_eq!(from, to);
        }
    }
    // As many answers came as there are, so no session is left.
    wait_for_line(&gateway, r#"weir_stream_sessions_active{protocol="udp"} 0"#);
    wait_for_ended(&gateway, "udp", "done", 9);
}

#[test]
fn a_session_goes_on_until_it_is_idle() {
    let target = answering(2);
    let fields = json!({"idle_timeout_ms": 200});
    let gateway = gateway(Udp, model(&format!("udp://{target}"), fields));
    let client = socket();
    for question in [&b"one"[..], b"", &[7; 60_000]] {
        client.send_to(question, address(&gateway)).unwrap();
        for number in [b'0', b'1'] {
            let (answer, _) = receive(&client);
            assert_eq!(answer[0], number);
            assert!(&answer[1..] == question);
        }
    }
    wait_for_line(&gateway, r#"weir_stream_sessions_active{protocol="udp"} 1"#);
    wait_for_ended(&gateway, "udp", "done", 1);
    wait_for_line(
        &gateway,
        r#"weir_stream_received_bytes_total{protocol="udp"} 60003"#,
    );
}

#[test]
fn sessions_are_bounded() {
    let target = answering(1);
    let gateway = gateway_with(Udp, model(&format!("udp://{target}"), json!({})), |options| {
        options.limits.max_udp_sessions = 1;
    });
    let (first, second) = (socket(), socket());
    first.send_to(b"a", address(&gateway)).unwrap();
    assert_eq!(receive(&first).0, b"0a");
    second.send_to(b"b", address(&gateway)).unwrap();
    wait_for_line(&gateway, "weir_stream_datagrams_dropped_total 1");
    first.send_to(b"c", address(&gateway)).unwrap();
    assert_eq!(receive(&first).0, b"0c", "who was there first goes on");
}

#[test]
fn a_target_that_is_not_there_is_left_out() {
    let gone = socket().local_addr().unwrap();
    let here = answering(1);
    let target = |it: SocketAddr| json!({"host": it.ip().to_string(), "port": it.port()});
    let model = json!({
        "services": [{"name": "service", "upstream": "group"}],
        "upstreams": [{
            "name": "group",
            "scheme": "udp",
            "targets": [target(gone), target(here)],
            "checks": {"passive": {"unhealthy": {"tcp_failures": 1}}},
        }],
        "stream_routes": [{"name": "route", "service": "service", "udp_responses": 1}],
    });
    let gateway = gateway(Udp, model);
    let lost = socket();
    let found = socket();
    // In turn: one of the first two goes to the target that is gone.
    lost.send_to(b"x", address(&gateway)).unwrap();
    found.send_to(b"x", address(&gateway)).unwrap();
    wait_for_ended(&gateway, "udp", "upstream_connect", 1);
    wait_for_ended(&gateway, "udp", "done", 1);
    for round in 2..6 {
        let client = socket();
        client.send_to(b"y", address(&gateway)).unwrap();
        assert_eq!(receive(&client).0, b"0y");
        wait_for_ended(&gateway, "udp", "done", round);
    }
}

#[test]
fn what_no_route_takes_is_dropped() {
    let target = answering(1);
    let fields = json!({"protocols": ["tcp"]});
    let gateway = gateway(Udp, model(&format!("udp://{target}"), fields));
    socket().send_to(b"x", address(&gateway)).unwrap();
    wait_for_ended(&gateway, "udp", "no_route", 1);
}

#[test]
fn draining_ends_sessions_that_are_answered() {
    let target = answering(1);
    let fields = json!({"idle_timeout_ms": 3_600_000});
    let gateway = gateway_with(Udp, model(&format!("udp://{target}"), fields), |options| {
        options.drain_timeout = TIMEOUT;
    });
    let client = socket();
    client.send_to(b"x", address(&gateway)).unwrap();
    assert_eq!(receive(&client).0, b"0x");
    let begun = std::time::Instant::now();
    gateway.drain().join().unwrap();
    assert!(begun.elapsed() < TIMEOUT / 2, "an idle session is not waited for");
}

#[test]
fn answers_leave_from_where_a_client_has_sent_to() {
    let target = answering(1);
    let fields = json!({"udp_responses": 1});
    for (any, ends) in [
        ("0.0.0.0:0", &["127.0.0.1", "127.0.0.2", "127.0.0.3"][..]),
        ("[::]:0", &["127.0.0.2", "::1"]),
    ] {
        let gateway = gateway_with(
            Udp,
            model(&format!("udp://{target}"), fields.clone()),
            |options| {
                options.listen_streams[0].address = any.parse().unwrap();
            },
        );
        let port = address(&gateway).port();
        for end in ends {
            let to = SocketAddr::new(end.parse().unwrap(), port);
            let own = if to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            // One that takes answers from there alone.
            let client = UdpSocket::bind(own).unwrap();
            client.set_read_timeout(Some(TIMEOUT)).unwrap();
            client.connect(to).unwrap();
            client.send(b"question").unwrap();
            let mut buffer = [0; 64];
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"0question", "{any} {end}");
        }
    }
}
