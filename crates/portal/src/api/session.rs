//! Signing in with a password, and signing out. Each login begins a session of its own, whatever cookie was sent.

use super::account_common::{busy, shown};
use super::account_shapes::{Credentials, ProfileResponse};
use super::operation::{Operation, Shared};
use crate::cookie;
use crate::people::{Developer, DeveloperState, mail_of};
use crate::state::{Portals, Visit};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use std::time::SystemTime;
use weir_control::access::AuditIdentity;
use weir_control::api::Problem;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::post(
            "/portal/v1/session",
            ("signIn", "Signs in; the session is a cookie"),
            sign_in,
        )
        .body::<Credentials>()
        .answers::<ProfileResponse>(),
        Operation::delete("/portal/v1/session", ("signOut", "Ends this session"), sign_out),
    ];
    Operation::tagged("Account", operations)
}

async fn sign_in(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    Json(given): Json<Credentials>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let mail = mail_of(&given.mail).unwrap_or_default();
    let name = format!("{portal} {mail}");
    if let Err(wait) = portals.people.attempts.begin(&name, visit.address, now) {
        let seconds = wait.as_secs().max(1);
        let detail = format!("too many wrong passwords; try again in {seconds} seconds");
        let mut answer = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        return Ok(answer);
    }
    let known = portals.people.by_mail(portal, &mail, now).await?;
    let hash = known.as_ref().and_then(|it| it.password.clone());
    let is_right = portals.people.passwords.matches(given.password, hash).await;
    let is_right = is_right.map_err(|error| busy(&error))?;
    let Some(developer) = known.filter(|_| is_right) else {
        return Err(
            Problem::new(StatusCode::UNAUTHORIZED, "mail address or password is wrong")
                .of_type("wrong-password"),
        );
    };
    portals.people.attempts.succeeded(&name, visit.address, now);
    // The password was right: now it may be said.
    match developer.state {
        DeveloperState::Active => {}
        DeveloperState::Registered => {
            return Err(Problem::forbidden(
                "confirm your mail address first: the link is in the mail",
            ));
        }
        DeveloperState::Confirmed => {
            return Err(Problem::forbidden(
                "your account waits for somebody to approve it",
            ));
        }
        DeveloperState::Suspended => {
            return Err(refused("your account is suspended", &developer));
        }
        DeveloperState::Refused => {
            return Err(refused("your account was not approved", &developer));
        }
    }
    let cookie = begin_session(&portals, &visit, &developer, &headers).await?;
    let mut answer = ([(header::SET_COOKIE, cookie)], Json(shown(&developer))).into_response();
    let who = AuditIdentity(format!("developer {}", developer.mail));
    answer.extensions_mut().insert(who);
    Ok(answer)
}

/// Begins a session. Gives the header that sets its cookie.
pub async fn begin_session(
    portals: &Portals,
    visit: &Visit,
    developer: &Developer,
    headers: &HeaderMap,
) -> Result<String, Problem> {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let from = (visit.address.to_canonical().to_string(), agent.to_owned());
    let (portal, now) = (&visit.portal.name, SystemTime::now());
    let value = portals.people.begin(portal, &developer.id, from, now).await?;
    Ok(cookie::set(&value, visit.is_secure()))
}

/// What was decided, with the reason that the administrator gave.
fn refused(what: &str, developer: &Developer) -> Problem {
    let reason = developer.decided.as_ref().map_or("", |it| it.reason.as_str());
    Problem::forbidden(match reason {
        "" => format!("{what}; ask the administrators of this portal"),
        reason => format!("{what}: {reason}"),
    })
}

async fn sign_out(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(value) = cookie::get(&headers, visit.is_secure()) {
        portals
            .people
            .end(&visit.portal.name, &value, SystemTime::now())
            .await?;
    }
    let cookie = cookie::clear(visit.is_secure());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
