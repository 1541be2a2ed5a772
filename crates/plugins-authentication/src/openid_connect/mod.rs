//! `openid-connect`: callers log in at an OpenID provider, or bring one of its tokens.
//!
//! ```yaml
//! discovery: https://id.example.com
//! client_id: shop
//! client_secret: TEXT
//! session: {secret: 0123456789abcdef}
//! ```
//!
//! Browsers are sent to the provider and come back with a session in a sealed cookie, which all gateways with the same
//! `session.secret` know. Other callers bring a bearer token: a signed one is checked by the provider's keys, and the provider
//! is asked about an opaque one (`methods: [introspection]`). While the provider does not answer, calls that need it are
//! refused; all others go on, and nothing has to be reloaded when it is back.
//!
//! Security: the provider's keys decide which algorithms are good; there is no `none`, and no public key is taken for a
//! secret. A login is bound to the browser that began it, is good once, and always begins a new session. Browsers are only
//! sent back to a path of the same host. Headers about the caller that callers send themselves never get through. A session
//! is a cookie of its browser. After a logout, copies of the cookie are refused by all gateways of a store; without a store, only
//! by the gateway that got the logout, so keep `idling_timeout_seconds` short there.

mod answer_keys;
mod bearer;
mod call_tokens;
mod claims;
pub(crate) mod client;
mod config;
mod engine;
mod filter;
mod grant_credentials;
mod grants;
mod login;
mod opaque_token;
mod provider;
mod session;
mod token_description;

pub use config::{
    ClientAssertion, ClientAuth, ClientCredential, ClientRules, Config, ConsumerRules, GrantLocation,
    GroupsClaim, Logout, Method, Pkce, ProviderAnswer, PushedRequests, RequiredClaims, TokenHeader,
    TokenSource, TokenValue, Unauthenticated,
};

use crate::consumer_names::{ConsumerNames, scoped_key};
use crate::identity::Gate;
use crate::jose::KeySet;
use crate::session_cookie::Sessions;
use crate::shared_fetch::KeyParts;
use crate::shared_revocations::RevocationRecords;
use answer_keys::AnswerKeys;
use client::Client;
use engine::{Engine, NAME};
use filter::OpenIdFilter;
use provider::{Caches, Directory};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, CredentialKind, Filter, Plugin, SharedRecords, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::cookie::SameSite;
use weir_plugins_shared::http_request::HttpServer;
use weir_plugins_shared::json_schema::Schema;
use weir_plugins_shared::random::{Random, system_random};

/// The plugin.
pub struct OpenIdConnect {
    caches: Arc<Caches>,
    random: Random,
}

impl Default for OpenIdConnect {
    fn default() -> Self {
        Self {
            caches: Arc::default(),
            random: system_random,
        }
    }
}

impl Plugin for OpenIdConnect {
    fn name(&self) -> &'static str {
        "openid-connect"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let server = HttpServer::parse(&Directory::address(&config.discovery));
        if server.is_none() {
            faults.add(
                "discovery",
                "expected an address that begins with http:// or https://",
            );
        }
        check(&config, &mut faults);
        let client = match Client::new(&config, self.random) {
            Ok(client) => Some(client),
            Err((field, words)) => {
                faults.add(field, words);
                None
            }
        };
        let own_keys = config.public_key.as_deref().map(KeySet::of_pem);
        if matches!(own_keys, Some(None)) {
            faults.add("public_key", "expected a public key or a certificate in PEM");
        }
        let schema = config.required.schema.clone();
        let schema = schema
            .map(|schema| Schema::read(&Value::Object(schema), false))
            .transpose();
        if let Err(words) = &schema {
            faults.add_at(&["required", "schema"], words.clone());
        }
        if let Some(session) = &config.session {
            faults.extend(session.faults(&DocPath::root().field("session")));
        }
        faults.done()?;
        let gate = Gate::build(NAME, config.identity.clone(), context)?;
        let consumers = config
            .consumer
            .clone()
            .map(|rules| (rules, ConsumerNames::of(context)));
        let clients = config.client.clone().map(|rules| {
            let index = context.credential_index(NAME, |credential| {
                let credential = ClientCredential::deserialize(credential).ok()?;
                Some((scoped_key(&credential.scope, &credential.client_id), ()))
            });
            (rules, index)
        });
        let server = server.expect("invariant: its absence has been reported");
        let groups_header = config.groups.as_ref().and_then(|groups| groups.header.clone());
        config.cleared_headers.extend(groups_header);
        let required = &config.required;
        let reads_claims = *required != RequiredClaims::default()
            || consumers.is_some()
            || clients.is_some()
            || config.groups.is_some();
        let directory = Directory::new(server, config.http.rules(), &config, &self.caches);
        let mut client_key = KeyParts::of(&[&config.discovery, &config.client_id, &directory.trust]);
        client_key.add(format!("{:?}", config.client_auth).as_bytes());
        client_key.add_if_there(config.client_secret.as_deref().map(str::as_bytes));
        Ok(Arc::new(OpenIdFilter {
            engine: Engine {
                answer_keys: AnswerKeys::new(&client_key, &config),
                client_key,
                directory,
                client: client.expect("invariant: its absence has been reported"),
                caches: Arc::clone(&self.caches),
                sessions: config
                    .session
                    .clone()
                    .map(|session| Sessions::new(session, self.random).remembering(&self.caches.ended)),
                own_keys: own_keys.flatten(),
                reads_access_tokens: reads_claims,
                random: self.random,
                config,
            },
            gate,
            schema: schema.unwrap_or_default(),
            consumers,
            clients,
        }))
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let Ok(config) = parse_config::<Config>(config) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let root = DocPath::root();
        if config.discovery.starts_with("http://") || !config.http.verify_tls {
            let message =
                "others on the way to the provider can pretend to be it: use https, and check certificates";
            found.push(Diagnostic::warning(root.field("discovery"), message));
        }
        if config
            .session
            .as_ref()
            .is_some_and(|it| it.cookie_same_site == SameSite::Strict)
        {
            let message = "with Strict, browsers that come back from the provider do not send the cookie and log in again";
            found.push(Diagnostic::warning(
                root.field("session").field("cookie_same_site"),
                message,
            ));
        }
        found
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            // A client id may be there once for each scope.
            identities: &[],
            schema: schemars::schema_for!(ClientCredential),
            check: |config| {
                let credential: ClientCredential = parse_config(config)?;
                let mut faults = ConfigErrors::default();
                if credential.client_id.is_empty() {
                    faults.add("client_id", "expected the client's id");
                }
                faults.done()
            },
        })
    }

    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        Some(Arc::new(RevocationRecords(Arc::clone(&self.caches.ended))))
    }
}

