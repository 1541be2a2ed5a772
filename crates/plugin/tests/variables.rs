//! What variables say of a call and its connection.

use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber};
use std::sync::Arc;
use weir_plugin::{ClientCertificates, Exchange, TlsAgreement, Variable};

/// 2026-11-30T21:16:50.500Z.
const NOW_MS: u64 = 1_796_073_410_500;

fn read(exchange: &Exchange, name: &str) -> Option<String> {
    let value = Variable::parse(name).read(exchange)?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

fn call() -> Exchange {
    let mut exchange = Exchange::new(|| NOW_MS, 1);
    let request = &mut exchange.request;
    request.method = b"GET".to_vec();
    request.raw_path = b"/a%20b".to_vec();
    request.path = b"/a b".to_vec();
    request.query = Some(b"x=1".to_vec());
    request.client = [1, 2, 3, 4].into();
    exchange
}

#[test]
fn a_call_and_its_time_are_described() {
    let exchange = call();
    let pid = std::process::id().to_string();
    for (name, value) in [
        ("request", Some("GET /a%20b?x=1 HTTP/1.1")),
        ("request_line", Some("GET /a%20b?x=1 HTTP/1.1")),
        ("https", Some("")),
        ("ssl_server_name", None),
        ("ssl_protocol", None),
        ("ssl_client_verify", None),
        ("ssl_client_s_dn", None),
        ("binary_remote_addr", Some("\u{1}\u{2}\u{3}\u{4}")),
        ("msec", Some("1796073410.500")),
        ("time_iso8601", Some("2026-11-30T21:16:50+00:00")),
        ("time_local", Some("30/Nov/2026:21:16:50 +0000")),
        ("server_name", Some("_")),
        ("pid", Some(pid.as_str())),
        ("no_such_name", None),
    ] {
        assert_eq!(read(&exchange, name).as_deref(), value, "{name}");
    }
}

/// The id is the same wherever it is looked at.
#[test]
fn a_call_has_an_id_as_soon_as_one_is_asked_for() {
    let mut exchange = call();
    let id = read(&exchange, "request_id").expect("an id");
    assert!(
        id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
    assert_eq!(exchange.request_id(), id);
    assert_eq!(exchange.ensure_request_id(), id);
    exchange.clear();
    let next = exchange.ensure_request_id().to_owned();
    assert_ne!(next, id);
    assert_eq!(read(&exchange, "request_id"), Some(next));
}

#[test]
fn certificates_of_clients_are_described() {
    let mut parameters = CertificateParams::new(["a.test".to_owned()]).expect("good");
    parameters.serial_number = Some(SerialNumber::from(vec![0x0a, 0xff]));
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "alice");
    let key = KeyPair::generate().expect("a key");
    let certificate = parameters
        .self_signed(&key)
        .expect("a certificate")
        .der()
        .to_vec();
    for (is_verified, verify) in [(true, "SUCCESS"), (false, "FAILED")] {
        let mut exchange = call();
        exchange.request.is_tls = true;
        exchange.request.sni = Some("a.test".into());
        exchange.request.tls = Some(TlsAgreement {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
        });
        assert_eq!(read(&exchange, "ssl_client_verify").as_deref(), Some("NONE"));
        let chain = vec![certificate.clone()];
        exchange.request.client_certificates = Some(Arc::new(ClientCertificates { chain, is_verified }));
        for (name, value) in [
            ("https", "on"),
            ("ssl_server_name", "a.test"),
            ("ssl_protocol", "TLSv1.3"),
            ("ssl_cipher", "TLS_AES_128_GCM_SHA256"),
            ("ssl_client_verify", verify),
            ("ssl_client_s_dn", "CN=alice"),
            ("ssl_client_i_dn", "CN=alice"),
            ("ssl_client_serial", "0AFF"),
        ] {
            assert_eq!(read(&exchange, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(
            read(&exchange, "ssl_client_fingerprint").map(|it| it.len()),
            Some(40)
        );
    }
}
