//! Listeners of management over TLS: whom they let in, what they show, and that a renewed certificate is shown without a
//! restart.

use axum::Router;
use axum::routing::get;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use weir_control::listen::{Bounds, Listener, Tls, TlsFiles, serve};

/// How long anything may take. Much more than it should: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(30);
const CALL: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// A certificate and its key, as PEM.
struct Pair {
    certificate: String,
    key: String,
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed").pem();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    fn sign(&self, name: &str) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        Pair {
            certificate: params.signed_by(&key, &self.issuer).expect("signed").pem(),
            key: key.serialize_pem(),
        }
    }
}

fn write(folder: &Path, pair: &Pair) {
    std::fs::write(folder.join("certificate"), &pair.certificate).expect("written");
    std::fs::write(folder.join("key"), &pair.key).expect("written");
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles {
        certificate: folder.join("certificate"),
        key: folder.join("key"),
        client_authorities: None,
    }
}

async fn running(tls: Tls, bounds: Bounds) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (drain, draining) = watch::channel(false);
    let router = Router::new().route("/", get(async || "here"));
    tokio::spawn(serve(
        Listener::new(listener, Some(Arc::new(tls))),
        router,
        bounds,
        draining,
    ));
    (address, drain)
}

/// A client that trusts an authority, and shows something.
fn connector(trusted: &Authority, shown: Option<&Pair>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(trusted.certificate.as_bytes()).expect("PEM");
    roots.add(certificate).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).expect("PEM")];
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    TlsConnector::from(Arc::new(config))
}

/// The answer to a call; `Err`: there is no answer, and why.
async fn ask(address: SocketAddr, connector: &TlsConnector) -> std::io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = connector.connect(name, stream).await?;
    stream.write_all(CALL).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn is_answered(answer: &std::io::Result<String>) -> bool {
    answer.as_ref().is_ok_and(|text| text.ends_with("here"))
}

#[tokio::test]
async fn clients_must_show_what_is_asked_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (servers, clients) = (Authority::new(), Authority::new());
    write(folder.path(), &servers.sign("localhost"));
    std::fs::write(folder.path().join("ca"), &clients.certificate).expect("written");
    let (good, foreign) = (clients.sign("a client"), servers.sign("another"));
    for (asks, shown, is_let_in) in [
        (false, None, true),
        (false, Some(&good), true),
        (true, None, false),
        (true, Some(&foreign), false),
        (true, Some(&good), true),
    ] {
        let files = TlsFiles {
            client_authorities: asks.then(|| folder.path().join("ca")),
            ..files(folder.path())
        };
        let tls = Tls::from_files(files).expect("good files");
        let (address, _drain) = running(tls, Bounds::default()).await;
        let answer = ask(address, &connector(&servers, shown)).await;
        assert_eq!(is_answered(&answer), is_let_in, "{asks} {answer:?}");
        if asks && shown.is_none() {
            let error = answer.expect("it is told why");
            assert!(error.starts_with("HTTP/1.1 400 "), "{error}");
        }
        let mut plain = TcpStream::connect(address).await.expect("connected");
        plain.write_all(CALL).await.expect("sent");
        let mut answer = Vec::new();
        let _reset = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
}

#[tokio::test]
async fn renewed_certificates_are_shown_and_bad_ones_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (former, latter) = (Authority::new(), Authority::new());
    write(folder.path(), &former.sign("localhost"));
    let tls = Tls::from_files(files(folder.path())).expect("good files");
    let (address, _drain) = running(tls, Bounds::default()).await;
    assert!(is_answered(&ask(address, &connector(&former, None)).await));
    std::fs::write(folder.path().join("key"), "nothing").expect("written");
    // Long enough for the files to be looked at again.
    let begun = SystemTime::now();
    while begun.elapsed().expect("time goes on") < Duration::from_millis(1100) {
        let answer = ask(address, &connector(&former, None)).await;
        assert!(is_answered(&answer), "the former one stays: {answer:?}");
    }
    write(folder.path(), &latter.sign("localhost"));
    let begun = Instant::now();
    while !is_answered(&ask(address, &connector(&latter, None)).await) {
        assert!(begun.elapsed() < TIMEOUT, "not in time");
    }
}

#[tokio::test]
async fn handshakes_that_take_too_long_are_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &Authority::new().sign("localhost"));
    let bounds = Bounds {
        head: Duration::from_millis(50),
        ..Bounds::default()
    };
    let tls = Tls::from_files(files(folder.path())).expect("good files");
    let (address, _drain) = running(tls, bounds).await;
    let mut stream = TcpStream::connect(address).await.expect("connected");
    // The begin of a record that does not come.
    stream.write_all(&[22, 3, 1, 2]).await.expect("sent");
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await;
    let _reset = ended.expect("in time");
}

