//! `jwt`: recognises consumers by a JSON Web Token (RFC 7519) that their calls carry.
//!
//! ```yaml
//! locations: [{header: Authorization}, {cookie: session}]
//! required_claims: [exp]
//! expected_claims: {aud: orders}
//! ```
//!
//! A consumer's credential for it names the token's `iss` (or another claim) and what its signature is checked with:
//! `{key: partner, algorithm: RS256, public_key: PEM}` or `{key: partner, secret: TEXT}`.
//!
//! Security: the credential says which algorithm is good, the token only has to agree; there is no `none`. Secrets are
//! compared in constant time. Nothing of a token is believed before its signature holds, but the name of its
//! credential. Encrypted tokens (JWE) are not read. A token is good until it expires: keep `exp` near, and require it.

mod filter;
pub(crate) mod pem;
mod short_rsa;
mod token;
pub(crate) mod verifier;

pub(crate) use filter::remove_cookie;

use crate::identity::{self, Gate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{BuildContext, CredentialKind, Filter, Plugin, parse_config};

/// Configuration of `jwt`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The locations of the token, in the order in which they are read.
    #[serde(default = "standard_places")]
    pub locations: Vec<TokenLocation>,
    /// What tokens in several places mean.
    #[serde(default)]
    pub on_multiple: MultipleTokens,
    /// The schemes, one of which must precede the token in a header, exactly as written here.
    #[serde(default = "standard_schemes")]
    pub schemes: Vec<String>,
    /// Whether a header without such a word holds no token, rather than a bare one.
    #[serde(default = "weir_plugins_shared::yes")]
    pub scheme_required: bool,
    /// The claim that names the credential.
    #[serde(default = "standard_key_claim")]
    pub key_claim: String,
    /// Whether the token's header may name the credential if the claims do not.
    #[serde(default = "weir_plugins_shared::yes")]
    pub key_in_header: bool,
    /// Whether `typ`, if the token has one, must be `JWT` (in any case).
    #[serde(default = "weir_plugins_shared::yes")]
    pub check_typ: bool,
    /// Whether a token with an empty signature is malformed, rather than wrongly signed.
    #[serde(default = "weir_plugins_shared::yes")]
    pub signature_required: bool,
    /// Whether the secrets of all credentials are Base64 (of either alphabet).
    #[serde(default)]
    pub secret_is_base64: bool,
    /// Time claims that every token must have, and that must hold.
    #[serde(default)]
    pub required_claims: Vec<TimeClaim>,
    /// The time claims that must hold if a token has them.
    #[serde(default = "all_time_claims")]
    pub checked_claims: Vec<TimeClaim>,
    /// How far `exp` may lie ahead, in seconds. With it every token must have an `exp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_expiration_seconds: Option<u64>,
    /// For how many seconds tokens are accepted after `exp` and before `nbf`. A credential's own leeway counts if it is
    /// longer.
    #[serde(default)]
    pub leeway_seconds: u64,
    /// Claims that must have a value, at most 13: equal to this text, or a list with this text in it (as `aud` may be).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expected_claims: BTreeMap<String, String>,
    /// Whether the token is removed from the request before it is forwarded.
    #[serde(default)]
    pub strip: bool,
    /// `WWW-Authenticate` of refusals of calls without a token; `null`: none.
    #[serde(default = "standard_challenge")]
    pub challenge: Option<String>,
    /// `WWW-Authenticate` of refusals of calls whose token is wrong; `null`: none.
    #[serde(default = "standard_token_challenge")]
    pub token_challenge: Option<String>,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            locations: standard_places(),
            on_multiple: MultipleTokens::default(),
            schemes: standard_schemes(),
            scheme_required: true,
            key_claim: standard_key_claim(),
            key_in_header: true,
            check_typ: true,
            signature_required: true,
            secret_is_base64: false,
            required_claims: Vec::new(),
            checked_claims: all_time_claims(),
            max_expiration_seconds: None,
            leeway_seconds: 0,
            expected_claims: BTreeMap::new(),
            strip: false,
            challenge: standard_challenge(),
            token_challenge: standard_token_challenge(),
            identity: identity::Config::default(),
        }
    }
}

fn standard_places() -> Vec<TokenLocation> {
    vec![TokenLocation::Header("Authorization".into())]
}

fn standard_schemes() -> Vec<String> {
    ["Bearer", "bearer", "BEARER"].map(str::to_owned).to_vec()
}

fn standard_key_claim() -> String {
    "iss".into()
}

fn all_time_claims() -> Vec<TimeClaim> {
    vec![TimeClaim::Exp, TimeClaim::Nbf]
}

fn standard_challenge() -> Option<String> {
    Some("Bearer".into())
}

fn standard_token_challenge() -> Option<String> {
    Some("Bearer error=\"invalid_token\"".into())
}

