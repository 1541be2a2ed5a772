//! Which messages are forgotten with a developer who is erased.

use super::entity_snapshot::PREFIX;
use crate::api::{Api, Problem};
use crate::developers::{AddressBook, Developer, WAITS, owner_name, team_owner_name, title_of, waits_at};
use crate::outbox::{Delivery, Mail, Message, Origin};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::SystemTime;
use weir_apis::entities::{Application, Portal};

/// Which messages go to a developer or mention one. Another portal may have a developer with the same address, and
/// people of the provider may have it: what is not in the name of this portal or of its applications stays.
pub struct DeveloperMessages<'d> {
    portal: &'d str,
    developer: &'d Developer,
    /// The applications that are gone.
    applications: &'d [String],
    /// Applications of others in this portal.
    others: BTreeSet<String>,
    /// Another portal knows the address.
    is_elsewhere: bool,
    /// The end of notices of sign-ups at this portal; `None`: those of another portal that knows the address end alike.
    pending_subject_end: Option<String>,
    /// Which portals know an address: messages of earlier versions do not say whose they are.
    book: AddressBook,
}

impl<'d> DeveloperMessages<'d> {
    /// Of a developer of a portal, with the applications that are gone.
    pub async fn of(
        api: &Api,
        (portal, developer): (&'d str, &'d Developer),
        applications: &'d [String],
        now: SystemTime,
    ) -> Result<Self, Problem> {
        let people = &api.developers;
        let developers = people.all(portal, now).await?;
        let mut owners: BTreeSet<String> = developers.iter().map(|it| owner_name(&it.id)).collect();
        let teams = people.teams(portal, now).await?;
        owners.extend(teams.iter().map(|it| team_owner_name(&it.id)));
        let snapshot = api.snapshot().await?;
        let all: Vec<Application> = snapshot.list(&format!("{PREFIX}applications/"))?;
        let others = all.into_iter().filter(|it| owners.contains(&it.owner));
        let book = AddressBook::of(&people.store, now).await?;
        let elsewhere: Vec<String> = book.portals(&developer.mail);
        let elsewhere: Vec<String> = elsewhere.into_iter().filter(|it| it != portal).collect();
        let portals: Vec<Portal> = snapshot.list(&format!("{PREFIX}portals/"))?;
        let without = Portal::default();
        let title = |name: &str| title_of(portals.iter().find(|it| it.name == name).unwrap_or(&without));
        let is_like_another = elsewhere.iter().any(|it| title(it) == title(portal));
        Ok(Self {
            portal,
            developer,
            applications,
            others: others.map(|it| it.name).collect(),
            is_elsewhere: !elsewhere.is_empty(),
            pending_subject_end: (!is_like_another).then(|| waits_at(title(portal))),
            book,
        })
    }

    /// Whether a message is one of them.
    pub fn has(&self, delivery: &Delivery) -> bool {
        let origin = delivery.origin_by(|mail| self.book.portals(mail));
        let is_notice = delivery.kind == WAITS;
        let is_of_gone = origin
            .application()
            .is_some_and(|it| self.applications.iter().any(|gone| gone == it));
        if is_of_gone && matches!(delivery.message, Message::Webhook(_)) {
            return true;
        }
        let is_here = match &origin {
            // Earlier versions sent notices of sign-ups in the provider's name.
            Origin::Provider | Origin::Unknown if is_notice => {
                !self.is_elsewhere || self.is_pending_in_portal(delivery)
            }
            Origin::Provider => false,
            Origin::Portal(portal) => portal == self.portal,
            // A message of an application that is gone no longer shows its portal.
            Origin::Application(name) => is_of_gone || self.others.contains(name) || !self.is_elsewhere,
            Origin::Unknown => !self.is_elsewhere,
        };
        let is_of_portal = matches!(origin, Origin::Portal(_));
        is_here
            && match &delivery.message {
                // It goes to those who decide, and one of them may have the address.
                Message::Mail(mail) if is_notice => self.is_named_by(mail),
                Message::Mail(mail) => {
                    mail.to.eq_ignore_ascii_case(&self.developer.mail)
                        || (is_of_portal && self.is_named_by(mail))
                }
                Message::Webhook(hook) => {
                    origin != Origin::Provider && self.is_named_in(&hook.body, is_of_portal)
                }
            }
    }

