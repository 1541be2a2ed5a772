//! Calls that bring a token: where it is, and whether a signed one is good. Opaque ones are explained by the provider
//! (`opaque_token`).

use super::call_tokens::CallTokens;
use super::config::{ClientAuth, Method, TokenSource};
use super::engine::Engine;
use super::provider::{Provider, Step};
use super::token_description::TokenTimes;
use crate::body_fields::{Field, Form};
use crate::jose::{Jws, JwsError, KeySet};
use crate::jwt::remove_cookie;
use crate::key_locations::KeyLocation;
use crate::query::remove_argument;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use weir_plugin::{Exchange, Request};

/// An error of RFC 6750 (3.1), or [`UNAVAILABLE`], and words for it.
pub(super) type TokenFault = (&'static str, &'static str);

/// What a token is, or why it is not good.
pub(super) type TokenResult = Result<CallTokens, TokenFault>;

/// The provider does not say whether the token is good.
pub(super) const UNAVAILABLE: &str = "temporarily_unavailable";

/// A token that a call brings.
pub(super) enum BearerToken {
    None,
    /// The token, and its place among the locations.
    Token(Arc<str>, usize),
    /// The header cannot be read.
    Malformed,
}

/// Why a signature is not accepted.
enum SignatureFault {
    /// The provider's keys cannot be had.
    NoKeys,
    Jws(JwsError),
}

impl Engine {
    /// The token that a call brings.
    pub(super) fn find_token(&self, exchange: &Exchange) -> BearerToken {
        let request = &exchange.request;
        for (index, place) in self.config.bearer_locations.iter().enumerate() {
            let found = match place {
                TokenSource::Bearer => {
                    let Some(value) = request.headers.get(b"authorization") else {
                        continue;
                    };
                    let mut words = value.splitn(2, |byte| *byte == b' ');
                    let scheme = words.next().unwrap_or_default();
                    match words.next() {
                        None => return BearerToken::Malformed,
                        Some(token) if scheme.eq_ignore_ascii_case(b"bearer") => {
                            Some(Cow::Borrowed(token.trim_ascii()))
                        }
                        Some(_) => None,
                    }
                }
                TokenSource::Header(name) => request.headers.get(name.as_bytes()).map(Cow::Borrowed),
                TokenSource::Query(name) => request.query_arg(name.as_bytes()),
                TokenSource::Cookie(name) => request.cookie(name.as_bytes()).map(Cow::Borrowed),
                TokenSource::Body(name) => token_in_body(request, name).map(Cow::Owned),
            };
            if let Some(found) = found
                && let Ok(token) = std::str::from_utf8(&found)
                && !token.is_empty()
            {
                return BearerToken::Token(Arc::from(token), index);
            }
        }
        BearerToken::None
    }

    /// Takes the token out of its place, so that the upstream does not see it.
    pub(super) fn remove_token(&self, request: &mut Request, place: usize) {
        match &self.config.bearer_locations[place] {
            TokenSource::Bearer => {
                request.headers.remove(b"authorization");
            }
            TokenSource::Header(name) => {
                request.headers.remove(name.as_bytes());
            }
            TokenSource::Query(name) => remove_argument(request, name.as_bytes()),
            TokenSource::Cookie(name) => remove_cookie(request, name.as_bytes()),
            TokenSource::Body(name) => KeyLocation::Body(name.clone()).remove(request, remove_argument),
        }
    }

    /// Whether the token, or what is exchanged for one, may be in a body that is not read yet.
    pub(super) fn reads_body(&self, exchange: &Exchange) -> bool {
        let request = &exchange.request;
        let is_place = |place: &TokenSource| matches!(place, TokenSource::Body(_));
        request.has_body
            && request.body.is_none()
            && body_form(request).is_some()
            && (self.config.bearer_locations.iter().any(is_place) || self.seeks_grant_in_body(request))
            && matches!(self.find_token(exchange), BearerToken::None)
    }

