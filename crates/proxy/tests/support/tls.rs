//! A certificate for gateways under test, and clients that trust it; and certificates of authorities.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair as RawPair};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use weir_model::{Certificate, KeyPair, TlsVersion};
use weir_snapshot::{ServerIdentity, ServerTlsState};

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
        ocsp_stapling: None,
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
        server: ServerIdentity::of(&certificate, &ServerTlsState::default())
            .unwrap()
            .config,
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

/// An authority, and a pair that it has signed for a name.
#[allow(dead_code, reason = "few tests ask")]
pub struct SignedPair {
    /// The authority's certificate in PEM.
    pub authority: String,
    /// What is shown, in PEM.
    pub certificate: String,
    pub key: String,
}

#[allow(dead_code, reason = "few tests ask")]
impl SignedPair {
    /// A pair for this name, of an authority of its own.
    pub fn signed_for(name: &str) -> Self {
        let params = authority_of(Vec::new());
        let key = RawPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let signed_key = RawPair::generate().unwrap();
        let signed = CertificateParams::new([name.to_owned()])
            .unwrap()
            .signed_by(&signed_key, &issuer)
            .unwrap();
        Self {
            authority: authority.pem(),
            certificate: signed.pem(),
            key: signed_key.serialize_pem(),
        }
    }

    /// What marks itself as an authority and is shown all the same.
    pub fn self_signed_authority(name: &str) -> Self {
        let key = RawPair::generate().unwrap();
        let authority = authority_of(vec![name.to_owned()])
            .self_signed(&key)
            .unwrap()
            .pem();
        Self {
            certificate: authority.clone(),
            key: key.serialize_pem(),
            authority,
        }
    }

    /// The pair as a model has it.
    pub fn pair(&self) -> Value {
        json!({"certificate": self.certificate, "key": self.key})
    }
}

fn authority_of(names: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}
