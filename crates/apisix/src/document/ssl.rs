//! Certificates: those that the gateway shows (`server`), and those that it shows to upstreams (`client`).

use super::ItemError;
use crate::schema::is_secret_reference;
use crate::schema::{
    Schema, any, array, having, host, id, integer, label_map, long_text, object, one_of, text, timestamp,
};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::LazyLock;
use weir_model::DocPath;

/// A certificate's document, with defaults filled in. `Debug` does not show keys.
#[derive(Deserialize)]
pub struct Ssl {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: u8,
    pub sni: Option<String>,
    #[serde(default)]
    pub snis: Vec<String>,
    pub cert: String,
    pub key: String,
    #[serde(default)]
    pub certs: Vec<String>,
    #[serde(default)]
    pub keys: Vec<String>,
    pub client: Option<Client>,
    pub ssl_protocols: Option<Vec<String>>,
    pub ocsp_stapling: Option<Stapling>,
    /// It cannot be read but for its names, whose handshakes are refused.
    #[serde(skip)]
    pub refuses_handshakes: bool,
}

/// Whether what the certificate's responder says is shown with it.
#[derive(Deserialize)]
pub struct Stapling {
    pub enabled: bool,
    pub skip_verify: bool,
    pub cache_ttl: u64,
}

/// The requirements for the certificates of clients.
#[derive(Deserialize)]
pub struct Client {
    pub ca: String,
    #[serde(default)]
    pub skip_mtls_uri_regex: Vec<String>,
}

impl fmt::Debug for Ssl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ssl")
            .field("kind", &self.kind)
            .field("sni", &self.sni)
            .field("snis", &self.snis)
            .finish_non_exhaustive()
    }
}

impl Ssl {
    /// The server names that it is for.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.sni.iter().chain(&self.snis)
    }

    /// Certificates with their keys.
    pub fn pairs(&self) -> impl Iterator<Item = (&String, &String)> {
        let first = std::iter::once((&self.cert, &self.key));
        first.chain(self.certs.iter().zip(&self.keys))
    }
}

/// Checks that the document's keys are those of its certificates. References to secrets are not looked into. Of a
/// certificate whose clients must show one nothing is checked: if it cannot be served, the compile refuses its
/// handshakes. Without the document, its names could go to another certificate that asks clients for none.
///
/// # Errors
/// Which pair does not fit.
pub fn check(document: &Map<String, Value>, place: &DocPath) -> Result<(), ItemError> {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    let list = |field: &str| {
        let items = document.get(field).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    };
    let is_client = text("type") == Some("client");
    if !is_client && document.get("client").is_some_and(Value::is_object) {
        return Ok(());
    }
    let first = text("cert").zip(text("key"));
    let others = list("certs").zip(list("keys"));
    for (certificate, key) in first.into_iter().chain(others) {
        let refers = is_secret_reference(certificate) || is_secret_reference(key);
        if !refers && !fits(certificate, key) {
            return Err((place.clone(), UNFIT.to_owned()));
        }
    }
    // References are followed in what clients are shown, and nowhere else.
    let ca = document
        .get("client")
        .and_then(|client| client.get("ca")?.as_str());
    let of_client = [text("cert"), text("key")].into_iter().filter(|_| is_client);
    match of_client.chain([ca]).flatten().any(is_secret_reference) {
        true => Err((place.clone(), REFERENCE.to_owned())),
        false => Ok(()),
    }
}

/// Checks that the key of a client certificate, which an upstream or what holds one brings, is that certificate's.
///
/// # Errors
/// What is wrong with it.
pub fn check_upstream(document: &Map<String, Value>, place: &DocPath) -> Result<(), ItemError> {
    let inner = document.get("upstream").and_then(|upstream| upstream.get("tls"));
    for tls in document.get("tls").into_iter().chain(inner) {
        let text = |field: &str| tls.get(field).and_then(Value::as_str);
        let (Some(certificate), Some(key)) = (text("client_cert"), text("client_key")) else {
            continue;
        };
        let message = match is_secret_reference(certificate) || is_secret_reference(key) {
            true => REFERENCE,
            false if fits(certificate, key) => continue,
            false => UNFIT,
        };
        return Err((place.field("tls"), message.to_owned()));
    }
    Ok(())
}

const UNFIT: &str = "a certificate or its key cannot be read, or the key is another one's";
const REFERENCE: &str = "references to secrets are not available in client certificates and authorities";

