//! Logging in and out, in Weir's own API. What a session is, is in [`crate::access::session`].

use super::Api;
use super::problem::Problem;
use super::shapes::{LoggedIn, LoggedOut, LoginOptions, LoginProvider};
use crate::access::cookie;
use crate::access::openid::engine::logout_url;
use crate::access::password::PasswordError;
use crate::access::session::{LONGEST, Login, Session};
use crate::access::{AuditIdentity, Caller, NotAllowed, RoleAssignment, User, is_secure};
use crate::api::json_body::Json;
use crate::operational::OperationalError;
use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A user's login: name and password, or a token.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The user's name.
    #[serde(default)]
    name: Option<String>,
    /// The user's password.
    #[serde(default)]
    password: Option<String>,
    /// The user's token, in place of name and password.
    #[serde(default)]
    token: Option<String>,
}

/// The source of a call.
pub(super) struct Origin {
    pub address: IpAddr,
    pub is_secure: bool,
    pub agent: String,
}

impl Origin {
    pub fn of(parts: &Parts) -> Self {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        // Only a call that came over no connection has none.
        let peer = peer.map_or(SocketAddr::from(([0, 0, 0, 0], 0)), |it| it.0);
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|it| it.to_str().ok()).unwrap_or_default();
        Self {
            address: peer.ip().to_canonical(),
            is_secure: is_secure(&parts.extensions, &parts.headers, peer),
            agent: agent.to_owned(),
        }
    }

    /// Over cleartext, a password or a cookie could be read on the way.
    pub fn require_tls_or_loopback(&self) -> Result<(), Problem> {
        match self.is_secure || self.address.is_loopback() {
            true => Ok(()),
            false => Err(Problem::forbidden(
                "log in over TLS: without it, logins are for this machine only (--console ADDR,tls)",
            )
            .of_type("tls-required")),
        }
    }
}

pub async fn log_in(
    State(api): State<Arc<Api>>,
    parts: Parts,
    Json(request): Json<LoginRequest>,
) -> Result<Response, Response> {
    let from = Origin::of(&parts);
    let refused = |problem: Problem| refuse(problem, None);
    from.require_tls_or_loopback().map_err(refused)?;
    let says_from_where = ["origin", "sec-fetch-site"]
        .into_iter()
        .any(|it| parts.headers.contains_key(it));
    if says_from_where && !cookie::is_of_own_page(&parts.headers) {
        let detail = "logins sent from another site are refused";
        return Err(refused(Problem::forbidden(detail)));
    }
    let (user, method) = match request {
        LoginRequest {
            name: Some(name),
            password: Some(password),
            token: None,
        } => (by_password(&api, &from, name, password).await?, "password"),
        LoginRequest {
            name: None,
            password: None,
            token: Some(token),
        } => (by_token(&api, &token).map_err(refused)?, "token"),
        _ => return Err(refused(Problem::bad("expected name and password, or a token"))),
    };
    let login = Login {
        user: user.name.clone(),
        method: method.to_owned(),
        groups: None,
        address: from.address.to_string(),
        agent: from.agent.clone(),
    };
    let (value, ends) = begin(&api, &parts.headers, &from, login).await.map_err(refused)?;
    let answer = LoggedIn {
        name: user.name.clone(),
        rights: RoleAssignment::of(&user.rights),
        ends,
    };
    let head = [(header::SET_COOKIE, value), (header::CACHE_CONTROL, no_store())];
    let recorded = Extension(AuditIdentity(user.name.clone()));
    Ok((StatusCode::CREATED, head, recorded, Json(answer)).into_response())
}

pub(super) fn no_store() -> HeaderValue {
    HeaderValue::from_static("no-store")
}

/// Begins a session, and ends the one that the browser had. Returns the cookie, and when the session ends at the
/// latest, in seconds since the Unix epoch.
pub(super) async fn begin(
    api: &Api,
    headers: &HeaderMap,
    from: &Origin,
    login: Login,
) -> Result<(HeaderValue, u64), Problem> {
    let (now, sessions) = (SystemTime::now(), api.options.users.sessions());
    let before = cookie::SESSION.value_in(headers, from.is_secure);
    let before = before.and_then(|it| api.options.users.caller_of_cookie(it, now));
    let (token, session) = sessions.log_in(login, now).await?;
    if let Some(Caller::Session(_, before)) = before {
        sessions
            .end_one(&before.value.user, &before.value.id, now)
            .await?;
    }
    let set = cookie::SESSION.set(token.as_str(), from.is_secure, LONGEST);
    let set = HeaderValue::from_str(&set).map_err(|error| Problem::unreadable(error.to_string()))?;
    Ok((set, session.value.created / 1_000 + LONGEST.as_secs()))
}

/// A refused login goes into the log of refused calls.
pub(super) fn refuse(problem: Problem, who: Option<String>) -> Response {
    let mut answer = problem.into_response();
    answer.extensions_mut().insert(NotAllowed);
    answer
        .extensions_mut()
        .insert(AuditIdentity(who.unwrap_or_else(|| "unknown".to_owned())));
    answer.headers_mut().insert(header::CACHE_CONTROL, no_store());
    answer
}

