//! Calls that bring a token: a signed one, an opaque one that the provider explains, or credentials for one.

use super::call_tokens::CallTokens;
use super::client;
use super::config::{ClientAuth, Method, TokenSource};
use super::engine::Engine;
use super::provider::{Provider, Step, TokenSet};
use super::token_description::{TokenDescription, TokenTimes};
use crate::body_fields::{Field, Form};
use crate::jose::{Jws, JwsError, KeySet};
use crate::shared_fetch::SharedKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use weir_flow::expiring::Lifetime;
use weir_plugin::{Exchange, Request};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer};

/// Tokens of other grants are renewed so long before they expire.
const EARLY_S: u64 = 5;

/// The claim that every answer of a userinfo endpoint has (OpenID Connect Core, 5.3.2).
const SUBJECT: &str = "sub";

/// An error of RFC 6750 (3.1), or [`UNAVAILABLE`], and words for it.
pub(super) type TokenFault = (&'static str, &'static str);

/// What a token is, or why it is not good.
pub(super) type TokenResult = Result<CallTokens, TokenFault>;

/// The provider does not say whether the token is good.
pub(super) const UNAVAILABLE: &str = "temporarily_unavailable";

/// A token that a call brings.
pub(super) enum BearerToken {
    None,
    Token(Arc<str>),
    /// The header cannot be read.
    Malformed,
}

