//! The configuration of `saml`. Faults are reported when an instance is built.

use crate::consumer_names::ConsumerName;
use crate::identity;
use crate::session_cookie::SessionConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Configuration of `saml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The own name at the identity provider (the entity ID of the service provider). Assertions must be made for it.
    #[schemars(length(min = 1))]
    pub issuer: String,
    /// The identity provider.
    pub provider: Provider,
    /// The address to which the provider sends browsers back (the assertion consumer service): a path, or a whole
    /// address.
    pub callback: String,
    /// How login requests are sent.
    #[serde(default)]
    pub request: RequestRules,
    /// The requirements for responses.
    #[serde(default)]
    pub response: ResponseRules,
    /// How users log out; absent: they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logout: Option<LogoutRules>,
    /// What happens to calls without a session.
    #[serde(default)]
    pub unauthenticated: Unauthenticated,
    /// Which consumer calls; absent: users are no consumers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<ConsumerRules>,
    /// Request headers that describe the user to upstreams. Copies that a client sends are always removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream_headers: Vec<UserHeader>,
    /// The session and its cookie. `cookie_same_site: Strict` is refused: browsers do not send such a cookie when they come
    /// back from the provider.
    pub session: SessionConfig,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

/// An identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name (its entity ID); absent: any name, as long as one of its certificates has signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The login address.
    pub login_url: String,
    /// The logout address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logout_url: Option<String>,
    /// Its certificates, in PEM; without any, no response is valid. Keys in messages are ignored.
    #[schemars(length(max = 8))]
    pub certificates: Vec<String>,
}

/// How a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// In the query of a redirect.
    Redirect,
    /// In a form that a page posts.
    Post,
}

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashName {
    /// SHA-1, only for what is signed, never for a signature.
    Sha1,
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// How login requests are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequestRules {
    /// How the request travels.
    pub binding: Binding,
    /// The requested binding of the response. Both bindings are accepted.
    pub answer: Binding,
    /// What kind of a name users should have, as a URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_id_format: Option<String>,
    /// How messages are signed; absent: they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing: Option<Signing>,
}

impl Default for RequestRules {
    fn default() -> Self {
        Self {
            binding: Binding::Redirect,
            answer: Binding::Post,
            name_id_format: None,
            signing: None,
        }
    }
}

/// How messages are signed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    /// The private RSA key, in PEM.
    pub key: String,
    /// The key's certificate, in PEM, that posted messages carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The hash function of signatures.
    #[serde(default)]
    pub hash: HashName,
    /// The hash function of what is signed, in posted messages.
    #[serde(default)]
    pub digest: HashName,
}

/// The key is left out.
impl fmt::Debug for Signing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Signing")
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// The requirements for responses. A response must always be signed: itself, its assertion, or both.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResponseRules {
    /// The private RSA key that opens encrypted assertions, in PEM; absent: such assertions are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption_key: Option<String>,
    /// Whether signatures with SHA-1 are taken.
    pub allow_sha1: bool,
    /// How far the clocks of the provider and the gateway may be apart, in seconds.
    #[schemars(range(max = 600))]
    pub leeway_seconds: u32,
    /// The most bytes of a message.
    #[schemars(range(min = 1024, max = 1_048_576))]
    pub max_bytes: usize,
}

/// The key is left out.
impl fmt::Debug for ResponseRules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ResponseRules")
            .field("allow_sha1", &self.allow_sha1)
            .field("leeway_seconds", &self.leeway_seconds)
            .finish_non_exhaustive()
    }
}

impl Default for ResponseRules {
    fn default() -> Self {
        Self {
            decryption_key: None,
            allow_sha1: false,
            leeway_seconds: 60,
            max_bytes: 256 << 10,
        }
    }
}

/// How users log out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogoutRules {
    /// The path that logs out.
    pub path: String,
    /// The address to which the provider sends messages about logouts: a path, or a whole address; absent: it sends
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// The address to which browsers are sent after a logout: a path, or a whole address.
    pub redirect: String,
}

/// What happens to calls without a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unauthenticated {
    /// Browsers, which accept HTML, are sent to the provider; others are refused.
    #[default]
    LoginPages,
    /// All are sent to the provider.
    Login,
    /// All are refused.
    Refuse,
}

/// Which consumer calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsumerRules {
    /// The attribute that names the consumer; absent: the user's name (`NameID`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// By what consumers are found.
    #[serde(default = "standard_names")]
    pub by: Vec<ConsumerName>,
    /// Whether calls of others go on without a consumer.
    #[serde(default)]
    pub optional: bool,
}

fn standard_names() -> Vec<ConsumerName> {
    vec![ConsumerName::Username, ConsumerName::CustomId]
}

/// A header, and what it says of the user. It is left out if the user has no such thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserHeader {
    /// The header's name.
    pub name: String,
    /// Its value.
    pub value: UserValue,
}

/// The value of a header about the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UserValue {
    /// The user's name (`NameID`).
    NameId,
    /// The values of an attribute, by its name or its name for people, with commas between them.
    Attribute(String),
}
