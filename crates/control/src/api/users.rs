//! Adds and removes users, and lists the audit log, in Weir's own API. Whether a call is let in is decided before it comes
//! here.

use super::accounts::{self, UserChange, commit, leaves_an_admin};
use super::problem::Problem;
use super::scopes::{check_scopes, placed};
use super::session::Origin;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::{self, Caller, Right, Token, TokenHash, User};
use crate::api::json_body::{Json, JsonBody};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use weir_model::unix_time;
use weir_store::Change;

/// Entries, if the call asks for no other number; and at most.
const ENTRIES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

/// A new user's rights, and how it logs in.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRequest {
    #[schemars(with = "Vec<access::RoleAssignment>")]
    rights: Vec<Right>,
    /// A password; left out: the user has none.
    #[serde(default)]
    password: Option<String>,
    /// Whether the user gets no token. Such a user logs in with the password.
    #[serde(default)]
    without_token: bool,
}

pub async fn add_user(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    parts: Parts,
    JsonBody(wanted): JsonBody<UserRequest>,
) -> Result<Response, Problem> {
    let key = access::key_of(&name).map_err(|error| Problem::bad(error.to_string()))?;
    // Clients and browsers take these out of paths, so that no call would reach such a user.
    if matches!(name.as_str(), "." | "..") {
        return Err(Problem::bad(format!("'{name}' is not a valid user name")));
    }
    let warning = check_scopes(&api, &placed(&wanted.rights), &[]).await?;
    let password_hash = match wanted.password {
        None if wanted.without_token => {
            return Err(Problem::bad("a user without a token needs a password"));
        }
        None => None,
        Some(password) => {
            Origin::of(&parts).require_tls_or_loopback()?;
            Some(accounts::hashed(&api, &name, password).await?)
        }
    };
    let token = match wanted.without_token {
        true => None,
        false => Some(Token::random().ok_or_else(|| Problem::unreadable("no random bits"))?),
    };
    let now = SystemTime::now();
    let user = User {
        name: name.clone(),
        token_hash: token.as_ref().map(|it| TokenHash::of(it.as_str())),
        password_hash,
        rights: wanted.rights,
        created: unix_time::seconds(now),
    };
    let value = serde_json::to_vec(&user).map_err(|error| Problem::unreadable(error.to_string()))?;
    let is_dry = is_dry_run(&parts.headers);
    let note = format!("add user {name}");
    commit(&api, &caller, (note, is_dry), |known| {
        leaves_an_admin(&api, known, &key, Some(&user))?;
        Ok(UserChange {
            change: Change::put(key.clone(), value.clone()),
            outcome: (),
        })
    })
    .await?;
    if is_dry {
        let body = json!({ "name": name, "rights": user.rights });
        let answer = (StatusCode::CREATED, Json(body)).into_response();
        return Ok(tried(warning.with_warning(answer)));
    }
    let mut body = json!({ "name": name, "rights": user.rights });
    if let Some(token) = token {
        body["token"] = token.as_str().into();
    }
    Ok(warning.with_warning((StatusCode::CREATED, Json(body)).into_response()))
}

pub async fn remove_user(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let key = access::key_of(&name).map_err(|error| Problem::bad(error.to_string()))?;
    let is_dry = is_dry_run(&headers);
    commit(&api, &caller, (format!("remove user {name}"), is_dry), |known| {
        match known.iter().any(|it| it.key == key) {
            true => leaves_an_admin(&api, known, &key, None)?,
            false => return Err(Problem::not_found(format_args!("the user '{name}'"))),
        }
        Ok(UserChange {
            change: Change::Delete { key: key.clone() },
            outcome: (),
        })
    })
    .await?;
    if is_dry {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    let (users, now) = (&api.options.users, SystemTime::now());
    users.sessions().end(&name, |_| true, now).await?;
    users.personal_tokens().end(&name, |_| true, now).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// How much of the log.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct AuditLogQuery {
    /// At most so many entries.
    limit: Option<usize>,
}

pub async fn audit(
    State(api): State<Arc<Api>>,
    Query(part): Query<AuditLogQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = part.limit.unwrap_or(ENTRIES).clamp(1, MAX_ENTRIES);
    let entries = access::read_audit(&*api.store, limit).await?;
    Ok(Json(json!({ "items": entries })))
}
