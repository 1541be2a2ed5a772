//! Logins: sending a browser to the provider, and what it brings back.

use super::config::Binding;
use super::filter::SamlFilter;
use super::user::User;
use crate::body_fields::{Field, Form};
use crate::browser::{own_url, redirect};
use crate::login_cookie::LOGIN_S;
use crate::pending_login::{PendingLogin, PendingLogins, new_state};
use serde::{Deserialize, Serialize};
use weir_plugin::{Exchange, Outcome, Reply};
use weir_saml::{
    AuthnRequest, Expected, LoginResponse, Received, SamlError, form_page, from_form, from_query,
    redirect_url,
};

/// A login that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct Login {
    /// Where the browser wanted to go.
    url: String,
    began_s: u64,
}

impl PendingLogin for Login {
    fn began_s(&self) -> u64 {
        self.began_s
    }
}

impl SamlFilter {
    fn pending(&self) -> PendingLogins<'_> {
        PendingLogins::posted(&self.sessions)
    }

    /// Sends the browser to the provider.
    pub(super) fn begin_login(&self, exchange: &mut Exchange) -> Result<Outcome, SamlError> {
        let now_s = exchange.unix_ms() / 1_000;
        let state = new_state(self.random);
        let login = Login {
            url: own_url(exchange),
            began_s: now_s,
        };
        let destination = &self.config.provider.login_url;
        let rules = &self.config.request;
        let request = AuthnRequest {
            id: &format!("_{state}"),
            now_s: now_s as i64,
            destination,
            callback: &self.address(exchange, &self.config.callback),
            by_redirect: rules.answer == Binding::Redirect,
            issuer: &self.config.issuer,
            name_id_format: rules.name_id_format.as_deref(),
        };
        let outcome = self.send(destination, ("SAMLRequest", &request.xml()), Some(&state))?;
        self.pending().remember(exchange, &state, &login);
        Ok(outcome)
    }

    /// Sends a message with the browser.
    pub(super) fn send(
        &self,
        destination: &str,
        (name, message): (&str, &str),
        state: Option<&str>,
    ) -> Result<Outcome, SamlError> {
        let key = self.signing.as_ref();
        if self.config.request.binding == Binding::Redirect {
            return Ok(redirect(
                302,
                &redirect_url(destination, name, message, state, key),
            ));
        }
        let (page, policy) = form_page(destination, name, message, state, key)?;
        let reply = Reply::new(200, "text/html; charset=utf-8", page)
            .with_header("Content-Security-Policy", policy)
            .with_header("Cache-Control", "no-cache, no-store, max-age=0");
        Ok(Outcome::Reply(Box::new(reply)))
    }

    /// The message that a call brings, in a form or a query. `Err(None)`: its body is needed first.
    pub(super) fn received(
        &self,
        exchange: &Exchange,
        name: &str,
    ) -> Result<Option<Received>, Option<SamlError>> {
        let request = &exchange.request;
        let max_bytes = self.config.response.max_bytes;
        match request.method.as_slice() {
            b"GET" => {
                let query = request.query.as_deref().unwrap_or_default();
                let query = std::str::from_utf8(query).map_err(|_| SamlError("the query is not UTF-8"))?;
                Ok(from_query(query, name, &self.trust, max_bytes)?)
            }
            b"POST" => {
                if request.body.is_none() && request.has_body {
                    return Err(None);
                }
                let kind = request.headers.get(b"content-type").unwrap_or_default();
                if Form::of(kind) != Some(Form::UrlEncoded) {
                    return Err(Some(SamlError("the message is not in a form")));
                }
                let body = request.body.as_deref().unwrap_or_default();
                let field = |name: &str| match Form::UrlEncoded.field(body, name) {
                    Field::One(value) => Ok(Some(value)),
                    Field::Absent => Ok(None),
                    Field::Several => Err(SamlError("the form has a field twice")),
                };
                let Some(message) = field(name)? else {
                    return Ok(None);
                };
                let state = field("RelayState")?;
                let state = state.map(|it| String::from_utf8_lossy(&it).into_owned());
                Ok(Some(from_form(&message, state, max_bytes)?))
            }
            _ => Ok(None),
        }
    }

    /// The engine reads a body that is as long as a message may be, with its encoding.
    pub(super) fn needs_body(&self) -> Outcome {
        Outcome::NeedBody {
            max_bytes: self.config.response.max_bytes * 2,
        }
    }

    /// What the browser brings back.
    pub(super) fn end_login(&self, exchange: &mut Exchange) -> Result<Outcome, SamlError> {
        let received = match self.received(exchange, "SAMLResponse") {
            Ok(received) => received.ok_or(SamlError("the call brings no response to a login"))?,
            Err(None) => return Ok(self.needs_body()),
            Err(Some(fault)) => return Err(fault),
        };
        let now_ms = exchange.unix_ms();
        let now_s = now_ms / 1_000;
        let response = LoginResponse::parse(&received, self.limits)?;
        let state = response.in_response_to().and_then(|id| id.strip_prefix('_'));
        let state = state.unwrap_or_default().to_owned();
        let found = self.pending().find::<Login>(&exchange.request, &state, now_s);
        let (cookie, login) = found.ok_or(SamlError("the response answers no request of this browser"))?;
        if received
            .relay_state
            .is_some_and(|relay_state| relay_state != state)
        {
            return Err(SamlError("the response has another state than its request"));
        }
        let user = response.login(&Expected {
            trust: &self.trust,
            key: self.decryption.as_ref(),
            audience: &self.config.issuer,
            issuer: self.config.provider.issuer.as_deref(),
            recipient: &self.address(exchange, &self.config.callback),
            request_id: &format!("_{state}"),
            now_s: now_s as i64,
            leeway_s: self.leeway_s(),
        })?;
        // The cookie of the login ends with it, and its copies are good for nothing from now on.
        if !self.uses(&state, LOGIN_S, now_ms) {
            return Err(SamlError("the response was used before"));
        }
        let user = User::of(user, &self.config, now_ms);
        let data = serde_json::to_vec(&user).unwrap_or_default();
        let mut session = self.sessions.begin(data, now_s);
        cookie.remove(&exchange.request, &mut exchange.response_headers);
        match self.sessions.write(&mut session, exchange) {
            true => Ok(redirect(302, &login.url)),
            false => Err(SamlError("the user has too many attributes for cookies")),
        }
    }
}
