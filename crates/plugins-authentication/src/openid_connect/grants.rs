//! Calls that bring a name and a password, or a client's id and secret, which the provider exchanges for a token.

use super::bearer::{TokenResult, UNAVAILABLE};
use super::call_tokens::CallTokens;
use super::client::{self, NoToken};
use super::config::{Method, ProviderAnswer};
use super::engine::Engine;
use super::grant_credentials::GrantCredentials;
use super::provider::{Step, TokenSet};
use serde_json::{Map, Value};
use std::sync::Arc;
use weir_flow::expiring::Lifetime;
use weir_plugin::Exchange;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer};

/// Tokens of grants are renewed so long before they expire.
const EARLY_S: u64 = 5;
/// For how long credentials that the provider has refused are refused without asking it again.
const REFUSED_MS: u64 = 1_000;
/// About the memory of a refusal.
const REFUSAL_BYTES: usize = 100;

impl Engine {
    /// Exchanges what the call brings for a token. `None`: it brings nothing for this method.
    pub(super) fn granted(&self, exchange: &mut Exchange, method: Method) -> Step<Option<TokenResult>> {
        let found = self.grant_credentials(&exchange.request, method);
        let Some(GrantCredentials { name, secret, .. }) = found else {
            return Ok(None);
        };
        let provider = self.provider(exchange)?;
        let Some(endpoint) = provider.token_endpoint.clone() else {
            return Ok(Some(Err(("invalid_token", "the provider has no token endpoint"))));
        };
        let kind = if method == Method::Password {
            "password"
        } else {
            "client_credentials"
        };
        let scope = self.config.scopes.join(" ");
        let mut parts = vec![
            endpoint.as_bytes(),
            name.as_bytes(),
            secret.as_bytes(),
            scope.as_bytes(),
        ];
        for (name, value) in &self.config.token_arguments {
            parts.extend([name.as_bytes(), value.as_bytes()]);
        }
        if self.config.uncached.contains(&ProviderAnswer::Tokens) {
            parts.push(b"uncached");
        }
        let key = self.key(kind, &parts);
        let found = self.fetched(
            exchange,
            &self.caches.tokens,
            &key,
            |exchange| {
                let mut arguments = vec![("grant_type", kind), ("scope", scope.as_str())];
                let more = &self.config.token_arguments;
                arguments.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                if method == Method::Password {
                    arguments.extend([("username", name.as_str()), ("password", secret.as_str())]);
                    self.post(exchange, &endpoint, self.config.client_auth, &arguments, &[])
                } else {
                    arguments.extend([("client_id", name.as_str()), ("client_secret", secret.as_str())]);
                    HttpServer::parse(&endpoint).map(|server| {
                        let body = weir_plugins_shared::http_request::form(arguments);
                        let request = HttpRequest {
                            method: "POST",
                            headers: &[("Content-Type", "application/x-www-form-urlencoded")],
                            body: Some(body.as_bytes()),
                            ..HttpRequest::GET
                        };
                        server.request(request, &self.directory.rules)
                    })
                }
            },
            |exchange| {
                let now_s = exchange.unix_ms() / 1_000;
                let answer = exchange.subrequest_response.take()??;
                // Of a user's password, the endpoint may also refuse the gateway itself.
                let is_callers = method == Method::ClientCredentials || !client::is_refused(&answer);
                let is_refused = is_callers && matches!(answer.status, 400 | 401 | 403);
                match client::tokens(Some(answer), now_s) {
                    Ok(tokens) => Some(self.kept(tokens, now_s)),
                    Err(NoToken) if is_refused => Some((None, REFUSAL_BYTES, Lifetime::fresh(REFUSED_MS))),
                    Err(NoToken) => None,
                }
            },
        );
        let tokens = match found? {
            Some(Some(tokens)) => tokens,
            Some(None) => {
                return Ok(Some(Err((
                    "invalid_token",
                    "the provider gives no token for these credentials",
                ))));
            }
            None => return Ok(Some(Err((UNAVAILABLE, "the token endpoint is not available")))),
        };
        let mut recognised = CallTokens {
            access_token: Some(tokens.access_token.as_str().into()),
            id_token: tokens.id_token.clone(),
            scope: tokens.scope.clone(),
            ..CallTokens::default()
        };
        recognised.read_access_token();
        if recognised.access_claims.is_none() && method == Method::ClientCredentials {
            // An opaque token says nothing; the provider has accepted this client.
            let claims = Map::from_iter([("sub".to_owned(), Value::from(name))]);
            recognised.access_claims = Some(Arc::new(claims.into()));
        }
        Ok(Some(Ok(recognised)))
    }

    /// How long tokens of a grant are used.
    fn kept(&self, tokens: TokenSet, now_s: u64) -> (Option<Arc<TokenSet>>, usize, Lifetime) {
        let until_s = tokens.expires_at_s.unwrap_or(now_s + 60);
        let seconds = until_s.saturating_sub(now_s).saturating_sub(EARLY_S);
        let bytes = tokens.access_token.len() + tokens.id_token.as_ref().map_or(0, String::len) + 200;
        let kept_ms = self.config.kept_ms(ProviderAnswer::Tokens, seconds);
        (Some(Arc::new(tokens)), bytes, Lifetime::fresh(kept_ms))
    }
}
