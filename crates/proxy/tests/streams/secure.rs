//! TLS: ended by the gateway, passed through by server name, and begun towards targets.

use crate::ends::*;
use crate::support::client_config;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use weir_snapshot::StreamTransport::{Tcp, Tls};

/// A certificate of a target, and the way to meet it.
struct Pair {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    certificate: CertificateDer<'static>,
}

fn pair(name: &str) -> Pair {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"odd".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"odd".to_vec()];
    Pair {
        server: Arc::new(server),
        client: Arc::new(client),
        certificate,
    }
}

type Secured = StreamOwned<ClientConnection, TcpStream>;

fn shake(tcp: TcpStream, config: &Arc<ClientConfig>, name: &str) -> Secured {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), tcp)
}

/// A target that answers over TLS with what it was asked for, once it has got a byte.
fn secure_target(config: Arc<ServerConfig>) -> SocketAddr {
    let (listener, address) = target();
    std::thread::spawn(move || {
        while let Ok((tcp, _)) = listener.accept() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), patient(tcp));
                let mut byte = [0; 1];
                if std::io::Read::read_exact(&mut tls, &mut byte).is_err() {
                    return;
                }
                let name = tls.conn.server_name().unwrap_or("none").to_owned();
                let _gone = tls.write_all(name.as_bytes());
                tls.conn.send_close_notify();
                let _gone = tls.flush();
            });
        }
    });
    address
}

/// A gateway for streams over TLS that shows the usual certificate for `localhost`.
fn gateway(model: Value) -> crate::support::TestGateway {
    gateway_with(Tls, model, |options| {
        options.fallback_tls = Some(crate::support::server_config());
    })
}

#[test]
fn tls_is_ended_and_targets_get_what_was_inside() {
    let (listener, address) = target();
    let gateway = gateway(model(&format!("tcp://{address}"), json!({})));
    // Whatever protocol the client means to speak, the gateway does not mind.
    let mut client = shake(connect(&gateway), &client_config(&[b"mqtt"]), "localhost");
    client.write_all(b"secret").unwrap();
    let mut server = accept(&listener);
    assert_eq!(&read_some::<6>(&server), b"secret");
    server.write_all(b"answer").unwrap();
    drop(server);
    assert_eq!(read_all(&mut client), b"answer", "with a proper good-bye");
    drop(client);
    wait_for_ended(&gateway, "tls", "done", 1);
}

#[test]
fn what_passes_through_keeps_the_targets_own_certificate() {
    let own = pair("db.test");
    let address = secure_target(Arc::clone(&own.server));
    let fields = json!({"protocols": ["tls-passthrough"], "snis": ["DB.test"]});
    let gateway = gateway(model(&format!("tcp://{address}"), fields));
    let mut client = shake(connect(&gateway), &own.client, "db.test");
    client.write_all(b"?").unwrap();
    assert_eq!(read_all(&mut client), b"db.test");
    let shown = client.conn.peer_certificates().unwrap();
    assert_eq!(shown, [own.certificate], "the target's");
    assert_eq!(client.conn.alpn_protocol(), Some(&b"odd"[..]));
    drop(client);
    wait_for_ended(&gateway, "tls-passthrough", "done", 1);
}

#[test]
fn server_names_choose_the_route() {
    let own = pair("a.test");
    let passed = secure_target(Arc::clone(&own.server));
    let ended = named("ended");
    let model = json!({
        "services": [
            {"name": "passed", "url": format!("tcp://{passed}")},
            {"name": "ended", "url": format!("tcp://{ended}")},
        ],
        "stream_routes": [
            {"name": "below", "protocols": ["tls-passthrough"], "snis": ["*.a.test"], "service": "passed"},
            {"name": "full", "protocols": ["tls-passthrough"], "snis": ["a.test"], "service": "passed"},
            {"name": "here", "protocols": ["tls"], "snis": ["localhost"], "service": "ended"},
        ],
    });
    let gateway = gateway(model);
    let mut client = shake(connect(&gateway), &own.client, "a.test");
    client.write_all(b"?").unwrap();
    assert_eq!(read_all(&mut client), b"a.test");
    let mut client = shake(connect(&gateway), &client_config(&[]), "localhost");
    assert_eq!(read_all(&mut client), b"ended");
    let mut client = shake(connect(&gateway), &own.client, "x.b.a.test");
    // The certificate is not for this name, which shows that the target has answered.
    let error = client.write_all(b"?").unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let mut client = shake(connect(&gateway), &own.client, "elsewhere.test");
    assert!(client.write_all(b"?").is_err());
    wait_for_ended(&gateway, "tls", "no_route", 1);
}

#[test]
fn a_first_message_in_pieces_is_put_together() {
    let own = pair("db.test");
    let address = secure_target(Arc::clone(&own.server));
    let fields = json!({"protocols": ["tls-passthrough"], "snis": ["db.test"]});
    let gateway = gateway(model(&format!("tcp://{address}"), fields));
    let name = ServerName::try_from("db.test").unwrap();
    let mut tls = ClientConnection::new(Arc::clone(&own.client), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    let mut tcp = connect(&gateway);
    for piece in hello.chunks(7) {
        tcp.write_all(piece).unwrap();
    }
    let mut client = StreamOwned::new(tls, tcp);
    client.write_all(b"?").unwrap();
    assert_eq!(read_all(&mut client), b"db.test");
}

#[test]
fn what_is_no_tls_is_closed() {
    let gateway = gateway(model(&format!("tcp://{}", named("x")), json!({})));
    let mut client = connect(&gateway);
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _reset = std::io::Read::read_to_end(&mut client, &mut answer);
    assert!(answer.len() < 16, "at most an alert");
    wait_for_ended(&gateway, "tls", "handshake", 1);
}

#[test]
fn a_client_that_says_nothing_is_given_up() {
    let model = model(&format!("tcp://{}", named("x")), json!({}));
    let gateway = gateway_with(Tls, model, |options| {
        options.limits.header_timeout = std::time::Duration::from_millis(50);
    });
    assert_eq!(read_all(connect(&gateway)), b"");
    wait_for_ended(&gateway, "tls", "handshake", 1);
}

#[test]
fn targets_are_met_over_tls() {
    let own = pair("db.test");
    let address = secure_target(Arc::clone(&own.server));
    let mut model = model(&format!("tls://{address}"), json!({}));
    model["services"][0]["tls"] = json!({"verify": false, "server_name": "db.test"});
    let gateway = crate::ends::gateway(Tcp, model);
    let mut client = connect(&gateway);
    client.write_all(b"?").unwrap();
    assert_eq!(read_all(&client), b"db.test");
}
