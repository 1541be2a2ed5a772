//! `jwe-decrypt`: decrypts a token (JWE, RFC 7516) that a call carries, and forwards its content.
//!
//! ```yaml
//! header: Authorization
//! forward_header: X-Plain
//! ```
//!
//! A consumer's credential for it is `{key: TEXT, secret: 32 BYTES}`; the token's `kid` names the key. Tokens are in
//! the compact form, with the algorithms `dir` and `A256GCM`. With `keys`, the gateway's own keys open tokens instead
//! of credentials: secrets (`dir`) and RSA keys (`RSA-OAEP`, `RSA-OAEP-256`), with AES in all its forms.
//!
//! Security: the plugin does not identify the caller. The decrypted content replaces the header that callers send; if
//! there is no token and none is required, their own header goes through. The key decides which algorithms are
//! accepted. Every fault of a token that names a known key gets the same response.

use crate::jose::{DecryptionKey, Jwe};
use crate::private_key::PrivateKey;
use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_value;
use weir_plugin::{
    AuthFailure, BuildContext, CredentialIndex, CredentialKind, Exchange, Filter, Outcome, Phases, Plugin,
    Refusal, RefusalKind, TokenDefect, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `jwe-decrypt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The request header with the token, bare or after `Bearer`.
    #[serde(default = "authorization")]
    pub header: String,
    /// The request header in which the upstream gets what is decrypted.
    #[serde(default = "authorization")]
    pub forward_header: String,
    /// Whether calls without a token are refused.
    #[serde(default = "weir_plugins_shared::yes")]
    pub required: bool,
    /// Whether the token's header is protected too, as the standard has it. Apache APISIX leaves it out.
    #[serde(default = "weir_plugins_shared::yes")]
    pub header_is_protected: bool,
    /// Status of the response to calls without a token, 200 to 599.
    #[serde(default = "unauthenticated")]
    #[schemars(range(min = 200, max = 599))]
    pub missing_status: u16,
    /// Status of the response to calls with an invalid token, 200 to 599.
    #[serde(default = "unauthenticated")]
    #[schemars(range(min = 200, max = 599))]
    pub invalid_status: u16,
    /// Status of the response to calls with a token that no key opens, 200 to 599; absent: `invalid_status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 200, max = 599))]
    pub decryption_failed_status: Option<u16>,
    /// Keys that open tokens, which must name one by its id. Absent: the credentials of consumers open them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<PrivateKey>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            header: authorization(),
            forward_header: authorization(),
            required: true,
            header_is_protected: true,
            missing_status: unauthenticated(),
            invalid_status: unauthenticated(),
            decryption_failed_status: None,
            keys: None,
        }
    }
}

fn authorization() -> String {
    "Authorization".into()
}

fn unauthenticated() -> u16 {
    401
}

/// A credential of `jwe-decrypt`. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The `kid` of its tokens; unique among the credentials of one dialect.
    #[schemars(length(min = 1))]
    pub key: String,
    /// The secret: 32 bytes.
    pub secret: String,
    /// Whether the secret is written in Base64 (the alphabet for URLs).
    #[serde(default)]
    pub secret_is_base64: bool,
}

impl Credential {
    fn secret(&self) -> Option<LessSafeKey> {
        let bytes = match self.secret_is_base64 {
            true => URL_SAFE_NO_PAD.decode(self.secret.trim_end_matches('=')).ok()?,
            false => self.secret.clone().into_bytes(),
        };
        UnboundKey::new(&AES_256_GCM, &bytes).ok().map(LessSafeKey::new)
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// The plugin `jwe-decrypt`.
pub struct JweDecrypt;

impl Plugin for JweDecrypt {
    fn name(&self) -> &'static str {
        "jwe-decrypt"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_name("header", &config.header);
        faults.check_name("forward_header", &config.forward_header);
        faults.check_status("missing_status", config.missing_status);
        faults.check_status("invalid_status", config.invalid_status);
        faults.check_status(
            "decryption_failed_status",
            config.decryption_failed_status.unwrap_or(401),
        );
        faults.done()?;
        let keys = config.keys.as_ref().map(|keys| {
            // Of keys with one id, the first counts.
            let readable = keys.iter().rev().filter_map(read);
            readable.collect::<HashMap<_, _>>()
        });
        let index = context.credential_index("jwe-decrypt", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            let secret = credential.secret()?;
            Some((credential.key.into_bytes(), secret))
        });
        Ok(Arc::new(TokenFilter { config, index, keys }))
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let keys = parse_config::<Config>(config).ok().and_then(|it| it.keys);
        let keys = keys.unwrap_or_default();
        let unreadable = keys.iter().enumerate().filter(|(_, key)| read(key).is_none());
        let warning = |(index, _)| {
            let message = "opens no token: expected an id, and a secret (`oct`) or a private RSA key (not encrypted, at \
                           least 2048 bits), as a JSON Web Key (whose `use` is not `sig`) or in PEM";
            Diagnostic::warning(DocPath::root().field("keys").index(index), message)
        };
        unreadable.map(warning).collect()
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["key"],
            schema: schemars::schema_for!(Credential),
            check: |config| {
                let credential: Credential = parse_config(config)?;
                match credential.secret() {
                    Some(_) => Ok(()),
                    None => Err(vec![Diagnostic::error(
                        DocPath::root().field("secret"),
                        "expected a secret of 32 bytes",
                    )]),
                }
            },
        })
    }
}

