//! `key-auth`: recognises consumers by a key that their calls carry.
//!
//! ```yaml
//! locations: [{header: X-Api-Key}, {query: api_key}]
//! strip: found
//! ```
//!
//! A consumer's credential for it is `{key: TEXT}`, or `{key_sha256: HEX}` to keep no key in the configuration.
//!
//! Security: keys in queries end up in logs and browser histories; prefer headers. Keys are looked up by a hash under a
//! secret of the process, so response times reveal nothing about them. They are never logged. SHA-256 without a salt
//! protects random keys only: a key that a person chose can be guessed from its hash.

use crate::identity::{self, Gate};
pub use crate::key_locations::{KeyLocation, MultipleKeys};
use crate::key_locations::{Lookup, form_of_body};
use crate::query::{remove_argument, remove_argument_and_encode};
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use data_encoding::HEXLOWER_PERMISSIVE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{
    AuthFailure, BuildContext, CredentialEntry, CredentialIndex, CredentialKind, Exchange, Filter, Outcome,
    Phases, Plugin, Request, parse_config,
};

/// Configuration of `key-auth`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The locations of the key. The first one that holds a key counts.
    #[serde(default = "standard_places")]
    pub locations: Vec<KeyLocation>,
    /// Whether the key is removed from the request before it is forwarded.
    #[serde(default)]
    pub strip: StripCredential,
    /// What several keys in one place mean.
    #[serde(default)]
    pub on_multiple: MultipleKeys,
    /// Whether an empty key counts as no key rather than as a wrong one.
    #[serde(default = "weir_plugins_shared::yes")]
    pub empty_is_missing: bool,
    /// The most bytes of a body that are read to look for the key, for places in bodies.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
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
            locations: standard_places(),
            strip: StripCredential::default(),
            on_multiple: MultipleKeys::default(),
            empty_is_missing: true,
            max_body_bytes: standard_body_limit(),
            challenge: standard_challenge(),
            identity: identity::Config::default(),
        }
    }
}

fn standard_places() -> Vec<KeyLocation> {
    vec![
        KeyLocation::Header("apikey".into()),
        KeyLocation::Query("apikey".into()),
    ]
}

fn standard_body_limit() -> usize {
    1 << 20
}

fn standard_challenge() -> Option<String> {
    Some("Key".into())
}

/// Whether the key is removed from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StripCredential {
    /// It stays.
    #[default]
    No,
    /// It is removed from the location where it was found. The rest of a query stays as it was written. If a wrong key
    /// is passed on for the anonymous consumer, headers and arguments of all locations are removed.
    Found,
    /// It is removed from all locations of the list with the same name. A query is encoded again (`?a` becomes `?a=`, a
    /// space `+`), as Kong does.
    Everywhere,
}

/// A credential of `key-auth`: a key or the hash of one.
// `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("oneOf" = [{"required": ["key"]}, {"required": ["key_sha256"]}]))]
pub struct Credential {
    /// The key; unique among the credentials of one dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub key: Option<String>,
    /// In place of `key`: the key's SHA-256, as 64 hexadecimal digits. Calls carry the key itself. Fit for keys that
    /// were made at random; one that was chosen can be guessed from its hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    pub key_sha256: Option<String>,
}

impl Credential {
    /// A credential with this key.
    pub fn plain(key: impl Into<String>) -> Self {
        Self {
            key: Some(key.into()),
            key_sha256: None,
        }
    }

    /// The bytes of its hash, if it has one and that is good.
    fn hash(&self) -> Option<Vec<u8>> {
        let bytes = HEXLOWER_PERMISSIVE
            .decode(self.key_sha256.as_ref()?.as_bytes())
            .ok()?;
        (bytes.len() == SHA256_OUTPUT_LEN).then_some(bytes)
    }

