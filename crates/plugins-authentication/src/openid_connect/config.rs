//! The configuration of `openid-connect`, with all defaults. Faults are reported when an instance is built.

use crate::consumer_names::ConsumerName;
use crate::identity;
use crate::jwt::Algorithm;
use crate::session_cookie::SessionConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Configuration of `openid-connect`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address of the provider's discovery document, or the issuer: without `/.well-known/` it is added.
    pub discovery: String,
    /// The issuer that the document must name; absent: the one that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The client's id.
    pub client_id: String,
    /// The client's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// How the client proves who it is at the token endpoint.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// How it proves that at the introspection endpoint; absent: as at the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_auth: Option<ClientAuth>,
    /// What signs assertions of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_assertion: Option<ClientAssertion>,
    /// How callers may be recognised, in the order in which that is tried.
    #[serde(default = "standard_methods")]
    pub methods: Vec<Method>,
    /// What happens to calls that none of the methods recognises.
    #[serde(default)]
    pub unauthenticated: Unauthenticated,
    /// Sessions; needed by the methods `session` and `authorization-code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionConfig>,
    /// The scopes that logins request.
    #[serde(default = "standard_scopes")]
    pub scopes: Vec<String>,
    /// The address to which the provider sends browsers back: an address, or a path on the same host; absent: the path
    /// of the call followed by `redirect_suffix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The text that is appended to the path of a call to form the address to which the provider sends browsers back.
    /// Empty: browsers come back to the path of the call itself, and are known by the state of their login.
    #[serde(default = "standard_suffix")]
    pub redirect_suffix: String,
    /// Whether logins use PKCE (RFC 7636).
    #[serde(default)]
    pub pkce: Pkce,
    /// Whether logins have a nonce, which the identity token must have too.
    #[serde(default = "weir_plugins_shared::yes")]
    pub nonce: bool,
    /// Whether authorization requests are pushed to the provider (RFC 9126), and where; absent: the parameters are in
    /// the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed_requests: Option<PushedRequests>,
    /// Further arguments of the authorization endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub authorization_arguments: BTreeMap<String, String>,
    /// Further arguments of the token endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub token_arguments: BTreeMap<String, String>,
    /// The conditions under which calls log out.
    #[serde(default)]
    pub logout: Logout,
    /// The locations of a bearer token.
    #[serde(default = "standard_places")]
    pub bearer_locations: Vec<TokenSource>,
    /// The locations of a user's name and password, for the method `password`.
    #[serde(default = "in_header")]
    pub password_locations: Vec<GrantLocation>,
    /// The locations of a client's id and secret, for the method `client-credentials`.
    #[serde(default = "in_header")]
    pub client_credentials_locations: Vec<GrantLocation>,
    /// A public key in PEM that verifies bearer tokens, instead of the provider's key set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// The introspection endpoint; absent: the one that the document names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// `token_type_hint` of introspections (RFC 7662, 2.1); empty: none.
    #[serde(default = "access_token")]
    pub introspection_hint: String,
    /// Headers of the call that the introspection endpoint gets too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub introspection_headers: Vec<String>,
    /// How long the result of an introspection is used, in seconds, but not after the token's `exp`; 0: until then.
    #[serde(default = "one_minute")]
    pub introspection_seconds: u64,
    /// Whether the claims of the userinfo endpoint are fetched when a browser has logged in.
    #[serde(default = "weir_plugins_shared::yes")]
    pub userinfo: bool,
    /// Issuers whose tokens are also accepted, besides the document's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issuers: Vec<String>,
    /// The claims that a token must have.
    #[serde(default)]
    pub required: RequiredClaims,
    /// How far clocks may differ, in seconds.
    #[serde(default)]
    pub leeway_seconds: u64,
    /// Whether identity tokens may be unsigned (`alg: none`), as the provider has sent them over TLS.
    #[serde(default)]
    pub accept_unsigned_id_tokens: bool,
    /// Whether access tokens of sessions that have expired are renewed.
    #[serde(default = "weir_plugins_shared::yes")]
    pub refresh: bool,
    /// So long before they expire, access tokens of sessions are renewed, in seconds.
    #[serde(default)]
    pub refresh_leeway_seconds: u64,
    /// How long documents and key sets are used, in seconds. An unknown key fetches the key set again, at most every 30
    /// seconds.
    #[serde(default = "one_hour")]
    pub cache_seconds: u64,
    /// Headers that upstreams get. Copies that callers send never get through.
    #[serde(default = "standard_headers")]
    pub upstream_headers: Vec<TokenHeader>,
    /// Further headers that callers may not send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleared_headers: Vec<String>,
    /// The value of `Authorization` at the introspection endpoint, instead of the client's own authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_authorization: Option<String>,
    /// Headers that callers get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_headers: Vec<TokenHeader>,
    /// Whether the token or the password by which the caller is recognised is removed from the request before it is
    /// forwarded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strip: bool,
    /// Answers of the provider that are used only for the calls that wait for them. All others are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncached: Vec<ProviderAnswer>,
    /// Which consumer calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<ConsumerRules>,
    /// Whether the client that the token was made for has to be a consumer's, by its credential for `openid-connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientRules>,
    /// The caller's groups, for `acl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupsClaim>,
    /// The headers that name the consumer to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
    /// The realm of `WWW-Authenticate`; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// Whether a refusal says in JSON what is wrong: `{"error": …}`.
    #[serde(default)]
    pub explain: bool,
    /// The message of refusals with 401; absent: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unauthorized_message: Option<String>,
    /// The message of refusals with 403; absent: the usual one. With `explain`, they say what is wrong instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden_message: Option<String>,
    /// Status of the response to browsers that come back from the provider without a valid login, 200 to 599.
    #[serde(default = "unauthorized")]
    #[schemars(range(min = 200, max = 599))]
    pub login_failure_status: u16,
    /// The HTTP settings for calls to the provider.
    #[serde(default)]
    pub http: crate::http_rules::HttpRules,
}

