//! `hmac-auth`: recognises consumers by a signature over parts of the call, made with a secret that both sides know.
//!
//! ```yaml
//! required_headers: [date, "@request-target"]
//! check_body: true
//! ```
//!
//! A consumer's credential for it is `{key: TEXT, secret: TEXT}`. A call names the key, the headers that are signed,
//! and the signature, in one of two forms: Kong's (`hmac username="…", algorithm="hmac-sha256", headers="date
//! @request-target", signature="…"`) or Apache APISIX's (`Signature keyId="…",algorithm=…,headers=…,signature=…`).
//!
//! Security: what is not signed can be changed on the way; require at least the time and the request's target, and
//! check the body. A call can be repeated for as long as its time is good. Signatures are compared in constant time.

mod filter;
mod read;
mod sign;

use crate::identity::{self, Gate};
use filter::SignatureFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sign::Keys;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, CredentialKind, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::request_uri::UriForm;

/// Configuration of `hmac-auth`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The form in which calls carry their signature, and what is signed.
    #[serde(default)]
    pub form: Form,
    /// The request headers that may carry it. The first one that can be parsed counts.
    #[serde(default = "standard_headers")]
    pub headers: Vec<String>,
    /// Algorithms that are taken.
    #[serde(default = "all_algorithms")]
    pub algorithms: Vec<Algorithm>,
    /// How far the time in `X-Date` or `Date` may differ from the gateway's, in seconds. 0: the time is not checked.
    #[serde(default = "standard_skew")]
    pub clock_skew_seconds: u64,
    /// Whether a call may name its time in `X-Date`.
    #[serde(default = "weir_plugins_shared::yes")]
    pub x_date: bool,
    /// Headers that must be signed; `@request-target` stands for method, path and query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_headers: Vec<String>,
    /// The form of path and query that is signed.
    #[serde(default = "as_written")]
    pub uri: UriForm,
    /// Whether the header `Digest` must hold the body's SHA-256 (`SHA-256=` and Base64).
    #[serde(default)]
    pub check_body: bool,
    /// The most bytes of a body that is checked.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
    /// Whether the header is removed from the request before it is forwarded.
    #[serde(default)]
    pub strip: bool,
    /// `WWW-Authenticate` of refusals; `null`: none.
    #[serde(default = "standard_challenge")]
    pub challenge: Option<String>,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            form: Form::default(),
            headers: standard_headers(),
            algorithms: all_algorithms(),
            clock_skew_seconds: standard_skew(),
            x_date: true,
            required_headers: Vec::new(),
            uri: as_written(),
            check_body: false,
            max_body_bytes: standard_body_limit(),
            strip: false,
            challenge: standard_challenge(),
            identity: identity::Config::default(),
        }
    }
}

fn standard_headers() -> Vec<String> {
    vec!["Authorization".into()]
}

fn all_algorithms() -> Vec<Algorithm> {
    vec![
        Algorithm::HmacSha1,
        Algorithm::HmacSha256,
        Algorithm::HmacSha384,
        Algorithm::HmacSha512,
    ]
}

fn standard_skew() -> u64 {
    300
}

fn as_written() -> UriForm {
    UriForm::AsWritten
}

fn standard_body_limit() -> usize {
    64 << 20
}

fn standard_challenge() -> Option<String> {
    Some("hmac".into())
}

/// A form in which calls carry their signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Kong's. Signed is a line for each header that the call names: `name: value`, `@request-target: get /path`,
    /// `GET /path HTTP/1.1` for `request-line`, and `name:` for one that the call does not have.
    #[default]
    Hmac,
    /// Apache APISIX's. Signed is a line with the key, one for each header that the call names and has, and for
    /// `@request-target` one with `GET /path`; each ends in a line feed.
    Signature,
}

/// An algorithm that makes signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Algorithm {
    HmacSha1,
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

impl Algorithm {
    const ALL: [(Self, &'static [u8]); 4] = [
        (Self::HmacSha1, b"hmac-sha1"),
        (Self::HmacSha256, b"hmac-sha256"),
        (Self::HmacSha384, b"hmac-sha384"),
        (Self::HmacSha512, b"hmac-sha512"),
    ];

    /// The algorithm of this name.
    fn named(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known)| *known == name)
            .map(|(algorithm, _)| algorithm)
    }
}

/// A credential of `hmac-auth`. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The name by which calls name the credential; unique among those of one dialect.
    #[schemars(length(min = 1))]
    pub key: String,
    /// The secret with which calls are signed.
    pub secret: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// The plugin `hmac-auth`.
pub struct HmacAuth;

impl Plugin for HmacAuth {
    fn name(&self) -> &'static str {
        "hmac-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_names("headers", &config.headers);
        faults.check_value("challenge", config.challenge.as_ref());
        if config.algorithms.is_empty() {
            faults.add("algorithms", "expected at least one algorithm");
        }
        faults.done()?;
        let index = context.credential_index("hmac-auth", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            Some((
                credential.key.into_bytes(),
                Keys::new(credential.secret.into_bytes()),
            ))
        });
        let gate = Gate::build("hmac-auth", config.identity.clone(), context)?;
        Ok(Arc::new(SignatureFilter { config, gate, index }))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["key"],
            schema: schemars::schema_for!(Credential),
            check: |config| {
                let credential: Credential = parse_config(config)?;
                let mut faults = ConfigErrors::default();
                if credential.key.is_empty() {
                    faults.add("key", "expected a key");
                }
                faults.done()
            },
        })
    }
}

#[cfg(test)]
mod tests;
