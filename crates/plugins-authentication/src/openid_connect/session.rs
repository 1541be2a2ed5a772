//! Calls of browsers that have logged in: what a session remembers, and renewing its tokens.

use super::call_tokens::CallTokens;
use super::claims::Claims;
use super::client;
use super::engine::Engine;
use super::provider::{Step, TokenSet};
use crate::session_cookie::Session;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_flow::expiring::Lifetime;
use weir_plugin::Exchange;

/// Tokens that were renewed are given to all calls with the old session for so long.
const RENEWED_MS: u64 = 30_000;

/// What a session remembers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LoginSession {
    pub(super) tokens: TokenSet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id_claims: Option<Arc<Claims>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) userinfo: Option<Arc<Claims>>,
}

impl LoginSession {
    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Engine {
    /// The session of a call, with what it remembers.
    pub(super) fn remembered(&self, exchange: &mut Exchange) -> Option<(Session, LoginSession)> {
        let now_s = exchange.unix_ms() / 1_000;
        let session = self.sessions.as_ref()?.open(&exchange.request, now_s)?;
        let remembered = serde_json::from_slice(&session.data).ok()?;
        Some((session, remembered))
    }

    /// Who calls, by the call's session. `None`: it has none that is good.
    pub(super) fn by_session(&self, exchange: &mut Exchange) -> Step<Option<CallTokens>> {
        let Some(sessions) = &self.sessions else {
            return Ok(None);
        };
        let Some((mut session, mut remembered)) = self.remembered(exchange) else {
            return Ok(None);
        };
        let now_s = exchange.unix_ms() / 1_000;
        let leeway = self.config.refresh_leeway_seconds;
        let ends_s = remembered.tokens.expires_at_s;
        if self.config.refresh && ends_s.is_some_and(|ends_s| now_s.saturating_add(leeway) >= ends_s) {
            let Some(renewed) = self.renewed(exchange, &remembered.tokens)? else {
                return Ok(None);
            };
            remembered.tokens = renewed;
            session.data = remembered.bytes();
            sessions.write(&mut session, exchange);
        } else {
            sessions.touch(&mut session, exchange);
        }
        let mut recognised = CallTokens {
            by_session: true,
            session_id: Some(session.id_text()),
            access_token: Some(remembered.tokens.access_token.into()),
            id_token: remembered.tokens.id_token,
            refresh_token: remembered.tokens.refresh_token,
            scope: remembered.tokens.scope,
            id_claims: remembered.id_claims,
            userinfo: remembered.userinfo,
            ..CallTokens::default()
        };
        if self.reads_access_tokens {
            recognised.read_access_token();
        }
        Ok(Some(recognised))
    }

    /// Renews tokens: one request for all calls that come with the same refresh token, which may be good only once.
    fn renewed(&self, exchange: &mut Exchange, old: &TokenSet) -> Step<Option<TokenSet>> {
        let Some(refresh_token) = &old.refresh_token else {
            return Ok(None);
        };
        let provider = self.provider(exchange)?;
        let Some(endpoint) = provider.token_endpoint.clone() else {
            return Ok(None);
        };
        let key = self.key("refresh", &[endpoint.as_bytes(), refresh_token.as_bytes()]);
        let renewed = self.fetched(
            exchange,
            &self.caches.tokens,
            &key,
            |exchange| {
                let arguments = [
                    ("grant_type", "refresh_token"),
                    ("refresh_token", refresh_token.as_str()),
                ];
                self.post(exchange, &endpoint, self.config.client_auth, &arguments, &[])
            },
            |exchange| {
                let now_s = exchange.unix_ms() / 1_000;
                let tokens = client::tokens(exchange.subrequest_response.take()?, now_s).ok()?;
                let bytes = tokens.access_token.len() * 3 + 500;
                Some((Some(Arc::new(tokens)), bytes, Lifetime::fresh(RENEWED_MS)))
            },
        )?;
        Ok(renewed.flatten().map(|renewed| TokenSet {
            access_token: renewed.access_token.clone(),
            // A provider may leave out what has not changed (RFC 6749, 6; OpenID Connect Core 1.0, 12.2).
            refresh_token: renewed
                .refresh_token
                .clone()
                .or_else(|| Some(refresh_token.clone())),
            id_token: renewed.id_token.clone().or_else(|| old.id_token.clone()),
            scope: renewed.scope.clone().or_else(|| old.scope.clone()),
            expires_at_s: renewed.expires_at_s,
        }))
    }
}
