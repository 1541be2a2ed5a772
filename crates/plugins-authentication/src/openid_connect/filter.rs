//! An instance of `openid-connect` at work: which method recognises the caller, and what becomes of the call.

use super::bearer::{BearerToken, TokenFault, TokenResult, UNAVAILABLE};
use super::call_tokens::{CallTokens, InsufficientToken};
use super::config::{ClientRules, ConsumerRules, Method, Unauthenticated};
use super::engine::{Engine, NAME, unavailable};
use super::provider::Step;
use crate::consumer_names::{ConsumerNames, scoped_key};
use crate::identity::Gate;
use crate::{authenticated_groups, user_headers};
use std::sync::Arc;
use weir_plugin::{AuthFailure, CredentialIndex, Exchange, Filter, Identity, Outcome, Phases, Request};
use weir_plugins_shared::json_schema::Schema;

/// How often the engine may call this filter for one call.
const MAX_ROUNDS: u8 = 40;
/// The most bytes of a body that is looked through for a token.
const MAX_TOKEN_BODY: usize = 1 << 20;

/// An instance of `openid-connect`.
pub(super) struct OpenIdFilter {
    pub(super) engine: Engine,
    pub(super) gate: Gate,
    pub(super) schema: Option<Schema>,
    pub(super) consumers: Option<(ConsumerRules, Arc<ConsumerNames>)>,
    pub(super) clients: Option<(ClientRules, Arc<CredentialIndex<()>>)>,
}

/// What is known of a call from its first round on.
struct CallState {
    rounds: u8,
    /// The token that it brings, read before headers are removed, and its place among the locations.
    token: Option<(Arc<str>, usize)>,
    is_malformed: bool,
    /// How many of the methods do not recognise the caller. They are not tried again when another one has asked the
    /// provider: what they have asked may be forgotten by then.
    tried: usize,
    /// Why they do not.
    fault: Option<TokenFault>,
}

impl CallState {
    /// Notes why a method does not recognise the caller. The first fault is told, unless another method could not find
    /// out: the token may be good then.
    fn note(&mut self, fault: TokenFault) {
        if self.fault.is_none() || fault.0 == UNAVAILABLE {
            self.fault = Some(fault);
        }
    }
}

impl Filter for OpenIdFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn remove_forged(&self, exchange: &mut Exchange) {
        let config = &self.engine.config;
        let set = config.upstream_headers.iter().map(|header| header.name.as_str());
        // Those about the consumer are of the plugin that knows it.
        let set = set.filter(|name| !name.eq_ignore_ascii_case("authorization") && !self.gate.owns(name));
        let cleared = config.cleared_headers.iter().map(String::as_str);
        user_headers::remove_forged(exchange, set.chain(cleared));
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let mut call = match exchange.filter_state.take::<_, CallState>(self) {
            Some(call) => call,
            None => {
                if self.gate.skips(exchange) {
                    self.remove_forged(exchange);
                    return Outcome::Continue;
                }
                if self.engine.reads_body(exchange) && exchange.filter_state.mark_body_requested(self) {
                    return Outcome::NeedBody {
                        max_bytes: MAX_TOKEN_BODY,
                    };
                }
                self.first(exchange)
            }
        };
        call.rounds += 1;
        if call.rounds > MAX_ROUNDS {
            return *unavailable("the provider's answers lead nowhere");
        }
        match self.run(exchange, &mut call) {
            Ok(()) => Outcome::Continue,
            Err(outcome) => {
                exchange.filter_state.put(self, call);
                *outcome
            }
        }
    }
}

