//! The check of tokens on all other calls (RFC 6750).

use super::parameters::{Parameters, need_body};
use super::records::{Record, Token, hash};
use super::{MAX_BODY, Server, may_be_made_here, responses, service_of};
use crate::body_fields::Form;
use crate::query::remove_argument_and_encode;
use std::sync::Arc;
use weir_plugin::headers::is_value;
use weir_plugin::{AuthFailure, Exchange, Identity, Outcome, Reply, Request};

/// The parameter with the token.
const ACCESS_TOKEN: &str = "access_token";

/// Why a call is not let in.
enum AccessDenied {
    /// As calls are that another plugin may still let in.
    Unless(Box<Reply>, AuthFailure),
    /// Whatever other plugins say.
    Always(Box<Reply>),
}

impl Server {
    pub(super) fn check(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            exchange
                .request
                .headers
                .remove_all_owned(&self.scope_headers.both);
            return Outcome::Continue;
        }
        let in_header = exchange.request.headers.contains(self.config.header.as_bytes());
        if !in_header && need_body(&exchange.request) {
            return Outcome::NeedBody { max_bytes: MAX_BODY };
        }
        // A call that waits for the store is read a second time, so nothing of it is taken out before.
        let text = match in_header {
            true => self.header_token(&exchange.request),
            false => Parameters::read(&exchange.request)
                .text(ACCESS_TOKEN)
                .map(str::to_owned),
        };
        if let Some(text) = &text
            && let Some(outcome) = self.look_for_token(text, exchange)
        {
            return outcome;
        }
        match in_header {
            true => self.strip_header(&mut exchange.request),
            false => self.strip_parameters(&mut exchange.request),
        }
        exchange
            .request
            .headers
            .remove_all_owned(&self.scope_headers.both);
        match self.verify(text.as_deref(), exchange) {
            Ok((token, identity)) => {
                self.set_headers(exchange, &token, &identity);
                Outcome::Continue
            }
            Err(AccessDenied::Unless(_, failure)) if self.config.identity.anonymous.is_some() => {
                self.pass_as_anonymous(exchange, failure)
            }
            Err(AccessDenied::Unless(reply, _) | AccessDenied::Always(reply)) => Outcome::Reply(reply),
        }
    }

    fn pass_as_anonymous(&self, exchange: &mut Exchange, failure: AuthFailure) -> Outcome {
        let mut outcome = self.gate.reject(exchange, failure, None);
        if let Outcome::Refuse(refusal) = &mut outcome
            && let Some(id) = &self.config.identity.anonymous
        {
            refusal.message = Some(format!("anonymous consumer {id} is configured but doesn't exist"));
        }
        outcome
    }

    /// Asks the store about a token, if only the store knows whether it is valid. The header may hold a value for
    /// another plugin, such as a password: such a value is not looked up. `None`: the call can go on.
    fn look_for_token(&self, text: &str, exchange: &mut Exchange) -> Option<Outcome> {
        self.records.sharing.get()?;
        let now_ms = exchange.unix_ms();
        let hash = hash(text);
        match self.clients.token(&hash) {
            // The token is valid until it is refreshed. Whether it was is known after the store has been read for the
            // first time.
            Some(token) if token.refresh().is_some() => self.wait_for_first_news(exchange),
            Some(_) => None,
            None if may_be_made_here(text) => self.look_for(&hash, exchange, now_ms),
            None => None,
        }
    }

    /// The token of the header: what follows `Bearer`, or all of it.
    fn header_token(&self, request: &Request) -> Option<String> {
        let value = request.headers.get(self.config.header.as_bytes())?;
        let value = String::from_utf8_lossy(value).into_owned();
        Some(bearer(&value).map_or(value.clone(), str::to_owned))
    }

    fn strip_header(&self, request: &mut Request) {
        let name = self.config.header.as_bytes();
        let value = request.headers.get(name).map(String::from_utf8_lossy);
        if self.config.strip && value.is_some_and(|value| bearer(&value).is_some()) {
            request.headers.remove(name);
        }
    }

    fn strip_parameters(&self, request: &mut Request) {
        if !self.config.strip || !Parameters::read(request).has(ACCESS_TOKEN) {
            return;
        }
        remove_argument_and_encode(request, ACCESS_TOKEN.as_bytes());
        let form = request.headers.get(b"content-type").and_then(Form::of);
        let rest = form
            .filter(|form| *form == Form::UrlEncoded)
            .zip(request.body.as_ref())
            .and_then(|(form, body)| form.without(body, ACCESS_TOKEN));
        if let Some(rest) = rest {
            request.body = Some(rest);
        }
    }

    fn verify(
        &self,
        text: Option<&str>,
        exchange: &mut Exchange,
    ) -> Result<(Arc<Record>, Identity), AccessDenied> {
        let realm = self.config.realm.as_deref();
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Err(AccessDenied::Unless(
                Box::new(responses::missing(realm)),
                AuthFailure::Missing,
            ));
        };
        let invalid = || AccessDenied::Unless(Box::new(responses::invalid(realm)), AuthFailure::Invalid);
        let hash = hash(text);
        let now_ms = exchange.unix_ms();
        let made = self.records.find(&hash, now_ms);
        let record = made
            .or_else(|| self.clients.token(&hash).cloned())
            .ok_or_else(invalid)?;
        let Record::Token(token) = &*record else {
            return Err(invalid());
        };
        match &token.grant.service {
            None if !self.config.all_services => {
                return Err(AccessDenied::Always(Box::new(responses::global(realm))));
            }
            Some(service) if **service != *service_of(exchange) => return Err(invalid()),
            _ => {}
        }
        let age_ms = now_ms.saturating_sub(token.created_ms);
        if token.expires_seconds > 0 && age_ms > token.expires_seconds.saturating_mul(1_000) {
            return Err(invalid());
        }
        let client = self.clients.of_record(&token.owner, now_ms).ok_or_else(invalid)?;
        let identity = client.identity.clone();
        Ok((record, identity))
    }

    fn set_headers(&self, exchange: &mut Exchange, record: &Record, identity: &Identity) {
        self.gate.accept(exchange, identity);
        let Record::Token(Token { grant, .. }) = record else {
            return;
        };
        for (header, value) in [
            (&self.scope_headers.scope, &grant.scope),
            (&self.scope_headers.user, &grant.user),
        ] {
            if let (Some(header), Some(value)) = (header, value)
                && is_value(value.as_bytes())
            {
                exchange.request.headers.append_named(header, value.as_bytes());
            }
            // The same client calls for many users: what one of them gets is not for another.
            exchange.add_fingerprint(value.as_deref().unwrap_or_default().as_bytes());
        }
    }
}

/// What follows the scheme of a header with a token.
fn bearer(value: &str) -> Option<&str> {
    let mut words = value.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(scheme), Some(token), None) if is_scheme(scheme) => Some(token),
        _ => None,
    }
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("token")
}