/// Secrets are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("discovery", &self.discovery)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// How long an answer of the provider is used that would be good for so many seconds, in milliseconds. Even what is not
    /// kept serves the calls that wait for it.
    pub(super) fn kept_ms(&self, answer: ProviderAnswer, seconds: u64) -> u64 {
        match self.uncached.contains(&answer) {
            true => 1,
            false => seconds.saturating_mul(1_000).max(1),
        }
    }

    /// The defaults of all options, for this provider and client.
    pub fn new(discovery: String, client_id: String) -> Self {
        Self {
            discovery,
            issuer: None,
            client_id,
            client_secret: None,
            client_auth: ClientAuth::default(),
            introspection_auth: None,
            client_assertion: None,
            methods: standard_methods(),
            unauthenticated: Unauthenticated::default(),
            session: None,
            scopes: standard_scopes(),
            redirect_uri: None,
            redirect_suffix: standard_suffix(),
            pkce: Pkce::default(),
            nonce: true,
            pushed_requests: None,
            authorization_arguments: BTreeMap::new(),
            token_arguments: BTreeMap::new(),
            logout: Logout::default(),
            bearer_locations: standard_places(),
            password_locations: in_header(),
            client_credentials_locations: in_header(),
            public_key: None,
            introspection_endpoint: None,
            introspection_hint: access_token(),
            introspection_headers: Vec::new(),
            introspection_seconds: one_minute(),
            userinfo: true,
            issuers: Vec::new(),
            required: RequiredClaims::default(),
            leeway_seconds: 0,
            accept_unsigned_id_tokens: false,
            refresh: true,
            refresh_leeway_seconds: 0,
            cache_seconds: one_hour(),
            upstream_headers: standard_headers(),
            cleared_headers: Vec::new(),
            introspection_authorization: None,
            client_headers: Vec::new(),
            strip: false,
            uncached: Vec::new(),
            consumer: None,
            client: None,
            groups: None,
            identity: identity::Config::default(),
            realm: None,
            explain: false,
            unauthorized_message: None,
            forbidden_message: None,
            login_failure_status: unauthorized(),
            http: crate::http_rules::HttpRules::default(),
        }
    }
}

