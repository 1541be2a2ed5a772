//! The calls by which developers read and change their own account.

use super::account_common::{
    again, busy, checked_name, end_other_sessions, profile_response, prove_password, wrong,
};
use super::account_shapes::{AccountChange, ProfileResponse, SessionLine, SessionList};
use super::operation::{Operation, Shared};
use super::signed_in::developer;
use crate::cookie;
use crate::people::Developer;
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::SystemTime;
use weir_control::access::password::{PasswordHash, fault_of};
use weir_control::api::Json;
use weir_control::api::Problem;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get("/portal/v1/me", ("getMe", "Reads the current developer"), me)
            .answers::<ProfileResponse>(),
        Operation::put(
            "/portal/v1/account",
            ("changeAccount", "Changes name or password"),
            change,
        )
        .by_session()
        .body::<AccountChange>()
        .answers::<ProfileResponse>(),
        Operation::delete(
            "/portal/v1/account",
            ("deleteAccount", "Removes the account"),
            delete,
        )
        .by_session(),
        Operation::get(
            "/portal/v1/account/sessions",
            ("listSessions", "Lists your sessions"),
            sessions,
        )
        .by_session()
        .answers::<SessionList>(),
        Operation::delete(
            "/portal/v1/account/sessions/{id}",
            ("endSession", "Ends one of your sessions"),
            end_session,
        )
        .by_session(),
    ];
    Operation::tagged("Account", operations)
}

async fn me(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Json<ProfileResponse>, Problem> {
    if visit.viewer.developer.is_none() {
        let (mail, name) = (String::new(), String::new());
        return Ok(Json(ProfileResponse {
            id: None,
            mail,
            name,
            has_password: false,
            has_second_factor: false,
        }));
    }
    Ok(Json(profile_response(
        &developer(&portals, &visit, SystemTime::now()).await?,
    )))
}

async fn change(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    headers: HeaderMap,
    Json(wanted): Json<AccountChange>,
) -> Result<Json<ProfileResponse>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let known = developer(&portals, &visit, now).await?;
    let name = wanted.name.as_deref().map(checked_name).transpose()?;
    let is_new_password = wanted.new_password.is_some();
    let password = match wanted.new_password {
        Some(password) => {
            Some(new_password(&portals, &visit, &known, (wanted.old_password, password)).await?)
        }
        None => None,
    };
    let edit = |it: &mut Developer| {
        if let Some(name) = &name {
            it.name.clone_from(name);
        }
        if let Some(password) = &password {
            // The old one was compared with what there was then.
            if it.password != known.password {
                return Err(again());
            }
            it.password = Some(password.clone());
        }
        Ok(Vec::new())
    };
    let developer = portals.people.change(portal, &known.id, now, edit).await?;
    if is_new_password {
        // Another person may have the old one. This browser has just shown it.
        end_other_sessions(&portals, &visit, &headers, &developer.id, now).await?;
        if wanted.end_tokens {
            let revoked = portals.people.revoke_tokens(portal, &known.id, |_| true, now);
            revoked.await?;
        }
    }
    Ok(Json(profile_response(&developer)))
}

/// The hash of a new password, if the old one is right.
async fn new_password(
    portals: &Portals,
    visit: &PortalContext,
    known: &Developer,
    (old, new): (Option<String>, String),
) -> Result<PasswordHash, Problem> {
    let old = ("old_password", old.unwrap_or_default());
    prove_password(portals, visit, known, old, SystemTime::now()).await?;
    if let Some(fault) = fault_of(&new, &known.mail) {
        return Err(wrong("new_password", fault));
    }
    let passwords = &portals.people.passwords;
    passwords.hash(new).await.map_err(|error| busy(&error))
}

async fn delete(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = developer(&portals, &visit, now).await?;
    if super::authenticated_developer::has_own(&portals, &developer.id) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "you have applications: give them to a team, or remove them first",
        ));
    }
    let removing = portals
        .people
        .remove_from_all(portal, &developer, |_| Ok(()), now);
    removing.await?;
    portals
        .queue_webhooks(&visit, "developer.removed", &developer, now)
        .await?;
    let cookie = cookie::clear(visit.is_secure());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

async fn sessions(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    headers: HeaderMap,
) -> Result<Json<SessionList>, Problem> {
    let now = SystemTime::now();
    let developer = developer(&portals, &visit, now).await?;
    let mut items = session_lines(&portals, &visit, &developer, now).await?;
    let cookie = cookie::get(&headers, visit.is_secure()).unwrap_or_default();
    let own = portals.people.session(&visit.portal.name, &cookie, now).await?;
    for line in &mut items {
        line.is_current = own.as_ref().is_some_and(|it| it.id == line.id);
    }
    Ok(Json(SessionList { items }))
}

/// The sessions of a developer, the latest last.
pub async fn session_lines(
    portals: &Portals,
    visit: &PortalContext,
    developer: &Developer,
    now: SystemTime,
) -> Result<Vec<SessionLine>, Problem> {
    let found = portals
        .people
        .sessions(&visit.portal.name, &developer.id, now)
        .await?;
    let lines = found.into_iter().map(|it| SessionLine {
        id: it.id,
        created: it.created,
        address: it.address,
        agent: it.agent,
        is_current: false,
    });
    Ok(lines.collect())
}

async fn end_session(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let now = SystemTime::now();
    let developer = developer(&portals, &visit, now).await?;
    portals
        .people
        .end_sessions(&visit.portal.name, &developer.id, |it| it.id == id, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
