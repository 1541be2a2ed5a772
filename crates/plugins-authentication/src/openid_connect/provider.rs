//! What is known of a provider: its discovery document and its keys, fetched once for all calls.

use super::config::Config;
use super::token_description::TokenDescription;
use crate::jose::KeySet;
use crate::session_cookie::ended_sessions;
use crate::shared_fetch::{FetchRequest, KeyDocument, RETRY_MS, STALE_MS, SharedKey, hashed, trust};
pub(super) use crate::shared_fetch::{Step, good, require_value};
use crate::shared_revocations::SharedRevocations;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{Exchange, Outcome};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// The most bytes of each cache.
const CACHE_BYTES: usize = 32 << 20;

/// A provider's discovery document (OpenID Connect Discovery 1.0, 3), as far as it is used.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Provider {
    pub(super) issuer: String,
    #[serde(default)]
    pub(super) authorization_endpoint: Option<String>,
    #[serde(default)]
    pub(super) token_endpoint: Option<String>,
    #[serde(default)]
    pub(super) jwks_uri: Option<String>,
    #[serde(default)]
    pub(super) userinfo_endpoint: Option<String>,
    #[serde(default)]
    pub(super) introspection_endpoint: Option<String>,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) end_session_endpoint: Option<String>,
    #[serde(default)]
    pub(super) pushed_authorization_request_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    /// The server of `jwks_uri`.
    #[serde(skip)]
    keys: Option<HttpServer>,
}

impl Provider {
    /// Whether it knows the PKCE method `S256`.
    pub(super) fn knows_pkce(&self) -> bool {
        self.code_challenge_methods_supported
            .iter()
            .any(|it| it == "S256")
    }
}

/// What a token endpoint has answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TokenSet {
    pub(crate) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at_s: Option<u64>,
}

/// What all instances share. It outlives reloads.
#[derive(Debug)]
pub(super) struct Caches {
    providers: Arc<ExpiringMap<Arc<Provider>>>,
    keys: Arc<ExpiringMap<Arc<KeySet>>>,
    pub(super) answers: Arc<ExpiringMap<Arc<TokenDescription>>>,
    /// `None`: the provider has refused the credentials.
    pub(super) tokens: Arc<ExpiringMap<Option<Arc<TokenSet>>>>,
    pub(super) ended: Arc<SharedRevocations>,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            providers: ExpiringMap::new(CACHE_BYTES),
            keys: ExpiringMap::new(CACHE_BYTES),
            answers: ExpiringMap::new(CACHE_BYTES),
            tokens: ExpiringMap::new(CACHE_BYTES),
            ended: ended_sessions(),
        }
    }
}

/// Where the provider is, and how it is asked.
pub(super) struct Directory {
    pub(super) server: HttpServer,
    pub(super) rules: ServerCallRules,
    issuer: Option<String>,
    cache_ms: u64,
    /// How far answers can be trusted: what they are kept by, besides what was asked.
    pub(super) trust: String,
    /// The same for documents, with how long they are kept.
    document_trust: String,
    /// By what its discovery document is kept.
    document_key: SharedKey,
    caches: Arc<Caches>,
}

impl Directory {
    pub(super) fn new(
        server: HttpServer,
        rules: ServerCallRules,
        config: &Config,
        caches: &Arc<Caches>,
    ) -> Self {
        let scheme = if server.is_https { "https" } else { "http" };
        let document_trust = trust(&rules, config.cache_seconds);
        let document_key = hashed(&[
            scheme,
            &server.authority,
            &server.target,
            &document_trust,
            config.issuer.as_deref().unwrap_or_default(),
        ]);
        Self {
            trust: trust(&rules, 0),
            document_trust,
            document_key,
            server,
            rules,
            issuer: config.issuer.clone(),
            cache_ms: config.cache_seconds.saturating_mul(1_000),
            caches: Arc::clone(caches),
        }
    }

    /// The address of the discovery document.
    pub(super) fn address(discovery: &str) -> String {
        match discovery.contains("/.well-known/") {
            true => discovery.to_owned(),
            false => format!(
                "{}/.well-known/openid-configuration",
                discovery.trim_end_matches('/')
            ),
        }
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime {
            fresh_ms: self.cache_ms,
            stale_ms: STALE_MS,
        }
    }

    fn timeout(&self) -> Duration {
        self.rules.timeout
    }

    /// The discovery document; `None`: it cannot be had.
    pub(super) fn provider(&self, exchange: &mut Exchange) -> Step<Option<Arc<Provider>>> {
        let wanted = FetchRequest {
            map: &self.caches.providers,
            key: &self.document_key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.timeout(),
        };
        let found = wanted.find(
            self,
            exchange,
            |_| Outcome::Subrequest(Box::new(self.server.request(HttpRequest::GET, &self.rules))),
            |exchange| {
                let answer = good(exchange.subrequest_response.take()?)?;
                let mut provider: Provider = serde_json::from_slice(&answer.body).ok()?;
                if !self.is_issuer(&provider.issuer) {
                    return None;
                }
                provider.keys = provider.jwks_uri.as_deref().and_then(HttpServer::parse);
                Some((Arc::new(provider), answer.body.len() * 2, self.lifetime()))
            },
        );
        require_value(found)
    }

    /// Whether the document is that of the configured issuer. Some name themselves with a `/` at the end, and some without.
    fn is_issuer(&self, found: &str) -> bool {
        let wanted = self.issuer.as_deref().unwrap_or(found);
        wanted.trim_end_matches('/') == found.trim_end_matches('/')
    }

    /// The key set. With `renewed` it is fetched again unless that was done a short time ago.
    pub(super) fn keys(
        &self,
        provider: &Provider,
        exchange: &mut Exchange,
        renewed: bool,
    ) -> Step<Option<Arc<KeySet>>> {
        let Some(address) = &provider.jwks_uri else {
            return Ok(None);
        };
        let Some(server) = &provider.keys else {
            return Ok(None);
        };
        let key = hashed(&[address, &self.document_trust]);
        let document = KeyDocument {
            map: &self.caches.keys,
            key: &key,
            server,
            rules: &self.rules,
            authorization: None,
            lifetime: self.lifetime(),
        };
        document.find(self, exchange, renewed, |body| KeySet::parse(body).map(Arc::new))
    }
}
