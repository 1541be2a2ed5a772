//! `oauth2-server`: an OAuth 2.0 authorization server for the clients of consumers, and the check of its tokens.
//!
//! ```yaml
//! scopes: [email]
//! provision_key: change-me
//! grants: [authorization-code, client-credentials]
//! ```
//!
//! Two endpoints, by the ends of their paths on the plugin's own routes: `/oauth2/authorize`, to which the application that
//! logs users in posts what a user has allowed, and `/oauth2/token`, from which clients fetch tokens. All other calls need a
//! token. A consumer's credential for it is a client: `{client_id: TEXT, client_secret: TEXT, redirect_uris: [URI]}`.
//!
//! Security: codes and tokens are kept by their SHA-256, so nothing that is kept can be used as one. A code is good once, for
//! its client, for 300 s; a second use takes the token back that was given for it. Clients are sent back to their
//! own URIs only, which must be equal byte for byte. What calls have made is in the store of the gateways, and all of them
//! know it; without a store it is in memory, and ends with the process. What an administrator has written is in the
//! configuration.

mod authorize;
mod check;
mod clients;
mod endpoints;
mod issue;
mod parameters;
mod records;
mod redirect;
mod responses;
mod secret_checks;
mod shared;

use crate::identity::{self, Gate};
use clients::Clients;
use endpoints::{Decision, Endpoint, PendingReply};
use ipnet::IpNet;
use records::{GrantedAccess, Hash, Put, Record, Records, Token, hash};
use schemars::JsonSchema;
use secret_checks::SecretChecks;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::SharedTokens;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{FieldName, OwnedNames, is_value};
use weir_plugin::{
    BuildContext, CredentialKind, Exchange, Filter, Outcome, Phases, Plugin, Request, SharedRecords,
    parse_config,
};
use weir_plugins_shared::SERVICE_LABEL;
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::random::{Random, bytes, system_random};

/// The name in the catalogue.
const NAME: &str = "oauth2-server";
/// How long a code is good.
const CODE_MS: u64 = 300_000;
/// How many letters and digits a code or token has.
const TEXT_LENGTH: usize = 32;
/// Bodies with parameters are small.
const MAX_BODY: usize = 1 << 20;

/// Configuration of `oauth2-server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The scopes that clients may request. Absent: tokens have no scope, whatever clients request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Whether clients must request a scope.
    #[serde(default)]
    pub mandatory_scope: bool,
    /// The key with which the application that logs users in authenticates itself. Absent: the grants that need a user
    /// are off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provision_key: Option<String>,
    /// The ways to a token. Tokens can always be refreshed.
    pub grants: Vec<Grant>,
    /// The lifetime of an access token, in seconds; 0: unlimited, and there are no refresh tokens.
    #[serde(default = "standard_expiration")]
    pub token_seconds: u64,
    /// The lifetime of a refresh token, in seconds; 0: unlimited.
    #[serde(default = "standard_refresh")]
    pub refresh_token_seconds: u64,
    /// Whether a refresh token stays the same when it is used.
    #[serde(default)]
    pub reuse_refresh_token: bool,
    /// Which clients must prove that they began the login (PKCE).
    #[serde(default)]
    pub pkce: Pkce,
    /// Whether tokens are valid for all services with an instance that has this option too; otherwise each token is
    /// valid only for the service that issued it.
    #[serde(default)]
    pub all_services: bool,
    /// The request header with the token.
    #[serde(default = "standard_header")]
    pub header: String,
    /// Whether the token is removed from the request before it is forwarded.
    #[serde(default)]
    pub strip: bool,
    /// Networks whose `X-Forwarded-Proto: https` is trusted: the endpoints accept calls over TLS only.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub tls_terminated_by: Vec<IpNet>,
    /// The realm in `WWW-Authenticate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

impl Config {
    /// The defaults of all options, with these grants.
    pub fn new(grants: Vec<Grant>) -> Self {
        Self {
            scopes: None,
            mandatory_scope: false,
            provision_key: None,
            grants,
            token_seconds: standard_expiration(),
            refresh_token_seconds: standard_refresh(),
            reuse_refresh_token: false,
            pkce: Pkce::default(),
            all_services: false,
            header: standard_header(),
            strip: false,
            tls_terminated_by: Vec::new(),
            realm: None,
            identity: identity::Config::default(),
        }
    }
}

fn standard_expiration() -> u64 {
    7_200
}

fn standard_refresh() -> u64 {
    1_209_600
}

fn standard_header() -> String {
    "Authorization".into()
}

/// A way to a token (RFC 6749).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// A user allows it, and the client gets a code for the token.
    AuthorizationCode,
    /// A user allows it, and the client gets the token at once, in the URI. Codes are safer.
    Implicit,
    /// The client acts for itself.
    ClientCredentials,
    /// The client knows the user's password, which the application that logs users in has checked.
    Password,
}

/// Which clients must prove that they began the login (RFC 7636). A client that has sent a challenge must always prove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pkce {
    /// None.
    None,
    /// Public ones.
    #[default]
    Lax,
    /// All.
    Strict,
}

