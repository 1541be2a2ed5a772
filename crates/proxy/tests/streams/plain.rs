//! Connections over TCP.

use crate::ends::*;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use weir_snapshot::StreamTransport::Tcp;

/// Bytes that differ from place to place.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

#[test]
fn bytes_go_both_ways_and_each_way_ends_by_itself() {
    let (listener, address) = target();
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), json!({})));
    let mut client = connect(&gateway);
    let mut server = accept(&listener);
    client.write_all(b"hello").unwrap();
    assert_eq!(&read_some::<5>(&server), b"hello");
    server.write_all(b"and you").unwrap();
    assert_eq!(&read_some::<7>(&client), b"and you");
    end(&client);
    assert_eq!(read_all(&server), b"", "the client's end has arrived");
    server.write_all(b"still here").unwrap();
    assert_eq!(&read_some::<10>(&client), b"still here");
    drop(server);
    assert_eq!(read_all(&client), b"");
    wait_for_ended(&gateway, "tcp", "done", 1);
    wait_for_line(&gateway, r#"weir_stream_received_bytes_total{protocol="tcp"} 5"#);
    wait_for_line(&gateway, r#"weir_stream_sent_bytes_total{protocol="tcp"} 17"#);
    wait_for_line(&gateway, r#"weir_stream_sessions_active{protocol="tcp"} 0"#);
}

#[test]
fn the_server_may_speak_first_and_end_first() {
    let address = named("220 ready\r\n");
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), json!({})));
    let client = connect(&gateway);
    assert_eq!(read_all(&client), b"220 ready\r\n");
}

#[test]
fn bulk_arrives_whole_both_ways_at_once() {
    const LENGTH: usize = 24 * 1024 * 1024;
    let (listener, address) = target();
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), json!({})));
    let client = connect(&gateway);
    let server = accept(&listener);
    let send = |stream: &std::net::TcpStream| {
        let mut stream = stream.try_clone().unwrap();
        std::thread::spawn(move || {
            let bytes = pattern(LENGTH);
            // Bulk, then a trickle, then bulk again.
            let (bulk, rest) = bytes.split_at(LENGTH / 2);
            stream.write_all(bulk).unwrap();
            let (trickle, rest) = rest.split_at(1000);
            for byte in trickle.chunks(10) {
                stream.write_all(byte).unwrap();
            }
            stream.write_all(rest).unwrap();
            end(&stream);
        })
    };
    let senders = [send(&client), send(&server)];
    let reader = std::thread::spawn(move || read_all(server));
    assert!(read_all(&client) == pattern(LENGTH), "what the server has sent");
    assert!(
        reader.join().unwrap() == pattern(LENGTH),
        "what the client has sent"
    );
    senders.into_iter().for_each(|it| it.join().unwrap());
    wait_for_ended(&gateway, "tcp", "done", 1);
}

#[test]
fn a_slow_side_slows_the_other_down() {
    let (listener, address) = target();
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), json!({})));
    let client = connect(&gateway);
    let mut server = accept(&listener);
    server
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let piece = pattern(64 * 1024);
    let mut sent = 0;
    let most = 256 * 1024 * 1024;
    while sent < most {
        match server.write(&piece) {
            Ok(count) => sent += count,
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                    "{error}"
                );
                break;
            }
        }
    }
    assert!(sent < most, "no one reads, and all was taken");
    drop(server);
    assert_eq!(read_all(&client).len(), sent, "what was taken arrives");
}

#[test]
fn a_session_on_which_nothing_moves_ends() {
    let (listener, address) = target();
    let fields = json!({"idle_timeout_ms": 50});
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), fields));
    let client = connect(&gateway);
    let server = accept(&listener);
    assert_eq!(read_all(&client), b"");
    assert_eq!(read_all(&server), b"");
    wait_for_ended(&gateway, "tcp", "idle", 1);
}

#[test]
fn a_broken_side_breaks_the_other() {
    let (listener, address) = target();
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), json!({})));
    let mut client = connect(&gateway);
    let server = accept(&listener);
    client.write_all(b"x").unwrap();
    assert_eq!(&read_some::<1>(&server), b"x");
    let server = socket2::Socket::from(server);
    server.set_linger(Some(Duration::ZERO)).unwrap();
    drop(server);
    let error = client.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    wait_for_ended(&gateway, "tcp", "broken", 1);
}

#[test]
fn routes_are_chosen_by_where_clients_come_from_and_to() {
    let targets = ["net", "port", "rest"].map(|name| (name, named(name)));
    let service =
        |(name, address): &(&str, SocketAddr)| json!({"name": name, "url": format!("tcp://{address}")});
    let listener = std::net::TcpListener::bind(LOCAL).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let route = |name: &str, fields: serde_json::Value| {
        let mut route = json!({"name": name, "service": name});
        route
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        route
    };
    let model = json!({
        "services": targets.iter().map(service).collect::<Vec<_>>(),
        "stream_routes": [
            route("rest", json!({})),
            route("net", json!({"sources": ["127.0.0.2"]})),
            route("port", json!({"destinations": [format!(":{port}")], "sources": ["127.0.0.0/8"]})),
            {"name": "nowhere", "sources": ["127.0.0.3"]},
        ],
    });
    let gateway = gateway_with(Tcp, model, |options| {
        let mut other = options.listen_streams[0];
        other.address.set_port(port);
        options.listen_streams.push(other);
    });
    let streams = gateway.gateway().bound().streams.clone();
    let ask = |from: [u8; 4], to: usize| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&streams[to].address.into()).unwrap();
        String::from_utf8(read_all(patient(socket.into()))).unwrap()
    };
    for (from, to, wanted) in [
        ([127, 0, 0, 1], 0, "rest"),
        ([127, 0, 0, 2], 0, "net"),
        ([127, 0, 0, 2], 1, "port"),
        ([127, 0, 0, 3], 0, ""),
    ] {
        assert_eq!(ask(from, to), wanted, "{from:?} {to}");
    }
    wait_for_ended(&gateway, "tcp", "no_route", 1);
}

#[test]
fn what_no_route_takes_or_a_plugin_refuses_is_closed() {
    let address = named("x");
    let url = format!("tcp://{address}");
    for (fields, result) in [
        (json!({"protocols": ["tls", "udp"]}), "no_route"),
        (json!({"destinations": [":1"]}), "no_route"),
        (
            json!({"plugins": [{"use": {"id": "", "name": "puppet", "config": {"reply": "no"}}}]}),
            "refused",
        ),
    ] {
        let gateway = gateway(Tcp, model(&url, fields));
        assert_eq!(read_all(connect(&gateway)), b"");
        wait_for_ended(&gateway, "tcp", result, 1);
    }
}

#[test]
fn a_plugin_may_keep_a_session_waiting() {
    let address = named("x");
    let plugins = json!([{"use": {"id": "", "name": "puppet", "config": {"wait_ms": 20}}}]);
    let gateway = gateway(
        Tcp,
        model(&format!("tcp://{address}"), json!({"plugins": plugins})),
    );
    assert_eq!(read_all(connect(&gateway)), b"x");
}
