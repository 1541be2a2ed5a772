//! Signing in with a password and, if the account has a second factor, a code; and signing out. Each login begins a
//! session of its own, whatever cookie was sent.

use super::account_common::{busy, code_attempts, password_attempts, profile_response, too_many};
use super::account_shapes::{Credentials, ProfileResponse};
use super::operation::{Operation, Shared};
use crate::cookie;
use crate::people::{Developer, DeveloperState, mail_of};
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::{Duration, SystemTime};
use weir_control::access::AuditIdentity;
use weir_control::api::Json;
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
    Extension(visit): Extension<PortalContext>,
    headers: HeaderMap,
    Json(given): Json<Credentials>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let mail = mail_of(&given.mail).unwrap_or_default();
    let name = password_attempts(portal, &mail);
    if let Err(wait) = portals.people.attempts.begin(&name, visit.address, now) {
        return Ok(slow_down("passwords", wait));
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
    may_sign_in(&developer)?;
    if developer.second_factor.is_some() {
        let code = given.code.as_deref().unwrap_or_default();
        if let Some(answer) = second_factor(&portals, &visit, &developer, code, now).await? {
            return Ok(answer);
        }
    }
    let cookie = begin_session(&portals, &visit, (&developer, None), &headers).await?;
    let mut answer = ([(header::SET_COOKIE, cookie)], Json(profile_response(&developer))).into_response();
    let who = AuditIdentity(format!("developer {}", developer.mail));
    answer.extensions_mut().insert(who);
    Ok(answer)
}

/// Refuses a developer whose account is not active.
fn may_sign_in(developer: &Developer) -> Result<(), Problem> {
    match developer.state {
        DeveloperState::Active => Ok(()),
        DeveloperState::Registered => Err(Problem::forbidden(
            "confirm your mail address first: the link is in the mail",
        )),
        DeveloperState::Confirmed => Err(Problem::forbidden("your account is waiting for approval")),
        DeveloperState::Suspended => Err(refused("your account is suspended", developer)),
        DeveloperState::Refused => Err(refused("your account was not approved", developer)),
    }
}

/// Asks for the code after the password. An answer: there were too many wrong ones.
async fn second_factor(
    portals: &Portals,
    visit: &PortalContext,
    developer: &Developer,
    code: &str,
    now: SystemTime,
) -> Result<Option<Response>, Problem> {
    let refused = |kind, detail| Err(Problem::new(StatusCode::UNAUTHORIZED, detail).of_type(kind));
    if code.is_empty() {
        return refused("code-needed", "type the code of your authenticator app");
    }
    let (people, portal) = (&portals.people, &visit.portal.name);
    let name = code_attempts(portal, &developer.mail);
    if let Err(wait) = people.attempts.begin(&name, visit.address, now) {
        return Ok(Some(slow_down("codes", wait)));
    }
    if !people.take_code(portal, &developer.id, code, now).await? {
        let detail = "this code is wrong or was already used: wait for the next one";
        return refused("wrong-code", detail);
    }
    people.attempts.succeeded(&name, visit.address, now);
    Ok(None)
}

/// The refusal of a caller who guesses, with how long to wait.
fn slow_down(what: &str, wait: Duration) -> Response {
    let mut answer = too_many(what, wait).into_response();
    let seconds = wait.as_secs().max(1);
    answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    answer
}

/// Begins a session, and ends the one that the browser had. Gives the header that sets its cookie. `asked`: when an
/// identity provider asked the developer, if it said so.
pub async fn begin_session(
    portals: &Portals,
    visit: &PortalContext,
    (developer, asked): (&Developer, Option<u64>),
    headers: &HeaderMap,
) -> Result<String, Problem> {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let from = (visit.address.to_canonical().to_string(), agent.to_owned());
    let (portal, now) = (&visit.portal.name, SystemTime::now());
    if let Some(former) = cookie::get(headers, visit.is_secure()) {
        portals.people.end(portal, &former, now).await?;
    }
    let value = portals
        .people
        .begin(portal, (&developer.id, asked), from, now)
        .await?;
    Ok(cookie::set(&value, visit.is_secure()))
}

/// A decision, with the reason that the administrator gave.
fn refused(what: &str, developer: &Developer) -> Problem {
    let reason = developer.decided.as_ref().map_or("", |it| it.reason.as_str());
    Problem::forbidden(match reason {
        "" => format!("{what}; ask the administrators of this portal"),
        reason => format!("{what}: {reason}"),
    })
}

async fn sign_out(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
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
