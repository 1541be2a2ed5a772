//! The PROXY protocol: from trusted balancers on all listeners, and to targets.

use crate::ends::*;
use crate::support::{TestGateway, Upstream, client_config, simple_model};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use weir_proxy::ProxyProtocolTrust;
use weir_snapshot::StreamTransport::{Tcp, Tls};

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 5678 443\r\n";
/// The same client; with a field behind the addresses.
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x07\xc6\x33\x64\x01\x16\x2e\x01\xbb\x04\0\x01\0";
/// The balancer's own connection.
const LOCAL_COMMAND: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

fn trusting(network: &str) -> Option<ProxyProtocolTrust> {
    Some(ProxyProtocolTrust {
        networks: vec![network.parse().unwrap()],
        on_plain: true,
        on_tls: true,
        on_streams: true,
    })
}

/// The address of the client that a call's upstream gets.
fn forwarded_for(header: &[u8], network: &str) -> Option<String> {
    let upstream = Upstream::bind();
    let gateway = TestGateway::with(simple_model(upstream.address), |options| {
        options.proxy_protocol = trusting(network);
    });
    let mut client = patient(TcpStream::connect(gateway.address).unwrap());
    // In pieces, so that a header has to be waited for.
    let (start, rest) = header.split_at(header.len().min(9));
    client.write_all(start).unwrap();
    client.write_all(rest).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .unwrap();
    let answer = std::thread::spawn(move || {
        let mut answer = Vec::new();
        let _reset = std::io::Read::read_to_end(&mut client, &mut answer);
        answer
    });
    if network == "127.0.0.0/8" && header.is_empty() {
        assert_eq!(answer.join().unwrap(), b"", "closed without a word");
        return None;
    }
    if network != "127.0.0.0/8" && !header.is_empty() {
        let answer = answer.join().unwrap();
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"),
            "{}",
            answer.escape_ascii()
        );
        return None;
    }
    let mut wire = upstream.accept();
    let request = wire.request().unwrap();
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(answer.join().unwrap().starts_with(b"HTTP/1.1 200"));
    request.head.get("X-Forwarded-For")
}

#[test]
fn trusted_balancers_name_the_client() {
    let believed = "127.0.0.0/8";
    for (header, network, wanted) in [
        (V1, believed, Some("192.0.2.7")),
        (V2, believed, Some("192.0.2.7")),
        (LOCAL_COMMAND, believed, Some("127.0.0.1")),
        (b"PROXY UNKNOWN\r\n", believed, Some("127.0.0.1")),
        // A trusted peer must send a header; another must not.
        (b"", believed, None),
        (b"", "10.0.0.0/8", Some("127.0.0.1")),
        (V1, "10.0.0.0/8", None),
        (V2, "10.0.0.0/8", None),
    ] {
        let header_text = forwarded_for(header, network);
        assert_eq!(
            header_text.as_deref(),
            wanted,
            "{} {network}",
            header.escape_ascii()
        );
    }
}

#[test]
fn routes_and_targets_of_streams_see_the_client() {
    for (version, header) in [("v1", V1), ("v2", V2)] {
        let (listener, address) = target();
        let fields = json!({"proxy_protocol": version, "sources": ["192.0.2.0/24:5678"]});
        let gateway = gateway_with(Tcp, model(&format!("tcp://{address}"), fields), |options| {
            options.proxy_protocol = trusting("127.0.0.1/32");
        });
        let mut client = connect(&gateway);
        client.write_all(header).unwrap();
        client.write_all(b"payload").unwrap();
        end(&client);
        let received = read_all(accept(&listener));
        let port = crate::ends::address(&gateway).port();
        let line = format!("PROXY TCP4 192.0.2.7 127.0.0.1 5678 {port}\r\npayload").into_bytes();
        let [high, low] = port.to_be_bytes();
        let binary = [
            &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x16\x2e"[..],
            &[high, low],
            b"payload",
        ];
        let wanted = if version == "v1" { line } else { binary.concat() };
        assert_eq!(
            received.escape_ascii().to_string(),
            wanted.escape_ascii().to_string()
        );
    }
}

#[test]
fn the_header_stands_before_the_handshake() {
    let (listener, address) = target();
    let fields = json!({"proxy_protocol": "v1", "sources": ["192.0.2.7"]});
    let gateway = gateway_with(Tls, model(&format!("tcp://{address}"), fields), |options| {
        options.proxy_protocol = trusting("127.0.0.1/32");
        options.fallback_tls = Some(crate::support::server_config());
    });
    let mut tcp = connect(&gateway);
    tcp.write_all(V2).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(client_config(&[]), name).unwrap();
    let mut client = StreamOwned::new(tls, tcp);
    client.write_all(b"inside").unwrap();
    client.conn.send_close_notify();
    client.flush().unwrap();
    let received = read_all(accept(&listener));
    assert!(
        received.starts_with(b"PROXY TCP4 192.0.2.7 127.0.0.1 5678 ") && received.ends_with(b"\r\ninside")
    );
}

#[test]
fn what_is_not_asked_for_is_not_looked_for() {
    let (listener, address) = target();
    let gateway = gateway_with(Tcp, model(&format!("tcp://{address}"), json!({})), |options| {
        options.proxy_protocol = trusting("127.0.0.1/32").map(|it| ProxyProtocolTrust {
            on_streams: false,
            ..it
        });
    });
    let mut client = connect(&gateway);
    client.write_all(V1).unwrap();
    end(&client);
    assert_eq!(read_all(accept(&listener)), V1, "it passes as it is");
}
