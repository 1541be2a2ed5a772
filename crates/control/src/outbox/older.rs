//! Messages of earlier versions, which do not say in whose name they go. It is noted once, as far as it can be told by what they
//! are about and by which portals know the address.

use super::Outbox;
use super::message::{Delivery, Message, Webhook};
use super::origin::Origin;
use crate::developers::AddressBook;
use crate::operational::{Entry, OperationalError};
use serde_json::Value;
use std::time::SystemTime;

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

/// That of a message which does not say it. `portals` gives those that know a mail address.
fn of_older(delivery: &Delivery, portals: impl Fn(&str) -> Vec<String>) -> Origin {
    let kind = delivery.kind.as_str();
    if !OF_DEVELOPERS.iter().any(|it| kind.starts_with(it)) {
        return Origin::Provider;
    }
    match &delivery.message {
        Message::Webhook(Webhook {
            of_application: Some((application, _)),
            ..
        }) => Origin::Application(application.clone()),
        Message::Webhook(hook) => of_body(&hook.body),
        Message::Mail(_) if TO_PROVIDER.contains(&kind) => Origin::Provider,
        Message::Mail(mail) => match portals(&mail.to).as_slice() {
            [portal] => Origin::Portal(portal.clone()),
            _ => Origin::Unknown,
        },
    }
}

/// That of a webhook with this body. One that was delivered has none any more, and says nothing of anybody.
fn of_body(body: &str) -> Origin {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let about = |name: &str| body["data"]["about"][name].as_str().map(str::to_owned);
    match (about("portal"), about("application")) {
        (Some(portal), _) => Origin::Portal(portal),
        (None, Some(application)) => Origin::Application(application),
        (None, None) => Origin::Provider,
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
            let origin = of_older(&entry.value, |mail| book.portals(mail));
            if origin == Origin::Unknown {
                continue;
            }
            // What was forgotten meanwhile stays so.
            let noted = |known: Option<&Entry<Delivery>>| {
                let known = known.filter(|it| it.value.origin == Origin::Unknown)?;
                let noted = Delivery {
                    origin: origin.clone(),
                    ..known.value.clone()
                };
                Some((noted, known.ends))
            };
            self.0.store.update(&entry.key, now, noted).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developers::{Developer, DeveloperState, People};
    use crate::operational::{OperationalStore, Write};
    use crate::outbox::{DeliveryState, Mail};
    use serde_json::json;
    use weir_store::Key;

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
            let found = of_older(&delivery(kind, Message::Mail(mail)), portals);
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
            let found = of_older(&delivery(kind, Message::Webhook(hook)), |_| Vec::new());
            assert_eq!(found, expected, "{kind} {body}");
        }
    }

    /// What is stored without it is read, and gets it.
    #[tokio::test]
    async fn messages_of_an_earlier_version_are_completed() {
        let now = SystemTime::UNIX_EPOCH;
        let store = OperationalStore::in_memory();
        let ann = Developer {
            id: "0123456789abcdef".to_owned(),
            mail: "ann@example.com".to_owned(),
            name: "Ann".to_owned(),
            password: None,
            state: DeveloperState::Active,
            groups: Default::default(),
            provided: Default::default(),
            created: 0,
            decided: None,
        };
        let people = People::new(store.clone(), Default::default());
        assert!(people.add("main", &ann, now).await.expect("written"));
        for (place, to) in [("waiting/1", "ann@example.com"), ("done/2", "tim@example.com")] {
            let mail = Mail {
                to: to.to_owned(),
                ..Mail::default()
            };
            let mut stored = json!(delivery("portal", Message::Mail(mail)));
            let fields = stored.as_object_mut().expect("a map");
            assert!(fields.remove("origin").is_some());
            fields.insert("id".to_owned(), place.into());
            let key = Key::new(&format!("outbox/{place}")).expect("a key");
            let write = Write::put(key, &stored, None).expect("JSON");
            store.write(vec![write], now).await.expect("written");
        }
        let outbox = Outbox::without_mail(store);
        for _ in 0..2 {
            outbox.note_origins(now).await.expect("noted");
            let mut all = outbox.list(now).await.expect("read");
            all.sort_by(|one, other| one.id.cmp(&other.id));
            let origins: Vec<(String, Origin)> = all.into_iter().map(|it| (it.id, it.origin)).collect();
            let expected = [
                ("done/2".to_owned(), Origin::Unknown),
                ("waiting/1".to_owned(), Origin::Portal("main".to_owned())),
            ];
            assert_eq!(origins, expected);
        }
    }
}
