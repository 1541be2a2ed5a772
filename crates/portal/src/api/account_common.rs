//! The common part of the calls about accounts: words of refusals, turns, and how a developer is shown.

use super::account_shapes::{MessageResponse, ProfileResponse};
use crate::cookie;
use crate::people::{Developer, Session, greeting, title_of};
use crate::state::{Mail, PortalContext, Portals};
use axum::http::{HeaderMap, StatusCode};
use std::time::{Duration, SystemTime};
use weir_control::access::password::PasswordError;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_control::developers::wrong_code;
use weir_model::unix_time::seconds;

pub fn busy(error: &PasswordError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

pub fn message(message: &str) -> Json<MessageResponse> {
    Json(MessageResponse {
        message: message.to_owned(),
    })
}

pub fn wrong(field: &str, message: impl Into<String>) -> Problem {
    Problem::step("check", vec![(field.to_owned(), message.into())])
}

pub fn gone() -> Problem {
    Problem::new(
        StatusCode::GONE,
        "this link was already used or has expired: request another one",
    )
}

/// Two do the same at once.
pub fn again() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "something else changed at the same time: try again",
    )
}

/// Under which names wrong passwords of an account are counted, and wrong codes. They are apart: a right password forgets the wrong
/// passwords, and no wrong code.
pub fn password_attempts(portal: &str, mail: &str) -> String {
    format!("{portal} {mail}")
}

pub fn code_attempts(portal: &str, mail: &str) -> String {
    format!("{portal} {mail} code")
}

/// The refusal of a caller who guesses.
pub fn too_many(what: &str, wait: Duration) -> Problem {
    let seconds = wait.as_secs().max(1);
    let detail = format!("too many wrong {what}; try again in {seconds} seconds");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
}

/// Asks a developer who is signed in for the password. `field` is the call's name for it. Guesses count with those of
/// sign-ins.
pub async fn prove_password(
    portals: &Portals,
    visit: &PortalContext,
    developer: &Developer,
    (field, password): (&str, String),
    now: SystemTime,
) -> Result<(), Problem> {
    let people = &portals.people;
    let name = password_attempts(&visit.portal.name, &developer.mail);
    let begun = people.attempts.begin(&name, visit.address, now);
    begun.map_err(|wait| too_many("passwords", wait))?;
    let is_right = people.passwords.matches(password, developer.password.clone());
    if !is_right.await.map_err(|error| busy(&error))? {
        return Err(wrong(field, "this is not your password"));
    }
    people.attempts.succeeded(&name, visit.address, now);
    Ok(())
}

/// Asks a developer who is signed in for a code of the second factor, which is used by it.
pub async fn prove_code(
    portals: &Portals,
    visit: &PortalContext,
    developer: &Developer,
    code: &str,
    now: SystemTime,
) -> Result<(), Problem> {
    let (people, portal) = (&portals.people, &visit.portal.name);
    let name = code_attempts(portal, &developer.mail);
    let begun = people.attempts.begin(&name, visit.address, now);
    begun.map_err(|wait| too_many("codes", wait))?;
    if !people.take_code(portal, &developer.id, code, now).await? {
        return Err(wrong_code("code"));
    }
    people.attempts.succeeded(&name, visit.address, now);
    Ok(())
}

/// Ends the sessions of a developer, but that of the browser that calls.
pub async fn end_other_sessions(
    portals: &Portals,
    visit: &PortalContext,
    headers: &HeaderMap,
    developer: &str,
    now: SystemTime,
) -> Result<(), Problem> {
    let (people, portal) = (&portals.people, &visit.portal.name);
    let cookie = cookie::get(headers, visit.is_secure()).unwrap_or_default();
    let own = people.session(portal, &cookie, now).await?;
    let is_other = |it: &Session| own.as_ref().is_none_or(|own| own.id != it.id);
    people.end_sessions(portal, developer, is_other, now).await
}

/// Notifies a developer of a change of the account, if the portal can send mails.
pub async fn notify_of_change(portals: &Portals, visit: &PortalContext, developer: &Developer, what: &str) {
    if portals.need_mail().is_err() {
        return;
    }
    let text = format!(
        "{}\n\nyour account of {} was changed: {what}.\n\nIf it was not you, set a new password, revoke the personal tokens that you do not know, and inform the administrators of this portal.\n",
        greeting(&developer.name),
        title_of(&visit.portal)
    );
    let to = (visit.portal.name.as_str(), developer.mail.as_str());
    if let Err(problem) = portals
        .send(Mail::new(to, "A change of your account", text))
        .await
    {
        tracing::warn!(?problem, "a mail about a change of an account cannot be sent");
    }
}

/// Mails to one address in a minute that strangers cause.
pub const MOST_MAILS: u32 = 3;
/// Sign-ups and resets from one address in a minute.
pub const MOST: u32 = 10;

/// Few from one address: each makes a hash and a mail.
pub fn take_turn(portals: &Portals, visit: &PortalContext, now: SystemTime) -> Result<(), Problem> {
    let who = format!("mail {}", weir_control::attempt_counter::network(visit.address));
    portals.tries.take(&who, MOST, seconds(now)).map_err(|wait| {
        let detail = format!("too many of these from your address; try again in {wait} seconds");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
    })
}

pub fn profile_response(developer: &Developer) -> ProfileResponse {
    ProfileResponse {
        id: Some(developer.id.clone()),
        mail: developer.mail.clone(),
        name: developer.name.clone(),
        has_password: developer.password.is_some(),
        has_second_factor: developer.second_factor.is_some(),
    }
}

/// A name that may stand in mails.
pub fn checked_name(name: &str) -> Result<String, Problem> {
    crate::people::checked_name(name).map_err(|expected| wrong("name", expected))
}

/// Whether one more mail of a purpose may go to an address that a caller has typed. If not, the caller gets the same
/// answer. Each purpose is counted for itself: a stranger who signs a person up takes no link for a new password from
/// them.
pub fn may_mail(portals: &Portals, (purpose, mail): (&str, &str), now: SystemTime) -> bool {
    portals
        .tries
        .take(&format!("{purpose} to {mail}"), MOST_MAILS, seconds(now))
        .is_ok()
}

/// The same message for every outcome.
pub const SENT: &str = "If this address can be used, a mail is on its way. Its link is good once.";