/// A credential of `oauth2-server`: a client. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// What its tokens refer to; absent: `client_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name in calls; unique among the credentials of one dialect.
    #[schemars(length(min = 1))]
    pub client_id: String,
    /// Its secret; either this or the hash. A public client has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The hash of its secret: `$pbkdf2-sha512$i=10000,l=32$SALT$HASH`, with at most 100,000 rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_pbkdf2: Option<String>,
    /// The addresses to which users are sent back: the first one, or the one that the client names. Absent: the client
    /// can act for itself only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uris: Option<Vec<String>>,
    /// Whether it cannot keep a secret, as an application on a user's device.
    #[serde(default)]
    pub public: bool,
    /// Tokens that an administrator has given it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<StoredToken>,
}

/// A token that an administrator has given a client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredToken {
    /// The SHA-256 of the access token, as 64 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    pub access_token_sha256: String,
    /// The SHA-256 of the refresh token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{64}$"))]
    pub refresh_token_sha256: Option<String>,
    /// The service for which it is valid; absent: all services that share their tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// What it allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The user who has allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated_user: Option<String>,
    /// When it was made, in seconds since the Unix epoch.
    #[serde(default)]
    pub created_at: u64,
    /// Its lifetime after that, in seconds; 0: unlimited.
    #[serde(default)]
    pub expires_seconds: u64,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

impl Credential {
    fn check(&self) -> Result<(), Vec<Diagnostic>> {
        let mut faults = ConfigErrors::default();
        if self.client_id.is_empty() {
            faults.add("client_id", "expected the client's name");
        }
        if self.client_secret.as_deref() == Some("") {
            faults.add("client_secret", "expected a secret, found an empty text");
        }
        match (&self.client_secret, &self.client_secret_pbkdf2) {
            (Some(_), Some(_)) => faults.add(
                "client_secret_pbkdf2",
                "expected either `client_secret` or `client_secret_pbkdf2`, found both",
            ),
            (None, Some(text)) if !clients::is_hashed_secret(text) => faults.add(
                "client_secret_pbkdf2",
                "expected $pbkdf2-sha512$i=ROUNDS,l=LENGTH$SALT$HASH with at most 100,000 rounds",
            ),
            (None, None) if !self.public => faults.add(
                "client_secret",
                "expected a secret, its hash in `client_secret_pbkdf2`, or `public: true`",
            ),
            _ => {}
        }
        let mut found = Vec::new();
        for (index, uri) in self.redirect_uris.iter().flatten().enumerate() {
            if !uri.contains(':') || uri.contains('#') || !is_value(uri.as_bytes()) {
                let path = DocPath::root().field("redirect_uris").index(index);
                found.push(Diagnostic::error(
                    path,
                    "expected an absolute URI without a fragment",
                ));
            }
        }
        for (index, token) in self.tokens.iter().enumerate() {
            let hashes = [
                ("access_token_sha256", Some(&token.access_token_sha256)),
                ("refresh_token_sha256", token.refresh_token_sha256.as_ref()),
            ];
            for (field, text) in hashes {
                if text.is_some_and(|text| clients::read_hash(text).is_none()) {
                    let path = DocPath::root().field("tokens").index(index).field(field);
                    found.push(Diagnostic::error(
                        path,
                        "expected a SHA-256 as 64 hexadecimal digits",
                    ));
                }
            }
        }
        faults.extend(found);
        faults.done()
    }
}

/// The plugin. It owns the records that calls have created, so that all workers know them and they outlive changes of
/// the configuration.
pub struct OAuth2Server {
    records: Arc<Records>,
    secret_checks: Arc<SecretChecks>,
    random: Random,
}

impl Default for OAuth2Server {
    fn default() -> Self {
        Self {
            records: Arc::default(),
            secret_checks: Arc::default(),
            random: system_random,
        }
    }
}

impl Plugin for OAuth2Server {
    fn name(&self) -> &'static str {
        "oauth2-server"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_name("header", &config.header);
        let realm = config.realm.as_deref().unwrap_or_default();
        if !is_value(realm.as_bytes()) || realm.contains(['"', '\\']) {
            faults.add("realm", "expected a text for a header, without quotes");
        }
        if config.grants.is_empty() {
            faults.add("grants", "expected at least one way to a token");
        }
        if config.mandatory_scope && config.scopes.is_none() {
            faults.add("scopes", "expected scopes, as `mandatory_scope` is true");
        }
        if config.provision_key.as_deref() == Some("") {
            faults.add("provision_key", "expected a key, found an empty text");
        }
        faults.done()?;
        // Two clients with the same name are reported.
        context.credential_index(NAME, |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            Some((credential.client_id.into_bytes(), ()))
        });
        Ok(Arc::new(Server {
            gate: Gate::build(NAME, config.identity.clone(), context)?,
            clients: Clients::of(NAME, context),
            records: Arc::clone(&self.records),
            secret_checks: Arc::clone(&self.secret_checks),
            random: self.random,
            instance: context.instance_id.to_owned(),
            scope_headers: ScopeHeaders::new(),
            config,
        }))
    }

    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        Some(Arc::new(SharedTokens(Arc::clone(&self.records))))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["client_id"],
            schema: schemars::schema_for!(Credential),
            check: |config| parse_config::<Credential>(config)?.check(),
        })
    }
}

