//! The data of callers about themselves: rights, password, sessions and personal tokens.

use super::Api;
use super::accounts;
use super::operation::refusal;
use super::problem::Problem;
use super::session::{self, Origin};
use super::shapes::{CurrentUser, IssuedToken, List, NewToken, PermittedOperation, SessionState, TokenState};
use crate::access::session::{MAX_TOKEN_DAYS, PersonalToken, Session};
use crate::access::{Action, Caller, Right, RoleAssignment, Scope, User};
use crate::api::json_body::{Json, JsonBody};
use crate::operational::OperationalEntry;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time;

/// How long a personal token lasts if the call does not say, in days.
const TOKEN_DAYS: u16 = 90;

/// For how long after the login a user without a password may change how the account is entered.
const FRESH_SESSION: Duration = Duration::from_secs(600);

pub async fn read(State(api): State<Arc<Api>>, Extension(caller): Extension<Caller>) -> Json<CurrentUser> {
    let stored = caller.user().and_then(|it| api.options.users.by_name(&it.name));
    let (method, session) = match &caller {
        Caller::LocalAnonymous => ("none".to_owned(), None),
        Caller::Key(_) => ("key".to_owned(), None),
        Caller::User(_) => ("token".to_owned(), None),
        Caller::PersonalToken(..) => ("personal-token".to_owned(), None),
        Caller::Session(_, session) => (session.value.method.clone(), Some(shown_session(session, true))),
    };
    Json(CurrentUser {
        name: caller.name(),
        method,
        rights: caller.rights().map(|it| RoleAssignment::of(&it)),
        has_password: stored.as_ref().is_some_and(|it| it.password_hash.is_some()),
        is_stored: stored.is_some(),
        session,
    })
}

/// Whether a caller may make a call, which can be made with a right in a part if it `has_parts`.
pub fn permitted(caller: &Caller, id: &str, action: Action, has_parts: bool) -> PermittedOperation {
    let scopes = match caller.can(action, &Scope::Everything) {
        true => vec![Scope::Everything],
        // A call that concerns everything cannot be made with a right in a part.
        false if has_parts => caller.scopes(action),
        false => Vec::new(),
    };
    let reason = scopes
        .is_empty()
        .then(|| refusal(caller, action, &[Scope::Everything]));
    PermittedOperation {
        operation: id.to_owned(),
        action: action.as_str().to_owned(),
        allowed: !scopes.is_empty(),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        reason,
    }
}

/// Another password.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The password up to now; needed if there is one.
    #[serde(default)]
    current: Option<String>,
    /// The password from now on.
    new: String,
}

pub async fn set_password(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    parts: Parts,
    JsonBody(change): JsonBody<PasswordChange>,
) -> Result<Response, Response> {
    let from = Origin::of(&parts);
    from.require_tls_or_loopback().map_err(refused)?;
    let user = stored_user(&api, &caller).map_err(refused)?;
    match user.password_hash.is_some() {
        true => prove_password(&api, &from, &user, change.current).await?,
        false => demand_fresh_session(&caller).map_err(refused)?,
    }
    let hash = accounts::hashed(&api, &user.name, change.new)
        .await
        .map_err(refused)?;
    let note = format!("change the password of {}", user.name);
    let changed = accounts::change(&api, &caller, (&user.name, note, false), |user| {
        user.password_hash = Some(hash.clone());
        Ok(())
    });
    changed.await.map_err(refused)?;
    // Those who know the old one are out.
    let own = own_session(&caller);
    let ended = api.options.users.sessions().end(
        &user.name,
        |it| own.is_none_or(|own| own.value.id != it.value.id),
        SystemTime::now(),
    );
    ended.await.map_err(|error| refused(error.into()))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn refused(problem: Problem) -> Response {
    problem.into_response()
}

/// Compares the user's password. Attempts are counted and logged as those of logins.
async fn prove_password(
    api: &Api,
    from: &Origin,
    user: &User,
    password: Option<String>,
) -> Result<(), Response> {
    let name = Some(user.name.clone());
    match session::checked(api, from, &user.name, password.unwrap_or_default()).await {
        Ok(true) => Ok(()),
        Ok(false) => {
            let problem = Problem::forbidden("the current password is wrong").of_type("wrong-password");
            Err(session::refuse(problem, name))
        }
        Err(not_now) => Err(session::refuse_for_now(not_now, name)),
    }
}

/// Of a user without a password, a browser that was left open must not become a lasting access.
fn demand_fresh_session(caller: &Caller) -> Result<(), Problem> {
    let is_fresh = own_session(caller).is_none_or(|it| is_fresh(it.value.created, SystemTime::now()));
    match is_fresh {
        true => Ok(()),
        false => {
            let detail = "log in again: within ten minutes after that you can do this";
            Err(Problem::forbidden(detail).of_type("fresh-login-needed"))
        }
    }
}

/// Whether a session that was created then, in milliseconds since the Unix epoch, has just begun.
fn is_fresh(created: u64, now: SystemTime) -> bool {
    now < unix_time::from_millis(created) + FRESH_SESSION
}

fn own_session(caller: &Caller) -> Option<&OperationalEntry<Session>> {
    match caller {
        Caller::Session(_, session) => Some(session),
        _ => None,
    }
}

/// The caller as a user that the store knows. A program with a personal token changes nothing of its user.
fn stored_user(api: &Api, caller: &Caller) -> Result<Arc<User>, Problem> {
    let user = match caller {
        Caller::User(user) | Caller::Session(user, _) => api.options.users.by_name(&user.name),
        Caller::PersonalToken(..) => {
            let detail = "a personal token cannot do this: log in, or use the user's own token";
            return Err(Problem::forbidden(detail));
        }
        Caller::LocalAnonymous | Caller::Key(_) => None,
    };
    let detail = "only users that are kept here can do this; an identity provider keeps its own";
    user.ok_or_else(|| Problem::forbidden(detail))
}

fn seconds(time: Option<SystemTime>) -> u64 {
    time.map_or(0, unix_time::seconds)
}

fn shown_session(session: &OperationalEntry<Session>, is_own: bool) -> SessionState {
    let value = &session.value;
    SessionState {
        id: value.id.clone(),
        method: value.method.clone(),
        created: value.created / 1_000,
        last_used: value.last_used / 1_000,
        ends: seconds(session.ends),
        address: value.address.clone(),
        agent: value.agent.clone(),
        is_own,
    }
}

pub async fn list_sessions(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Json<List<SessionState>> {
    let own = own_session(&caller).map(|it| it.value.id.clone());
    let name = caller.user().map(|it| it.name.clone()).unwrap_or_default();
    let sessions = api.options.users.sessions().list(&name, SystemTime::now());
    let listed_sessions = sessions
        .iter()
        .map(|it| shown_session(it, own.as_ref() == Some(&it.value.id)));
    Json(List {
        items: listed_sessions.collect(),
    })
}

pub async fn end_session(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let name = caller.user().map(|it| it.name.clone()).unwrap_or_default();
    let ended = api
        .options
        .users
        .sessions()
        .end_one(&name, &id, SystemTime::now())
        .await?;
    match ended {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(format_args!("the session '{id}'"))),
    }
}

/// A new personal token.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Its purpose.
    name: String,
    /// For how many days, from 1 to 366; left out: 90.
    #[serde(default)]
    days: Option<u16>,
    /// The limit of its rights; left out: all that its user may.
    #[serde(default)]
    #[schemars(with = "Option<Vec<RoleAssignment>>")]
    rights: Option<Vec<Right>>,
    /// The user's password; needed in a session if the user has one, so that a browser that was left open makes no token.
    #[serde(default)]
    password: Option<String>,
}