/// A location for a token, with its name there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenLocation {
    /// A request header, after one of the `schemes`.
    Header(String),
    /// A query argument.
    Query(String),
    /// A cookie.
    Cookie(String),
}

/// What tokens in several places mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MultipleTokens {
    /// Tokens that differ are refused; empty ones count as none.
    #[default]
    Refuse,
    /// The first location that is present counts, even if it is empty; further tokens in the same location are refused.
    First,
}

/// A claim about time (RFC 7519, 4.1), in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeClaim {
    /// `exp`: the token is valid before this time.
    Exp,
    /// `nbf`: the token is valid from this time on.
    Nbf,
}

/// A credential of `jwt`. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The value of the key claim by which tokens name this credential; unique among the credentials of one dialect.
    #[schemars(length(min = 1))]
    pub key: String,
    /// The one algorithm for tokens of this credential. The algorithm in a token must only agree with it.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// The shared secret, for the `HS…` algorithms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether `secret` is Base64 (of either alphabet).
    #[serde(default)]
    pub secret_is_base64: bool,
    /// The public key in PEM, for all other algorithms: a `PUBLIC KEY` (RFC 5280), an `RSA PUBLIC KEY` (RFC 8017) or a
    /// `CERTIFICATE`. RSA keys have at least 2048 bits, or see `short_rsa_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Whether `public_key` may be a shorter RSA key, from 512 bits on, with `RS256`, `RS384` or `RS512`. Such keys can
    /// be broken: use it only for callers who cannot get a new key at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short_rsa_key: bool,
    /// How long tokens are still taken after `exp` and already before `nbf`, in seconds.
    #[serde(default)]
    pub leeway_seconds: u64,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential")
            .field("key", &self.key)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// Whether this is a public RSA key with fewer bits than RFC 7518 (3.3) requires.
    pub fn is_short_rsa_key(pem: &str) -> bool {
        let bits = pem::public_key(pem).and_then(|der| pem::rsa_bits(&der));
        bits.is_some_and(verifier::is_short)
    }
}

/// A signature algorithm (RFC 7518, 3.1, and RFC 8037). There is no `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the variants are the algorithms' registered names")]
pub enum Algorithm {
    #[default]
    HS256,
    HS384,
    HS512,
    RS256,
    RS384,
    RS512,
    ES256,
    ES384,
    ES512,
    PS256,
    PS384,
    PS512,
    /// With Ed25519 keys.
    EdDSA,
}

/// The plugin `jwt`.
pub struct Jwt;

impl Plugin for Jwt {
    fn name(&self) -> &'static str {
        "jwt"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let faults = faults(&config);
        if !faults.is_empty() {
            return Err(faults);
        }
        let gate = Gate::build("jwt", config.identity.clone(), context)?;
        let index = context.credential_index("jwt", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            let verifier = verifier::Verifier::new(&credential).ok()?;
            Some((credential.key.into_bytes(), verifier))
        });
        Ok(Arc::new(filter::TokenFilter::new(config, gate, index)))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["key"],
            schema: schemars::schema_for!(Credential),
            check: check_credential,
        })
    }
}

fn check_credential(config: &Value) -> Result<(), Vec<Diagnostic>> {
    let credential: Credential = parse_config(config)?;
    if credential.key.is_empty() {
        return Err(vec![Diagnostic::error(
            DocPath::root().field("key"),
            "expected a key",
        )]);
    }
    match verifier::Verifier::new(&credential) {
        Ok(_) => Ok(()),
        Err(fault) => {
            let path = DocPath::root().field(fault.field());
            Err(vec![Diagnostic::error(path, fault.to_string())])
        }
    }
}

fn faults(config: &Config) -> Vec<Diagnostic> {
    let root = DocPath::root();
    let mut faults = Vec::new();
    for (index, place) in config.locations.iter().enumerate() {
        if matches!(place, TokenLocation::Header(name) if !is_name(name.as_bytes())) {
            let path = root.field("locations").index(index);
            faults.push(Diagnostic::error(path, "expected a header name"));
        }
    }
    if config.key_claim.is_empty() {
        faults.push(Diagnostic::error(
            root.field("key_claim"),
            "expected the name of a claim",
        ));
    }
    if config.expected_claims.len() > filter::MAX_EXPECTED {
        let message = format!("expected at most {} claims", filter::MAX_EXPECTED);
        faults.push(Diagnostic::error(root.field("expected_claims"), message));
    }
    for (field, text) in [
        ("challenge", &config.challenge),
        ("token_challenge", &config.token_challenge),
    ] {
        if text.as_ref().is_some_and(|text| !is_value(text.as_bytes())) {
            faults.push(Diagnostic::error(root.field(field), "expected a header value"));
        }
    }
    faults
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
