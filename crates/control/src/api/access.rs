//! Users and the audit log.

use super::problem::Problem;
use super::{Api, demand};
use crate::access::{self, Caller, EVERYWHERE, Right, Role, Token, TokenHash, User};
use crate::commit::insist;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_store::{Change, Revision, Transaction};

/// Attempts while others write too.
const MAX_ATTEMPTS: usize = 20;
/// Entries, where the call asks for no other number; and at most.
const ENTRIES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

pub async fn list_users(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    demand(&caller, Role::Admin)?;
    let users = api.options.users.list();
    let shown = users
        .iter()
        .map(|it| json!({ "name": it.name, "rights": it.rights, "created": it.created }));
    Ok(Json(json!({ "items": shown.collect::<Vec<_>>() })))
}

/// What a user may do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    rights: Vec<Right>,
}

pub async fn add_user(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    demand(&caller, Role::Admin)?;
    let key = access::key_of(&name).map_err(|error| Problem::bad(error.to_string()))?;
    let token = Token::random();
    let token = token.ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no random bits"))?;
    let now = SystemTime::now();
    let user = User {
        name: name.clone(),
        token_hash: TokenHash::of(token.as_str()),
        rights: wanted.rights,
        created: now.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
    };
    if api.options.users.is_empty() && !user.may(Role::Admin, EVERYWHERE) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the first user has to be an admin everywhere: nobody else may make users then",
        ));
    }
    let value = serde_json::to_vec(&user)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    commit(
        &api,
        &caller,
        format!("add user {name}"),
        Change::put(key.clone(), value.clone()),
    )
    .await?;
    // What follows the store is a moment behind, and the next call may show the token already.
    api.options.users.apply(&key, Some(&value));
    let shown = json!({ "name": name, "rights": user.rights, "token": token.as_str() });
    Ok((StatusCode::CREATED, Json(shown)))
}

pub async fn remove_user(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    demand(&caller, Role::Admin)?;
    let key = access::key_of(&name).map_err(|error| Problem::bad(error.to_string()))?;
    let users = api.options.users.list();
    if !users.iter().any(|it| it.name == name) {
        return Err(Problem::not_found(format_args!("the user '{name}'")));
    }
    let others = users.iter().filter(|it| it.name != name);
    let (mut admins, is_last) = (
        others.filter(|it| it.may(Role::Admin, EVERYWHERE)),
        users.len() == 1,
    );
    if admins.next().is_none() && !is_last {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the last admin is removed after all other users",
        ));
    }
    commit(
        &api,
        &caller,
        format!("remove user {name}"),
        Change::Delete { key: key.clone() },
    )
    .await?;
    api.options.users.apply(&key, None);
    Ok(StatusCode::NO_CONTENT)
}

async fn commit(api: &Api, caller: &Caller, note: String, change: Change) -> Result<Revision, Problem> {
    let transaction = Transaction {
        author: caller.name(),
        note,
        time: SystemTime::now(),
        changes: vec![change],
    };
    let expected = api.options.followed.state().revision;
    Ok(insist(&*api.store, transaction, expected, MAX_ATTEMPTS).await?)
}

/// How much of the log.
#[derive(Deserialize)]
pub struct Part {
    limit: Option<usize>,
}

pub async fn audit(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(part): Query<Part>,
) -> Result<Json<Value>, Problem> {
    demand(&caller, Role::Admin)?;
    let limit = part.limit.unwrap_or(ENTRIES).clamp(1, MAX_ENTRIES);
    let entries = access::read_audit(&*api.store, limit).await?;
    Ok(Json(json!({ "items": entries })))
}