impl OpenIdFilter {
    /// Reads what the caller brings, and removes what only this plugin may say.
    fn first(&self, exchange: &mut Exchange) -> CallState {
        let (token, is_malformed) = match self.engine.find_token(exchange) {
            BearerToken::Token(token, place) => (Some((token, place)), false),
            BearerToken::Malformed => (None, true),
            BearerToken::None => (None, false),
        };
        for header in &self.engine.config.upstream_headers {
            if !header.name.eq_ignore_ascii_case("authorization") {
                exchange.request.headers.remove_owned(header.name.as_bytes());
            }
        }
        for name in &self.engine.config.cleared_headers {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
        CallState {
            rounds: 0,
            token,
            is_malformed,
            tried: 0,
            fault: None,
        }
    }

    fn run(&self, exchange: &mut Exchange, call: &mut CallState) -> Step<()> {
        let engine = &self.engine;
        let has_sessions = engine.sessions.is_some();
        if has_sessions && engine.is_logout(exchange) {
            return engine.log_out(exchange).and_then(Err);
        }
        let methods = &engine.config.methods;
        if has_sessions && methods.contains(&Method::AuthorizationCode) && engine.is_callback(exchange) {
            return engine.end_login(exchange).and_then(Err);
        }
        while let Some(method) = methods.get(call.tried) {
            match self.try_method(exchange, call, *method)? {
                Some(Ok(recognised)) => return self.accept(exchange, call, *method, recognised),
                Some(Err(fault)) => call.note(fault),
                None => {}
            }
            call.tried += 1;
        }
        self.unrecognised(exchange, call)
    }

    fn try_method(
        &self,
        exchange: &mut Exchange,
        call: &CallState,
        method: Method,
    ) -> Step<Option<TokenResult>> {
        let engine = &self.engine;
        match (method, &call.token) {
            (Method::Session, _) => Ok(engine.by_session(exchange)?.map(Ok)),
            (Method::Bearer, Some((token, _))) => engine.signed(exchange, token),
            (Method::Introspection, Some((token, _))) => engine.introspect(exchange, token).map(Some),
            (Method::Userinfo, Some((token, _))) => engine.fetch_userinfo(exchange, token).map(Some),
            (Method::Password | Method::ClientCredentials, _) => engine.granted(exchange, method),
            _ => Ok(None),
        }
    }

    /// None of the methods recognises the caller.
    fn unrecognised(&self, exchange: &mut Exchange, call: &CallState) -> Step<()> {
        let engine = &self.engine;
        if self.gate.allows_anonymous() {
            self.strip(exchange);
            return self.reject(exchange, AuthFailure::Missing);
        }
        match call.fault {
            // The token may be good: its owner is not to throw it away.
            Some((UNAVAILABLE, reason)) => return Err(unavailable(reason)),
            Some(fault) => return Err(engine.unauthorized(Some(fault))),
            None => {}
        }
        let logs_in = engine.config.methods.contains(&Method::AuthorizationCode);
        if call.is_malformed && engine.config.methods.iter().any(|it| is_bearer(*it)) {
            let kind = weir_plugin::RefusalKind::Unacceptable { plugin: NAME };
            return Err(Box::new(Outcome::refuse(kind)));
        }
        match engine.config.unauthenticated {
            Unauthenticated::Login if logs_in => engine.begin_login(exchange).and_then(Err),
            Unauthenticated::Login | Unauthenticated::Refuse => Err(engine.unauthorized(None)),
            Unauthenticated::Pass => {
                if exchange.identity.is_none() {
                    self.gate.clear(exchange);
                }
                self.strip(exchange);
                Ok(())
            }
        }
    }

    fn accept(
        &self,
        exchange: &mut Exchange,
        call: &CallState,
        method: Method,
        recognised: CallTokens,
    ) -> Step<()> {
        let engine = &self.engine;
        let required = &engine.config.required;
        match recognised.suffices(required, self.schema.as_ref(), exchange) {
            Ok(()) => {}
            Err(InsufficientToken::Forbidden(words)) => return Err(engine.forbidden(&words)),
            Err(InsufficientToken::Schema(_)) => {
                let fault = ("invalid_token", "the claims do not fit the schema");
                return Err(engine.unauthorized(Some(fault)));
            }
        }
        let is_known = self.identify(exchange, &recognised)?;
        if engine.config.strip {
            self.remove_credential(&mut exchange.request, call, method);
        }
        if !is_known {
            self.strip(exchange);
            return Ok(());
        }
        if let Some(claim) = &engine.config.groups {
            let groups = recognised.words(&claim.path);
            if let Some(header) = &claim.header {
                authenticated_groups::set_header(exchange, header, &groups);
            }
            authenticated_groups::note(exchange, groups);
        }
        let mark = recognised.subject();
        let mark = mark.or_else(|| recognised.access_token.as_deref().map(Into::into));
        exchange.add_fingerprint(mark.unwrap_or_default().as_bytes());
        for header in &engine.config.upstream_headers {
            if let Some((scheme, value)) = recognised.header(header)
                && weir_plugin::headers::is_value(value.as_bytes())
            {
                user_headers::set_header_with_scheme(exchange, &header.name, scheme, value.as_bytes());
            }
        }
        for header in &engine.config.client_headers {
            if let Some((scheme, value)) = recognised.header(header)
                && weir_plugin::headers::is_value(value.as_bytes())
            {
                let value = [scheme, &value].concat();
                exchange
                    .response_headers
                    .set(header.name.as_bytes(), value.as_bytes());
            }
        }
        self.strip(exchange);
        Ok(())
    }

    /// Says which client or consumer calls. `false`: neither is known, and the anonymous consumer takes the call.
    fn identify(&self, exchange: &mut Exchange, recognised: &CallTokens) -> Step<bool> {
        if let Some((rules, index)) = &self.clients {
            let mut claims = rules.claims.iter();
            let client = claims.find_map(|claim| recognised.text(std::slice::from_ref(claim)));
            match client.and_then(|it| index.get(&scoped_key(&rules.scope, &it), || exchange.now_ms())) {
                Some(entry) => {
                    self.gate.accept(exchange, &entry.identity);
                }
                None if self.gate.allows_anonymous() => {
                    return self.reject(exchange, AuthFailure::Invalid).map(|()| false);
                }
                None => {
                    let fault = ("invalid_token", "the client is not known");
                    return Err(self.engine.unauthorized(Some(fault)));
                }
            }
        } else if let Some((rules, names)) = &self.consumers {
            let name = recognised.text(&rules.claim);
            match name.and_then(|name| names.find(&name, &rules.by).cloned()) {
                Some(consumer) => {
                    let id = recognised.subject().map(|it| Arc::from(&*it));
                    let identity = Identity {
                        consumer,
                        credential_id: id,
                    };
                    self.gate.accept(exchange, &identity);
                }
                None if rules.optional => self.gate.clear(exchange),
                None if self.gate.allows_anonymous() => {
                    return self
                        .reject(exchange, AuthFailure::ConsumerMissing)
                        .map(|()| false);
                }
                None => return Err(self.engine.forbidden("consumer not found")),
            }
        } else if exchange.identity.is_none() {
            self.gate.clear(exchange);
        }
        Ok(true)
    }

    /// Takes out what the caller was recognised by.
    fn remove_credential(&self, request: &mut Request, call: &CallState, method: Method) {
        match (method, &call.token) {
            (Method::Password | Method::ClientCredentials, _) => {
                self.engine.remove_grant_credentials(request, method);
            }
            (method, Some((_, place))) if is_bearer(method) => self.engine.remove_token(request, *place),
            _ => {}
        }
    }

    /// What becomes of a call without a good credential, if an anonymous consumer takes it.
    fn reject(&self, exchange: &mut Exchange, failure: AuthFailure) -> Step<()> {
        match self.gate.reject(exchange, failure, None) {
            Outcome::Continue => Ok(()),
            outcome => Err(Box::new(outcome)),
        }
    }

    /// Takes the cookies of sessions out of the request: upstreams do not need them.
    fn strip(&self, exchange: &mut Exchange) {
        if let Some(sessions) = &self.engine.sessions {
            sessions.strip(&mut exchange.request);
        }
    }
}

fn is_bearer(method: Method) -> bool {
    matches!(method, Method::Bearer | Method::Introspection | Method::Userinfo)
}
