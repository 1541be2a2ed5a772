//! Messages of earlier versions, which do not say in whose name they go. That is noted once, as far as their
//! subjects, and the portals that know the address, show it. Nothing waits for that: what is not noted is found out in
//! the same way when it is asked for.

use super::message::{Delivery, Message, Webhook};
use super::origin::Origin;
use super::{DONE, INTERVAL, Outbox, WAITING, key};
use crate::developers::AddressBook;
use crate::operational::{OperationalEntry, OperationalError};
use serde_json::Value;
use std::time::SystemTime;

/// That it was noted for all messages that there were.
const NOTED: &str = "outbox/origins-noted";
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

impl Delivery {
    /// In whose name it goes, also if it does not say so. `portals` gives those that know a mail address.
    pub fn origin_by(&self, portals: impl Fn(&str) -> Vec<String>) -> Origin {
        match &self.origin {
            Origin::Unknown => of_older(self, portals),
            known => known.clone(),
        }
    }
}

impl Outbox {
    /// Notes in whose name messages of earlier versions go, until that is done.
    pub(super) async fn complete(&self) {
        while let Err(error) = self.note_origins(SystemTime::now()).await {
            tracing::warn!(%error, "the senders of messages of an earlier version cannot be stored; retrying");
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Notes in whose name messages of earlier versions go, once. What cannot be found out stays as it is.
    ///
    /// # Errors
    /// The store cannot be read or written. What was noted until then stays, and it may be done again.
    pub async fn note_origins(&self, now: SystemTime) -> Result<(), OperationalError> {
        let noted = key(NOTED, "")?;
        if self.0.store.read::<bool>(&noted, now).await?.is_some() {
            return Ok(());
        }
        let all = self.entries(now).await?;
        if all.iter().any(|it| it.value.origin == Origin::Unknown) {
            let book = AddressBook::of(&self.0.store, now).await?;
            let completed = |it: &OperationalEntry<Delivery>| {
                let is_older = it.value.origin == Origin::Unknown;
                let origin = is_older.then(|| it.value.origin_by(|mail| book.portals(mail)));
                origin.filter(|it| *it != Origin::Unknown).map(|origin| Delivery {
                    origin,
                    ..it.value.clone()
                })
            };
            for prefix in [WAITING, DONE] {
                self.0.store.update_each(prefix, now, completed).await?;
            }
        }
        self.0.store.put(&noted, &true, (None, now)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developers::{Developer, DeveloperState, DeveloperStore};
    use crate::operational::{OperationalStore, OperationalWrite};
    use crate::outbox::{DeliveryState, Failure, Mail, Transport};
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::sync::mpsc;
    use weir_store::memory::MemoryStore;
    use weir_store::{
        Change, CommitError, Document, HistoryEntry, Key, Revision, Store, StoreError, Transaction, Watch,
        WatchError,
    };

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
    fn owners_of_older_messages_are_found() {
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

    /// A message that is stored without it gets it when it is read.
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
            second_factor: None,
            created: 0,
            decided: None,
        };
        let people = DeveloperStore::new(store.clone(), Default::default());
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
            let write = OperationalWrite::put(key, &stored, None).expect("JSON");
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

    /// A store that notes what is read, to which others write first, and in which a part may be out of reach.
    #[derive(Debug, Default)]
    struct ObservedStore {
        store: MemoryStore,
        reads: Mutex<Vec<String>>,
        commits: AtomicUsize,
        /// Commits that still come too late.
        late: AtomicUsize,
        /// The document that is removed before the first of these.
        forgotten: Mutex<Option<Key>>,
        /// Reads of this prefix are never answered.
        hangs: &'static str,
    }

    #[async_trait::async_trait]
    impl Store for ObservedStore {
        async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
            if prefix == self.hangs && !prefix.is_empty() {
                std::future::pending::<()>().await;
            }
            self.reads.lock().expect("not poisoned").push(prefix.to_owned());
            self.store.read(prefix).await
        }

        async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
            self.store.watch(prefix, after).await
        }

        async fn commit(&self, made: Transaction, expected: Revision) -> Result<Revision, CommitError> {
            let left = self.late.load(Ordering::SeqCst);
            if left > 0 {
                self.late.store(left - 1, Ordering::SeqCst);
                let forgotten = self.forgotten.lock().expect("not poisoned").take();
                let key = forgotten.unwrap_or_else(|| Key::new("of/others").expect("a key"));
                let others = Transaction {
                    changes: vec![Change::Delete { key }],
                    ..made
                };
                let current = self.store.append(others).await?;
                return Err(CommitError::Conflict { current });
            }
            let made = self.store.commit(made, expected).await?;
            self.commits.fetch_add(1, Ordering::SeqCst);
            Ok(made)
        }

        async fn history(
            &self,
            prefix: &str,
            before: Option<Revision>,
            limit: usize,
        ) -> Result<Vec<HistoryEntry>, StoreError> {
            self.store.history(prefix, before, limit).await
        }

        async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
            self.store.compact(before).await
        }
    }

    /// Messages of an earlier version that are the provider's, as their kind says.
    async fn write_older(store: &OperationalStore, count: usize, now: SystemTime) {
        for id in 0..count {
            let older = delivery("alert", Message::Mail(Mail::default()));
            let key = key(DONE, &id.to_string()).expect("a key");
            store.put(&key, &older, (None, now)).await.expect("written");
        }
    }

    #[tokio::test]
    async fn many_messages_are_completed_in_few_commits_once() {
        let now = SystemTime::UNIX_EPOCH;
        let watched = Arc::new(ObservedStore::default());
        let store = OperationalStore::new(Arc::clone(&watched) as Arc<dyn Store>);
        write_older(&store, 250, now).await;
        let outbox = Outbox::without_mail(store);
        let reads = || watched.reads.lock().expect("not poisoned").len();
        *watched.forgotten.lock().expect("not poisoned") = Some(key(DONE, "7").expect("a key"));
        // Others are always faster, at first.
        watched.late.store(60, Ordering::SeqCst);
        let refused = outbox.note_origins(now).await;
        assert!(matches!(refused, Err(OperationalError::Busy)), "{refused:?}");
        let before = watched.commits.load(Ordering::SeqCst);
        outbox.note_origins(now).await.expect("noted");
        // Three with messages, and that it was done.
        assert_eq!(watched.commits.load(Ordering::SeqCst) - before, 4);
        let all = outbox.list(now).await.expect("read");
        assert!(all.iter().all(|it| it.origin == Origin::Provider), "{all:?}");
        assert_eq!(all.len(), 249, "what was forgotten meanwhile stays so");
        let before = reads();
        outbox.note_origins(now).await.expect("noted");
        assert_eq!(reads() - before, 1, "no message is read again");
    }

    /// Records what arrives.
    struct EventRecorder(mpsc::UnboundedSender<String>);

    #[async_trait::async_trait]
    impl Transport for EventRecorder {
        async fn send(&self, _: &str, message: &Message, _: SystemTime) -> Result<(), Failure> {
            self.0.send(message.receiver()).expect("somebody listens");
            Ok(())
        }

        fn can_mail(&self) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn mails_do_not_wait_until_older_messages_are_completed() {
        let now = SystemTime::now();
        // Which portals know an address is not found out.
        let watched = ObservedStore {
            hangs: "portal/",
            ..ObservedStore::default()
        };
        let store = OperationalStore::new(Arc::new(watched));
        write_older(&store, 1, now).await;
        let (sender, mut arrived) = mpsc::unbounded_channel();
        let outbox = Outbox::new(store, EventRecorder(sender));
        let mail = Mail {
            to: "ann@example.com".to_owned(),
            ..Mail::default()
        };
        let about = (Origin::Provider, "test", Message::Mail(mail));
        outbox.send(about, now).await.expect("stored");
        let running = tokio::spawn(outbox.run());
        let first = tokio::time::timeout(Duration::from_secs(30), arrived.recv()).await;
        assert_eq!(first.expect("in time").as_deref(), Some("ann@example.com"));
        running.abort();
    }
}