fn shown_token(token: &OperationalEntry<PersonalToken>) -> TokenState {
    let value = &token.value;
    TokenState {
        id: value.id.clone(),
        name: value.name.clone(),
        rights: value.rights.as_deref().map(RoleAssignment::of),
        created: value.created / 1_000,
        last_used: value.last_used.map(|it| it / 1_000),
        ends: seconds(token.ends),
    }
}

pub async fn list_tokens(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Json<List<TokenState>> {
    let name = caller.user().map(|it| it.name.clone()).unwrap_or_default();
    let tokens = api.options.users.personal_tokens().list(&name, SystemTime::now());
    Json(List {
        items: tokens.iter().map(|it| shown_token(it)).collect(),
    })
}

pub async fn make_token(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    parts: Parts,
    JsonBody(wanted): JsonBody<TokenRequest>,
) -> Result<Response, Response> {
    let user = stored_user(&api, &caller).map_err(refused)?;
    let days = wanted.days.unwrap_or(TOKEN_DAYS);
    if !(1..=MAX_TOKEN_DAYS).contains(&days) {
        let detail = format!("days: expected 1 to {MAX_TOKEN_DAYS}, not {days}");
        return Err(refused(Problem::bad(detail)));
    }
    if wanted.name.trim().is_empty() {
        return Err(refused(Problem::bad("name: expected the purpose of the token")));
    }
    match (own_session(&caller), &user.password_hash, wanted.password) {
        // A user's own token is proof enough.
        (None, ..) => {}
        (Some(_), None, _) => demand_fresh_session(&caller).map_err(refused)?,
        (Some(_), Some(_), None) => {
            return Err(refused(Problem::bad("password: expected your password")));
        }
        (Some(_), Some(_), password) => {
            let from = Origin::of(&parts);
            from.require_tls_or_loopback().map_err(refused)?;
            prove_password(&api, &from, &user, password).await?;
        }
    }
    let tokens = api.options.users.personal_tokens();
    let what = (wanted.name.trim(), wanted.rights);
    let made = tokens.make(&user.name, what, days, SystemTime::now()).await;
    let (token, made) = made.map_err(|error| refused(error.into()))?;
    let answer = NewToken {
        state: shown_token(&made),
        token: IssuedToken(token.as_str().to_owned()),
    };
    let head = [(header::CACHE_CONTROL, session::no_store())];
    Ok((StatusCode::CREATED, head, Json(answer)).into_response())
}

pub async fn remove_token(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let name = caller.user().map(|it| it.name.clone()).unwrap_or_default();
    let tokens = api.options.users.personal_tokens();
    match tokens.end_one(&name, &id, SystemTime::now()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(format_args!("the personal token '{id}'"))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn sessions_are_fresh_for_ten_minutes() {
        let created = 1_000_000;
        let after = |seconds| UNIX_EPOCH + Duration::from_millis(created) + Duration::from_secs(seconds);
        for (seconds, expected) in [(0, true), (599, true), (600, false), (86_400, false)] {
            assert_eq!(is_fresh(created, after(seconds)), expected, "{seconds} s");
        }
    }
}
