//! Before a handshake over QUIC is over: clients that have to prove their address, and requests in the first flight of
//! a resumed session (0-RTT; RFC 8470).

use super::client::{Protocol, read_response};
use super::http2::{runtime, wait};
use super::http3::{self, connect};
use super::relay::Relay;
use super::stand::{Stand, address};
use super::support::{Upstream, answer, client_config, eventually};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::ClientConfig;
use rustls::client::Resumption;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use weir_proxy::Http3;

/// Handshakes under way from which on clients have to prove their address.
const BUSY: usize = 64;

#[test]
fn a_busy_gateway_asks_clients_to_show_where_they_are() {
    let stand = Stand::new();
    stand.upstream.serve(|_| answer("ok"));
    let gateway = address(&stand.gateway, Protocol::Http3);
    // Clients that never learn what the gateway has answered.
    let silent = Relay::to(gateway);
    silent.hold();
    let runtime = runtime();
    let shaking = wait(&runtime, async {
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let config = QuicClientConfig::try_from(client_config(&[b"h3"])).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        let shaking: Vec<_> = (0..2 * BUSY)
            .map(|_| endpoint.connect(silent.address, "localhost").unwrap())
            .collect();
        (endpoint, shaking)
    });
    eventually("others are asked too", || {
        let relay = Relay::to(gateway);
        let (runtime, connection) = connect(relay.address, "localhost", client_config(&[b"h3"]));
        let client = http3::Client::over(runtime, connection.unwrap());
        let mut call = client.begin("GET", "/", &[], false).unwrap();
        assert_eq!(read_response(call.as_mut()).unwrap().head.status, 200);
        relay.was_retried()
    });
    // Those who have not shown it were asked as well, and hold nothing.
    assert!(silent.was_retried());
    drop(shaking);
}

/// A client that sends requests at once if it may.
fn eager() -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(&client_config(&[b"h3"]));
    config.enable_early_data = true;
    // A store of its own, separate from those of other tests.
    config.resumption = Resumption::in_memory_sessions(8);
    Arc::new(config)
}

/// Learns what a session is resumed by.
fn meet(gateway: SocketAddr, config: &Arc<ClientConfig>) {
    let (runtime, connection) = connect(gateway, "localhost", Arc::clone(config));
    let client = http3::Client::over(runtime, connection.unwrap());
    let mut call = client.begin("GET", "/first", &[], false).unwrap();
    assert_eq!(read_response(call.as_mut()).unwrap().head.status, 200);
}

/// A connection whose handshake has only begun; `None`: it has to come first.
fn meet_again(
    gateway: SocketAddr,
    config: Arc<ClientConfig>,
) -> Option<(tokio::runtime::Runtime, quinn::Connection, quinn::ZeroRttAccepted)> {
    let runtime = runtime();
    let begun = wait(&runtime, async {
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let config = QuicClientConfig::try_from(config).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        endpoint.connect(gateway, "localhost").unwrap().into_0rtt().ok()
    });
    let (connection, accepted) = begun?;
    Some((runtime, connection, accepted))
}

fn stand(early_data: bool) -> Stand {
    Stand::with(&Value::Null, |options| {
        options.http3 = Some(Http3 {
            early_data,
            ..Http3::default()
        });
    })
}

#[test]
fn what_is_safe_is_served_before_the_handshake_is_over() {
    let stand = stand(true);
    let gateway = address(&stand.gateway, Protocol::Http3);
    let config = eager();
    std::thread::scope(|scope| {
        scope.spawn(|| meet(gateway, &config));
        let mut wire = stand.upstream.accept();
        let first = wire.request().unwrap();
        assert_eq!(first.head.get("Early-Data"), None);
        wire.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let relay = Relay::to(gateway);
    relay.hold();
    let (runtime, connection, accepted) = meet_again(relay.address, config).expect("requests at once");
    let handle = runtime.handle().clone();
    let client = http3::Client::over(runtime, connection);
    let mut posted = client.begin("POST", "/posted", &[], true).unwrap();
    posted.send(b"hello").unwrap();
    posted.finish(&[]);
    let mut got = client.begin("GET", "/got", &[], false).unwrap();
    let mut wire = stand.upstream.accept();
    let request = wire.request().unwrap();
    assert_eq!(request.head.line, "GET /got HTTP/1.1");
    assert_eq!(request.head.get("Early-Data").as_deref(), Some("1"));
    // The other has come before, and waits.
    assert!(stand.upstream.is_untouched());
    // An upstream that wants no repetitions says so to the client (RFC 8470, section 5.2).
    wire.send("HTTP/1.1 425 Too Early\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    relay.release();
    let mut wire = stand.upstream.accept();
    let request = wire.request().unwrap();
    assert_eq!(request.head.line, "POST /posted HTTP/1.1");
    assert_eq!(
        (request.head.get("Early-Data"), request.body),
        (None, b"hello".to_vec())
    );
    wire.send(answer("ok"));
    assert_eq!(read_response(got.as_mut()).unwrap().head.status, 425);
    assert_eq!(read_response(posted.as_mut()).unwrap().text(), "ok");
    assert!(handle.block_on(accepted));
}

#[test]
fn a_first_flight_that_comes_again_is_served_once() {
    let stand = stand(true);
    let gateway = address(&stand.gateway, Protocol::Http3);
    let seen = stand.upstream.serve(|_| answer("ok"));
    let stand = Stand {
        upstream: Upstream::bind(),
        gateway: stand.gateway,
    };
    let config = eager();
    meet(gateway, &config);
    let relay = Relay::to(gateway);
    let (runtime, connection, _) = meet_again(relay.address, config).expect("requests at once");
    let client = http3::Client::over(runtime, connection.clone());
    let mut call = client.begin("GET", "/early", &[], false).unwrap();
    assert_eq!(read_response(call.as_mut()).unwrap().head.status, 200);
    drop(call);
    connection.close(0u32.into(), b"");
    relay.send_again();
    assert_eq!(stand.client(Protocol::Http3).get("/last").head.status, 200);
    let lines: Vec<_> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|request| request.head.line.clone())
        .collect();
    assert_eq!(
        lines,
        ["GET /first HTTP/1.1", "GET /early HTTP/1.1", "GET /last HTTP/1.1"]
    );
}

#[test]
fn nothing_is_early_unless_asked_for() {
    let stand = stand(false);
    let gateway = address(&stand.gateway, Protocol::Http3);
    stand.upstream.serve(|_| answer("ok"));
    let config = eager();
    meet(gateway, &config);
    assert!(meet_again(gateway, config).is_none());
}