fn standard_methods() -> Vec<Method> {
    vec![Method::Session, Method::Bearer, Method::AuthorizationCode]
}

fn standard_scopes() -> Vec<String> {
    vec!["openid".into()]
}

fn standard_suffix() -> String {
    "/.weir/redirect".into()
}

fn standard_places() -> Vec<TokenSource> {
    vec![TokenSource::Bearer]
}

fn in_header() -> Vec<GrantLocation> {
    vec![GrantLocation::Header]
}

fn access_token() -> String {
    "access_token".into()
}

fn unauthorized() -> u16 {
    401
}

fn one_minute() -> u64 {
    60
}

fn one_hour() -> u64 {
    3_600
}

fn standard_headers() -> Vec<TokenHeader> {
    [
        ("X-Access-Token", TokenValue::AccessToken),
        ("X-ID-Token", TokenValue::IdClaims),
        ("X-Userinfo", TokenValue::Userinfo),
    ]
    .map(|(name, value)| TokenHeader {
        name: name.into(),
        value,
    })
    .into()
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientAuth {
    /// With its secret in `Authorization: Basic`.
    #[default]
    Basic,
    /// With its secret in the form.
    Post,
    /// With a token that its secret signs.
    SecretJwt,
    /// With a token that its private key signs.
    PrivateKeyJwt,
    /// Not at all: it is a public client.
    None,
}

/// What signs assertions of a client (RFC 7523).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientAssertion {
    /// The private key in PEM, for `private-key-jwt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// The key's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// The algorithm; absent: `HS256` for a secret, `RS256` for a private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// The lifetime of an assertion, in seconds.
    #[serde(default = "one_minute")]
    pub seconds: u64,
    /// Its audience; absent: the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

impl std::fmt::Debug for ClientAssertion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ClientAssertion").finish_non_exhaustive()
    }
}

/// How a caller may be recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By a session of an earlier login.
    Session,
    /// By a signed bearer token.
    Bearer,
    /// By a bearer token that the provider checks (introspection).
    Introspection,
    /// By a bearer token that the userinfo endpoint accepts.
    Userinfo,
    /// By name and password of a user, exchanged for a token.
    Password,
    /// By id and secret of a client, exchanged for a token.
    ClientCredentials,
    /// By a login at the provider, to which the browser is sent.
    AuthorizationCode,
}

/// An answer of the provider to a question about a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderAnswer {
    /// The tokens of a password or of a client.
    Tokens,
    /// That of the introspection endpoint.
    Introspection,
    /// That of the userinfo endpoint about a bearer token.
    Userinfo,
}

/// What happens to calls that no method recognises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unauthenticated {
    /// Browsers are sent to the provider, if that is one of the methods; others are refused.
    #[default]
    Login,
    /// They are refused.
    Refuse,
    /// They go on without an identity.
    Pass,
}

/// When logins use PKCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pkce {
    /// When the provider's document says that it knows `S256`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Pushed authorization requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushedRequests {
    /// The endpoint; absent: the one that the document names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How the client authenticates itself there; absent: as at the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ClientAuth>,
}

/// Which calls log out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Logout {
    /// The path that logs out; absent: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Paths that end so log out; absent: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_suffix: Option<String>,
    /// A query argument that logs out; absent: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_argument: Option<String>,
    /// The methods with which a call logs out; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Whether a logout revokes the tokens at the provider (RFC 7009).
    pub revoke: bool,
    /// The address to which browsers are sent after a logout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// Whether browsers are also sent to the provider to log out there, if its document names the address.
    pub at_provider: bool,
}

impl Default for Logout {
    fn default() -> Self {
        Self {
            path: Some("/logout".into()),
            path_suffix: None,
            query_argument: None,
            methods: Vec::new(),
            revoke: false,
            redirect_uri: None,
            at_provider: true,
        }
    }
}

/// A location for a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenSource {
    /// `Authorization: Bearer`.
    Bearer,
    /// A request header.
    Header(String),
    /// A query argument.
    Query(String),
    /// A cookie.
    Cookie(String),
    /// A field of a body that is a form or JSON, of at most 1 MiB.
    Body(String),
}