impl Engine {
    /// The token that a call brings.
    pub(super) fn brought(&self, exchange: &Exchange) -> BearerToken {
        let request = &exchange.request;
        for place in &self.config.bearer_places {
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
                return BearerToken::Token(Arc::from(token));
            }
        }
        BearerToken::None
    }

    /// Whether the token may be in a body that is not read yet.
    pub(super) fn reads_body(&self, exchange: &Exchange) -> bool {
        let request = &exchange.request;
        let is_place = |place: &TokenSource| matches!(place, TokenSource::Body(_));
        request.has_body
            && request.body.is_none()
            && self.config.bearer_places.iter().any(is_place)
            && body_form(request).is_some()
            && matches!(self.brought(exchange), BearerToken::None)
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
            Err(JwsError::UnknownKey) => {
                return Ok(Some(Err(("invalid_token", "the token's key is not known"))));
            }
            Err(JwsError::Algorithm) => {
                return Ok(Some(Err((
                    "invalid_token",
                    "the token's algorithm is not accepted",
                ))));
            }
            Err(_) => return Ok(Some(Err(("invalid_token", "the token's signature is not good")))),
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
    pub(super) fn verify(
        &self,
        exchange: &mut Exchange,
        provider: Option<&Provider>,
        jws: &Jws<'_>,
    ) -> Step<Result<(), JwsError>> {
        if let Some(keys) = self.own_key() {
            return Ok(jws.verify(keys));
        }
        let Some(provider) = provider else {
            return Ok(Err(JwsError::UnknownKey));
        };
        let Some(keys) = self.directory.keys(provider, exchange, false)? else {
            return Ok(Err(JwsError::UnknownKey));
        };
        match jws.verify(&keys) {
            Err(JwsError::UnknownKey) => {}
            verified => return Ok(verified),
        }
        let renewed = self.directory.keys(provider, exchange, true)?;
        Ok(renewed.map_or(Err(JwsError::UnknownKey), |keys| jws.verify(&keys)))
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

    /// Asks the provider about a token (RFC 7662). Its answer is used for all calls with the same token.
    pub(super) fn introspect(&self, exchange: &mut Exchange, token: &Arc<str>) -> Step<TokenResult> {
        let endpoint = match &self.config.introspection_endpoint {
            Some(endpoint) => Some(Cow::Borrowed(endpoint.as_str())),
            None => {
                let provider = self.directory.provider(exchange)?;
                provider.and_then(|it| it.introspection_endpoint.clone().map(Cow::Owned))
            }
        };
        let Some(endpoint) = endpoint else {
            return Ok(Err((UNAVAILABLE, "introspection is not available")));
        };
        let longest_s = self.config.introspection_seconds;
        let parts = [
            endpoint.as_bytes(),
            token.as_bytes(),
            &longest_s.to_be_bytes(),
            // Who asks may decide what the answer says.
            self.config
                .introspection_authorization
                .as_deref()
                .unwrap_or_default()
                .as_bytes(),
        ];
        let key = self.key("introspection", &parts);
        let found = self.fetched(
            exchange,
            &self.caches.answers,
            &key,
            |exchange| {
                let headers: Vec<(String, String)> = self
                    .config
                    .introspection_headers
                    .iter()
                    .filter_map(|name| {
                        let value = exchange.request.headers.get(name.as_bytes())?;
                        Some((name.clone(), String::from_utf8(value.to_vec()).ok()?))
                    })
                    .collect();
                let headers: Vec<(&str, &str)> = headers
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                let mut headers = headers;
                let mut arguments = vec![("token", &**token)];
                let hint = self.config.introspection_hint.as_str();
                arguments.extend(Some(("token_type_hint", hint)).filter(|_| !hint.is_empty()));
                match &self.config.introspection_authorization {
                    // It says who asks: nothing else does.
                    Some(value) => {
                        headers.push(("Authorization", value));
                        client::post_form(&endpoint, arguments, headers, &self.directory.rules)
                    }
                    None => {
                        let auth = self.config.introspection_auth.unwrap_or(self.config.client_auth);
                        self.post(exchange, &endpoint, auth, &arguments, &headers)
                    }
                }
            },
            |exchange| {
                let answer = exchange.subrequest_response.take()??;
                let claims: Map<String, Value> = match answer.status {
                    200 => serde_json::from_slice(&answer.body).ok()?,
                    // Some answer so to what is no token of theirs, instead of calling it inactive (RFC 7662, 2.2).
                    400 if !refuses_client(&answer.body) => {
                        Map::from_iter([("active".to_owned(), Value::Bool(false))])
                    }
                    _ => return None,
                };
                claims.get("active")?.as_bool()?;
                let now_s = exchange.unix_ms() / 1_000;
                let until_s = claims.get("exp").and_then(Value::as_f64).map(|at| at as u64);
                let left_s = until_s.map(|at| at.saturating_sub(now_s));
                let seconds = match (longest_s, left_s) {
                    (0, left) => left.unwrap_or(0),
                    (longest, left) => left.map_or(longest, |left| left.min(longest)),
                };
                // Even what is not kept serves the calls that wait for it.
                let lifetime = Lifetime::fresh((seconds * 1_000).max(1));
                Some((TokenDescription::new(claims), answer.body.len() * 3, lifetime))
            },
        );
        let Some(described) = found? else {
            return Ok(Err((UNAVAILABLE, "introspection is not available")));
        };
        let now_s = exchange.unix_ms() / 1_000;
        if !described.is_active {
            return Ok(Err(("invalid_token", "the token is not active")));
        }
        let leeway = self.config.leeway_seconds;
        if let Err(words) = described.times.and_then(|times| times.check(leeway, now_s)) {
            return Ok(Err(("invalid_token", words)));
        }
        Ok(Ok(CallTokens {
            access_token: Some(Arc::clone(token)),
            introspection: Some(Arc::clone(&described.claims)),
            ..CallTokens::default()
        }))
    }

    /// Asks the userinfo endpoint with a token.
    pub(super) fn by_userinfo(&self, exchange: &mut Exchange, token: &Arc<str>) -> Step<TokenResult> {
        let provider = self.directory.provider(exchange)?;
        let server = provider.and_then(|it| HttpServer::parse(it.userinfo_endpoint.as_deref()?));
        let Some(server) = server else {
            return Ok(Err((UNAVAILABLE, "the userinfo endpoint is not available")));
        };
        let seconds = self.config.introspection_seconds;
        let parts = [
            server.authority.as_bytes(),
            server.target.as_bytes(),
            token.as_bytes(),
            &seconds.to_be_bytes(),
        ];
        let key = self.key("userinfo", &parts);
        let found = self.fetched(
            exchange,
            &self.caches.answers,
            &key,
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
                let lifetime = Lifetime::fresh((seconds * 1_000).max(1));
                Some((TokenDescription::new(claims), answer.body.len() * 3, lifetime))
            },
        );
        let Some(described) = found? else {
            return Ok(Err((UNAVAILABLE, "the userinfo endpoint is not available")));
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

    /// Exchanges `Authorization: Basic` for a token. `None`: the call has no such header.
    pub(super) fn granted(&self, exchange: &mut Exchange, method: Method) -> Step<Option<TokenResult>> {
        let Some((name, password)) = basic(exchange) else {
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
        let key = self.key(kind, &[&endpoint, &name, &password].map(|part| part.as_bytes()));
        let scope = self.config.scopes.join(" ");
        let found = self.fetched(
            exchange,
            &self.caches.tokens,
            &key,
            |exchange| {
                let mut arguments = vec![("grant_type", kind), ("scope", scope.as_str())];
                let more = &self.config.token_arguments;
                arguments.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                if method == Method::Password {
                    arguments.extend([("username", name.as_str()), ("password", password.as_str())]);
                    self.post(exchange, &endpoint, self.config.client_auth, &arguments, &[])
                } else {
                    arguments.extend([("client_id", name.as_str()), ("client_secret", password.as_str())]);
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
                let tokens = client::tokens(exchange.subrequest_response.take()?, now_s).ok()?;
                Some(kept(tokens, now_s))
            },
        );
        let Some(tokens) = found? else {
            return Ok(Some(Err(("invalid_token", "the provider has given no token"))));
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

    /// What is asked of the provider with a secret, as a key that does not show it.
    pub(super) fn key(&self, what: &str, parts: &[&[u8]]) -> SharedKey {
        let mut key = self.client_key.clone();
        key.add(what.as_bytes());
        key.finish(parts)
    }
}

/// How long tokens of a grant are used.
fn kept(tokens: TokenSet, now_s: u64) -> (Arc<TokenSet>, usize, Lifetime) {
    let until_s = tokens.expires_at_s.unwrap_or(now_s + 60);
    let seconds = until_s.saturating_sub(now_s).saturating_sub(EARLY_S);
    let bytes = tokens.access_token.len() + tokens.id_token.as_ref().map_or(0, String::len) + 200;
    (Arc::new(tokens), bytes, Lifetime::fresh((seconds * 1_000).max(1)))
}

/// Whether an error of the introspection endpoint is about this client, and not about the token (RFC 6749, 5.2).
fn refuses_client(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: String,
    }
    let answer = serde_json::from_slice(body);
    answer.is_ok_and(|Answer { error }| matches!(&*error, "invalid_client" | "unauthorized_client"))
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

fn basic(exchange: &Exchange) -> Option<(String, String)> {
    let value = exchange.request.headers.get(b"authorization")?;
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(rest.trim_ascii()).ok()?).ok()?;
    let (name, password) = pair.split_once(':')?;
    (!name.is_empty() && !password.is_empty()).then(|| (name.to_owned(), password.to_owned()))
}

/// Whether a client has to prove its identity with a secret. A public client does not.
pub(super) fn needs_secret(auth: ClientAuth) -> bool {
    matches!(auth, ClientAuth::Basic | ClientAuth::Post | ClientAuth::SecretJwt)
}
