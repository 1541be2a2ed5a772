//! Where keys and explanations of tokens come from: documents on servers, fetched once for all calls.

use super::claims::Claims;
use super::config::{Introspection, KeyServer};
use crate::jose::{KeySet, SigningKey};
use crate::shared_fetch::{
    FetchRequest, KeyDocument, STALE_MS, SharedKey, Step, good, hashed, require_value, trust, unshared,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{Exchange, Outcome};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};

/// The most bytes of each cache.
const CACHE_BYTES: usize = 16 << 20;
/// How long a server is not asked about a token after a failure.
const RETRY_MS: u64 = 1_000;

/// What all instances share. It outlives reloads.
pub(super) struct Caches {
    pub(super) keys: Arc<ExpiringMap<Arc<KeySet>>>,
    pub(super) signing: Arc<ExpiringMap<Arc<SigningKey>>>,
    answers: Arc<ExpiringMap<Arc<Claims>>>,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            keys: ExpiringMap::new(CACHE_BYTES),
            signing: ExpiringMap::new(CACHE_BYTES),
            answers: ExpiringMap::new(CACHE_BYTES),
        }
    }
}

/// A document with keys.
pub(super) struct KeySource {
    server: HttpServer,
    authorization: Option<String>,
    lifetime: Lifetime,
    /// What it is kept by, which shows no secret.
    key: SharedKey,
}

impl KeySource {
    /// `None` if its address cannot be parsed. `use_as` names the purpose of the document.
    pub(super) fn new(config: &KeyServer, use_as: &str, rules: &ServerCallRules) -> Option<Self> {
        let basic = |(name, password): (&String, &String)| {
            format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
        };
        let authorization = config.username.as_ref().zip(config.password.as_ref()).map(basic);
        let key = hashed(&[
            use_as,
            &config.address,
            authorization.as_deref().unwrap_or_default(),
            &trust(rules, config.cache_seconds),
        ]);
        Some(Self {
            server: HttpServer::parse(&config.address)?,
            authorization,
            lifetime: Lifetime {
                fresh_ms: config.cache_seconds.max(1).saturating_mul(1_000),
                stale_ms: STALE_MS,
            },
            key,
        })
    }

    /// The document, as `read` reads it. With `renewed` it is fetched again unless that was done a short time ago.
    pub(super) fn find<V: Clone + 'static>(
        &self,
        map: &Arc<ExpiringMap<V>>,
        rules: &ServerCallRules,
        exchange: &mut Exchange,
        renewed: bool,
        read: impl FnOnce(&[u8]) -> Option<V>,
    ) -> Step<Option<V>> {
        let document = KeyDocument {
            map,
            key: &self.key,
            server: &self.server,
            rules,
            authorization: self.authorization.as_deref(),
            lifetime: self.lifetime,
        };
        document.find(self, exchange, renewed, read)
    }
}

/// A server that explains tokens.
pub(super) struct Explainer {
    server: HttpServer,
    rules: ServerCallRules,
    config: Introspection,
}

impl Explainer {
    /// `None`: its address cannot be read.
    pub(super) fn new(config: &Introspection, rules: &ServerCallRules) -> Option<Self> {
        let timeout = config.timeout_ms.map(std::time::Duration::from_millis);
        Some(Self {
            server: HttpServer::parse(&config.endpoint)?,
            rules: ServerCallRules {
                timeout: timeout.unwrap_or(rules.timeout),
                ..rules.clone()
            },
            config: config.clone(),
        })
    }

    /// What the server says of a token; `None`: nothing that can be read.
    pub(super) fn ask(
        &self,
        caches: &Caches,
        exchange: &mut Exchange,
        token: &str,
    ) -> Step<Option<Arc<Claims>>> {
        let config = &self.config;
        let key = hashed(&[
            &config.endpoint,
            config.authorization.as_deref().unwrap_or_default(),
            config.hint.as_deref().unwrap_or_default(),
            config.arguments.as_deref().unwrap_or_default(),
            &trust(&self.rules, config.cache_seconds),
            token,
        ]);
        let ask = |_: &mut Exchange| Outcome::Subrequest(Box::new(self.request(token)));
        let read = |exchange: &mut Exchange| {
            let answer = good(exchange.subrequest_response.take()?)?;
            let claims: Claims = serde_json::from_slice(&answer.body).ok()?;
            claims.get("active")?.as_bool()?;
            Some((Arc::new(claims), answer.body.len() * 3))
        };
        if config.cache_seconds == 0 {
            let found = require_value(unshared(&key, self, exchange, ask, read))?;
            return Ok(found.map(|(claims, _)| claims));
        }
        let wanted = FetchRequest {
            map: &caches.answers,
            key: &key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let found = wanted.find(self, exchange, ask, |exchange| {
            let (claims, bytes) = read(exchange)?;
            let now_s = exchange.unix_ms() / 1_000;
            let until_s = claims.get("exp").and_then(Value::as_f64).map(|at| at as u64);
            let left_s = until_s.map_or(u64::MAX, |at| at.saturating_sub(now_s));
            let seconds = config.cache_seconds.min(left_s);
            // Even what is not kept serves the calls that wait for it.
            let lifetime = Lifetime::fresh(seconds.saturating_mul(1_000).max(1));
            Some((claims, bytes, lifetime))
        });
        require_value(found)
    }

    fn request(&self, token: &str) -> weir_plugin::Subrequest {
        let mut arguments = vec![("token", token)];
        arguments.extend(self.config.hint.as_deref().map(|hint| ("token_type_hint", hint)));
        let mut body = form(arguments);
        if let Some(more) = self.config.arguments.as_deref().filter(|more| !more.is_empty()) {
            body.push('&');
            body.push_str(more);
        }
        let mut headers = vec![("Content-Type", "application/x-www-form-urlencoded")];
        headers.extend(
            self.config
                .authorization
                .as_deref()
                .map(|it| ("Authorization", it)),
        );
        let request = HttpRequest {
            method: "POST",
            headers: &headers,
            body: Some(body.as_bytes()),
            ..HttpRequest::GET
        };
        self.server.request(request, &self.rules)
    }
}
