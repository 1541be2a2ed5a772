//! Sessions of MQTT: a CONNECT of the right version goes to the target that its client's id chooses.

use crate::ends::*;
use serde_json::json;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::SocketAddr;
use weir_snapshot::StreamTransport::Tcp;

/// A CONNECT of a client that has this id.
fn connect_of(level: u8, id: &str) -> Vec<u8> {
    let mut body = b"\0\x04MQTT".to_vec();
    body.extend([level, 2, 0, 60]);
    if level == 5 {
        body.push(0);
    }
    body.extend(u16::try_from(id.len()).unwrap().to_be_bytes());
    body.extend(id.as_bytes());
    let mut packet = vec![0x10, u8::try_from(body.len()).unwrap()];
    packet.extend(body);
    packet
}

/// A target that answers a CONNECT with its name.
fn broker(name: &'static [u8; 1]) -> SocketAddr {
    let (listener, address) = target();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let [_, length] = read_some::<2>(&stream);
            std::io::copy(&mut (&stream).take(length.into()), &mut std::io::sink()).unwrap();
            stream.write_all(name).unwrap();
        }
    });
    address
}

#[test]
fn the_target_gets_the_connect_as_it_came_in_pieces_and_what_follows() {
    let (listener, address) = target();
    let mqtt = json!({"mqtt": {"protocol_level": 5}});
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), mqtt));
    let mut client = connect(&gateway);
    let packet = connect_of(5, "car7");
    let (first, rest) = packet.split_at(6);
    client.write_all(first).unwrap();
    client.write_all(rest).unwrap();
    client.write_all(b"more").unwrap();
    let server = accept(&listener);
    end(&client);
    let got = read_all(server);
    assert_eq!(got, [&packet[..], b"more"].concat());
}

#[test]
fn sessions_that_begin_otherwise_are_closed() {
    let mqtt = json!({"mqtt": {"protocol_level": 4}});
    let address = named("the target");
    let gateway = gateway(Tcp, model(&format!("tcp://{address}"), mqtt));
    let wrong: [&[u8]; 4] = [
        &connect_of(5, "car7"),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x10\x0a\0\x04MQTT\x04\x02\0\x3c",
        b"\x10\x10\0\x04MQTX\x04\x02\0\x3c\0\x04car7",
    ];
    for (ended, bytes) in (1..).zip(wrong) {
        let mut client = connect(&gateway);
        client.write_all(bytes).unwrap();
        // A close with bytes unread is a reset.
        let mut got = Vec::new();
        let _may_be_reset = client.read_to_end(&mut got);
        assert!(got.is_empty(), "{bytes:?}");
        wait_for_ended(&gateway, "tcp", "refused", ended);
    }
}

#[test]
fn a_client_goes_always_to_the_same_target() {
    let addresses = [b"a", b"b", b"c"].map(broker);
    let model = json!({
        "services": [{"name": "brokers", "upstream": "brokers"}],
        "upstreams": [{
            "name": "brokers", "scheme": "tcp", "algorithm": "consistent-hashing", "hash_on": ["mqtt-client-id"],
            "targets": addresses.map(|it| json!({"host": it.ip().to_string(), "port": it.port()})),
        }],
        "stream_routes": [{"name": "cars", "service": "brokers", "mqtt": {"protocol_level": 4}}],
    });
    let gateway = gateway(Tcp, model);
    let broker_of = |id: &str| {
        let mut client = connect(&gateway);
        client.write_all(&connect_of(4, id)).unwrap();
        read_some::<1>(&client)[0]
    };
    let brokers: HashSet<u8> = (0..30)
        .map(|number| {
            let id = format!("car{number}");
            let first = broker_of(&id);
            assert_eq!(broker_of(&id), first, "{id}");
            first
        })
        .collect();
    assert_eq!(brokers.len(), 3, "clients are spread");
}