async fn by_password(
    api: &Api,
    from: &Origin,
    name: String,
    password: String,
) -> Result<Arc<User>, Response> {
    let user = api.options.users.by_name(&name);
    // What was typed as a name may be a password. Names of users are none.
    let known = user.as_ref().map(|it| it.name.clone());
    match checked(api, from, &name, password).await {
        Ok(true) => user.ok_or_else(|| refuse(wrong_password(), None)),
        Ok(false) => Err(refuse(wrong_password(), known)),
        Err(problem) => Err(refuse_for_now(problem, known)),
    }
}

fn wrong_password() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "name or password is wrong").of_type("wrong-password")
}

fn by_token(api: &Api, token: &str) -> Result<Arc<User>, Problem> {
    let user = api.options.users.by_token(token.trim());
    let wrong = || Problem::new(StatusCode::UNAUTHORIZED, "no user has this token").of_type("wrong-token");
    user.ok_or_else(wrong)
}

/// Why a password is not compared now.
pub(super) enum PasswordCheckError {
    /// It was tried too often; for how long to wait.
    Wait(Duration),
    /// Too many at once, or the system fails.
    Hashing(PasswordError),
}

/// Whether the password is the user's. Takes as long if there is no such user.
pub(super) async fn checked(
    api: &Api,
    from: &Origin,
    name: &str,
    password: String,
) -> Result<bool, PasswordCheckError> {
    let now = SystemTime::now();
    api.attempts
        .begin(name, from.address, now)
        .map_err(PasswordCheckError::Wait)?;
    let known = api
        .options
        .users
        .by_name(name)
        .and_then(|it| it.password_hash.clone());
    let matches = api.options.passwords.matches(password, known).await;
    let matches = matches.map_err(PasswordCheckError::Hashing)?;
    if matches {
        api.attempts.succeeded(name, from.address, now);
    }
    Ok(matches)
}

impl From<PasswordCheckError> for Problem {
    fn from(not_now: PasswordCheckError) -> Self {
        match not_now {
            PasswordCheckError::Wait(wait) => {
                let seconds = wait.as_secs() + 1;
                let detail = format!("too many wrong passwords; try again in {seconds} seconds");
                Self::new(StatusCode::TOO_MANY_REQUESTS, detail)
            }
            PasswordCheckError::Hashing(error @ PasswordError::Busy) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
            PasswordCheckError::Hashing(error) => Self::unreadable(error.to_string()),
        }
    }
}

/// The answer says when to try again.
pub(super) fn refuse_for_now(not_now: PasswordCheckError, who: Option<String>) -> Response {
    let seconds = match &not_now {
        PasswordCheckError::Wait(wait) => wait.as_secs() + 1,
        PasswordCheckError::Hashing(_) => 5,
    };
    let mut answer = refuse(not_now.into(), who);
    answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    answer
}

pub async fn log_out(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    parts: Parts,
) -> Result<Response, Problem> {
    let Caller::Session(_, session) = &caller else {
        let detail = "this call has no session; to invalidate a token, replace it (`weir user add`)";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    let sessions = api.options.users.sessions();
    sessions
        .end_one(&session.value.user, &session.value.id, SystemTime::now())
        .await?;
    let from = Origin::of(&parts);
    let clear = HeaderValue::from_str(&cookie::SESSION.clear(from.is_secure));
    let clear = clear.map_err(|error| Problem::unreadable(error.to_string()))?;
    let head = [(header::SET_COOKIE, clear), (header::CACHE_CONTROL, no_store())];
    let provider = provider_logout(&api, &session.value, (&parts.headers, &from));
    Ok((head, Json(LoggedOut { provider })).into_response())
}

/// The address for logging out of the identity provider of a session.
fn provider_logout(api: &Api, session: &Session, (headers, from): (&HeaderMap, &Origin)) -> Option<String> {
    let provider = api.options.users.providers().get(session.provider()?)?;
    let metadata = api.openid.known_metadata(&provider)?;
    let base = base_url(provider.base_url.as_deref(), headers, from).ok()?;
    logout_url(&provider, &metadata, &format!("{base}/ui/"))
}

/// The address of this server for browsers: as configured, or as the browser says.
pub(super) fn base_url(
    configured: Option<&str>,
    headers: &HeaderMap,
    from: &Origin,
) -> Result<String, Problem> {
    if let Some(url) = configured {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    let host = host.ok_or_else(|| Problem::bad("the call has no Host"))?;
    let scheme = if from.is_secure { "https" } else { "http" };
    Ok(format!("{scheme}://{host}"))
}

pub async fn options(State(api): State<Arc<Api>>) -> Json<LoginOptions> {
    let users = &api.options.users;
    Json(LoginOptions {
        has_users: !users.is_empty(),
        password: users.list().iter().any(|it| it.password_hash.is_some()),
        providers: users
            .providers()
            .list()
            .iter()
            .filter(|it| !it.mappings.is_empty())
            .map(|it| LoginProvider {
                name: it.name.clone(),
                display_name: it.display_name.clone(),
            })
            .collect(),
    })
}

impl From<OperationalError> for Problem {
    fn from(error: OperationalError) -> Self {
        let status = match error {
            OperationalError::Exists(_) | OperationalError::Full(_) | OperationalError::Busy => {
                StatusCode::CONFLICT
            }
            OperationalError::Name(_) => StatusCode::BAD_REQUEST,
            OperationalError::Unwritable(_) => StatusCode::INTERNAL_SERVER_ERROR,
            OperationalError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}
