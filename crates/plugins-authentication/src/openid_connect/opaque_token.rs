//! Opaque tokens: what the provider says about them, at its introspection endpoint (RFC 7662) or its userinfo endpoint
//! (OpenID Connect Core 1.0, 5.3). Its answer is used for all calls with the same token.

use super::bearer::{TokenResult, UNAVAILABLE};
use super::call_tokens::CallTokens;
use super::client;
use super::config::ProviderAnswer;
use super::engine::Engine;
use super::provider::Step;
use super::token_description::TokenDescription;
use crate::shared_fetch::SharedKey;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use weir_flow::expiring::Lifetime;
use weir_plugin::{Exchange, Subrequest, SubrequestResponse};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer};

/// The claim that every answer of a userinfo endpoint has.
const SUBJECT: &str = "sub";

impl Engine {
    /// Asks the provider about a token.
    pub(super) fn introspect(&self, exchange: &mut Exchange, token: &Arc<str>) -> Step<TokenResult> {
        let key = self.introspection_key(exchange, token);
        let now_ms = exchange.unix_ms();
        let described = match self.caches.answers.get(&key, now_ms) {
            Some(described) => described,
            None => match self.introspected(exchange, token, &key)? {
                Some(described) => described,
                None => return Ok(Err((UNAVAILABLE, "introspection is not available"))),
            },
        };
        if !described.is_active {
            return Ok(Err(("invalid_token", "the token is not active")));
        }
        let leeway = self.config.leeway_seconds;
        if let Err(words) = described
            .times
            .and_then(|times| times.check(leeway, now_ms / 1_000))
        {
            return Ok(Err(("invalid_token", words)));
        }
        Ok(Ok(CallTokens {
            access_token: Some(Arc::clone(token)),
            introspection: Some(Arc::clone(&described.claims)),
            ..CallTokens::default()
        }))
    }

    /// By what the answer about a token is kept.
    fn introspection_key(&self, exchange: &Exchange, token: &str) -> SharedKey {
        let prefix = &self.answer_keys.introspection;
        let names = &self.config.introspection_headers;
        if names.is_empty() {
            return prefix.finish(&[token.as_bytes()]);
        }
        let headers = &exchange.request.headers;
        let mut parts = vec![token.as_bytes()];
        for name in names {
            let value = headers.get(name.as_bytes());
            parts.extend([
                if value.is_some() { &b"1"[..] } else { b"0" },
                value.unwrap_or_default(),
            ]);
        }
        prefix.finish(&parts)
    }

    fn introspected(
        &self,
        exchange: &mut Exchange,
        token: &str,
        key: &SharedKey,
    ) -> Step<Option<Arc<TokenDescription>>> {
        let endpoint = match &self.config.introspection_endpoint {
            Some(endpoint) => Some(Cow::Borrowed(endpoint.as_str())),
            None => {
                let provider = self.directory.provider(exchange)?;
                provider.and_then(|it| it.introspection_endpoint.clone().map(Cow::Owned))
            }
        };
        let Some(endpoint) = endpoint else {
            return Ok(None);
        };
        self.fetched(
            exchange,
            &self.caches.answers,
            key,
            |exchange| self.ask_about(exchange, &endpoint, token),
            |exchange| {
                let answer = exchange.subrequest_response.take()??;
                let claims = introspection_claims(&answer)?;
                let now_s = exchange.unix_ms() / 1_000;
                let until_s = claims.get("exp").and_then(Value::as_f64).map(|at| at as u64);
                let left_s = until_s.map(|at| at.saturating_sub(now_s));
                let seconds = match (self.config.introspection_seconds, left_s) {
                    (0, left) => left.unwrap_or(0),
                    (longest, left) => left.map_or(longest, |left| left.min(longest)),
                };
                let kept_ms = self.config.kept_ms(ProviderAnswer::Introspection, seconds);
                let lifetime = Lifetime::fresh(kept_ms);
                Some((TokenDescription::new(claims), answer.body.len() * 3, lifetime))
            },
        )
    }