/// The headers that describe to upstreams what a token allows.
struct ScopeHeaders {
    scope: Option<FieldName>,
    user: Option<FieldName>,
    both: OwnedNames,
}

impl ScopeHeaders {
    const SCOPE: &str = "X-Authenticated-Scope";
    const USER: &str = "X-Authenticated-UserId";

    fn new() -> Self {
        Self {
            scope: FieldName::new(Self::SCOPE),
            user: FieldName::new(Self::USER),
            both: OwnedNames::new([Self::SCOPE, Self::USER]),
        }
    }
}

/// An instance of `oauth2-server`.
struct Server {
    config: Config,
    gate: Gate,
    clients: Arc<Clients>,
    records: Arc<Records>,
    secret_checks: Arc<SecretChecks>,
    random: Random,
    instance: String,
    scope_headers: ScopeHeaders,
}

impl Server {
    /// Whether the call came over TLS, here or at a proxy that is believed.
    fn is_tls(&self, request: &Request) -> bool {
        let says_so = || {
            let mut schemes = request.headers.get_all(b"x-forwarded-proto");
            let is_https = schemes
                .next()
                .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"));
            is_https && schemes.next().is_none()
        };
        let peer = request.peer.ip();
        request.is_tls
            || (self
                .config
                .tls_terminated_by
                .iter()
                .any(|net| net.contains(&peer))
                && says_so())
    }

    fn allows(&self, grant: Grant) -> bool {
        self.config.grants.contains(&grant)
    }

    /// The service of a call, if tokens are for one.
    fn service(&self, exchange: &Exchange) -> Option<Arc<str>> {
        match self.config.all_services {
            true => None,
            false => Some(service_of(exchange).into()),
        }
    }

    /// A text that cannot be guessed. [`may_be_made_here`] knows its form.
    fn new_text(&self) -> String {
        const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut text = String::with_capacity(TEXT_LENGTH);
        while text.len() < TEXT_LENGTH {
            // Those above the greatest multiple of 62 would make the first letters more likely.
            let random = bytes::<48>(self.random);
            let fit = random.into_iter().filter(|byte| *byte < 248);
            let letters = fit.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
            text.extend(letters.take(TEXT_LENGTH - text.len()));
        }
        text
    }

    /// A new token of a client, and the members of the answer about it. `refresh`: its refresh token, if it has one; `code`:
    /// the code that it is given for.
    fn new_token(
        &self,
        client: &clients::Client,
        grant: GrantedAccess,
        (refresh, code): (Option<String>, Option<Hash>),
        now_ms: u64,
    ) -> (Put, Hash, Map<String, Value>) {
        let config = &self.config;
        let access = self.new_text();
        let has_end = config.token_seconds > 0;
        let keeps_ms = match (has_end, refresh.is_some()) {
            (false, _) => None,
            (true, true) => Some(config.refresh_token_seconds).filter(|seconds| *seconds > 0),
            (true, false) => Some(config.token_seconds.saturating_add(1)),
        };
        let mut body = Map::new();
        body.insert("access_token".to_owned(), json!(access));
        body.insert("token_type".to_owned(), json!("bearer"));
        if has_end {
            body.insert("expires_in".to_owned(), json!(config.token_seconds));
        }
        if let Some(refresh) = &refresh {
            body.insert("refresh_token".to_owned(), json!(refresh));
        }
        let hash_of_access = hash(&access);
        let put = Put {
            hash: hash_of_access,
            record: Record::Token(Token {
                owner: client.owner.clone(),
                grant,
                refresh: refresh.as_deref().map(hash),
                code,
                created_ms: now_ms,
                expires_seconds: config.token_seconds,
            }),
            ends_ms: keeps_ms.map(|seconds| now_ms.saturating_add(seconds.saturating_mul(1_000))),
            made_ms: now_ms,
        };
        (put, hash_of_access, body)
    }
}

/// Whether a text has the form of the codes and tokens that calls get. Others are in no store.
fn may_be_made_here(text: &str) -> bool {
    text.len() == TEXT_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The service of a call: its id if the dialect has one, otherwise its name.
fn service_of(exchange: &Exchange) -> &str {
    let route = exchange.route.as_deref();
    route.map_or("", |route| match route.labels.get(SERVICE_LABEL) {
        Some(id) => id,
        None => &route.service,
    })
}

impl Filter for Server {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(waiting) = exchange.filter_state.take::<_, PendingReply>(self) {
            return endpoints::answer(waiting);
        }
        match Endpoint::of(&exchange.request.path) {
            Some(endpoint) => self.serve(&endpoint, exchange),
            None => self.check(exchange),
        }
    }
}

#[cfg(test)]
mod tests;
