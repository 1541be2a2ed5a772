//! Both ends of sessions under test, and gateways between them.

use crate::support::{TIMEOUT, TestGateway, eventually};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use weir_proxy::{GatewayOptions, StreamListen};
use weir_snapshot::StreamTransport;

pub const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A model with one stream route to one service of this URL; `fields` are those of the route.
pub fn model(url: &str, fields: Value) -> Value {
    let mut route = json!({"name": "route", "service": "service"});
    route
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    json!({"services": [{"name": "service", "url": url}], "stream_routes": [route]})
}

/// A gateway that takes streams of this transport.
pub fn gateway(transport: StreamTransport, model: Value) -> TestGateway {
    gateway_with(transport, model, |_| ())
}

pub fn gateway_with(
    transport: StreamTransport,
    model: Value,
    change: impl FnOnce(&mut GatewayOptions),
) -> TestGateway {
    TestGateway::with(model, |options| {
        options.listen_streams = vec![StreamListen {
            address: LOCAL,
            transport,
        }];
        change(options);
    })
}

/// The address of a gateway's listener for streams.
pub fn address(gateway: &TestGateway) -> SocketAddr {
    gateway.gateway().bound().streams[0].address
}

/// A new connection to it.
pub fn connect(gateway: &TestGateway) -> TcpStream {
    patient(TcpStream::connect(address(gateway)).unwrap())
}

pub fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A target, and its address.
pub fn target() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub fn accept(listener: &TcpListener) -> TcpStream {
    patient(listener.accept().unwrap().0)
}

/// An address without a listener.
pub fn absent() -> SocketAddr {
    target().1
}

/// A target that answers every connection with its name, and ends it.
pub fn named(name: &'static str) -> SocketAddr {
    let (listener, address) = target();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _gone = stream.write_all(name.as_bytes());
        }
    });
    address
}

/// All that comes until the end.
pub fn read_all(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn read_some<const N: usize>(mut stream: impl Read) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub fn end(stream: &TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
}

/// Waits until the exposition has this line.
pub fn wait_for_line(gateway: &TestGateway, line: &str) {
    eventually(line, || gateway.exposition().lines().any(|it| it == line));
}

/// Waits until so many sessions of a protocol have ended so.
pub fn wait_for_ended(gateway: &TestGateway, protocol: &str, result: &str, count: u64) {
    let line = format!(r#"weir_stream_sessions_total{{protocol="{protocol}",result="{result}"}} {count}"#);
    wait_for_line(gateway, &line);
}
