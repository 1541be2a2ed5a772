//! Configuration of `jwt-signer`: rules for each of the two tokens, and the sources of keys and introspection results.

use crate::consumer_names::ConsumerName;
use crate::http_rules::HttpRules;
use crate::jwt::Algorithm;
use crate::private_key::PrivateKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Configuration of `jwt-signer`.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The first token: usually that of a user.
    pub access_token: TokenRules,
    /// A second token: usually that of a client program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_token: Option<TokenRules>,
    /// `realm` of `WWW-Authenticate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// The HTTP settings for calls to servers.
    #[serde(default)]
    pub http: HttpRules,
}

/// The rules for a token.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRules {
    /// The request header with the token, bare or after `Bearer`. It never reaches the upstream. Absent: there is no
    /// such token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_header: Option<String>,
    /// Whether calls without the token go on.
    pub optional: bool,
    /// Whether a signed token's signature is checked, by the keys of `verification_keys`.
    pub verify_signature: bool,
    /// The public keys of the tokens' signers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification_keys: Option<KeyServer>,
    /// Whether keys of that document may be secrets (`oct`), for `HS256`, `HS384` and `HS512`.
    pub allow_symmetric_keys: bool,
    /// The claims that a token must have. Absent: `exp` must be there and in the future, and nothing else is checked.
    pub claims: ClaimRules,
    /// Opaque tokens are explained by a server. Absent: they are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection: Option<Introspection>,
    /// The token that upstreams are shown in its place. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing: Option<Signing>,
    /// A request header in which upstreams get the token as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_header: Option<String>,
}

impl Default for TokenRules {
    fn default() -> Self {
        Self {
            request_header: Some("Authorization".to_owned()),
            optional: false,
            verify_signature: true,
            verification_keys: None,
            allow_symmetric_keys: false,
            claims: ClaimRules::default(),
            introspection: None,
            signing: None,
            original_header: None,
        }
    }
}

/// What claims must say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimRules {
    /// Whether the time of `exp` must be there, and must not be over.
    pub verify_expiry: bool,
    /// How far clocks may differ, in seconds.
    pub leeway_seconds: i64,
    /// The scopes: alternatives, of which one must hold. One with blanks in it names several that must all be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The claim with the scopes, as a path.
    pub scopes_claim: Vec<String>,
    /// The claim that names the consumer, as a path; empty: none. Calls of others are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consumer_claim: Vec<String>,
    /// By what consumers are found.
    pub consumer_by: Vec<ConsumerName>,
}

impl Default for ClaimRules {
    fn default() -> Self {
        Self {
            verify_expiry: true,
            leeway_seconds: 0,
            scopes: Vec::new(),
            scopes_claim: vec!["scope".to_owned()],
            consumer_claim: Vec::new(),
            consumer_by: vec![ConsumerName::CustomId, ConsumerName::Username],
        }
    }
}

/// A document with keys (RFC 7517, 5) on a server. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyServer {
    /// Its address.
    pub address: String,
    /// The name for `Authorization: Basic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// How long it is used, in seconds, at least one. In `verification_keys`, a token that its keys do not fit fetches it again
    /// before that, at most every 30 seconds.
    #[serde(default = "one_hour")]
    pub cache_seconds: u64,
}

impl KeyServer {
    /// The document at an address.
    pub fn new(address: String) -> Self {
        Self {
            address,
            username: None,
            password: None,
            cache_seconds: one_hour(),
        }
    }
}

impl std::fmt::Debug for KeyServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("KeyServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

fn one_hour() -> u64 {
    3_600
}

/// A server that explains opaque tokens (RFC 7662).
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Introspection {
    /// Its address.
    pub endpoint: String,
    /// `Authorization` for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
    /// `token_type_hint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Further arguments, encoded as in a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The longest that an answer may take, in milliseconds; absent: that of `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a response is used for calls with the same token, in seconds, and never beyond the token's lifetime; 0:
    /// for no other call.
    #[serde(default = "one_minute")]
    pub cache_seconds: u64,
    /// The claims that a response must have.
    #[serde(default)]
    pub claims: ClaimRules,
    /// The field with a signed token in the response, as a path, whose claims replace those of the response; empty:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_claim: Vec<String>,
    /// Whether the claims are not checked again by the rules for tokens.
    #[serde(default = "weir_plugins_shared::yes")]
    pub is_trusted: bool,
}

fn one_minute() -> u64 {
    60
}

/// How a token for upstreams is made.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    /// The request header in which upstreams get it.
    #[serde(default = "authorization")]
    pub header: String,
    /// The word before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Its `iss`. That of the caller's token becomes `original_iss`.
    pub issuer: String,
    /// How it is signed. The first key that fits it is taken.
    #[serde(default = "standard_algorithm")]
    pub algorithm: Algorithm,
    /// The keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<PrivateKey>,
    /// A document with private keys, if `keys` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_server: Option<KeyServer>,
    /// Seconds that are added to `exp`; they may be negative.
    #[serde(default)]
    pub leeway_seconds: i64,
    /// Claims that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_claims: Vec<String>,
    /// Claims that are added if they are missing.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub add_claims: Map<String, Value>,
    /// Claims in the place of those that are there.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set_claims: Map<String, Value>,
}

fn authorization() -> String {
    "Authorization".to_owned()
}

fn standard_algorithm() -> Algorithm {
    Algorithm::RS256
}
