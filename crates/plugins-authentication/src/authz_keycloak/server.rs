//! The calls to Keycloak: its endpoints, the client's own token, and forms. The filter decides what to ask.

use super::{Config, NAME};
use crate::browser::refused;
use crate::openid_connect::client;
use crate::shared_fetch::{FetchRequest, FetchResult, trust};
use aws_lc_rs::digest;
use serde::Deserialize;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{Exchange, Outcome};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};

/// How long nothing is fetched after a failure.
const RETRY_MS: u64 = 1_000;

/// What is found, or how the call goes on without.
pub(super) type Step<T> = Result<T, Outcome>;

/// Where Keycloak is asked.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Endpoints {
    pub(super) token_endpoint: Option<String>,
    pub(super) resource_registration_endpoint: Option<String>,
}

/// The Keycloak of an instance, and what all instances share.
pub(super) struct Keycloak {
    pub(super) config: Config,
    pub(super) rules: ServerCallRules,
    pub(super) documents: Arc<ExpiringMap<Arc<Endpoints>>>,
    pub(super) tokens: Arc<ExpiringMap<Arc<str>>>,
}

pub(super) fn unavailable(words: &'static str) -> Outcome {
    refused(NAME, 503, words)
}

impl Keycloak {
    fn key(&self, what: &str, url: &str) -> Vec<u8> {
        let config = &self.config;
        let trust = trust(&self.rules, config.cache_seconds);
        let parts = (what, url, &config.client_id, &config.client_secret, trust);
        let text = serde_json::to_vec(&parts).unwrap_or_default();
        digest::digest(&digest::SHA256, &text).as_ref().to_vec()
    }

    /// Where Keycloak is asked: as configured, else as it says itself.
    pub(super) fn endpoints(&self, exchange: &mut Exchange) -> Step<Endpoints> {
        let config = &self.config;
        let own = Endpoints {
            token_endpoint: config.token_endpoint.clone(),
            resource_registration_endpoint: config.resource_endpoint.clone(),
        };
        let is_whole =
            own.token_endpoint.is_some() && (!config.by_path || own.resource_registration_endpoint.is_some());
        let Some(url) = config.discovery.as_ref().filter(|_| !is_whole) else {
            return Ok(own);
        };
        let wanted = FetchRequest {
            map: &self.documents,
            key: &self.key("discovery", url),
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let lifetime = Lifetime::fresh((config.cache_seconds * 1_000).max(1));
        let found = wanted.find(
            self,
            exchange,
            |_| match HttpServer::parse(url) {
                Some(server) => Outcome::Subrequest(Box::new(server.request(HttpRequest::GET, &self.rules))),
                None => unavailable("Unable to determine token endpoint."),
            },
            |exchange| {
                let answer = exchange.subrequest_response.take()??;
                let read: Endpoints = serde_json::from_slice(&answer.body).ok()?;
                (answer.status == 200).then(|| (Arc::new(read), answer.body.len(), lifetime))
            },
        );
        match found {
            FetchResult::Wait(outcome) => Err(outcome),
            FetchResult::Nothing => Err(unavailable("Accessing discovery URL failed.")),
            FetchResult::Value(discovered) => Ok(Endpoints {
                token_endpoint: own.token_endpoint.or_else(|| discovered.token_endpoint.clone()),
                resource_registration_endpoint: own
                    .resource_registration_endpoint
                    .or_else(|| discovered.resource_registration_endpoint.clone()),
            }),
        }
    }

    pub(super) fn post(&self, url: &str, arguments: &[(&str, &str)], authorization: Option<&str>) -> Outcome {
        let Some(server) = HttpServer::parse(url) else {
            return unavailable("Unable to determine token endpoint.");
        };
        let body = form(arguments.iter().copied());
        let mut headers = vec![("Content-Type", "application/x-www-form-urlencoded")];
        headers.extend(authorization.map(|it| ("Authorization", it)));
        let request = HttpRequest {
            method: "POST",
            headers: &headers,
            body: Some(body.as_bytes()),
            ..HttpRequest::GET
        };
        Outcome::Subrequest(Box::new(server.request(request, &self.rules)))
    }

    /// A token of the client's own, the same for all calls.
    pub(super) fn own_token(&self, exchange: &mut Exchange, url: &str) -> Step<Arc<str>> {
        let config = &self.config;
        let wanted = FetchRequest {
            map: &self.tokens,
            key: &self.key("token", url),
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let found = wanted.find(
            self,
            exchange,
            |_| {
                let secret = config.client_secret.as_deref().unwrap_or_default();
                let arguments = [
                    ("grant_type", "client_credentials"),
                    ("client_id", config.client_id.as_str()),
                    ("client_secret", secret),
                ];
                self.post(url, &arguments, None)
            },
            |exchange| {
                let now_s = exchange.unix_ms() / 1_000;
                let tokens = client::tokens(exchange.subrequest_response.take()?, now_s).ok()?;
                let ends_s = tokens.expires_at_s.unwrap_or(now_s + config.token_seconds);
                let seconds = ends_s.saturating_sub(now_s + 1 + config.refresh_leeway_seconds);
                let token: Arc<str> = tokens.access_token.into();
                let bytes = token.len();
                Some((token, bytes, Lifetime::fresh((seconds * 1_000).max(1))))
            },
        );
        match found {
            FetchResult::Wait(outcome) => Err(outcome),
            FetchResult::Nothing => Err(unavailable("Accessing token endpoint URL failed.")),
            FetchResult::Value(token) => Ok(token),
        }
    }
}