    /// Whether a notice of a sign-up says that it is of this portal.
    fn is_pending_in_portal(&self, notice: &Delivery) -> bool {
        match (&notice.message, &self.pending_subject_end) {
            (Message::Mail(mail), Some(end)) => mail.subject.ends_with(end.as_str()),
            _ => false,
        }
    }

    /// Whether the words of a mail name the address.
    fn is_named_by(&self, mail: &Mail) -> bool {
        let texts = [&mail.subject, &mail.text, &mail.html];
        texts.iter().any(|it| names(it, &self.developer.mail))
    }

    /// Whether a text in the body is the developer's name. An address alone may be one of the provider's people, unless it is
    /// about developers of the portal.
    fn is_named_in(&self, body: &str, is_of_portal: bool) -> bool {
        let Ok(body) = serde_json::from_str::<Value>(body) else {
            return false;
        };
        let Developer { id, mail, .. } = self.developer;
        let mut names = vec![id.clone(), owner_name(id), format!("developer {mail}")];
        names.extend(is_of_portal.then(|| mail.clone()));
        holds(&body, &names)
    }
}

/// Whether one of the texts in a value is one of these.
fn holds(value: &Value, texts: &[String]) -> bool {
    match value {
        Value::String(text) => texts.iter().any(|it| it.eq_ignore_ascii_case(text)),
        Value::Array(all) => all.iter().any(|it| holds(it, texts)),
        Value::Object(all) => all.values().any(|it| holds(it, texts)),
        _ => false,
    }
}

