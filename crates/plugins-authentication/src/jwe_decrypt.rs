//! `jwe-decrypt`: decrypts a token (JWE, RFC 7516) that a call carries, and forwards what is in it.
//!
//! ```yaml
//! header: Authorization
//! forward_header: X-Plain
//! ```
//!
//! A consumer's credential for it is `{key: TEXT, secret: 32 BYTES}`; the token's `kid` names the key. Tokens are in the
//! compact form, with the algorithms `dir` and `A256GCM`.
//!
//! Security: it does not identify the caller. What is decrypted replaces the header that callers send; where there is no token
//! and none is required, their own header goes through.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    AuthFailure, BuildContext, CredentialIndex, CredentialKind, Exchange, Filter, Outcome, Phases, Plugin,
    Refusal, RefusalKind, TokenFault, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `jwe-decrypt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The request header with the token, bare or behind `Bearer`.
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
    /// Status of the answer to calls without a token, 200 to 599.
    #[serde(default = "unauthenticated")]
    #[schemars(range(min = 200, max = 599))]
    pub missing_status: u16,
    /// Status of the answer to calls with a wrong token, 200 to 599.
    #[serde(default = "unauthenticated")]
    #[schemars(range(min = 200, max = 599))]
    pub invalid_status: u16,
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

/// The plugin.
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
        faults.done()?;
        let index = context.credential_index("jwe-decrypt", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            let secret = credential.secret()?;
            Some((credential.key.into_bytes(), secret))
        });
        Ok(Arc::new(TokenFilter { config, index }))
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

/// An instance of `jwe-decrypt`.
struct TokenFilter {
    config: Config,
    index: Arc<CredentialIndex<LessSafeKey>>,
}

impl TokenFilter {
    fn decrypt(&self, token: &[u8]) -> Result<Vec<u8>, AuthFailure> {
        let mut parts = token.split(|byte| *byte == b'.');
        let mut part = || parts.next().ok_or(AuthFailure::Malformed);
        let (header, _, iv, ciphertext, tag) = (part()?, part()?, part()?, part()?, part()?);
        let decode = |part: &[u8]| URL_SAFE_NO_PAD.decode(part).ok();
        let fields: Value = decode(header)
            .and_then(|header| serde_json::from_slice(&header).ok())
            .ok_or(AuthFailure::Malformed)?;
        // Whatever it names, nothing of that is understood here (RFC 7516, 4.1.13).
        if fields.get("crit").is_some() {
            return Err(AuthFailure::Malformed);
        }
        let key = fields
            .get("kid")
            .and_then(Value::as_str)
            .ok_or_else(|| AuthFailure::Token(TokenFault::NoKeyClaim("kid".into())))?;
        let entry = self.index.get(key.as_bytes()).ok_or_else(|| {
            AuthFailure::Token(TokenFault::UnknownKey {
                claim: "kid".into(),
                value: key.into(),
            })
        })?;
        let open = || {
            let nonce = Nonce::try_assume_unique_for_key(&decode(iv)?).ok()?;
            let mut sealed = decode(ciphertext)?;
            sealed.extend_from_slice(&decode(tag).filter(|tag| tag.len() == 16)?);
            let protected = if self.config.header_is_protected {
                header
            } else {
                b""
            };
            let length = entry
                .secret
                .open_in_place(nonce, Aad::from(protected), &mut sealed)
                .ok()?
                .len();
            sealed.truncate(length);
            Some(sealed)
        };
        open().ok_or(AuthFailure::Token(TokenFault::BadSignature))
    }

    fn refuse(&self, failure: AuthFailure) -> Outcome {
        let status = match failure {
            AuthFailure::Missing => self.config.missing_status,
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
        match self.decrypt(token.unwrap_or(value)) {
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
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    /// `hello-plain`, sealed by others without protecting the header.
    const TOKEN: &str = "eyJhbGciOiAiZGlyIiwgImVuYyI6ICJBMjU2R0NNIiwgImtpZCI6ICJ1c2VyLWtleSJ9..AQEBAQEBAQEBAQEB.\
                         uPfc0njlFGcxA9c.zkga8xYty-moIw8aHyVxIQ";

    fn call(config: &Value, authorization: Option<&str>) -> (String, Vec<String>) {
        let secret = "a".repeat(32);
        let credentials = [("alice", None, json!({"key": "user-key", "secret": secret}))];
        let filter = build_with(&JweDecrypt, config, &credentials).expect("valid");
        let mut exchange = exchange();
        if let Some(value) = authorization {
            exchange
                .request
                .headers
                .append(b"Authorization", value.as_bytes());
        }
        let word = word(&filter.on_request(&mut exchange));
        (word, lines(&exchange.request.headers))
    }

    #[test]
    fn tokens_are_decrypted() {
        let apisix = json!({"header_is_protected": false});
        let other = json!({"header_is_protected": false, "forward_header": "X-Plain", "required": false});
        let unknown = "eyJhbGciOiAiZGlyIiwgImVuYyI6ICJBMjU2R0NNIiwgImtpZCI6ICJub2JvZHkifQ..AQEB.AQ.AQ";
        let critical = "eyJhbGciOiJkaXIiLCJraWQiOiJ1c2VyLWtleSIsImNyaXQiOlsieCJdfQ..AQEB.AQ.AQ";
        let nameless = "eyJhbGciOiJkaXIifQ..AQEB.AQ.AQ";
        let bearer = format!("Bearer {TOKEN}");
        for (config, token, expected) in [
            (&apisix, Some(TOKEN), "continue"),
            (&apisix, Some(bearer.as_str()), "continue"),
            (&other, Some(TOKEN), "continue"),
            (&other, None, "continue"),
            (&json!({}), Some(TOKEN), "BadSignature"),
            (&apisix, None, "Missing"),
            (&apisix, Some("junk"), "Malformed"),
            (&apisix, Some("a.b.c.d.e"), "Malformed"),
            (&apisix, Some(critical), "Malformed"),
            (&apisix, Some(nameless), "NoKeyClaim(\"kid\")"),
            (
                &apisix,
                Some(unknown),
                "UnknownKey { claim: \"kid\", value: \"nobody\" }",
            ),
        ] {
            assert_eq!(call(config, token).0, expected, "{config} {token:?}");
        }
        assert_eq!(call(&apisix, Some(TOKEN)).1, ["Authorization: hello-plain"]);
        assert_eq!(call(&other, Some(TOKEN)).1[1], "X-Plain: hello-plain");
    }

    #[test]
    fn bad_configurations_and_credentials_are_refused() {
        let config = json!({"header": "", "missing_status": 1});
        assert_eq!(refused_at(&JweDecrypt, &config), ["header", "missing_status"]);
        assert!(build(&JweDecrypt, &example(include_str!("jwe_decrypt.rs"))).is_ok());
        let check = JweDecrypt.credentials().expect("has some").check;
        let base64 = URL_SAFE_NO_PAD.encode([7; 32]);
        for (credential, is_good) in [
            (json!({"key": "k", "secret": "short"}), false),
            (
                json!({"key": "k", "secret": base64, "secret_is_base64": true}),
                true,
            ),
            (json!({"key": "k", "secret": base64}), false),
        ] {
            assert_eq!(check(&credential).is_ok(), is_good, "{credential}");
        }
    }
}
