//! What the calls about accounts share: words of refusals, turns, and how somebody is shown.

use super::account_shapes::{MessageResponse, ProfileResponse};
use crate::people::{Developer, seconds};
use crate::state::{Portals, Visit};
use axum::Json;
use axum::http::StatusCode;
use std::time::SystemTime;
use weir_control::access::password::PasswordError;
use weir_control::api::Problem;

pub fn busy(error: &PasswordError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

pub fn said(message: &str) -> Json<MessageResponse> {
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
        "this link was used already, or is too old: ask for another one",
    )
}

/// Two do the same at once.
pub fn again() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "something else was changed at the same moment: try again",
    )
}

/// Mails to one address in a minute that strangers cause.
pub const MOST_MAILS: u32 = 3;
/// Sign-ups and resets from one address in a minute.
pub const MOST: u32 = 10;

/// Few from one address: each makes a hash and a mail.
pub fn take_turn(portals: &Portals, visit: &Visit, now: SystemTime) -> Result<(), Problem> {
    let who = format!("mail {}", weir_control::attempt_counter::network(visit.address));
    portals.tries.take(&who, MOST, seconds(now)).map_err(|wait| {
        let detail = format!("too many of these from your address; try again in {wait} seconds");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
    })
}

pub fn shown(developer: &Developer) -> ProfileResponse {
    ProfileResponse {
        id: Some(developer.id.clone()),
        mail: developer.mail.clone(),
        name: developer.name.clone(),
        has_password: developer.password.is_some(),
    }
}

/// A name that may stand in mails.
pub fn checked_name(name: &str) -> Result<String, Problem> {
    crate::people::checked_name(name).map_err(|expected| wrong("name", expected))
}

/// Whether one more mail of a purpose may go to an address that somebody has typed. The caller is told the same if not.
/// Each purpose is counted for itself: a stranger who signs somebody up takes no link for a new password from them.
pub fn may_mail(portals: &Portals, (purpose, mail): (&str, &str), now: SystemTime) -> bool {
    portals
        .tries
        .take(&format!("{purpose} to {mail}"), MOST_MAILS, seconds(now))
        .is_ok()
}

/// What is said whatever has come of it.
pub const SENT: &str = "If this address can be used, a mail is on its way. Its link is good once.";
