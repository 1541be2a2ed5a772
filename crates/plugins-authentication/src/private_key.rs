//! Private keys in configurations: for plugins that open or sign tokens with keys of their own. How they are read is for
//! `jose`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A private key or a secret. `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PrivateKey {
    /// Its id, which tokens name as `kid`; absent: that of the JSON Web Key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A JSON Web Key with its private parts, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwk: Option<String>,
    /// A private key in PEM, not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pem: Option<String>,
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PrivateKey").finish_non_exhaustive()
    }
}
