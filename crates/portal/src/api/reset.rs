//! A new password by the link of a mail. Neither the answer nor the time that it takes shows whether an address has an
//! account.

use super::account_common::{SENT, busy, gone, may_mail, message, take_turn, wrong};
use super::account_shapes::{Address, MessageResponse, NewPassword};
use super::confirming::confirm_step;
use super::operation::{Operation, Shared};
use crate::people::{Developer, DeveloperState, Purpose, greeting, mail_of};
use crate::state::{Mail, PortalContext, Portals};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::time::SystemTime;
use weir_control::access::password::fault_of;
use weir_control::api::Json;
use weir_control::api::Problem;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::post(
            "/portal/v1/reset",
            (
                "requestPasswordReset",
                "Sends a mail with a link for a new password",
            ),
            ask_reset,
        )
        .body::<Address>()
        .status(StatusCode::ACCEPTED)
        .answers::<MessageResponse>(),
        Operation::post(
            "/portal/v1/reset/password",
            ("resetPassword", "Sets a new password by the link of a mail"),
            reset,
        )
        .body::<NewPassword>()
        .answers::<MessageResponse>(),
    ];
    Operation::tagged("Account", operations)
}

async fn ask_reset(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(given): Json<Address>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let mail = mail_of(&given.mail).ok_or_else(|| wrong("mail", "expected a mail address"))?;
    portals.need_mail()?;
    let url = visit.link_url()?;
    take_turn(&portals, &visit, now)?;
    if may_mail(&portals, ("reset", &mail), now) {
        let of = (portal.clone(), url.to_owned());
        // The answer does not wait: how long it takes would show whether there is an account.
        tokio::spawn(async move {
            if let Err(problem) = send_reset(&portals, of, &mail, now).await {
                tracing::warn!(?problem, "a mail with a link for a new password cannot be sent");
            }
        });
    }
    Ok((StatusCode::ACCEPTED, message(SENT)).into_response())
}

/// Sends the link. Without an account nothing is sent: a stranger's mailbox gets no mail from here.
async fn send_reset(
    portals: &Portals,
    (portal, url): (String, String),
    mail: &str,
    now: SystemTime,
) -> Result<(), Problem> {
    let known = portals.people.by_mail(&portal, mail, now).await?;
    let is_barred = |it: &Developer| matches!(it.state, DeveloperState::Suspended | DeveloperState::Refused);
    let Some(developer) = known.filter(|it| !is_barred(it)) else {
        return Ok(());
    };
    let purpose = Purpose::Reset {
        developer: developer.id,
    };
    let link = portals.people.link(&portal, &purpose, now).await?;
    // Whose address is not confirmed has not chosen the name.
    let hello = match developer.state {
        DeveloperState::Registered => "Hello,".to_owned(),
        _ => greeting(&developer.name),
    };
    let text = format!(
        "{hello}\n\nopen this link to set a new password. It is good once, for an hour.\n\n{url}/reset#{}\n\nIf you did not request it, ignore this mail.\n",
        link.token
    );
    let mail = Mail::new((&portal, mail), "Set a new password", text);
    portals.send(mail).await
}

async fn reset(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(given): Json<NewPassword>,
) -> Result<Json<MessageResponse>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let found = portals.people.look(portal, &given.token, now).await?;
    let Some(Purpose::Reset { developer } | Purpose::Welcome { developer }) = found else {
        return Err(gone());
    };
    let Some(developer) = portals.people.developer(portal, &developer, now).await? else {
        return Err(gone());
    };
    if let Some(fault) = fault_of(&given.password, &developer.mail) {
        return Err(wrong("password", fault));
    }
    let password = portals.people.passwords.hash(given.password).await;
    let password = password.map_err(|error| busy(&error))?;
    if portals.people.take(portal, &given.token, now).await?.is_none() {
        return Err(gone());
    }
    let set = |it: &mut Developer| {
        it.password = Some(password.clone());
        match it.state {
            // Who reads the mailbox has confirmed it.
            DeveloperState::Registered => confirm_step(&portals, &visit, it, now),
            _ => Ok(Vec::new()),
        }
    };
    let developer = portals.people.change(portal, &developer.id, now, set).await?;
    portals.notify();
    // Another person may have got in: a provider that says whose address it is may be joined again.
    portals
        .people
        .remove_accounts(portal, &developer.id, |_| true, now)
        .await?;
    portals
        .people
        .end_sessions(portal, &developer.id, |_| true, now)
        .await?;
    portals
        .people
        .revoke_tokens(portal, &developer.id, |_| true, now)
        .await?;
    Ok(message(match developer.state {
        DeveloperState::Confirmed => {
            "Your password is set. You can sign in as soon as somebody has approved your account."
        }
        _ => "Your password is changed, and all sessions and personal tokens are ended. You can sign in now.",
    }))
}
