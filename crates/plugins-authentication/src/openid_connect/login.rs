//! Logins: sending a browser to the provider, what it brings back, and logging out.
//!
//! Each login has a sealed cookie of its own, so that several tabs can log in at the same time. It binds the answer to the
//! browser that asked, and is good once and for ten minutes. Browsers are only ever sent back to a path of the same host.

use super::client;
use super::config::{Config, Pkce};
use super::engine::{Engine, ProviderCall, redirect, unavailable};
use super::provider::{Provider, Step, good};
use super::session::LoginSession;
use crate::browser::{own_origin, own_url};
use crate::jose::{Jws, JwsError};
use crate::pending_login::{PendingLogin, PendingLogins, new_state};
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use weir_plugin::{Exchange, Outcome, Refusal, RefusalKind, Reply, SubrequestResponse};
use weir_plugins_shared::cookie::CookieRules;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, form};
use weir_plugins_shared::random;

/// How often a login is restarted before it fails.
const MAX_RESTARTS: u8 = 3;

/// A login that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct Login {
    /// Where the browser wanted to go.
    url: String,
    nonce: String,
    verifier: String,
    redirect_uri: String,
    began_s: u64,
    restarts: u8,
}

impl PendingLogin for Login {
    fn began_s(&self) -> u64 {
        self.began_s
    }
}

impl Engine {
    /// Sends the browser to the provider.
    pub(super) fn begin_login(&self, exchange: &mut Exchange) -> Step<Box<Outcome>> {
        let provider = self.provider(exchange)?;
        let (Some(endpoint), Some(_)) = (&provider.authorization_endpoint, &self.sessions) else {
            return Ok(unavailable("the provider has no authorization endpoint"));
        };
        let prepared = exchange.filter_state.take::<_, LoginSecrets>(self);
        let prepared = prepared.unwrap_or_else(|| LoginSecrets {
            state: new_state(self.random),
            nonce: data_encoding::HEXLOWER.encode(&random::bytes::<16>(self.random)),
            verifier: URL_SAFE_NO_PAD.encode(random::bytes::<32>(self.random)),
        });
        let login = Login {
            url: own_url(exchange),
            nonce: prepared.nonce.clone(),
            verifier: prepared.verifier.clone(),
            redirect_uri: redirect_uri(&self.config, exchange),
            began_s: exchange.unix_ms() / 1_000,
            restarts: self
                .logins(exchange)
                .iter()
                .map(|(_, login)| login.restarts)
                .max()
                .unwrap_or(0),
        };
        let arguments = self.arguments(&provider, &prepared.state, &login);
        let arguments: Vec<(&str, &str)> = arguments
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let state = prepared.state.clone();
        exchange.filter_state.put(self, prepared);
        let query = match self.pushed(exchange, &provider, &arguments)? {
            Some(Err(())) => return Ok(unavailable("the provider does not take pushed requests")),
            Some(Ok(request_uri)) => form([
                ("client_id", self.config.client_id.as_str()),
                ("request_uri", &request_uri),
            ]),
            None => form(arguments),
        };
        if let Some(pending) = self.pending() {
            pending.remember(exchange, &state, &login);
        }
        let mark = if endpoint.contains('?') { '&' } else { '?' };
        Ok(redirect(&format!("{endpoint}{mark}{query}")))
    }

    fn arguments(&self, provider: &Provider, state: &str, login: &Login) -> Vec<(String, String)> {
        let config = &self.config;
        let mut arguments = vec![
            ("response_type".to_owned(), "code".to_owned()),
            ("client_id".to_owned(), config.client_id.clone()),
            ("redirect_uri".to_owned(), login.redirect_uri.clone()),
            ("scope".to_owned(), config.scopes.join(" ")),
            ("state".to_owned(), state.to_owned()),
        ];
        if config.nonce {
            arguments.push(("nonce".to_owned(), login.nonce.clone()));
        }
        let has_pkce = match config.pkce {
            Pkce::Always => true,
            Pkce::Never => false,
            Pkce::Auto => provider.knows_pkce(),
        };
        if has_pkce {
            let hash = digest::digest(&digest::SHA256, login.verifier.as_bytes());
            arguments.push(("code_challenge".to_owned(), URL_SAFE_NO_PAD.encode(hash)));
            arguments.push(("code_challenge_method".to_owned(), "S256".to_owned()));
        }
        let more = config.authorization_arguments.iter();
        arguments.extend(more.map(|(name, value)| (name.clone(), value.clone())));
        arguments
    }

