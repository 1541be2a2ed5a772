//! The certificates that a client shows in the TLS handshake. What they are worth is not decided here.

/// What a client has shown. It has proved that it has the key of the first certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientCertificates {
    /// In DER: the client's own, then those that may lead to its authority, in the order in which they came.
    pub chain: Vec<Vec<u8>>,
    /// Whether the handshake has found that an authority of the configuration signed the first one.
    pub is_verified: bool,
}
