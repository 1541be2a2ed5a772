//! A certificate for gateways under test, and clients that trust it.

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use std::sync::{Arc, LazyLock};
use weir_model::{Certificate, KeyPair, TlsVersion};
use weir_snapshot::{Carry, Presented};

struct Pair {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

static PAIR: LazyLock<Pair> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = made.cert.pem();
    let certificate = Certificate {
        names: vec!["*".to_owned()],
        key_pairs: vec![KeyPair {
            certificate: pem.clone(),
            key: made.signing_key.serialize_pem(),
        }],
        client: None,
        min_version: TlsVersion::default(),
    };
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Pair {
        server: Presented::of(&certificate, &Carry::default()).unwrap().config,
        client: Arc::new(client),
    }
});

/// What gateways show.
pub fn server() -> Arc<ServerConfig> {
    Arc::clone(&PAIR.server)
}

/// How a client meets such gateways that offers these protocols.
#[allow(dead_code, reason = "few tests ask")]
pub fn client_config(protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(&PAIR.client);
    config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    Arc::new(config)
}

/// A connection to such a gateway, before its handshake.
pub fn client() -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(Arc::clone(&PAIR.client), name).unwrap();
    connection.set_buffer_limit(None);
    connection
}
