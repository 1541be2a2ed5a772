//! Certificates: those that the gateway shows (`server`), and those that it shows to upstreams (`client`).

use crate::schema::{
    Shape, any, array, having, host, id, integer, label_map, long_text, object, one_of, text, timestamp,
};
use serde::Deserialize;
use std::fmt;
use std::sync::LazyLock;

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
}

/// What is asked of the certificates that clients show.
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

/// What a certificate's document must look like.
pub fn shape() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("type", text().options(["server", "client"]).or("server")),
            ("cert", certificate()),
            ("key", private_key()),
            ("sni", host()),
            ("snis", array(host()).min_items(1)),
            ("certs", array(certificate())),
            ("keys", array(private_key())),
            ("client", client()),
            ("status", integer().numbers([1, 0]).or(1)),
            (
                "ssl_protocols",
                array(any().options(["TLSv1.1", "TLSv1.2", "TLSv1.3"]))
                    .max_items(3)
                    .unique(),
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
pub fn certificate() -> Shape {
    text().length(128, 65_536)
}

/// A private key in PEM, or a reference to one.
pub fn private_key() -> Shape {
    text().length(64, 65_536)
}

/// What is asked of the certificates that clients show.
fn client() -> Shape {
    object([
        ("ca", certificate()),
        ("depth", integer().at_least(0).or(1)),
        ("skip_mtls_uri_regex", array(text()).min_items(1).unique()),
    ])
    .required(["ca"])
}

fn ocsp_stapling() -> Shape {
    use crate::schema::boolean;
    object([
        ("enabled", boolean().or(false)),
        ("skip_verify", boolean().or(false)),
        ("cache_ttl", integer().at_least(60).or(3600)),
    ])
}
