//! Signing up. No answer shows whether a mail address is known: the mail itself says what happened.

use super::account_common::{SENT, again, busy, checked_name, gone, may_mail, message, take_turn, wrong};
use super::account_shapes::{MessageResponse, NewDeveloper, UsedLink};
use super::confirming::{send_confirm, send_welcome, vouched};
use super::operation::{Operation, Shared};
use crate::people::{Developer, DeveloperState, Purpose, UnconfirmedCredential, mail_of, random_id};
use crate::state::{Mail, PortalContext, Portals};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::time::SystemTime;
use weir_apis::entities::{SignUp, SignUpMode};
use weir_control::access::password::fault_of;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::post(
            "/portal/v1/sign-up",
            ("signUp", "Signs up; a mail has the link that confirms it"),
            sign_up,
        )
        .body::<NewDeveloper>()
        .status(StatusCode::ACCEPTED)
        .answers::<MessageResponse>(),
        Operation::post(
            "/portal/v1/confirm",
            ("confirm", "Confirms a mail address by the link of a mail"),
            confirm,
        )
        .body::<UsedLink>()
        .answers::<MessageResponse>(),
    ];
    Operation::tagged("Account", operations)
}

async fn sign_up(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(wanted): Json<NewDeveloper>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let rules = &visit.portal.sign_up;
    let mail = mail_of(&wanted.mail).ok_or_else(|| wrong("mail", "expected a mail address"))?;
    let name = checked_name(&wanted.name)?;
    if let Some(fault) = fault_of(&wanted.password, &mail) {
        return Err(wrong("password", fault));
    }
    let invited = match wanted.invitation.as_deref() {
        Some(token) => portals.people.look(portal, token, now).await?,
        None => None,
    };
    let is_invited = matches!(&invited, Some(Purpose::Invitation { mail: to, .. }) if *to == mail);
    may_join(rules, &mail, is_invited).map_err(Problem::forbidden)?;
    portals.need_mail()?;
    visit.link_url()?;
    take_turn(&portals, &visit, now)?;
    if !may_mail(&portals, ("sign-up", &mail), now) {
        return Ok((StatusCode::ACCEPTED, message(SENT)).into_response());
    }
    // Hashed whether or not the address is known: both take as long.
    let password = portals.people.passwords.hash(wanted.password).await;
    let developer = Developer {
        id: random_id()?,
        mail,
        name,
        password: Some(password.map_err(|error| busy(&error))?),
        state: DeveloperState::Registered,
        groups: Default::default(),
        provided: Default::default(),
        second_factor: None,
        created: seconds(now),
        decided: None,
    };
    register(&portals, &visit, developer, now).await?;
    Ok((StatusCode::ACCEPTED, message(SENT)).into_response())
}

/// Writes a developer who signs up, and sends the mail with the outcome.
async fn register(
    portals: &Portals,
    visit: &PortalContext,
    wanted: Developer,
    now: SystemTime,
) -> Result<(), Problem> {
    let (people, portal) = (&portals.people, &visit.portal.name);
    let written = match people.by_mail(portal, &wanted.mail, now).await? {
        Some(known) => {
            let step = |it: &mut Developer| {
                // What an administrator has made, and what is confirmed, is replaced by no stranger.
                if it.state == DeveloperState::Registered && it.decided.is_none() {
                    it.name.clone_from(&wanted.name);
                    it.password.clone_from(&wanted.password);
                }
                Ok(Vec::new())
            };
            people.change(portal, &known.id, now, step).await?
        }
        None if people.add(portal, &wanted, now).await? => wanted.clone(),
        None => return Err(again()),
    };
    if written.password == wanted.password {
        portals
            .queue_webhooks(visit, "developer.registered", &written, now)
            .await?;
        let of = UnconfirmedCredential::Password(written.password_mark().unwrap_or_default());
        return send_confirm(portals, visit, &written, (of, "a password"), now).await;
    }
    if written.state == DeveloperState::Registered {
        return send_welcome(portals, visit, &written, now).await;
    }
    let url = visit.link_url()?;
    let text = format!(
        "Somebody, probably you, tried to sign up with this address. There is an account already.\n\nSign in: {url}/login\nA new password: {url}/reset\n"
    );
    let to = (portal.as_str(), written.mail.as_str());
    portals
        .send(Mail::new(to, "You have an account already", text))
        .await
}

async fn confirm(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(link): Json<UsedLink>,
) -> Result<Json<MessageResponse>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let used = match portals.people.look(portal, &link.token, now).await? {
        Some(Purpose::Confirm { .. }) => portals.people.take(portal, &link.token, now).await?,
        _ => None,
    };
    let Some(Purpose::Confirm { developer, of }) = used else {
        return Err(gone());
    };
    let developer = vouched(&portals, &visit, (&developer, &of), now).await?;
    Ok(message(match developer.state == DeveloperState::Confirmed {
        true => "Your address is confirmed. You can sign in as soon as somebody has approved your account.",
        false => "Your address is confirmed. You can sign in now.",
    }))
}

/// Whether a person with this address may have an account, by the portal's rules. The error says why not.
pub fn may_join(rules: &SignUp, mail: &str, is_invited: bool) -> Result<(), String> {
    let domain = mail.split_once('@').map_or("", |(_, domain)| domain);
    let is_welcome = rules.domains.is_empty() || rules.domains.iter().any(|it| it == domain);
    match rules.mode {
        SignUpMode::Closed => {
            Err("signing up is closed here; ask the administrators of this portal".to_owned())
        }
        SignUpMode::Invited if !is_invited => Err("signing up here needs an invitation".to_owned()),
        _ if !is_welcome && !is_invited => Err(format!(
            "only addresses of {} can sign up here",
            rules.domains.join(", ")
        )),
        _ => Ok(()),
    }
}