/// Tells what is wrong with a configuration.
fn check(config: &Config, faults: &mut ConfigErrors) {
    if config.client.is_some() && config.consumer.is_some() {
        faults.add("client", "expected either `client` or `consumer`");
    }
    if config.client.as_ref().is_some_and(|it| it.claims.is_empty()) {
        faults.add_at(&["client", "claims"], "expected at least one claim");
    }
    if config.methods.is_empty() {
        faults.add("methods", "expected at least one method");
    }
    let uses = |method| config.methods.contains(&method);
    if uses(Method::AuthorizationCode) && config.session.is_none() {
        faults.add(
            "session",
            "expected `session.secret`: after a login, a session says who calls",
        );
    }
    let asks = uses(Method::AuthorizationCode) || uses(Method::Introspection) || uses(Method::Password);
    let is_client = |method: &Method| !matches!(method, Method::Bearer | Method::Userinfo | Method::Session);
    if config.client_id.is_empty() && config.methods.iter().any(is_client) {
        faults.add("client_id", "expected the client's id");
    }
    let auths = [Some(config.client_auth), config.introspection_auth];
    let needs = auths.into_iter().flatten().any(bearer::needs_secret)
        && (config.introspection_authorization.is_none() || uses(Method::AuthorizationCode));
    if asks && needs && config.client_secret.as_deref().unwrap_or_default().is_empty() {
        faults.add(
            "client_secret",
            "expected a secret, or `client_auth: none` for a public client",
        );
    }
    if let Some(uri) = &config.redirect_uri
        && !(uri.starts_with('/') || HttpServer::parse(uri).is_some())
    {
        faults.add("redirect_uri", "expected an address or a path");
    }
    if !config.redirect_suffix.is_empty() && !config.redirect_suffix.starts_with('/') {
        faults.add("redirect_suffix", "expected a path, or nothing");
    }
    for (field, address) in [
        ("introspection_endpoint", config.introspection_endpoint.as_deref()),
        (
            "pushed_requests",
            config
                .pushed_requests
                .as_ref()
                .and_then(|it| it.endpoint.as_deref()),
        ),
    ] {
        if address.is_some_and(|address| HttpServer::parse(address).is_none()) {
            faults.add(field, "expected an address that begins with http:// or https://");
        }
    }
    let names = |headers: &[TokenHeader]| headers.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    faults.check_names("upstream_headers", &names(&config.upstream_headers));
    faults.check_names("client_headers", &names(&config.client_headers));
    faults.check_names("cleared_headers", &config.cleared_headers);
    if let Some(header) = config.groups.as_ref().and_then(|groups| groups.header.as_ref()) {
        faults.check_name("groups", header);
    }
    faults.check_value(
        "introspection_authorization",
        config.introspection_authorization.as_ref(),
    );
    faults.check_names("introspection_headers", &config.introspection_headers);
    faults.check_value("realm", config.realm.as_ref());
    if config
        .realm
        .as_ref()
        .is_some_and(|realm| realm.contains(['"', '\\']))
    {
        faults.add("realm", "expected a text without \" and \\");
    }
    faults.check_status("login_failure_status", config.login_failure_status);
    if config.cache_seconds == 0 {
        faults.add("cache_seconds", "expected at least 1 second");
    }
    config.http.check(faults);
}

#[cfg(test)]
mod tests;
