//! Certificates that Weir itself shows to upstreams, from the write to the handshake.

use crate::support::{Call, STOCK_KEY, Weir, until};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, ServerConnection, SignatureScheme,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

const ANY: &str = "127.0.0.1:0";

/// Certificates of X.509 version 1, as `openssl x509 -req` makes them, with keys in the older forms (SEC1, PKCS#1).
const VERSION_1: [(&str, &str, &str); 2] = [
    (
        "ec",
        include_str!("version_1/ec.crt"),
        include_str!("version_1/ec.key"),
    ),
    (
        "rsa",
        include_str!("version_1/rsa.crt"),
        include_str!("version_1/rsa.key"),
    ),
];

/// Asks for a certificate, and accepts any.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A server over TLS that answers every call with the name of the certificate that it was shown.
fn upstream() -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(["u.test".to_owned()]).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(Arc::new(AnyCertificate(provider)))
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a pair");
    let config = Arc::new(config);
    let listener = TcpListener::bind(ANY).expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || serve(stream, config));
        }
    });
    address
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
    let connection = ServerConnection::new(config).ok()?;
    let mut reader = BufReader::new(rustls::StreamOwned::new(connection, stream));
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (reader.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let stream = reader.get_mut();
        let shown = stream.conn.peer_certificates().and_then(<[_]>::first).cloned();
        let is_shown = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).ok() == shown;
        let name = VERSION_1.iter().find(|(_, certificate, _)| is_shown(certificate));
        let name = name.map_or("none", |(name, ..)| name);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
        stream.write_all(answer.as_bytes()).ok()?;
        stream.flush().ok()?;
    }
}

/// Writes a service with this certificate, and routes to it, through Kong's Admin API: on the service, and on the upstream that
/// the service's host names.
fn write_for_kong(kong: &str, name: &str, [certificate, key]: [&str; 2], upstream: SocketAddr) {
    let post = |path: &str, body: Value| {
        let call = Call::new("POST", kong, path).body(&body.to_string());
        call.make().expect(201).json()
    };
    let shown = post("/certificates", json!({"cert": certificate, "key": key}));
    let shown = json!({"id": shown["id"]});
    let service = |service: &str, mut fields: Value| {
        fields["name"] = json!(service);
        fields["protocol"] = json!("https");
        post("/services", fields);
        let path = format!("/services/{service}/routes");
        post(&path, json!({"paths": [format!("/{service}")]}));
    };
    let (host, port) = (upstream.ip().to_string(), upstream.port());
    service(
        &format!("kong-{name}"),
        json!({"host": host, "port": port, "client_certificate": shown}),
    );
    let host = format!("{name}.upstream");
    post("/upstreams", json!({"name": host, "client_certificate": shown}));
    let target = json!({"target": upstream.to_string()});
    post(&format!("/upstreams/{host}/targets"), target);
    service(&format!("kong-upstream-{name}"), json!({"host": host}));
}

/// Writes routes to upstreams with this certificate through APISIX's Admin API: in the upstream, and by its id.
fn write_for_apisix(apisix: &str, name: &str, [certificate, key]: [&str; 2], upstream: SocketAddr) {
    let put = |path: &str, body: Value| {
        let call = Call::new("PUT", apisix, &format!("/apisix/admin{path}"));
        call.header("X-API-KEY", STOCK_KEY)
            .body(&body.to_string())
            .make()
            .expect(201);
    };
    let shown = json!({"type": "client", "cert": certificate, "key": key});
    put(&format!("/ssls/{name}"), shown);
    let route = |place: &str, tls: Value| {
        let nodes = json!({upstream.to_string(): 1});
        let upstream = json!({"scheme": "https", "nodes": nodes, "tls": tls});
        let body = json!({"uri": format!("/apisix-{place}{name}"), "upstream": upstream});
        put(&format!("/routes/{place}{name}"), body);
    };
    route("", json!({"client_cert": certificate, "client_key": key}));
    route("id-", json!({"client_cert_id": name}));
}

#[test]
fn client_certificates_of_version_1_reach_upstreams_in_every_dialect() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--data",
        "data",
        "--kong-admin",
        ANY,
        "--apisix-admin",
        ANY,
        "--console",
        ANY,
    ];
    let weir = Weir::start(folder.path(), &flags);
    let upstream = upstream();
    for (name, certificate, key) in VERSION_1 {
        write_for_kong(&weir.kong(), name, [certificate, key], upstream);
        write_for_apisix(&weir.apisix(), name, [certificate, key], upstream);
        let put = |kind: &str, fields: Value| {
            let path = format!("/api/v1/resources/{kind}/weir-{name}");
            let call = Call::new("PUT", &weir.console(), &path).body(&fields.to_string());
            let answer = call.make();
            assert!(answer.status < 300, "{answer:?}");
        };
        let pair = json!({"certificate": certificate, "key": key});
        let tls = json!({"verify": false, "certificate": pair});
        put(
            "services",
            json!({"url": format!("https://{upstream}"), "tls": tls}),
        );
        let service = json!({"service": format!("weir-{name}")});
        put(
            "routes",
            json!({"match": [{"path": format!("/weir-{name}")}], "to": service}),
        );
        for start in ["kong-", "kong-upstream-", "apisix-", "apisix-id-", "weir-"] {
            let call = Call::get(&weir.proxy(), &format!("/{start}{name}"));
            until(&format!("/{start}{name} is served"), || {
                call.attempt()
                    .is_some_and(|answer| answer.status == 200 && answer.body == name)
            });
        }
    }
}