/// A certificate of X.509 version 1, as `openssl x509 -req` makes them, and its key.
const VERSION_1: [&str; 2] = [
    "\
-----BEGIN CERTIFICATE-----
MIIBIzCByQIUNvm95Ox5c8Ox6ip5S9Nlu1NC9bYwCgYIKoZIzj0EAwIwEzERMA8G
A1UEAwwIb2xkLnRlc3QwIBcNMjYxMTIyMjA0MDI2WhgPMjEyNjEwMjkyMDQwMjZa
MBMxETAPBgNVBAMMCG9sZC50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
cNqqFOZ1vApIJ1F9I4JYc+9gcoFcyGf5zsyAnomoMMGT4dVsEqtXgSTuyOiWuzJy
N5tIZo+V8AF+h/xKfpg94TAKBggqhkjOPQQDAgNJADBGAiEA4UXXOmSmPg5rhVPK
5m4HqHYsbHfC+40IlnDwY3OMHAMCIQDwQ5B/4c8SE04o5N4pNI8wNyp5o7sXOUI6
2ElXB4MNOQ==
-----END CERTIFICATE-----
",
    "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgM4wLAnlhT41zQ1AS
i+ecWOdA3C+q0WMCKc/Xda35+GShRANCAARw2qoU5nW8CkgnUX0jglhz72BygVzI
Z/nOzICeiagwwZPh1WwSq1eBJO7I6Ja7MnI3m0hmj5XwAX6H/Ep+mD3h
-----END PRIVATE KEY-----
",
];

/// Accepts exactly one certificate, whatever its version.
#[derive(Debug)]
struct Pinned(CertificateDer<'static>);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match *shown == self.0 {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

#[tokio::test]
async fn certificates_of_version_1_are_presented() {
    let folder = tempfile::tempdir().expect("a folder");
    let [certificate, key] = VERSION_1.map(str::to_owned);
    let expected = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    write(folder.path(), &Pair { certificate, key });
    let tls = Tls::from_files(files(folder.path())).expect("usable");
    let (address, _drain) = running(tls, Bounds::default()).await;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned(expected)))
        .with_no_client_auth();
    let answer = ask(address, &TlsConnector::from(Arc::new(config))).await;
    assert!(is_answered(&answer), "{answer:?}");
}

/// Certificates of X.509 version 1, as `openssl x509 -req` makes them: an authority, another one with the same name, and
/// clients that the first has signed, with their keys.
const OLD_AUTHORITY: &str = include_str!("version_1/authority.crt");
const OLD_IMPOSTOR: &str = include_str!("version_1/impostor.crt");
const OLD_CLIENTS: [[&str; 2]; 2] = [
    [include_str!("version_1/ec.crt"), include_str!("version_1/ec.key")],
    [
        include_str!("version_1/rsa.crt"),
        include_str!("version_1/rsa.key"),
    ],
];

/// A client with one version of TLS that shows a certificate of any version of X.509.
fn old_connector(
    trusted: &Authority,
    [certificate, key]: [&str; 2],
    version: &'static SupportedProtocolVersion,
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(trusted.certificate.as_bytes()).expect("PEM");
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let key = provider.key_provider.load_private_key(key).expect("a key");
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    let shown = CertifiedKey::new(vec![certificate], key);
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots)
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn clients_with_certificates_of_version_1_are_let_in_by_their_authority() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = Authority::new();
    write(folder.path(), &servers.sign("localhost"));
    let [ec, rsa] = OLD_CLIENTS;
    for (authority, shown, is_let_in) in [
        (OLD_AUTHORITY, ec, true),
        (OLD_AUTHORITY, rsa, true),
        (OLD_IMPOSTOR, ec, false),
        (OLD_IMPOSTOR, rsa, false),
        // Another owner's certificate: the handshake is signed with another key.
        (OLD_AUTHORITY, [ec[0], VERSION_1[1]], false),
    ] {
        std::fs::write(folder.path().join("ca"), authority).expect("written");
        let files = TlsFiles {
            client_authorities: Some(folder.path().join("ca")),
            ..files(folder.path())
        };
        let tls = Tls::from_files(files).expect("good files");
        let (address, _drain) = running(tls, Bounds::default()).await;
        for version in [&TLS12, &TLS13] {
            let answer = ask(address, &old_connector(&servers, shown, version)).await;
            assert_eq!(is_answered(&answer), is_let_in, "{version:?} {answer:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let (one, other) = (authority.sign("localhost"), authority.sign("localhost"));
    let path = |name: &str| folder.path().join(name);
    write(folder.path(), &one);
    std::fs::write(path("other"), &other.key).expect("written");
    std::fs::write(path("empty"), "").expect("written");
    for (certificate, key, ca, word) in [
        ("none", "key", None, "none: "),
        ("empty", "key", None, "empty: expected certificates in PEM"),
        (
            "certificate",
            "empty",
            None,
            "empty: expected an unencrypted private key in PEM",
        ),
        ("certificate", "key", Some("none"), "none: "),
        (
            "certificate",
            "key",
            Some("empty"),
            "empty: expected certificates in PEM",
        ),
        (
            "certificate",
            "other",
            None,
            "other: the key is not that of the certificate",
        ),
    ] {
        let files = TlsFiles {
            certificate: path(certificate),
            key: path(key),
            client_authorities: ca.map(path),
        };
        let error = Tls::from_files(files).expect_err("bad files").to_string();
        assert!(error.contains(word), "{certificate} {key}: {error}");
        assert!(!error.contains("PRIVATE"), "{error}");
    }
}