/// What is left of a document that cannot be read, if its clients must show a certificate: its names keep another certificate
/// from taking them that asks clients for none. `None`: they need not, or it is off or has no names.
pub fn refusing(document: &Map<String, Value>) -> Option<Ssl> {
    let field = |name: &str| document.get(name).filter(|value| !value.is_null());
    let is_server = field("type").is_none_or(|kind| kind != "client");
    let is_on = field("status").is_none_or(|status| *status != 0);
    field("client").filter(|_| is_server && is_on)?;
    let further = field("snis").and_then(Value::as_array);
    let names = field("sni").into_iter().chain(further.into_iter().flatten());
    let is_name = |name: &&Value| name.is_string() && host().check(&mut (*name).clone()).is_ok();
    let names = names.filter(is_name).filter_map(Value::as_str);
    let names: Vec<String> = names.map(str::to_owned).collect();
    (!names.is_empty()).then(|| Ssl {
        kind: "server".to_owned(),
        status: 1,
        sni: None,
        snis: names,
        cert: String::new(),
        key: String::new(),
        certs: Vec::new(),
        keys: Vec::new(),
        client: None,
        ssl_protocols: None,
        ocsp_stapling: None,
        refuses_handshakes: true,
    })
}

/// Why such a document cannot be read, and what becomes of its names.
pub fn refused(reason: &str) -> String {
    format!("{reason}; handshakes for its names are refused")
}

/// Whether the public part of a private key stands in a certificate.
fn fits(certificate: &str, key: &str) -> bool {
    let certificate = der(certificate, |label| label == "CERTIFICATE");
    let key = der(key, |label| label.ends_with("PRIVATE KEY"));
    match (certificate, key.and_then(|key| public_part(&key))) {
        (Some(certificate), Some(public)) => certificate.windows(public.len()).any(|window| window == public),
        _ => false,
    }
}

/// As a certificate holds it.
fn public_part(key: &[u8]) -> Option<Vec<u8>> {
    let curves = [
        &ECDSA_P256_SHA256_ASN1_SIGNING,
        &ECDSA_P384_SHA384_ASN1_SIGNING,
        &ECDSA_P521_SHA512_ASN1_SIGNING,
    ];
    let of_curve = || {
        curves
            .into_iter()
            .find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, key).ok())
    };
    let rsa = RsaKeyPair::from_pkcs8(key).or_else(|_| RsaKeyPair::from_der(key));
    if let Ok(pair) = rsa {
        Some(pair.public_key().as_ref().to_vec())
    } else if let Some(pair) = of_curve() {
        Some(pair.public_key().as_ref().to_vec())
    } else {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key).ok()?;
        Some(pair.public_key().as_ref().to_vec())
    }
}

/// The content of the first block of a PEM text (RFC 7468) whose label is asked for.
fn der(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut rest = text;
    loop {
        let (_, behind) = rest.split_once("-----BEGIN ")?;
        let (label, behind) = behind.split_once("-----")?;
        let (content, behind) = behind.split_once("-----END ")?;
        if is_wanted(label) {
            let content: String = content.split_ascii_whitespace().collect();
            return STANDARD.decode(content).ok();
        }
        rest = behind;
    }
}

/// The shape of a certificate's document.
pub fn shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("type", text().options(["server", "client"]).or("server").described(
                "ssl certificate type, server to server certificate, client to client certificate for upstream",
            )),
            ("cert", certificate()),
            ("key", private_key()),
            ("sni", host()),
            ("snis", array(host()).min_items(1)),
            ("certs", array(certificate())),
            ("keys", array(private_key())),
            ("client", client()),
            (
                "status",
                integer()
                    .numbers([1, 0])
                    .or(1)
                    .described("ssl status, 1 to enable, 0 to disable"),
            ),
            (
                "ssl_protocols",
                array(any().options(["TLSv1.1", "TLSv1.2", "TLSv1.3"]))
                    .max_items(3)
                    .unique()
                    .described("set ssl protocols"),
            ),
            ("ocsp_stapling", ocsp_stapling()),
        ])
        .when(
            object([("type", any().options(["server"]))]).of_any_kind(),
            one_of([having(["sni", "key", "cert"]), having(["snis", "key", "cert"])]),
            having(["key", "cert"]),
        )
        .closed()
    });
    &SHAPE
}

/// A certificate in PEM, or a reference to one.
pub fn certificate() -> Schema {
    text().length(128, 65_536)
}

/// A private key in PEM, or a reference to one.
pub fn private_key() -> Schema {
    text().length(64, 65_536)
}

/// The requirements for the certificates of clients.
fn client() -> Schema {
    object([
        ("ca", certificate()),
        ("depth", integer().at_least(0).or(1)),
        (
            "skip_mtls_uri_regex",
            array(text().described("uri regular expression to skip mtls"))
                .min_items(1)
                .unique(),
        ),
    ])
    .required(["ca"])
}

fn ocsp_stapling() -> Schema {
    use crate::schema::boolean;
    object([
        ("enabled", boolean().or(false)),
        ("skip_verify", boolean().or(false)),
        ("cache_ttl", integer().at_least(60).or(3600)),
    ])
}