    /// Checks a signed token. `None` if it is not one, and another method may know it.
    pub(super) fn signed(&self, exchange: &mut Exchange, token: &Arc<str>) -> Step<Option<TokenResult>> {
        let jws = match Jws::parse(token) {
            Ok(jws) => jws,
            Err(JwsError::Malformed) if self.has_opaque_tokens() => return Ok(None),
            Err(_) => return Ok(Some(Err(("invalid_token", "invalid jwt")))),
        };
        let provider = match self.own_key().is_some() && !self.config.issuers.is_empty() {
            true => None,
            false => match self.directory.provider(exchange)? {
                Some(provider) => Some(provider),
                None => return Ok(Some(Err((UNAVAILABLE, "issuer validation unavailable")))),
            },
        };
        match self.verify(exchange, provider.as_deref(), &jws)? {
            Ok(()) => {}
            Err(SignatureFault::NoKeys) => {
                return Ok(Some(Err((UNAVAILABLE, "the provider's keys are not available"))));
            }
            Err(SignatureFault::Jws(JwsError::UnknownKey)) => {
                return Ok(Some(Err(("invalid_token", "the token's key is not known"))));
            }
            Err(SignatureFault::Jws(JwsError::Algorithm)) => {
                return Ok(Some(Err((
                    "invalid_token",
                    "the token's algorithm is not accepted",
                ))));
            }
            Err(SignatureFault::Jws(_)) => {
                return Ok(Some(Err(("invalid_token", "the token's signature is not good"))));
            }
        }
        let Ok(claims) = jws.claims() else {
            return Ok(Some(Err(("invalid_token", "invalid jwt"))));
        };
        let now_s = exchange.unix_ms() / 1_000;
        if let Err(words) = self.times(&claims, now_s) {
            return Ok(Some(Err(("invalid_token", words))));
        }
        if let Err(words) = self.access(jws.kind.as_deref(), &claims) {
            return Ok(Some(Err(("invalid_token", words))));
        }
        let issuer = claims.get("iss").and_then(Value::as_str);
        let is_own = |known: &str| issuer == Some(known);
        let is_good = match (&self.config.issuers, &provider) {
            (issuers, _) if !issuers.is_empty() => issuers.iter().any(|it| is_own(it)),
            (_, Some(provider)) => is_own(&provider.issuer),
            _ => false,
        };
        if !is_good {
            return Ok(Some(Err(("invalid_token", "the token's issuer is not accepted"))));
        }
        Ok(Some(Ok(CallTokens {
            access_token: Some(Arc::clone(token)),
            access_claims: Some(Arc::new(claims.into())),
            ..CallTokens::default()
        })))
    }

    fn has_opaque_tokens(&self) -> bool {
        let methods = &self.config.methods;
        methods.contains(&Method::Introspection) || methods.contains(&Method::Userinfo)
    }

    /// The key of the configuration.
    fn own_key(&self) -> Option<&KeySet> {
        self.own_keys.as_ref()
    }

    /// Checks a signature by the configured key or the provider's. An unknown key fetches the provider's again.
    fn verify(
        &self,
        exchange: &mut Exchange,
        provider: Option<&Provider>,
        jws: &Jws<'_>,
    ) -> Step<Result<(), SignatureFault>> {
        if let Some(keys) = self.own_key() {
            return Ok(jws.verify(keys).map_err(SignatureFault::Jws));
        }
        let keys = match provider {
            Some(provider) => self
                .directory
                .keys(provider, exchange, false)?
                .zip(Some(provider)),
            None => None,
        };
        let Some((keys, provider)) = keys else {
            return Ok(Err(SignatureFault::NoKeys));
        };
        let verified = match jws.verify(&keys) {
            Err(JwsError::UnknownKey) => {
                let renewed = self.directory.keys(provider, exchange, true)?;
                renewed.map_or(Err(JwsError::UnknownKey), |keys| jws.verify(&keys))
            }
            verified => verified,
        };
        Ok(verified.map_err(SignatureFault::Jws))
    }

    /// Whether a token is good now.
    pub(super) fn times(&self, claims: &Map<String, Value>, now_s: u64) -> Result<(), &'static str> {
        TokenTimes::read(claims)?.check(self.config.leeway_seconds, now_s)
    }

    /// Whether a signed token is an access token that ends, where that is asked for. `kind` is `typ` of its header.
    fn access(&self, kind: Option<&str>, claims: &Map<String, Value>) -> Result<(), &'static str> {
        if !self.config.required.access_token {
            return Ok(());
        }
        if !claims.contains_key("exp") {
            return Err("the token has no end");
        }
        let kind = kind.map(|it| it.strip_prefix("application/").unwrap_or(it));
        if kind.is_some_and(|it| it.eq_ignore_ascii_case("at+jwt")) {
            return Ok(());
        }
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is = |name: &str, kind: &str| text(name).is_some_and(|it| it.eq_ignore_ascii_case(kind));
        // Keycloak's access tokens may have a `nonce`; its identity tokens say `ID`.
        if is("typ", "bearer") || is("token_use", "access") {
            return Ok(());
        }
        let is_marked = ["nonce", "at_hash", "c_hash"]
            .iter()
            .any(|it| claims.contains_key(*it));
        let says_so = is("typ", "id") || is("token_use", "id");
        let is_for_its_client = self.config.required.audiences.is_empty() && {
            let audiences = match claims.get("aud") {
                Some(Value::Array(all)) => all.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            let client = ["azp", "client_id"].iter().find_map(|it| claims.get(*it));
            client.is_some_and(|client| audiences.contains(client))
        };
        match is_marked || says_so || is_for_its_client {
            true => Err("the token is an identity token, not an access token"),
            false => Ok(()),
        }
    }
}

/// The form of a body that may have fields.
fn body_form(request: &Request) -> Option<Form> {
    Form::of(request.headers.get(b"content-type")?)
}

fn token_in_body(request: &Request, name: &str) -> Option<Vec<u8>> {
    match body_form(request)?.field(request.body.as_deref()?, name) {
        Field::One(token) => Some(token),
        Field::Absent | Field::Several => None,
    }
}

/// Whether a client has to prove its identity with a secret. A public client does not.
pub(super) fn needs_secret(auth: ClientAuth) -> bool {
    matches!(auth, ClientAuth::Basic | ClientAuth::Post | ClientAuth::SecretJwt)
}