/// A location for what is exchanged for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantLocation {
    /// `Authorization: Basic`.
    Header,
    /// Query arguments: `username` and `password`, or `client_id` and `client_secret`.
    Query,
    /// Fields of these names in a body that is a form or JSON, of at most 1 MiB.
    Body,
}

/// The claims that a token must have. Each list has alternatives, of which one must hold; an alternative with blanks
/// names several values, all of which must be present.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequiredClaims {
    /// The scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The claim with the scopes, as a path.
    pub scopes_claim: Vec<String>,
    /// The audiences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// The claim with the audiences, as a path.
    pub audiences_claim: Vec<String>,
    /// Whether a bearer token must have that claim.
    pub audience_present: bool,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The claim with the groups, as a path.
    pub groups_claim: Vec<String>,
    /// The roles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The claim with the roles, as a path.
    pub roles_claim: Vec<String>,
    /// Claims that a token must not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
    /// Whether a signed bearer token must be an access token that ends: it has `exp`, and is not an identity token. `typ`
    /// in its header says which it is (`at+jwt`, RFC 9068). Without that, `nonce`, `at_hash` or `c_hash`, a claim `typ` or
    /// `token_use` that says `ID`, and, where no `audiences` are asked for, an `aud` that is its own client are of identity
    /// tokens.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub access_token: bool,
    /// A JSON Schema for the claims of a bearer token; in a session, for `{user, access_token, id_token}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
}

impl Default for RequiredClaims {
    fn default() -> Self {
        let claim = |name: &str| vec![name.to_owned()];
        Self {
            scopes: Vec::new(),
            scopes_claim: claim("scope"),
            audiences: Vec::new(),
            audiences_claim: claim("aud"),
            audience_present: false,
            groups: Vec::new(),
            groups_claim: claim("groups"),
            roles: Vec::new(),
            roles_claim: claim("roles"),
            forbidden: Vec::new(),
            access_token: false,
            schema: None,
        }
    }
}

/// A header, and what it says of the tokens. It is left out if they do not have that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenHeader {
    /// The header's name.
    pub name: String,
    /// Its value.
    pub value: TokenValue,
}

/// The value of a header about the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenValue {
    /// The access token.
    AccessToken,
    /// The access token after `Bearer`.
    BearerToken,
    /// The identity token, as it was signed.
    IdToken,
    /// The refresh token.
    RefreshToken,
    /// The claims of the identity token: Base64 of JSON.
    IdClaims,
    /// The claims of the userinfo endpoint, or those of a bearer token: Base64 of JSON.
    Userinfo,
    /// The claims of an introspection: Base64 of JSON.
    Introspection,
    /// The session's id.
    SessionId,
    /// A claim, as a path.
    Claim(Vec<String>),
}

/// The claim with the caller's groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupsClaim {
    /// The claim, as a path: a list of texts, or a text with blanks between the groups.
    pub path: Vec<String>,
    /// The request header with the groups, for the upstream. The caller's own copy is always removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// Which consumer calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsumerRules {
    /// The claim that names the consumer, as a path.
    pub claim: Vec<String>,
    /// By what consumers are found.
    #[serde(default = "standard_names")]
    pub by: Vec<ConsumerName>,
    /// Whether calls of others go on without a consumer.
    #[serde(default)]
    pub optional: bool,
}

/// Which client calls. The first of the claims that a token has counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientRules {
    /// The scope of the credentials that count. Those of other scopes are ignored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The claims that name the client.
    #[serde(default = "standard_client_claims")]
    pub claims: Vec<String>,
}

fn standard_client_claims() -> Vec<String> {
    vec!["client_id".into(), "azp".into()]
}

/// A credential of `openid-connect`: a client at the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCredential {
    /// The scope; instances with the same one in `client` look at it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The client's id; unique in its scope.
    #[schemars(length(min = 1))]
    pub client_id: String,
}

fn standard_names() -> Vec<ConsumerName> {
    vec![ConsumerName::Username, ConsumerName::CustomId]
}