    fn check(&self) -> Result<(), Vec<Diagnostic>> {
        let (field, message) = match (&self.key, &self.key_sha256) {
            (Some(key), None) if !key.is_empty() => return Ok(()),
            (None, Some(_)) if self.hash().is_some() => return Ok(()),
            (Some(_), Some(_)) => ("key_sha256", "expected either `key` or `key_sha256`, found both"),
            (None, Some(_)) => ("key_sha256", "expected a SHA-256 as 64 hexadecimal digits"),
            (Some(_), None) => ("key", "expected a key, found an empty text"),
            (None, None) => ("key", "expected a key, or its SHA-256 in `key_sha256`"),
        };
        Err(vec![Diagnostic::error(DocPath::root().field(field), message)])
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// The plugin `key-auth`.
pub struct KeyAuth;

impl Plugin for KeyAuth {
    fn name(&self) -> &'static str {
        "key-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        for (index, place) in config.locations.iter().enumerate() {
            if matches!(place, KeyLocation::Header(name) if !is_name(name.as_bytes())) {
                let path = DocPath::root().field("locations").index(index);
                return Err(vec![Diagnostic::error(path, "expected a header name")]);
            }
        }
        if config
            .challenge
            .as_ref()
            .is_some_and(|text| !is_value(text.as_bytes()))
        {
            let path = DocPath::root().field("challenge");
            return Err(vec![Diagnostic::error(path, "expected a header value")]);
        }
        let index = context.credential_index("key-auth", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            Some((credential.key?.into_bytes(), ()))
        });
        let hashes = context.credential_index_by("key_sha256", "key-auth", |credential| {
            Some((Credential::deserialize(credential).ok()?.hash()?, ()))
        });
        Ok(Arc::new(KeyFilter {
            locations: config.locations,
            strip: config.strip,
            on_multiple: config.on_multiple,
            empty_is_missing: config.empty_is_missing,
            max_body_bytes: config.max_body_bytes,
            challenge: config.challenge,
            gate: Gate::build("key-auth", config.identity, context)?,
            index,
            hashes: (!hashes.is_empty()).then_some(hashes),
        }))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["key", "key_sha256"],
            schema: schemars::schema_for!(Credential),
            check: |config| parse_config::<Credential>(config)?.check(),
        })
    }
}

/// An instance of `key-auth`.
struct KeyFilter {
    locations: Vec<KeyLocation>,
    strip: StripCredential,
    on_multiple: MultipleKeys,
    empty_is_missing: bool,
    max_body_bytes: usize,
    challenge: Option<String>,
    gate: Gate,
    index: Arc<CredentialIndex<()>>,
    /// Credentials by the SHA-256 of their keys. `None` if there are none, so that no call pays for a hash.
    hashes: Option<Arc<CredentialIndex<()>>>,
}

impl KeyFilter {
    /// The credential with this key. Hashes of keys are in an index of their own, so that nothing that a call carries
    /// can stand for a hash.
    fn credential(&self, key: &[u8], exchange: &Exchange) -> Option<&CredentialEntry<()>> {
        let now_ms = || exchange.now_ms();
        let plain = self.index.get(key, now_ms);
        plain.or_else(|| {
            let hash = digest(&SHA256, key);
            self.hashes.as_ref()?.get(hash.as_ref(), now_ms)
        })
    }

    /// Takes the key out of the request. `false`: the body must be read first.
    fn strip_found(&self, found: &KeyLocation, request: &mut Request) -> bool {
        let StripCredential::Everywhere = self.strip else {
            if self.strip == StripCredential::Found {
                found.remove(request, remove_argument);
            }
            return true;
        };
        let places = || self.locations.iter().filter(|place| place.name() == found.name());
        let has_body_place = places().any(|place| matches!(place, KeyLocation::Body(_)));
        if has_body_place && request.body.is_none() && form_of_body(request).is_some() {
            return false;
        }
        for place in places() {
            place.remove(request, remove_argument_and_encode);
        }
        true
    }
}

impl Filter for KeyFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let request = &exchange.request;
        let mut places = self
            .locations
            .iter()
            .map(|place| (place, place.look(request, self.on_multiple)));
        let seen = places.find(|(_, seen)| !matches!(seen, Lookup::Absent));
        let (found, credential) = match seen {
            None => (None, Err(AuthFailure::Missing)),
            Some((_, Lookup::Body)) => {
                return Outcome::NeedBody {
                    max_bytes: self.max_body_bytes,
                };
            }
            Some((_, Lookup::Key(key))) if key.is_empty() && self.empty_is_missing => {
                (None, Err(AuthFailure::Missing))
            }
            Some((place, Lookup::Key(key))) => (
                Some(place),
                self.credential(&key, exchange).ok_or(AuthFailure::Invalid),
            ),
            Some((_, Lookup::Several)) => (None, Err(AuthFailure::Duplicate)),
            Some((_, Lookup::Wrong | Lookup::Absent)) => (None, Err(AuthFailure::Invalid)),
        };
        if let Some(place) = found
            && !self.strip_found(place, &mut exchange.request)
        {
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        match credential {
            Ok(entry) => self.gate.accept(exchange, &entry.identity),
            Err(_) if self.strip == StripCredential::Found && self.gate.allows_anonymous() => {
                for place in &self.locations {
                    place.remove(&mut exchange.request, remove_argument);
                }
                self.gate
                    .reject(exchange, AuthFailure::Invalid, self.challenge.as_ref())
            }
            Err(failure) => self.gate.reject(exchange, failure, self.challenge.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests;
