//! Certificates: what the gateway shows to clients, what it asks of them, and how it meets upstreams over TLS.

use crate::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What clients of some server names are shown, and what they must show.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The server names (RFC 6066, section 3) for which it is shown: a name, `*.` and the rest of one, a name that
    /// ends in `.*`, or `*` for all that no other entry has. The more exact entry counts, in this order; of two
    /// equal names the later.
    pub names: Vec<String>,
    /// Certificates with their keys; of several, clients are shown the first of a kind that they understand.
    pub key_pairs: Vec<KeyPair>,
    /// The certificate that clients must show; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// The oldest version of TLS.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_version: TlsVersion,
    /// Sends the responder's OCSP response with the certificate to clients that request it (stapling, RFC 6066, section
    /// 8); absent: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ocsp_stapling: Option<OcspStapling>,
}

/// How the responses of a certificate's responder are fetched and checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OcspStapling {
    /// Whether a response is passed on unchecked: its signature, its times, and whether it says that the certificate is
    /// valid.
    #[serde(skip_serializing_if = "is_default")]
    pub skip_verify: bool,
    /// The longest time in seconds for which a response is used before the responder is asked again. A response that
    /// announces an earlier update is used until then at most.
    #[schemars(range(min = 60))]
    pub cache_ttl_seconds: u32,
}

impl Default for OcspStapling {
    fn default() -> Self {
        Self {
            skip_verify: false,
            cache_ttl_seconds: 3600,
        }
    }
}

/// A certificate and its key. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyPair {
    /// The certificate and those that lead to its authority, in PEM.
    pub certificate: String,
    /// The private key, in PEM (PKCS#8, PKCS#1 or SEC1; not encrypted).
    pub key: String,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyPair")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// The requirements for clients' certificates.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// The authorities that may have signed them, in PEM.
    pub authorities: String,
    /// Whether clients without one are let in too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub optional: bool,
    /// Regular expressions of paths. Clients without a certificate may connect, but their calls to paths that match
    /// none of these are refused with status 400. Stream routes have no paths: their clients must have a certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt_paths: Vec<String>,
}

/// A version of TLS.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

/// The TLS settings for connections to targets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamTls {
    /// Whether a target's certificate is verified for its name.
    #[serde(skip_serializing_if = "is_true")]
    pub verify: bool,
    /// The authorities that may have signed it, in PEM; absent: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
    /// The server name in the TLS handshake, which the target's certificate must match; absent: the name in `Host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The certificate that targets get if they request one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<KeyPair>,
}

impl Default for UpstreamTls {
    fn default() -> Self {
        Self {
            verify: true,
            authorities: None,
            server_name: None,
            certificate: None,
        }
    }
}

impl std::hash::Hash for KeyPair {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.certificate.hash(state);
        self.key.hash(state);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_true(value: &bool) -> bool {
    *value
}