    /// Pushes the authorization request. `None` if requests are not pushed.
    fn pushed(
        &self,
        exchange: &mut Exchange,
        provider: &Provider,
        arguments: &[(&str, &str)],
    ) -> Step<Option<Result<String, ()>>> {
        let Some(rules) = &self.config.pushed_requests else {
            return Ok(None);
        };
        let endpoint = rules.endpoint.as_ref();
        let endpoint = endpoint.or(provider.pushed_authorization_request_endpoint.as_ref());
        let Some(endpoint) = endpoint else {
            return Ok(Some(Err(())));
        };
        let auth = rules.auth.unwrap_or(self.config.client_auth);
        let asked = self.post(exchange, endpoint, auth, arguments, &[]);
        let answer = self.once(exchange, ProviderCall::Push, || asked)?;
        let answer = answer.filter(|answer| matches!(answer.status, 200 | 201));
        let uri = answer.and_then(|answer| {
            let read: Map<String, Value> = serde_json::from_slice(&answer.body).ok()?;
            Some(read.get("request_uri")?.as_str()?.to_owned())
        });
        Ok(Some(uri.ok_or(())))
    }

    fn pending(&self) -> Option<PendingLogins<'_>> {
        let sessions = self.sessions.as_ref()?;
        Some(PendingLogins::redirected(sessions))
    }

    /// The logins of a browser that are under way.
    fn logins(&self, exchange: &mut Exchange) -> Vec<(CookieRules, Login)> {
        let now_s = exchange.unix_ms() / 1_000;
        let pending = self.pending();
        pending.map_or_else(Vec::new, |it| it.all(&exchange.request, now_s))
    }

    /// What the browser brings back from the provider.
    pub(super) fn end_login(&self, exchange: &mut Exchange) -> Step<Box<Outcome>> {
        let now_s = exchange.unix_ms() / 1_000;
        let argument = |name: &[u8]| {
            let value = exchange.request.query_arg(name)?;
            String::from_utf8(value.into_owned()).ok()
        };
        let (state, code, error) = (argument(b"state"), argument(b"code"), argument(b"error"));
        let (issuer, client_id) = (argument(b"iss"), argument(b"client_id"));
        let state = state.unwrap_or_default();
        let pending = self.pending();
        let found = pending.and_then(|it| it.find::<Login>(&exchange.request, &state, now_s));
        let Some((cookie, login)) = found else {
            // An old answer, or one that was used before: the browser begins again.
            let logins = self.logins(exchange).into_iter();
            let newest = logins.max_by_key(|(_, login)| login.began_s);
            return Ok(match newest {
                Some((cookie, login)) => self.restart(exchange, &cookie, login),
                None => self.login_failed(),
            });
        };
        match (error.as_deref(), code) {
            (Some("temporarily_unavailable"), _) => Ok(self.restart(exchange, &cookie, login)),
            (None, Some(code)) if client_id.is_none_or(|id| id == self.config.client_id) => {
                let provider = self.provider(exchange)?;
                let is_required = provider.authorization_response_iss_parameter_supported;
                // Another provider's code is never sent to this one (RFC 9207).
                if issuer
                    .as_ref()
                    .map_or(is_required, |issuer| *issuer != provider.issuer)
                {
                    return Ok(self.login_failed());
                }
                let done = self.finish_login(exchange, &provider, &login, &code)?;
                let Exchange {
                    request,
                    response_headers,
                    ..
                } = &mut *exchange;
                cookie.remove(request, response_headers);
                let Some((remembered, sessions)) = done.zip(self.sessions.as_ref()) else {
                    return Ok(self.login_failed());
                };
                // A new session, whatever the browser had before.
                let mut session = sessions.begin(remembered.bytes(), now_s);
                Ok(match sessions.write(&mut session, exchange) {
                    true => redirect(&login.url),
                    false => unavailable("the tokens are too large for cookies"),
                })
            }
            _ => Ok(self.login_failed()),
        }
    }

    /// Sends the browser back to the page that it asked for, to begin again.
    fn restart(&self, exchange: &mut Exchange, cookie: &CookieRules, mut login: Login) -> Box<Outcome> {
        if exchange.request.method != b"GET" || login.restarts >= MAX_RESTARTS {
            return self.login_failed();
        }
        login.restarts += 1;
        let url = login.url.clone();
        let state = cookie.name.rsplit('_').next().unwrap_or_default();
        // Of the login only the number of restarts is needed, so that its state cannot be used any more.
        let state = format!("{state}{}", "-".repeat(16));
        if let Some(pending) = self.pending() {
            pending.write(exchange, cookie, &state, &login);
        }
        redirect(&url)
    }

    fn login_failed(&self) -> Box<Outcome> {
        let kind = RefusalKind::Answered {
            plugin: super::engine::NAME,
        };
        let status = self.config.login_failure_status;
        Box::new(Outcome::Refuse(Box::new(Refusal::with_status(kind, status))))
    }

    /// Exchanges the code for tokens, and checks what they say. `None`: they are not good.
    fn finish_login(
        &self,
        exchange: &mut Exchange,
        provider: &Provider,
        login: &Login,
        code: &str,
    ) -> Step<Option<LoginSession>> {
        let Some(endpoint) = &provider.token_endpoint else {
            return Ok(None);
        };
        let mut arguments = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", login.redirect_uri.as_str()),
        ];
        if self.config.pkce == Pkce::Always || (self.config.pkce == Pkce::Auto && provider.knows_pkce()) {
            arguments.push(("code_verifier", login.verifier.as_str()));
        }
        let more = &self.config.token_arguments;
        arguments.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let asked = self.post(exchange, endpoint, self.config.client_auth, &arguments, &[]);
        let answer = self.once(exchange, ProviderCall::Code, || asked)?;
        let now_s = exchange.unix_ms() / 1_000;
        let Ok(tokens) = client::tokens(answer, now_s) else {
            return Ok(None);
        };
        let id_claims = match &tokens.id_token {
            Some(token) => match self.id_claims(exchange, provider, token, Some(&login.nonce))? {
                Some(claims) => Some(claims),
                None => return Ok(None),
            },
            None if self.config.scopes.iter().any(|scope| scope == "openid") => return Ok(None),
            None => None,
        };
        let subject = id_claims.as_ref().and_then(|claims| claims.get("sub"));
        let userinfo = self.userinfo(exchange, provider, &tokens.access_token)?;
        // Another user's claims would make this one that user (OpenID Connect Core 1.0, 5.3.2).
        if let (Some(userinfo), Some(subject)) = (&userinfo, subject)
            && userinfo.get("sub") != Some(subject)
        {
            return Ok(None);
        }
        Ok(Some(LoginSession {
            tokens,
            id_claims: id_claims.map(|it| Arc::new(it.into())),
            userinfo: userinfo.map(|it| Arc::new(it.into())),
        }))
    }

    fn userinfo(
        &self,
        exchange: &mut Exchange,
        provider: &Provider,
        token: &str,
    ) -> Step<Option<Map<String, Value>>> {
        let endpoint = provider
            .userinfo_endpoint
            .as_deref()
            .filter(|_| self.config.userinfo);
        let Some(server) = endpoint.and_then(HttpServer::parse) else {
            return Ok(None);
        };
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str())];
        let request = HttpRequest {
            headers: &headers,
            ..HttpRequest::GET
        };
        let answer = self.once(exchange, ProviderCall::Userinfo, || {
            Some(server.request(request, &self.directory.rules))
        })?;
        let read = |answer: SubrequestResponse| serde_json::from_slice(&answer.body).ok();
        Ok(good(answer).and_then(read))
    }

    /// The claims of an identity token (OpenID Connect Core 1.0, 3.1.3.7); `None`: it is not good.
    fn id_claims(
        &self,
        exchange: &mut Exchange,
        provider: &Provider,
        token: &str,
        nonce: Option<&str>,
    ) -> Step<Option<Map<String, Value>>> {
        let config = &self.config;
        let Ok(jws) = Jws::parse(token) else {
            return Ok(None);
        };
        let is_signed = match jws.algorithm.as_str() {
            "none" => config.accept_unsigned_id_tokens,
            name if name.starts_with("HS") => {
                let secret = config
                    .client_secret
                    .as_deref()
                    .filter(|secret| !secret.is_empty());
                secret.is_some_and(|secret| jws.verify_secret(secret.as_bytes()).is_ok())
            }
            _ => self.verify_id_token(exchange, provider, &jws)?.is_ok(),
        };
        let Ok(claims) = jws.claims() else {
            return Ok(None);
        };
        // The token was issued while the call waited for it.
        let now_s = exchange.current_ms() / 1_000;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let audiences: Vec<&str> = match claims.get("aud") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let own = config.client_id.as_str();
        let is_own =
            audiences.contains(&own) && (audiences.len() == 1 || text("azp").is_none_or(|it| it == own));
        let leeway = config.leeway_seconds as f64;
        let began = claims.get("iat").and_then(Value::as_f64);
        let is_now = self.times(&claims, now_s).is_ok()
            && claims.contains_key("exp")
            && began.is_none_or(|at| at - leeway <= now_s as f64);
        let is_asked_for = !config.nonce || nonce.is_none_or(|nonce| text("nonce") == Some(nonce));
        let is_good = is_signed
            && text("iss") == Some(provider.issuer.as_str())
            && text("sub").is_some()
            && is_own
            && is_now
            && is_asked_for;
        Ok(is_good.then_some(claims))
    }

    /// Identity tokens are signed by the provider's keys, never by the one that is configured for bearer tokens.
    fn verify_id_token(
        &self,
        exchange: &mut Exchange,
        provider: &Provider,
        jws: &Jws<'_>,
    ) -> Step<Result<(), JwsError>> {
        for renewed in [false, true] {
            let Some(keys) = self.directory.keys(provider, exchange, renewed)? else {
                return Ok(Err(JwsError::UnknownKey));
            };
            match jws.verify(&keys) {
                Err(JwsError::UnknownKey) => {}
                verified => return Ok(verified),
            }
        }
        Ok(Err(JwsError::UnknownKey))
    }

    /// Ends the session of a call, and sends the browser to the provider to log out there.
    pub(super) fn log_out(&self, exchange: &mut Exchange) -> Step<Box<Outcome>> {
        let logout = &self.config.logout;
        let (session, remembered) = self.remembered(exchange).unzip();
        let provider = match logout.at_provider || logout.revoke {
            true => Some(self.provider(exchange)?),
            false => None,
        };
        let revocation = provider.as_ref().and_then(|it| it.revocation_endpoint.clone());
        if let (true, Some(endpoint), Some(remembered)) = (logout.revoke, &revocation, &remembered) {
            let tokens = &remembered.tokens;
            let refresh = tokens.refresh_token.as_deref().unwrap_or_default();
            for (call, hint, token) in [
                (ProviderCall::RevokeRefresh, "refresh_token", refresh),
                (ProviderCall::RevokeAccess, "access_token", &tokens.access_token),
            ] {
                if token.is_empty() {
                    continue;
                }
                let arguments = [("token", token), ("token_type_hint", hint)];
                let asked = self.post(exchange, endpoint, self.config.client_auth, &arguments, &[]);
                // The session ends whether the provider answers or not.
                let _is_told = self.once(exchange, call, || asked)?;
            }
        }
        if let Some(sessions) = &self.sessions {
            match &session {
                Some(session) => sessions.end(session, exchange),
                None => sessions.close(exchange),
            }
        }
        let end = provider.as_ref().and_then(|it| it.end_session_endpoint.as_ref());
        if let Some(end) = end.filter(|_| logout.at_provider) {
            let hint = remembered.and_then(|it| it.tokens.id_token);
            let mut arguments = vec![("client_id", self.config.client_id.as_str())];
            arguments.extend(hint.as_deref().map(|hint| ("id_token_hint", hint)));
            let back = logout.redirect_uri.as_deref();
            arguments.extend(back.map(|back| ("post_logout_redirect_uri", back)));
            let mark = if end.contains('?') { '&' } else { '?' };
            return Ok(redirect(&format!("{end}{mark}{}", form(arguments))));
        }
        Ok(match &logout.redirect_uri {
            Some(uri) => redirect(uri),
            None => {
                let page = "<html><body>Logged Out</body></html>\n";
                Box::new(Outcome::Reply(Box::new(Reply::new(200, "text/html", page))))
            }
        })
    }

    /// Whether a call logs out.
    pub(super) fn is_logout(&self, exchange: &Exchange) -> bool {
        let (logout, request) = (&self.config.logout, &exchange.request);
        let path = request.path.as_slice();
        let by_path = (logout.path.as_ref()).is_some_and(|it| request.is_for_path(it.as_bytes()));
        let by_suffix = logout
            .path_suffix
            .as_ref()
            .is_some_and(|it| path.ends_with(it.as_bytes()));
        let argument = logout.query_argument.as_ref();
        let by_argument = argument.is_some_and(|it| request.query_arg(it.as_bytes()).is_some());
        let by_method = |method: &String| method.as_bytes() == request.method;
        (by_path || by_suffix || by_argument)
            && (logout.methods.is_empty() || logout.methods.iter().any(by_method))
    }

    /// Whether a call is a browser that comes back from the provider.
    pub(super) fn is_callback(&self, exchange: &mut Exchange) -> bool {
        let now_s = exchange.unix_ms() / 1_000;
        match &self.config.redirect_uri {
            None if self.config.redirect_suffix.is_empty() => {
                let request = &exchange.request;
                let state = request.query_arg(b"state").unwrap_or_default();
                let state = String::from_utf8_lossy(&state);
                let pending = self.pending().filter(|_| !state.is_empty());
                pending.is_some_and(|it| it.find::<Login>(request, &state, now_s).is_some())
            }
            None => (exchange.request.path).ends_with(self.config.redirect_suffix.as_bytes()),
            Some(uri) => {
                let own = match HttpServer::parse(uri) {
                    Some(server) => server.target,
                    None => uri.clone(),
                };
                let own = own.split('?').next().unwrap_or_default().to_owned();
                exchange.request.is_for_path(own.as_bytes())
            }
        }
    }
}

/// The secrets of a login, chosen once in a call.
struct LoginSecrets {
    state: String,
    nonce: String,
    verifier: String,
}

/// Where the provider sends the browser back to.
fn redirect_uri(config: &Config, exchange: &Exchange) -> String {
    let request = &exchange.request;
    let path = match &config.redirect_uri {
        Some(uri) if uri.contains("://") => return uri.clone(),
        Some(path) => path.clone(),
        None => {
            let path = String::from_utf8_lossy(&request.raw_path);
            let suffix = &config.redirect_suffix;
            match path.strip_suffix(suffix.as_str()) {
                Some(_) => path.into_owned(),
                None if suffix.is_empty() => path.into_owned(),
                None => format!("{}{suffix}", path.trim_end_matches('/')),
            }
        }
    };
    format!("{}{path}", own_origin(request))
}
