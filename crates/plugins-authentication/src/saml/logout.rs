//! Logouts that a user begins here, and logouts that the provider reports.

use super::config::LogoutRules;
use super::filter::SamlFilter;
use crate::browser::redirect;
use crate::pending_login::new_state;
use weir_plugin::{Exchange, Outcome};
use weir_saml::{LogoutMessage, LogoutRequest, SamlError, logout_request, logout_response};

impl SamlFilter {
    /// The user logs out. Without a session there is nothing to end.
    pub(super) fn log_out(&self, exchange: &mut Exchange, rules: &LogoutRules) -> Outcome {
        let Some((_, user)) = self.session(exchange) else {
            return redirect(302, &rules.redirect);
        };
        let now_ms = exchange.unix_ms();
        // Copies of the cookie end, too.
        self.end(&user.name, user.session_index.as_deref(), now_ms);
        self.sessions.close(exchange);
        let Some(destination) = &self.config.provider.logout_url else {
            return redirect(302, &rules.redirect);
        };
        let id = format!("_{}", new_state(self.random));
        let name = user.name_id();
        let session = (&name, user.session_index.as_deref());
        let message = logout_request(
            &id,
            (now_ms / 1_000) as i64,
            destination,
            &self.config.issuer,
            session,
        );
        let sent = self.send(destination, ("SAMLRequest", &message), None);
        sent.unwrap_or_else(|_| redirect(302, &rules.redirect))
    }

    /// A message of the provider: that a session ends, or that it has ended.
    pub(super) fn logout_message(
        &self,
        exchange: &mut Exchange,
        rules: &LogoutRules,
    ) -> Result<Outcome, SamlError> {
        let mut received = None;
        for name in ["SAMLRequest", "SAMLResponse"] {
            match self.received(exchange, name) {
                Ok(found) => received = received.or(found),
                Err(None) => return Ok(self.needs_body()),
                Err(Some(fault)) => return Err(fault),
            }
        }
        let received = received.ok_or(SamlError("the call brings no message about a logout"))?;
        let now_ms = exchange.unix_ms();
        let now_s = (now_ms / 1_000) as i64;
        let own = self.address(exchange, rules.callback.as_deref().unwrap_or_default());
        let issuer = self.config.provider.issuer.as_deref();
        let clock = (now_s, self.leeway_s());
        match LogoutMessage::read(&received, &self.trust, issuer, &own, clock)? {
            LogoutMessage::Response => Ok(redirect(302, &rules.redirect)),
            LogoutMessage::Request(request) => {
                // Told again, it would end a session that has begun since.
                let lasts_s = request.ends_s.saturating_sub(now_s).unsigned_abs();
                if !self.uses(&request.id, lasts_s + 1, now_ms) {
                    return Err(SamlError("the message was used before"));
                }
                self.end_all(exchange, &request, now_ms);
                let Some(destination) = &self.config.provider.logout_url else {
                    return Ok(redirect(302, &rules.redirect));
                };
                let id = format!("_{}", new_state(self.random));
                let answer = logout_response(&id, now_s, destination, &self.config.issuer, &request.id);
                let state = received.relay_state.as_deref();
                self.send(destination, ("SAMLResponse", &answer), state)
            }
        }
    }

    fn end_all(&self, exchange: &mut Exchange, request: &LogoutRequest, now_ms: u64) {
        let name = &request.name_id.value;
        let had_session = self.session(exchange).is_some();
        if request.session_indexes.is_empty() {
            self.end(name, None, now_ms);
        }
        for index in &request.session_indexes {
            self.end(name, Some(index), now_ms);
        }
        if had_session && self.session(exchange).is_none() {
            self.sessions.close(exchange);
        }
    }
}
