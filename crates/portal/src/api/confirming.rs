//! Confirming mail addresses: the mails with links, and what a confirmed address makes of an account.
//!
//! **What it is not**: it decides nothing about who may have an account ([`super::sign_up::may_join`]).

use super::account_common::gone;
use crate::people::{Account, Developer, DeveloperState, Purpose, UnconfirmedCredential, greeting};
use crate::state::{Mail, PortalContext, Portals};
use std::time::SystemTime;
use weir_control::api::Problem;
use weir_control::operational::OperationalWrite;

/// Asks the owner of a mail address whether a developer's password, or account at a provider, is theirs.
pub async fn send_confirm(
    portals: &Portals,
    visit: &PortalContext,
    developer: &Developer,
    (of, with): (UnconfirmedCredential, &str),
    now: SystemTime,
) -> Result<(), Problem> {
    let url = visit.link_url()?;
    let purpose = Purpose::Confirm {
        developer: developer.id.clone(),
        of,
    };
    let link = portals.people.link(&visit.portal.name, &purpose, now).await?;
    // No name: a stranger may have typed it, together with an address that is not theirs.
    let text = format!(
        "Hello,\n\nsomebody signs up with your mail address and {with}. If it is you, open this link to confirm the address. It is good once, for a day.\n\n{url}/confirm#{}\n\nIf you did not sign up, ignore this mail.\n",
        link.token
    );
    let to = (visit.portal.name.as_str(), developer.mail.as_str());
    portals
        .send(Mail::new(to, "Confirm your mail address", text))
        .await
}

/// Sends the link for the first password again, of an account that an administrator has made.
pub async fn send_welcome(
    portals: &Portals,
    visit: &PortalContext,
    developer: &Developer,
    now: SystemTime,
) -> Result<(), Problem> {
    let url = visit.link_url()?;
    let purpose = Purpose::Welcome {
        developer: developer.id.clone(),
    };
    let link = portals.people.link(&visit.portal.name, &purpose, now).await?;
    let text = format!(
        "{}\n\nyou have an account here. Open this link to set your password. It is good once, for a week.\n\n{url}/reset#{}\n",
        greeting(&developer.name),
        link.token
    );
    let to = (visit.portal.name.as_str(), developer.mail.as_str());
    portals.send(Mail::new(to, "Your account", text)).await
}

/// Confirms the mail address of a developer who has registered, and returns the further writes. Developers whom an
/// administrator has made or approved need not wait.
///
/// # Errors
/// The developer is in another state by now.
pub fn confirm_step(
    portals: &Portals,
    visit: &PortalContext,
    developer: &mut Developer,
    now: SystemTime,
) -> Result<Vec<OperationalWrite>, Problem> {
    if developer.state != DeveloperState::Registered {
        return Err(gone());
    }
    let needs_approval = visit.portal.sign_up.approval && developer.decided.is_none();
    developer.state = match needs_approval {
        true => DeveloperState::Confirmed,
        false => DeveloperState::Active,
    };
    let notices = portals.notices(&visit.portal);
    let by = format!("developer {}", developer.mail);
    let mut writes = notices.event("developer.confirmed", developer, &by, now)?;
    if needs_approval {
        writes.extend(notices.waiting(developer, now)?);
    }
    Ok(writes)
}

/// The owner of the mail address has opened the link.
pub async fn vouched(
    portals: &Portals,
    visit: &PortalContext,
    (id, of): (&str, &UnconfirmedCredential),
    now: SystemTime,
) -> Result<Developer, Problem> {
    let (people, portal) = (&portals.people, &visit.portal.name);
    if let UnconfirmedCredential::Account(mark) = of {
        let known = people.by_account(portal, mark, now).await?;
        known.filter(|(known, _)| known.id == id).ok_or_else(gone)?;
    }
    let confirm = |it: &mut Developer| {
        match of {
            UnconfirmedCredential::Password(mark) if it.password_mark().as_ref() != Some(mark) => {
                return Err(gone());
            }
            UnconfirmedCredential::Password(_) => {}
            // The mail was not about a password that was set meanwhile.
            UnconfirmedCredential::Account(_) => it.password = None,
        }
        confirm_step(portals, visit, it, now)
    };
    let developer = people.change(portal, id, now, confirm).await?;
    portals.notify();
    people.remove_accounts(portal, id, |_| true, now).await?;
    if let UnconfirmedCredential::Account(mark) = of {
        let account = Account {
            developer: id.to_owned(),
            is_verified: true,
        };
        people.put_account(portal, mark, &account, now).await?;
    }
    Ok(developer)
}
