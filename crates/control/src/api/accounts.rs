//! Changing users: their rights, their passwords, and their sessions, in Weir's own API.

use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::scopes::{check_scopes, placed};
use super::session::Origin;
use super::shapes::ListedUser;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::password::{PasswordError, PasswordHash, fault_of};
use crate::access::{self, Caller, EVERYWHERE, Right, Role, RoleAssignment, User, key_of};
use crate::api::json_body::{Json, JsonBody};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::SystemTime;
use weir_store::{Change, CommitError, Document, Key, Transaction};

/// Attempts while others write too.
const MAX_ATTEMPTS: usize = 20;

/// A user's rights, by role and scope.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RightsRequest {
    #[schemars(with = "Vec<access::RoleAssignment>")]
    rights: Vec<Right>,
}

/// Whether a user may be what it is `after` (`None`: gone): as long as there are users, one of them is an admin, since
/// no other user may create users.
pub fn leaves_an_admin(
    api: &Api,
    known: &[Document],
    key: &Key,
    after: Option<&User>,
) -> Result<(), Problem> {
    // Members of a group may be admins, too.
    match api
        .options
        .users
        .providers()
        .list()
        .iter()
        .any(|it| it.has_admin())
    {
        true => Ok(()),
        false => has_admin_left(known, key, after),
    }
}

fn has_admin_left(known: &[Document], key: &Key, after: Option<&User>) -> Result<(), Problem> {
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

/// A change of a user, and what it comes to.
pub struct UserChange<T> {
    pub change: Change,
    pub outcome: T,
}

/// Commits a change of the users, which a function makes of those that there are right before. A dry run only asks it.
/// Returns the outcome, and the change.
pub async fn commit<T>(
    api: &Api,
    caller: &Caller,
    (note, is_dry): (String, bool),
    write: impl Fn(&[Document]) -> Result<UserChange<T>, Problem>,
) -> Result<(T, Change), Problem> {
    for _ in 0..MAX_ATTEMPTS {
        let (known, revision) = api.store.read(access::USERS).await?;
        let UserChange { change, outcome } = write(&known)?;
        if is_dry {
            return Ok((outcome, change));
        }
        let transaction = Transaction {
            author: caller.name(),
            note: note.clone(),
            time: SystemTime::now(),
            changes: vec![change.clone()],
        };
        match api.store.commit(transaction, revision).await {
            Ok(_) => {
                // What follows the store is a moment behind, and the next call may show a token already.
                match &change {
                    Change::Put { key, value, .. } => api.options.users.apply(key, Some(value)),
                    Change::Delete { key } => api.options.users.apply(key, None),
                }
                return Ok((outcome, change));
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Problem::new(
        StatusCode::CONFLICT,
        "conflicting concurrent writes; try again",
    ))
}

/// Hashes a new password, if it is good enough.
pub async fn hashed(api: &Api, name: &str, password: String) -> Result<PasswordHash, Problem> {
    if let Some(fault) = fault_of(&password, name) {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, fault).of_type("weak-password"));
    }
    let hashed = api.options.passwords.hash(password).await;
    hashed.map_err(|error| match error {
        PasswordError::Busy => Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        PasswordError::Failed(_) => Problem::unreadable(error.to_string()),
    })
}

/// Changes a user, whom it gives as it is afterwards.
pub async fn change(
    api: &Api,
    caller: &Caller,
    (name, note, is_dry): (&str, String, bool),
    edit: impl Fn(&mut User) -> Result<(), Problem>,
) -> Result<User, Problem> {
    let key = key_of(name).map_err(|error| Problem::bad(error.to_string()))?;
    let (user, _) = commit(api, caller, (note, is_dry), |known| {
        let missing = || Problem::not_found(format_args!("the user '{name}'"));
        let document = known.iter().find(|it| it.key == key).ok_or_else(missing)?;
        let mut user: User = serde_json::from_slice(&document.value)
            .map_err(|error| Problem::unreadable(format!("the user '{name}': {error}")))?;
        edit(&mut user)?;
        leaves_an_admin(api, known, &key, Some(&user))?;
        let value = serde_json::to_vec(&user).map_err(|error| Problem::unreadable(error.to_string()))?;
        Ok(UserChange {
            change: Change::put(key.clone(), value),
            outcome: user,
        })
    })
    .await?;
    Ok(user)
}

/// The version of a user's rights. A password or a token that changes is another matter.
fn tag_of_rights(user: &User) -> String {
    tag_of_content(&RoleAssignment::of(&user.rights))
}

fn to_response(user: &User) -> ListedUser {
    ListedUser {
        etag: Some(tag_of_rights(user)),
        name: user.name.clone(),
        rights: RoleAssignment::of(&user.rights),
        created: user.created,
        has_token: user.token_hash.is_some(),
        has_password: user.password_hash.is_some(),
    }
}

pub async fn list(State(api): State<Arc<Api>>) -> Json<super::shapes::List<ListedUser>> {
    let users = api.options.users.list();
    Json(super::shapes::List {
        items: users.iter().map(|it| to_response(it)).collect(),
    })
}

pub async fn set_rights(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<RightsRequest>,
) -> Result<Response, Problem> {
    let is_dry = is_dry_run(&headers);
    let known = api.options.users.list().into_iter().find(|it| it.name == name);
    let before = known.as_ref().map_or(&[][..], |it| &it.rights);
    let warning = check_scopes(&api, &placed(&wanted.rights), before).await?;
    let note = format!("change the rights of {name}");
    let precondition = Precondition::of(&headers);
    let user = change(&api, &caller, (&name, note, is_dry), |user| {
        if !precondition.holds_tag(Some(&tag_of_rights(user))) {
            return Err(precondition.refusal_of(&format!("the user '{name}'"), true));
        }
        wanted.rights.clone_into(&mut user.rights);
        Ok(())
    })
    .await?;
    let tag = tag_of_rights(&user);
    let answer = with_tag(
        Json(to_response(&user)).into_response(),
        Some(&tag).filter(|_| !is_dry).map(String::as_str),
    );
    let answer = warning.with_warning(answer);
    Ok(if is_dry { tried(answer) } else { answer })
}

/// A password that an administrator gives.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The password; `null`: the user has none from now on.
    password: Option<String>,
}

pub async fn set_password(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    parts: Parts,
    JsonBody(wanted): JsonBody<NewPassword>,
) -> Result<Response, Problem> {
    Origin::of(&parts).require_tls_or_loopback()?;
    let hash = match wanted.password {
        Some(password) => Some(hashed(&api, &name, password).await?),
        None => None,
    };
    let is_dry = is_dry_run(&parts.headers);
    let note = format!("change the password of {name}");
    change(&api, &caller, (&name, note, is_dry), |user| {
        user.password_hash.clone_from(&hash);
        Ok(())
    })
    .await?;
    if is_dry {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    api.options
        .users
        .sessions()
        .end(&name, |_| true, SystemTime::now())
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub async fn end_sessions(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if api.options.users.by_name(&name).is_none() {
        return Err(Problem::not_found(format_args!("the user '{name}'")));
    }
    if is_dry_run(&headers) {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    api.options
        .users
        .sessions()
        .end(&name, |_| true, SystemTime::now())
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, role: Role) -> User {
        User {
            name: name.to_owned(),
            token_hash: Some(access::TokenHash::of(name)),
            password_hash: None,
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
            let may = has_admin_left(&documents, &key, after.as_ref()).is_ok();
            assert_eq!(may, expected, "{known:?} {after:?}");
        }
    }
}
