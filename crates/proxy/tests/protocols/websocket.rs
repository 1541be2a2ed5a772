//! WebSockets through the gateway: what both ends see must be what they would see without it, until it drains.

use super::client::{Call, Client, Protocol};
use super::stand::{Stand, address};
use super::support::{Ended, TIMEOUT, Upstream, Wire};
use super::websocket_cases::cases;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message, WebSocket};

/// Where WebSockets can begin.
const ALL: [Protocol; 4] = [
    Protocol::Http1,
    Protocol::Http1Tls,
    Protocol::Http2,
    Protocol::Http2Tls,
];

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Accept: a\r\n\r\n";

/// A server that keeps to RFC 6455 and sends every message back.
fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let Ok(mut socket) = tungstenite::accept(stream) else {
                    return;
                };
                loop {
                    match socket.read() {
                        Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                            if socket.send(message).is_err() {
                                return;
                            }
                        }
                        Ok(_) => {}
                        Err(error) => return part(&mut socket, &error),
                    }
                }
            });
        }
    });
    address
}

/// Says why, and reads on, so that this is not lost with what was not read.
fn part(socket: &mut WebSocket<TcpStream>, error: &Error) {
    let code = match error {
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Protocol(_) => Some(CloseCode::Protocol),
        Error::Capacity(_) => Some(CloseCode::Size),
        _ => None,
    };
    if let Some(code) = code {
        let reason = "".into();
        let _said = socket.close(Some(CloseFrame { code, reason }));
    }
    let _said = socket.flush();
    let stream = socket.get_mut();
    let _ended = stream.shutdown(Shutdown::Write);
    let _rest = std::io::copy(stream, &mut std::io::sink());
}

/// What a client sees of a server that it speaks to without a gateway.
fn directly(server: SocketAddr, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .write_all(
            b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    for part in parts {
        if stream.write_all(part).is_err() {
            break;
        }
    }
    let mut all = Vec::new();
    // A server that has not read all ends with a reset.
    let _ended = stream.read_to_end(&mut all);
    all
}

/// What a client sees through the gateway.
fn through(mut call: Box<dyn Call + '_>, parts: &[Vec<u8>]) -> Vec<u8> {
    assert!(matches!(call.head().unwrap().status, 101 | 200));
    for part in parts {
        if call.send(part).is_err() {
            break;
        }
    }
    let mut all = Vec::new();
    while let Ok(Some(piece)) = call.piece() {
        all.extend_from_slice(&piece);
    }
    all
}

#[test]
fn all_is_as_without_a_gateway() {
    let server = echo_server();
    let changes = serde_json::json!({"services": {"url": format!("http://{server}")}});
    let stands = ALL.map(|protocol| (protocol, Stand::with(&changes, |_| ())));
    let clients: Vec<_> = stands
        .iter()
        .map(|(protocol, stand)| (protocol, stand.client(*protocol)))
        .collect();
    let cases = cases();
    let mut answered = 0;
    for case in &cases {
        let wanted = directly(server, &case.parts);
        answered += usize::from(!wanted.is_empty());
        for (protocol, client) in &clients {
            let seen = through(client.websocket("/"), &case.parts);
            assert!(
                seen == wanted,
                "{protocol:?} {}: {} bytes, not {}: {:?} {:?}",
                case.name,
                seen.len(),
                wanted.len(),
                &seen[..seen.len().min(40)],
                &wanted[..wanted.len().min(40)]
            );
        }
    }
    // Else nothing would be compared.
    assert!(answered * 10 > cases.len() * 9, "{answered} of {}", cases.len());
}

/// Both ends of a new WebSocket.
fn opened<'c>(client: &'c Client, upstream: &Upstream) -> (Box<dyn Call + 'c>, Wire) {
    let mut call = client.websocket("/");
    let mut wire = upstream.accept();
    wire.head().unwrap();
    wire.send(SWITCH);
    call.head().unwrap();
    (call, wire)
}

/// Waits for the end, before which nothing more may come.
#[track_caller]
fn expect_end(call: &mut dyn Call) {
    while let Ok(Some(rest)) = call.piece() {
        assert!(rest.is_empty(), "{rest:?}");
    }
}

/// A frame of a client.
const HELLO: &[u8] = b"\x81\x85\0\0\0\0hello";

/// Runs a case over every protocol, side by side, as each takes its time.
fn side_by_side(case: impl Fn(Protocol) + Copy + Send) {
    std::thread::scope(|scope| {
        for protocol in ALL {
            scope.spawn(move || case(protocol));
        }
    });
}

#[test]
fn draining_says_good_bye_to_both_ends() {
    side_by_side(says_good_bye);
}