/// A key with its id. `None`: it opens no token.
fn read(key: &PrivateKey) -> Option<(String, DecryptionKey)> {
    let (own, read) = match (&key.jwk, &key.pem) {
        (Some(text), None) => DecryptionKey::of_jwk(text)?,
        (None, Some(text)) => (None, DecryptionKey::of_pem(text)?),
        _ => return None,
    };
    Some((key.id.clone().or(own)?, read))
}

/// An instance of `jwe-decrypt`.
struct TokenFilter {
    config: Config,
    index: Arc<CredentialIndex<LessSafeKey>>,
    keys: Option<HashMap<String, DecryptionKey>>,
}

impl TokenFilter {
    fn decrypt(&self, token: &[u8], now_ms: impl FnOnce() -> u64) -> Result<Vec<u8>, AuthFailure> {
        let token = Jwe::parse(token).ok_or(AuthFailure::Malformed)?;
        let needed = |name: &str| {
            let lacks = || AuthFailure::Token(TokenDefect::NoKeyClaim(name.into()));
            token.parameter(name).ok_or_else(lacks)
        };
        let id = needed("kid")?;
        let unknown = || {
            AuthFailure::Token(TokenDefect::UnknownKey {
                claim: "kid".into(),
                value: id.into(),
            })
        };
        let opened = match &self.keys {
            Some(keys) => {
                needed("alg")?;
                needed("enc")?;
                token.open(keys.get(id).ok_or_else(unknown)?)
            }
            None => {
                let entry = self.index.get(id.as_bytes(), now_ms).ok_or_else(unknown)?;
                token.open_plain(&entry.secret, self.config.header_is_protected)
            }
        };
        // What cannot stand in a header would be left out, and the call go on without it.
        let value = opened.filter(|text| is_value(text));
        value.ok_or(AuthFailure::Token(TokenDefect::BadSignature))
    }

    fn refuse(&self, failure: AuthFailure) -> Outcome {
        let status = match failure {
            AuthFailure::Missing => self.config.missing_status,
            AuthFailure::Token(TokenDefect::BadSignature | TokenDefect::UnknownKey { .. }) => self
                .config
                .decryption_failed_status
                .unwrap_or(self.config.invalid_status),
            _ => self.config.invalid_status,
        };
        let plugin = "jwe-decrypt";
        let kind = RefusalKind::Unauthenticated { plugin, failure };
        Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
    }
}

impl Filter for TokenFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let headers = &exchange.request.headers;
        let Some(value) = headers.get(self.config.header.as_bytes()) else {
            return match self.config.required {
                true => self.refuse(AuthFailure::Missing),
                false => Outcome::Continue,
            };
        };
        let token = [&b"Bearer "[..], b"bearer "]
            .into_iter()
            .find_map(|scheme| value.strip_prefix(scheme));
        match self.decrypt(token.unwrap_or(value), || exchange.now_ms()) {
            Ok(plain) => {
                exchange.add_fingerprint(&plain);
                let headers = &mut exchange.request.headers;
                headers.set_owned(self.config.forward_header.as_bytes(), &plain);
                Outcome::Continue
            }
            Err(failure) => self.refuse(failure),
        }
    }
}

#[cfg(test)]
mod tests;