/// Whether a text has an address in it, and not as a part of a longer one.
fn names(text: &str, address: &str) -> bool {
    let (text, address) = (text.to_lowercase(), address.to_lowercase());
    let goes_on = |it: char| it.is_alphanumeric() || matches!(it, '_' | '%' | '+' | '-');
    !address.is_empty()
        && text.match_indices(&address).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + address.len()..]);
            // A sentence may end behind it.
            let end = after.strip_prefix('.').unwrap_or(after);
            !before.ends_with(|it| goes_on(it) || it == '.') && !end.starts_with(goes_on)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developers::DeveloperState;
    use crate::outbox::{DeliveryState, Webhook};
    use serde_json::json;

    const MAIL: &str = "m@example.com";
    const ID: &str = "0123456789abcdef";

    fn delivery(origin: Origin, message: Message) -> Delivery {
        Delivery {
            id: "1".to_owned(),
            kind: "portal".to_owned(),
            origin,
            message,
            state: DeliveryState::Waiting,
            created: 0,
            due: 0,
            attempts: Vec::new(),
        }
    }

    fn has(delivery: &Delivery, is_elsewhere: bool) -> bool {
        let developer = Developer {
            id: ID.to_owned(),
            mail: MAIL.to_owned(),
            name: "M".to_owned(),
            password: None,
            state: DeveloperState::Active,
            groups: BTreeSet::new(),
            provided: BTreeSet::new(),
            second_factor: None,
            created: 0,
            decided: None,
        };
        let applications = ["till".to_owned()];
        let about = DeveloperMessages {
            portal: "main",
            developer: &developer,
            applications: &applications,
            others: BTreeSet::from(["shop".to_owned()]),
            is_elsewhere,
            pending_subject_end: Some(waits_at("Main")),
            book: AddressBook::default(),
        };
        about.has(delivery)
    }

    fn portal(name: &str) -> Origin {
        Origin::Portal(name.to_owned())
    }

    fn application(name: &str) -> Origin {
        Origin::Application(name.to_owned())
    }

    #[test]
    fn mails_of_the_provider_and_of_other_portals_stay() {
        for (origin, to, alone, elsewhere) in [
            (portal("main"), MAIL, true, true),
            (portal("main"), "M@Example.com", true, true),
            (portal("main"), "tim@example.com", false, false),
            (portal("other"), MAIL, false, false),
            (application("till"), MAIL, true, true),
            (application("till"), "tim@example.com", false, false),
            (application("shop"), MAIL, true, true),
            (application("of-another-portal"), MAIL, true, false),
            (Origin::Unknown, MAIL, true, false),
            (Origin::Provider, MAIL, false, false),
        ] {
            let mail = Mail {
                to: to.to_owned(),
                ..Mail::default()
            };
            let delivery = delivery(origin, Message::Mail(mail));
            let found = (has(&delivery, false), has(&delivery, true));
            assert_eq!(found, (alone, elsewhere), "{delivery:?}");
        }
    }

    /// Notices of sign-ups go to people of the provider, invitations to whom the person has invited.
    #[test]
    fn mails_that_name_the_person_go() {
        let subject = "M@Example.com waits for approval: Main";
        let other = "M@Example.com waits for approval: The other: Main";
        let invitation = "Hello,\n\nm@example.com invites you into a team of developers.";
        for (origin, kind, to, subject, text, alone, elsewhere) in [
            (portal("main"), WAITS, "ops@example.com", subject, "", true, true),
            (
                portal("other"),
                WAITS,
                "ops@example.com",
                subject,
                "",
                false,
                false,
            ),
            (
                Origin::Provider,
                WAITS,
                "ops@example.com",
                subject,
                "",
                true,
                true,
            ),
            (Origin::Unknown, WAITS, "ops@example.com", subject, "", true, true),
            (Origin::Provider, WAITS, "ops@example.com", other, "", true, false),
            (Origin::Unknown, WAITS, "ops@example.com", other, "", true, false),
            (
                portal("main"),
                WAITS,
                MAIL,
                "tim@example.com waits",
                "",
                false,
                false,
            ),
            (
                portal("main"),
                "portal",
                "tim@example.com",
                "",
                invitation,
                true,
                true,
            ),
            (
                portal("other"),
                "portal",
                "tim@example.com",
                "",
                invitation,
                false,
                false,
            ),
            (
                portal("main"),
                "portal",
                "tim@example.com",
                "",
                "tom@example.com invites you",
                false,
                false,
            ),
            (
                Origin::Provider,
                "alert",
                "ops@example.com",
                subject,
                invitation,
                false,
                false,
            ),
        ] {
            let mail = Mail {
                to: to.to_owned(),
                subject: subject.to_owned(),
                text: text.to_owned(),
                ..Mail::default()
            };
            let delivery = Delivery {
                kind: kind.to_owned(),
                ..delivery(origin, Message::Mail(mail))
            };
            let found = (has(&delivery, false), has(&delivery, true));
            assert_eq!(found, (alone, elsewhere), "{delivery:?}");
        }
    }

    #[test]
    fn an_address_in_a_text_is_a_whole_one() {
        for (text, expected) in [
            ("m@example.com", true),
            ("Ask M@Example.COM.", true),
            ("<a href=\"mailto:m@example.com\">", true),
            ("(m@example.com) and m@example.com.", true),
            ("tim@example.com", false),
            ("j.m@example.com", false),
            ("m@example.community", false),
            ("m@example.com.au", false),
            ("m@example.com.au or m@example.com", true),
            ("", false),
        ] {
            assert_eq!(names(text, MAIL), expected, "{text}");
        }
        assert!(!names("m@example.com", ""));
    }

    #[test]
    fn webhooks_about_others_stay() {
        let of = |mail: &str| json!({"data": {"about": {"mail": mail}}});
        let by = |who: &str| json!({"by": who, "data": {"about": {"application": "other"}}});
        let removed = json!({"data": {"about": {"portal": "main", "developer": ID}}});
        for (origin, body, expected) in [
            (portal("main"), of(MAIL), true),
            (portal("main"), of("tim@example.com"), false),
            (portal("other"), of(MAIL), false),
            (portal("main"), removed, true),
            (application("shop"), by("developer m@example.com"), true),
            (application("shop"), by("developer tim@example.com"), false),
            (
                application("of-another-portal"),
                by("developer m@example.com"),
                false,
            ),
            // An operator with this name.
            (application("shop"), by(MAIL), false),
            (Origin::Provider, by("developer m@example.com"), false),
            (application("till"), json!({}), true),
            (application("tills"), json!({}), false),
        ] {
            let hook = Webhook {
                url: "https://hooks.example.com".to_owned(),
                secret: String::new(),
                body: body.to_string(),
                of_application: None,
            };
            let found = has(&delivery(origin.clone(), Message::Webhook(hook)), true);
            assert_eq!(found, expected, "{origin:?} {body}");
        }
    }
}