fn says_good_bye(protocol: Protocol) {
    let stand = Stand::with(&Value::Null, |options| options.drain_timeout = TIMEOUT);
    let client = stand.client(protocol);
    let (mut call, mut wire) = opened(&client, &stand.upstream);
    call.send(HELLO).unwrap();
    assert_eq!(wire.read(HELLO.len()).unwrap(), HELLO);
    // In the middle of a frame of the server's.
    wire.send(b"\x82\x05ab");
    assert_eq!(call.take(4).unwrap(), b"\x82\x05ab", "{protocol:?}");
    let draining = stand.gateway.drain();
    let received = wire.read(8).unwrap();
    let unmasked: Vec<u8> = received[6..]
        .iter()
        .zip(&received[2..6])
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    assert_eq!(
        (&received[..2], unmasked.as_slice()),
        (&b"\x88\x82"[..], &b"\x03\xe9"[..]),
        "{protocol:?}"
    );
    // The frame comes to its end, and then the good-bye.
    wire.send(b"cde\x88\x02\x03\xe9");
    assert_eq!(call.take(7).unwrap(), b"cde\x88\x02\x03\xe9", "{protocol:?}");
    call.send(b"\x88\x82\0\0\0\0\x03\xe9").unwrap();
    assert_eq!(call.piece(), Ok(None), "{protocol:?}");
    draining.join().unwrap();
    wire.expect_end();
}

/// Has both sides say good-bye, and no one else.
fn part_in_peace(call: &mut dyn Call, wire: &mut Wire) {
    call.send(b"\x88\x80\0\0\0\0").unwrap();
    assert_eq!(wire.read(6).unwrap(), b"\x88\x80\0\0\0\0");
    wire.send(b"\x88\x00");
    assert_eq!(call.take(2).unwrap(), b"\x88\x00");
}

#[test]
fn draining_does_not_interrupt_a_good_bye() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| options.drain_timeout = TIMEOUT);
        let client = stand.client(protocol);
        let (mut call, mut wire) = opened(&client, &stand.upstream);
        part_in_peace(call.as_mut(), &mut wire);
        let draining = stand.gateway.drain();
        drop(wire);
        expect_end(call.as_mut());
        drop(call);
        draining.join().unwrap();
    }
}

#[test]
fn websockets_wait_for_no_side_behind_both_good_byes() {
    let end = |protocol, is_draining| {
        let Stand { gateway, upstream } =
            Stand::with(&Value::Null, |options| options.drain_timeout = TIMEOUT);
        let client = Client::new(protocol, address(&gateway, protocol));
        let (mut call, mut wire) = opened(&client, &upstream);
        part_in_peace(call.as_mut(), &mut wire);
        let (draining, _gateway) = match is_draining {
            true => (Some(gateway.drain()), None),
            false => (None, Some(gateway)),
        };
        // Neither end does its part.
        assert_eq!(wire.expect_end(), Ended::Cleanly, "{protocol:?}");
        assert_eq!(call.piece(), Ok(None), "{protocol:?}");
        drop(call);
        if let Some(draining) = draining {
            draining.join().unwrap();
        }
    };
    side_by_side(|protocol| end(protocol, false));
    side_by_side(|protocol| end(protocol, true));
}

#[test]
fn an_idle_tunnel_ends() {
    for protocol in ALL {
        let stand = Stand::with(&Value::Null, |options| {
            options.limits.tunnel_timeout = Duration::from_millis(100);
        });
        let client = stand.client(protocol);
        let (mut call, mut wire) = opened(&client, &stand.upstream);
        wire.expect_end();
        expect_end(call.as_mut());
    }
}

/// A closing frame of the upstream's side as a client sees it: the status and the reason.
fn closing(code: u16, reason: &str) -> Vec<u8> {
    let mut frame = vec![0x88, 2 + reason.len() as u8];
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame
}

#[test]
fn filters_look_at_messages() {
    let plugins = serde_json::json!([{"use": {"name": "puppet", "config": {"max_message": 5}}}]);
    let changes = serde_json::json!({"routes": {"plugins": plugins}});
    side_by_side(|protocol| {
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        // Good messages pass as they came, also in parts.
        let (mut call, mut wire) = opened(&client, &stand.upstream);
        call.send(HELLO).unwrap();
        assert_eq!(wire.read(HELLO.len()).unwrap(), HELLO);
        wire.send(b"\x01\x02ab");
        wire.send(b"\x80\x01c");
        assert_eq!(call.take(7).unwrap(), b"\x01\x02ab\x80\x01c", "{protocol:?}");
        part_in_peace(call.as_mut(), &mut wire);
        drop(wire);
        expect_end(call.as_mut());
        drop(call);
        // One that is too long, of the client: the upstream sees nothing of it.
        let (mut call, mut wire) = opened(&client, &stand.upstream);
        call.send(b"\x81\x86\0\0\0\0hello.").unwrap();
        let close = closing(1009, "Payload Too Large");
        assert_eq!(call.take(close.len()).unwrap(), close, "{protocol:?}");
        let over = wire.read(8).unwrap();
        assert_eq!(over[..2], [0x88, 0x82], "{protocol:?}");
        wire.expect_end();
        drop(call);
        // One that a filter objects to, of the upstream.
        let (mut call, mut wire) = opened(&client, &stand.upstream);
        wire.send(b"\x81\x02a!");
        let close = closing(1001, "");
        assert_eq!(call.take(close.len()).unwrap(), close, "{protocol:?}");
        let over = wire.read(9).unwrap();
        let code: Vec<u8> = over[6..8]
            .iter()
            .zip(&over[2..4])
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        assert_eq!(
            (over[0], code),
            (0x88, 1007u16.to_be_bytes().to_vec()),
            "{protocol:?}"
        );
        expect_end(call.as_mut());
    });
}