    /// The request for an introspection.
    fn ask_about(&self, exchange: &mut Exchange, endpoint: &str, token: &str) -> Option<Subrequest> {
        let now_s = exchange.unix_ms() / 1_000;
        let rules = &self.directory.rules;
        let own = &exchange.request.headers;
        let forwarded = self.config.introspection_headers.iter().filter_map(|name| {
            let value = std::str::from_utf8(own.get(name.as_bytes())?).ok()?;
            Some((name.as_str(), value))
        });
        let mut headers: Vec<(&str, &str)> = forwarded.collect();
        let mut arguments = vec![("token", token)];
        let hint = self.config.introspection_hint.as_str();
        arguments.extend(Some(("token_type_hint", hint)).filter(|_| !hint.is_empty()));
        match &self.config.introspection_authorization {
            // It says who asks: nothing else does.
            Some(value) => {
                headers.push(("Authorization", value));
                client::post_form(endpoint, arguments, headers, rules)
            }
            None => {
                let auth = self.config.introspection_auth.unwrap_or(self.config.client_auth);
                self.client
                    .post(endpoint, auth, &arguments, &headers, (rules, now_s))
            }
        }
    }

    /// Asks the userinfo endpoint with a token.
    pub(super) fn fetch_userinfo(&self, exchange: &mut Exchange, token: &Arc<str>) -> Step<TokenResult> {
        let key = self.answer_keys.userinfo.finish(&[token.as_bytes()]);
        let described = match self.caches.answers.get(&key, exchange.unix_ms()) {
            Some(described) => described,
            None => match self.userinfo_answer(exchange, token, &key)? {
                Some(described) => described,
                None => return Ok(Err((UNAVAILABLE, "the userinfo endpoint is not available"))),
            },
        };
        if !described.claims.contains_key(SUBJECT) {
            return Ok(Err((
                "invalid_token",
                "the userinfo endpoint does not accept the token",
            )));
        }
        Ok(Ok(CallTokens {
            access_token: Some(Arc::clone(token)),
            userinfo: Some(Arc::clone(&described.claims)),
            ..CallTokens::default()
        }))
    }

    /// The claims of the user; none, if the endpoint refuses the token.
    fn userinfo_answer(
        &self,
        exchange: &mut Exchange,
        token: &str,
        key: &SharedKey,
    ) -> Step<Option<Arc<TokenDescription>>> {
        let provider = self.directory.provider(exchange)?;
        let server = provider.and_then(|it| HttpServer::parse(it.userinfo_endpoint.as_deref()?));
        let Some(server) = server else {
            return Ok(None);
        };
        self.fetched(
            exchange,
            &self.caches.answers,
            key,
            |_| {
                let authorization = format!("Bearer {token}");
                let headers = [("Authorization", authorization.as_str())];
                let request = HttpRequest {
                    headers: &headers,
                    ..HttpRequest::GET
                };
                Some(server.request(request, &self.directory.rules))
            },
            |exchange| {
                let answer = exchange.subrequest_response.take()??;
                let claims: Map<String, Value> = match answer.status {
                    200 => serde_json::from_slice(&answer.body).ok()?,
                    400 | 401 | 403 => Map::new(),
                    _ => return None,
                };
                if answer.status == 200 {
                    claims.get(SUBJECT)?.as_str()?;
                }
                let seconds = self.config.introspection_seconds;
                let lifetime = Lifetime::fresh(self.config.kept_ms(ProviderAnswer::Userinfo, seconds));
                Some((TokenDescription::new(claims), answer.body.len() * 3, lifetime))
            },
        )
    }
}

/// What an introspection says; `None`: nothing about the token.
fn introspection_claims(answer: &SubrequestResponse) -> Option<Map<String, Value>> {
    let claims: Map<String, Value> = match answer.status {
        200 => serde_json::from_slice(&answer.body).ok()?,
        // Some answer so to what is no token of theirs, instead of calling it inactive (RFC 7662, 2.2).
        400 if !client::is_refused(answer) => Map::from_iter([("active".to_owned(), Value::Bool(false))]),
        _ => return None,
    };
    claims.get("active")?.as_bool()?;
    Some(claims)
}
