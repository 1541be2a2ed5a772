//! What only HTTP/3 has: certificates by name over QUIC, changes of them, and clients that misbehave below HTTP.

use super::client::{Client, Protocol};
use super::http2::wait;
use super::http3::connect;
use super::stand::{Stand, address, listen_for_all, start};
use super::support::{SignedPair, TestGateway, Upstream, answer, client_config, eventually, simple_model};
use h3::error::Code;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_telemetry::metrics::ProtocolError;

/// A client that trusts what one authority has signed, and shows what another has.
fn trusting(shown: &SignedPair, own: Option<&SignedPair>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(shown.authority.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h3".to_vec()];
    Arc::new(config)
}

fn certificate(name: &str, made: &SignedPair) -> Value {
    json!({"names": [name], "key_pairs": [made.pair()]})
}

fn gateway(certificates: Value) -> (TestGateway, Value) {
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    model["certificates"] = certificates;
    (start(&model, |_| ()), model)
}

/// Whether a client gets a connection for this name.
fn is_met(gateway: &TestGateway, name: &str, config: Arc<ClientConfig>) -> bool {
    let (runtime, connection) = connect(address(gateway, Protocol::Http3), name, config);
    let Ok(connection) = connection else { return false };
    // A client that shows no good certificate learns so after its own part of the handshake.
    wait(&runtime, async {
        let mut own = connection.accept_uni().await;
        if let Ok(stream) = &mut own {
            let mut kind = [0];
            return stream.read_exact(&mut kind).await.is_ok();
        }
        false
    })
}

#[test]
fn certificates_are_shown_by_name_and_changed_under_way() {
    let (a, b, new) = (
        SignedPair::signed_for("a.test"),
        SignedPair::signed_for("b.test"),
        SignedPair::signed_for("a.test"),
    );
    let (gateway, mut model) = gateway(json!([certificate("a.test", &a), certificate("b.test", &b)]));
    let before = address(&gateway, Protocol::Http3);
    assert!(is_met(&gateway, "a.test", trusting(&a, None)));
    assert!(is_met(&gateway, "b.test", trusting(&b, None)));
    assert!(!is_met(&gateway, "b.test", trusting(&a, None)));
    model["certificates"] = json!([certificate("a.test", &new)]);
    gateway.publish(model);
    assert_eq!(address(&gateway, Protocol::Http3), before);
    assert!(is_met(&gateway, "a.test", trusting(&new, None)));
    assert!(!is_met(&gateway, "a.test", trusting(&a, None)));
}

#[test]
fn clients_show_certificates() {
    let (shown, own, other) = (
        SignedPair::signed_for("a.test"),
        SignedPair::signed_for("client"),
        SignedPair::signed_for("client"),
    );
    let mut asking = certificate("a.test", &shown);
    asking["client"] = json!({"authorities": own.authority});
    let open = SignedPair::signed_for("open.test");
    let (gateway, _) = gateway(json!([asking, certificate("open.test", &open)]));
    assert!(is_met(&gateway, "a.test", trusting(&shown, Some(&own))));
    assert!(!is_met(&gateway, "a.test", trusting(&shown, None)));
    assert!(!is_met(&gateway, "a.test", trusting(&shown, Some(&other))));
    assert!(is_met(&gateway, "open.test", trusting(&open, None)));
}

#[test]
fn whoever_does_not_speak_http3_is_not_let_in() {
    let stand = Stand::new();
    for protocols in [&[b"h2".as_slice()][..], &[b"hq-interop"]] {
        assert!(
            !is_met(&stand.gateway, "localhost", client_config(protocols)),
            "{protocols:?}"
        );
    }
    let failed = || {
        let totals = stand.gateway.totals();
        totals.protocol_errors(ProtocolError::QuicHandshake)
    };
    // The client may know of it first.
    eventually("both are counted", || failed() == 2);
}

/// What a client sends on a stream, and with what its connection ends.
const BROKEN: &[(&[u8], Code)] = &[
    // A request that begins with data; settings on it; what only servers send; what only HTTP/2 has.
    (b"\x00\x01x", Code::H3_FRAME_UNEXPECTED),
    (b"\x04\x00", Code::H3_FRAME_UNEXPECTED),
    (b"\x05\x01\x00", Code::H3_FRAME_UNEXPECTED),
    (b"\x06\x00", Code::H3_FRAME_UNEXPECTED),
    // A table of fields that there is not.
    (b"\x01\x03\x01\x00\x80", Code::QPACK_DECOMPRESSION_FAILED),
    // A frame that is cut off.
    (b"\x01\x05\x00", Code::H3_FRAME_ERROR),
];

#[test]
fn who_breaks_the_framing_loses_the_connection() {
    for (bytes, wanted) in BROKEN {
        let stand = Stand::new();
        let (runtime, connection) = connect(
            address(&stand.gateway, Protocol::Http3),
            "localhost",
            client_config(&[b"h3"]),
        );
        let connection = connection.unwrap();
        let ended = wait(&runtime, async {
            let mut control = connection.open_uni().await.unwrap();
            control.write_all(b"\x00\x04\x00").await.unwrap();
            let (mut send, _receive) = connection.open_bi().await.unwrap();
            send.write_all(bytes).await.unwrap();
            send.finish().unwrap();
            connection.closed().await
        });
        match ended {
            quinn::ConnectionError::ApplicationClosed(close) => {
                assert_eq!(close.error_code.into_inner(), wanted.value(), "{bytes:?}");
            }
            other => panic!("{bytes:?}: {other}"),
        }
    }
}

#[test]
fn bodies_that_are_cut_off_harm_no_other_call() {
    let stand = Stand::new();
    let other = stand.client(Protocol::Http3);
    let seen = stand.upstream.serve(|_| answer("ok"));
    // A head that is good: GET https localhost /, by QPACK's table.
    let head = b"\x01\x10\x00\x00\xd1\xd7\x50\x09localhost\xc1";
    for rest in [&b"\x00\x05abc"[..], b"\x00", b"\x00\x05"] {
        let (runtime, connection) = connect(
            address(&stand.gateway, Protocol::Http3),
            "localhost",
            client_config(&[b"h3"]),
        );
        let connection = connection.unwrap();
        wait(&runtime, async {
            let (mut send, _receive) = connection.open_bi().await.unwrap();
            send.write_all(head).await.unwrap();
            send.write_all(rest).await.unwrap();
            send.finish().unwrap();
            connection.closed().await
        });
    }
    assert_eq!(other.get("/").head.status, 200);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn connections_are_counted_and_bounded() {
    let stand = Stand::with(&Value::Null, |options| options.limits.max_connections = 1);
    let first = stand.client(Protocol::Http3);
    stand.upstream.serve(|_| answer("ok"));
    assert_eq!(first.get("/").head.status, 200);
    assert!(!is_met(&stand.gateway, "localhost", client_config(&[b"h3"])));
    let totals = stand.gateway.totals();
    assert_eq!((totals.connections_accepted, totals.http3_connections), (1, 1));
}

#[test]
fn workers_share_the_port() {
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    let gateway = start(&model, |options| options.workers = 4);
    let clients: Vec<_> = (0..16)
        .map(|_| Client::new(Protocol::Http3, address(&gateway, Protocol::Http3)))
        .collect();
    for _ in 0..3 {
        for client in &clients {
            assert_eq!(client.get("/").head.status, 200);
        }
    }
    assert_eq!(gateway.totals().http3_connections, 16);
}

#[test]
fn a_port_that_is_taken_is_done_without() {
    // No other test has the port of TCP on this address.
    let taken = std::net::UdpSocket::bind(std::net::SocketAddr::from(([127, 0, 0, 9], 0))).unwrap();
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::with(model, |options| {
        listen_for_all(options);
        options.listen_tls = vec![taken.local_addr().unwrap()];
        options.workers = 2;
    });
    assert!(gateway.gateway().bound().http3.is_empty());
    let client = Client::new(Protocol::Http2Tls, address(&gateway, Protocol::Http2Tls));
    let response = client.get("/");
    assert_eq!((response.head.status, response.get("alt-svc")), (200, None));
}
