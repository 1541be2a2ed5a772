//! In whose name a message goes: the provider's, a portal's, or an application's. Who forgets what is known of a developer
//! has to know it: in another portal somebody may have the same address.
//!
//! Messages of earlier versions do not say it. It is noted once, as far as it can be told by what they are about and by
//! which portals know the address.
//!
//! **What it is not**: it decides nothing about what is forgotten (`crate::api`).

use super::Outbox;
use super::message::{Delivery, Message, Webhook};
use crate::developers::AddressBook;
use crate::operational::{OperationalError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::SystemTime;

/// In whose name a message goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It is not known: an earlier version has written it, and not one portal alone knows the address.
    #[default]
    Unknown,
    /// The provider's: alerts, reports, and what its people read and decide.
    Provider,
    /// That of a portal: it is about its developers.
    Portal(String),
    /// That of an application: it is about this application.
    Application(String),
}

/// Kinds of mails that go to developers, and of webhooks about them.
const OF_DEVELOPERS: [&str; 8] = [
    "application.",
    "credential.",
    "developer.",
    "portal",
    "publication.",
    "subscription.",
    "team.",
    "webhook.",
];
/// Of these, mails to people of the provider.
const TO_PROVIDER: [&str; 3] = [
    "developer.confirmed",
    "publication.canary-taken-back",
    "subscription.requested",
];

impl Origin {
    /// The portal, if it is one's.
    pub fn portal(&self) -> Option<&str> {
        match self {
            Self::Portal(portal) => Some(portal),
            _ => None,
        }
    }

    /// The application, if it is one's.
    pub fn application(&self) -> Option<&str> {
        match self {
            Self::Application(application) => Some(application),
            _ => None,
        }
    }

    /// That of a message which does not say it. `portals` gives those that know a mail address.
    fn of_older(delivery: &Delivery, portals: impl Fn(&str) -> Vec<String>) -> Self {
        let kind = delivery.kind.as_str();
        if !OF_DEVELOPERS.iter().any(|it| kind.starts_with(it)) {
            return Self::Provider;
        }
        match &delivery.message {
            Message::Webhook(Webhook {
                of_application: Some((application, _)),
                ..
            }) => Self::Application(application.clone()),
            Message::Webhook(hook) => Self::of_body(&hook.body),
            Message::Mail(_) if TO_PROVIDER.contains(&kind) => Self::Provider,
            Message::Mail(mail) => match portals(&mail.to).as_slice() {
                [portal] => Self::Portal(portal.clone()),
                _ => Self::Unknown,
            },
        }
    }

    /// That of a webhook with this body. One that was delivered has none any more, and says nothing of anybody.
    fn of_body(body: &str) -> Self {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let about = |name: &str| body["data"]["about"][name].as_str().map(str::to_owned);
        match (about("portal"), about("application")) {
            (Some(portal), _) => Self::Portal(portal),
            (None, Some(application)) => Self::Application(application),
            (None, None) => Self::Provider,
        }
    }
}

impl Outbox {
    /// Notes in whose name messages of earlier versions go. It may be done again.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn note_origins(&self, now: SystemTime) -> Result<(), OperationalError> {
        let mut older = self.entries(now).await?;
        older.retain(|it| it.value.origin == Origin::Unknown);
        if older.is_empty() {
            return Ok(());
        }
        let book = AddressBook::of(&self.0.store, now).await?;
        for entry in older {
            let origin = Origin::of_older(&entry.value, |mail| book.portals(mail));
            if origin == Origin::Unknown {
                continue;
            }
            let noted = Delivery {
                origin,
                ..entry.value.clone()
            };
            let write = Write::put(entry.key.clone(), &noted, entry.ends)?;
            // What has changed meanwhile was tried or forgotten: the next time it is noted, if it is still there.
            self.0
                .store
                .write_if(&[(entry.key, Some(json!(entry.value)))], vec![write], now)
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::{DeliveryState, Mail};

    fn delivery(kind: &str, message: Message) -> Delivery {
        Delivery {
            id: "1".to_owned(),
            kind: kind.to_owned(),
            origin: Origin::Unknown,
            message,
            state: DeliveryState::Waiting,
            created: 0,
            due: 0,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn older_messages_tell_whose_they_are() {
        let main = || Origin::Portal("main".to_owned());
        for (kind, to, expected) in [
            ("portal", "ann@example.com", main()),
            ("developer.created", "ann@example.com", main()),
            ("subscription.accepted", "ann@example.com", main()),
            ("portal", "both@example.com", Origin::Unknown),
            ("portal", "none@example.com", Origin::Unknown),
            ("subscription.requested", "ann@example.com", Origin::Provider),
            ("developer.confirmed", "ann@example.com", Origin::Provider),
            ("approval.requested", "ann@example.com", Origin::Provider),
            ("alert", "ann@example.com", Origin::Provider),
            ("report", "ann@example.com", Origin::Provider),
        ] {
            let mail = Mail {
                to: to.to_owned(),
                ..Mail::default()
            };
            let portals = |mail: &str| match mail {
                "ann@example.com" => vec!["main".to_owned()],
                "both@example.com" => vec!["main".to_owned(), "other".to_owned()],
                _ => Vec::new(),
            };
            let found = Origin::of_older(&delivery(kind, Message::Mail(mail)), portals);
            assert_eq!(found, expected, "{kind} {to}");
        }
        let about = |about: Value| json!({ "data": { "about": about } }).to_string();
        let till = || Origin::Application("till".to_owned());
        for (kind, body, application, expected) in [
            (
                "developer.created",
                about(json!({"portal": "main"})),
                None,
                main(),
            ),
            (
                "subscription.accepted",
                about(json!({"application": "till"})),
                None,
                till(),
            ),
            (
                "publication.published",
                about(json!({"api": "pets"})),
                None,
                Origin::Provider,
            ),
            ("publication.published", String::new(), Some("till"), till()),
            ("developer.created", String::new(), None, Origin::Provider),
            ("alert", about(json!({"portal": "main"})), None, Origin::Provider),
        ] {
            let hook = Webhook {
                url: "https://hooks.example.com".to_owned(),
                secret: String::new(),
                body: body.clone(),
                of_application: application.map(|it| (it.to_owned(), "mine".to_owned())),
            };
            let found = Origin::of_older(&delivery(kind, Message::Webhook(hook)), |_| Vec::new());
            assert_eq!(found, expected, "{kind} {body}");
        }
    }

    /// What is stored without it is read, and gets it.
    #[test]
    fn a_message_of_an_earlier_version_is_read() {
        let mut stored = json!(delivery("portal", Message::Mail(Mail::default())));
        let fields = stored.as_object_mut().expect("a map");
        assert!(fields.remove("origin").is_some());
        let read: Delivery = serde_json::from_value(stored).expect("a delivery");
        assert_eq!(read.origin, Origin::Unknown);
    }
}
