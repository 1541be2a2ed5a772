//! Users and the audit log, in Weir's own API. Whether a call is let in is decided before it comes here.

use super::problem::Problem;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::{self, Caller, EVERYWHERE, Right, Role, Token, TokenHash, User};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_store::{Change, CommitError, Document, Key, Transaction};

/// Attempts while others write too.
const MAX_ATTEMPTS: usize = 20;
/// Entries, where the call asks for no other number; and at most.
const ENTRIES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

pub async fn list_users(State(api): State<Arc<Api>>) -> Json<Value> {
    let users = api.options.users.list();
    let shown = users
        .iter()
        .map(|it| json!({ "name": it.name, "rights": it.rights, "created": it.created }));
    Json(json!({ "items": shown.collect::<Vec<_>>() }))
}

/// What a user may do, by role and where.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RightsRequest {
    #[schemars(with = "Vec<access::WrittenRight>")]
    rights: Vec<Right>,
}

pub async fn add_user(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Json(wanted): Json<RightsRequest>,
) -> Result<Response, Problem> {
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
    let value = serde_json::to_vec(&user)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let write = Write {
        caller: &caller,
        note: format!("add user {name}"),
        change: Change::put(key.clone(), value.clone()),
        is_dry: is_dry_run(&headers),
    };
    commit(&api, &write, |known| leaves_an_admin(known, &key, Some(&user))).await?;
    if write.is_dry {
        let shown = json!({ "name": name, "rights": user.rights });
        return Ok(tried((StatusCode::CREATED, Json(shown))));
    }
    // What follows the store is a moment behind, and the next call may show the token already.
    api.options.users.apply(&key, Some(&value));
    let shown = json!({ "name": name, "rights": user.rights, "token": token.as_str() });
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

pub async fn remove_user(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let key = access::key_of(&name).map_err(|error| Problem::bad(error.to_string()))?;
    let write = Write {
        caller: &caller,
        note: format!("remove user {name}"),
        change: Change::Delete { key: key.clone() },
        is_dry: is_dry_run(&headers),
    };
    commit(&api, &write, |known| match known.iter().any(|it| it.key == key) {
        true => leaves_an_admin(known, &key, None),
        false => Err(Problem::not_found(format_args!("the user '{name}'"))),
    })
    .await?;
    if write.is_dry {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    api.options.users.apply(&key, None);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Whether a user may be what it is `after` (`None`: gone): as long as there are users, one of them is an admin, since
/// no other user may create users.
fn leaves_an_admin(known: &[Document], key: &Key, after: Option<&User>) -> Result<(), Problem> {
    let is_admin = |user: &User| user.may(Role::Admin, EVERYWHERE);
    let read = |document: &Document| serde_json::from_slice::<User>(&document.value).ok();
    let mut others = known.iter().filter(|it| it.key != *key);
    let is_nobody_left = after.is_none() && others.clone().next().is_none();
    if is_nobody_left
        || after.is_some_and(is_admin)
        || others.any(|it| read(it).is_some_and(|it| is_admin(&it)))
    {
        return Ok(());
    }
    let detail = match (known.is_empty(), after) {
        (true, _) => {
            "the first user must be an admin of everything: without an admin no users can be created"
        }
        (false, None) => "the last admin is removed after all other users",
        (false, Some(_)) => "the last admin must remain an admin: without an admin no users can be created",
    };
    Err(Problem::new(StatusCode::CONFLICT, detail))
}

/// A change of the users.
struct Write<'c> {
    caller: &'c Caller,
    note: String,
    change: Change,
    /// Whether it is only asked what would come of it.
    is_dry: bool,
}

/// Commits a change of the users, if `may` allows it among those that there are right before.
async fn commit(
    api: &Api,
    write: &Write<'_>,
    may: impl Fn(&[Document]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    for _ in 0..MAX_ATTEMPTS {
        let (known, revision) = api.store.read(access::USERS).await?;
        may(&known)?;
        if write.is_dry {
            return Ok(());
        }
        let transaction = Transaction {
            author: write.caller.name(),
            note: write.note.clone(),
            time: SystemTime::now(),
            changes: vec![write.change.clone()],
        };
        match api.store.commit(transaction, revision).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Problem::new(
        StatusCode::CONFLICT,
        "others write too fast; try again",
    ))
}

/// How much of the log.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// At most so many entries.
    limit: Option<usize>,
}

pub async fn audit(State(api): State<Arc<Api>>, Query(part): Query<Part>) -> Result<Json<Value>, Problem> {
    let limit = part.limit.unwrap_or(ENTRIES).clamp(1, MAX_ENTRIES);
    let entries = access::read_audit(&*api.store, limit).await?;
    Ok(Json(json!({ "items": entries })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, role: Role) -> User {
        User {
            name: name.to_owned(),
            token_hash: TokenHash::of(name),
            rights: vec![Right::in_workspace(EVERYWHERE, role)],
            created: 0,
        }
    }

    #[test]
    fn there_is_an_admin_as_long_as_there_are_users() {
        use Role::{Admin, Read, Write};
        let document = |(name, role): &(&str, Role)| Document {
            key: access::key_of(name).expect("a key"),
            value: serde_json::to_vec(&user(name, *role)).expect("JSON").into(),
            created: weir_store::Revision(1),
            modified: weir_store::Revision(1),
        };
        let key = access::key_of("a").expect("a key");
        for (known, after, expected) in [
            (&[][..], Some(Write), false),
            (&[], Some(Admin), true),
            (&[("a", Admin)], None, true),
            (&[("a", Admin), ("b", Write)], None, false),
            (&[("a", Admin), ("b", Admin)], None, true),
            (&[("a", Read), ("b", Admin)], None, true),
            (&[("a", Admin)], Some(Read), false),
            (&[("a", Admin), ("b", Write)], Some(Write), false),
            (&[("a", Admin), ("b", Admin)], Some(Write), true),
            (&[("b", Admin)], Some(Read), true),
        ] {
            let documents: Vec<Document> = known.iter().map(document).collect();
            let after = after.map(|role| user("a", role));
            let may = leaves_an_admin(&documents, &key, after.as_ref()).is_ok();
            assert_eq!(may, expected, "{known:?} {after:?}");
        }
    }
}
