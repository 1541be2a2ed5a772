//! `basic-auth`: recognises consumers by a user name and a password (RFC 7617) that their calls carry.
//!
//! ```yaml
//! challenge: Basic realm="orders", charset="UTF-8"
//! strip: true
//! ```
//!
//! A consumer's credential for it is `{username: TEXT, password: TEXT}`, or has the hash of the password.
//!
//! Security: passwords travel with every call; serve such routes over TLS only. They are compared in constant time and
//! never logged.

mod read;

use crate::identity::{self, Gate};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use data_encoding::HEXLOWER_PERMISSIVE;
use read::{DecodeBuffer, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    AuthFailure, BuildContext, CredentialEntry, CredentialIndex, CredentialKind, Exchange, Filter, Outcome,
    Phases, Plugin, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `basic-auth`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The request headers that may carry user name and password. The first one that names a known user counts.
    #[serde(default = "standard_headers")]
    pub headers: Vec<String>,
    /// Whether the word before them may be written in capitals (`BASIC`) too.
    #[serde(default = "weir_plugins_shared::yes")]
    pub any_case: bool,
    /// Whether white space in user name and password means nothing, and a password may have no `:`, as Apache APISIX
    /// has it.
    #[serde(default)]
    pub ignore_spaces: bool,
    /// Whether the headers are removed from the request before it is forwarded.
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
            headers: standard_headers(),
            any_case: true,
            ignore_spaces: false,
            strip: false,
            challenge: standard_challenge(),
            identity: identity::Config::default(),
        }
    }
}

fn standard_headers() -> Vec<String> {
    vec!["Authorization".into()]
}

fn standard_challenge() -> Option<String> {
    Some("Basic realm=\"service\"".into())
}

/// A credential of `basic-auth`. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The user name; unique among the credentials of one dialect.
    #[schemars(length(min = 1))]
    pub username: String,
    /// The password; either this or one of its hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// In place of `password`: its SHA-256, as 64 hexadecimal digits. Fit for passwords that were made at random; one that
    /// was chosen can be guessed from its hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_sha256: Option<String>,
    /// The password's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_sha1: Option<Sha1>,
}

/// SHA-1 of a password followed by a salt, which is how Kong stores passwords.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sha1 {
    /// The hash, 40 hexadecimal digits.
    pub hash: String,
    /// The text after the password.
    pub salt: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// The plugin `basic-auth`.
pub struct BasicAuth;

impl Plugin for BasicAuth {
    fn name(&self) -> &'static str {
        "basic-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_names("headers", &config.headers);
        faults.check_value("challenge", config.challenge.as_ref());
        faults.done()?;
        let index = context.credential_index("basic-auth", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            let username = credential.username.clone().into_bytes();
            Some((username, Verifier::new(credential).ok()?))
        });
        Ok(Arc::new(PasswordFilter {
            gate: Gate::build("basic-auth", config.identity.clone(), context)?,
            config,
            index,
        }))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["username"],
            schema: schemars::schema_for!(Credential),
            check: |config| {
                let credential: Credential = parse_config(config)?;
                let mut faults = ConfigErrors::default();
                if credential.username.is_empty() {
                    faults.add("username", "expected a user name");
                }
                if let Err(fault) = Verifier::new(credential) {
                    faults.extend(vec![fault]);
                }
                faults.done()
            },
        })
    }
}

/// What a password is compared with.
enum Verifier {
    Password(Vec<u8>),
    Sha256([u8; 32]),
    Sha1 { hash: [u8; 20], salt: Vec<u8> },
}

impl Verifier {
    fn new(credential: Credential) -> Result<Self, Diagnostic> {
        let root = DocPath::root();
        let Credential {
            password,
            password_sha256,
            password_sha1,
            ..
        } = credential;
        match (password, password_sha256, password_sha1) {
            (Some(password), None, None) => Ok(Self::Password(password.into_bytes())),
            (None, Some(hash), None) => digits(&hash).map(Self::Sha256).ok_or_else(|| {
                let path = root.field("password_sha256");
                Diagnostic::error(path, "expected 64 hexadecimal digits")
            }),
            (None, None, Some(Sha1 { hash, salt })) => {
                let hash = digits(&hash).ok_or_else(|| {
                    let path = root.field("password_sha1").field("hash");
                    Diagnostic::error(path, "expected 40 hexadecimal digits")
                })?;
                let salt = salt.into_bytes();
                Ok(Self::Sha1 { hash, salt })
            }
            _ => Err(Diagnostic::error(
                root,
                "expected one of password, password_sha256 and password_sha1",
            )),
        }
    }

    fn accepts(&self, password: &[u8]) -> bool {
        match self {
            Self::Password(known) => verify_slices_are_equal(known, password).is_ok(),
            Self::Sha256(hash) => verify_slices_are_equal(hash, digest(&SHA256, password).as_ref()).is_ok(),
            Self::Sha1 { hash, salt } => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(password);
                context.update(salt);
                verify_slices_are_equal(hash, context.finish().as_ref()).is_ok()
            }
        }
    }
}

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// An instance of `basic-auth`.
struct PasswordFilter {
    config: Config,
    gate: Gate,
    index: Arc<CredentialIndex<Verifier>>,
}

impl PasswordFilter {
    /// The credential that the call proves, and how many of the headers have been looked at for it.
    fn check(&self, exchange: &Exchange) -> (Result<&CredentialEntry<Verifier>, AuthFailure>, usize) {
        let config = &self.config;
        let mut failure = AuthFailure::Missing;
        for (name, count) in config.headers.iter().zip(1..) {
            let Some(value) = exchange.request.headers.get(name.as_bytes()) else {
                continue;
            };
            let mut room = DecodeBuffer::new();
            let Some((username, password)) = read(value, config, &mut room) else {
                failure = AuthFailure::Malformed;
                continue;
            };
            failure = AuthFailure::Invalid;
            if let Some(entry) = self.index.get(username, || exchange.now_ms()) {
                return match entry.secret.accepts(password) {
                    true => (Ok(entry), count),
                    false => (Err(failure), count),
                };
            }
        }
        (Err(failure), config.headers.len())
    }
}

impl Filter for PasswordFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let (credential, looked_at) = self.check(exchange);
        if self.config.strip {
            for name in &self.config.headers[..looked_at] {
                exchange.request.headers.remove(name.as_bytes());
            }
        }
        match credential {
            Ok(entry) => self.gate.accept(exchange, &entry.identity),
            Err(failure) => self
                .gate
                .reject(exchange, failure, self.config.challenge.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests;
