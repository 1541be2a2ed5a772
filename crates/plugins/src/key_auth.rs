//! `key-auth`: recognises consumers by a key that their calls carry.

use crate::identity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `key-auth`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the key may stand. The first place that holds one counts.
    #[serde(default = "standard_places")]
    pub look_in: Vec<KeyPlace>,
    /// Whether the key is taken out of the request before it is forwarded.
    #[serde(default)]
    pub hide: Hide,
    /// What several keys in one place mean.
    #[serde(default)]
    pub duplicates: Duplicates,
    /// Whether an empty key counts as no key rather than as a wrong one.
    #[serde(default = "crate::yes")]
    pub empty_is_missing: bool,
    /// The most bytes of a body that are read to look for the key, for places in bodies.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
    /// `WWW-Authenticate` of refusals; `null`: none.
    #[serde(default = "standard_challenge")]
    pub challenge: Option<String>,
    /// Who calls, and what upstreams are told about it.
    #[serde(default)]
    pub identity: identity::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            look_in: standard_places(),
            hide: Hide::default(),
            duplicates: Duplicates::default(),
            empty_is_missing: true,
            max_body_bytes: standard_body_limit(),
            challenge: standard_challenge(),
            identity: identity::Config::default(),
        }
    }
}

fn standard_places() -> Vec<KeyPlace> {
    vec![KeyPlace::Header("apikey".into()), KeyPlace::Query("apikey".into())]
}

fn standard_body_limit() -> usize {
    1 << 20
}

fn standard_challenge() -> Option<String> {
    Some("Key".into())
}

/// A place where a key may stand, with its name there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPlace {
    /// A request header.
    Header(String),
    /// A query argument.
    Query(String),
    /// A field of a body: of a form, of a multipart form, or a text at the top of a JSON object.
    Body(String),
}

/// Whether the key is taken out of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hide {
    /// It stays.
    #[default]
    No,
    /// It is taken out of the place where it was found. The rest of a query stays as it was written.
    Found,
    /// It is taken out of all places of the list with the same name. A query is encoded anew (`?a` becomes `?a=`, a
    /// space `+`), as Kong does.
    Everywhere,
}

/// What several keys in one place mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// The call is refused.
    #[default]
    Refuse,
    /// The first of several headers counts; several query arguments are a wrong key.
    First,
}

/// A credential of `key-auth`. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The key; unique among the credentials of one voice.
    #[schemars(length(min = 1))]
    pub key: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}
