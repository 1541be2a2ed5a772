//! Messages on their way, with a receiver that is made up and a time that is an argument.

use super::*;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_model::unix_time::from_seconds as at;
use weir_store::memory::MemoryStore;
use weir_store::{Change, Store, Transaction};

const NOW: u64 = 1_800_000_000;

/// A receiver: what it got, and until when it is down.
#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<(String, String)>>>,
    down_until: Arc<Mutex<u64>>,
    refuses: Arc<Mutex<bool>>,
}

impl Receiver {
    fn got(&self) -> Vec<(String, String)> {
        self.got.lock().expect("not poisoned").clone()
    }
}

#[async_trait]
impl Transport for Receiver {
    async fn send(&self, id: &str, message: &Message, now: SystemTime) -> Result<(), Failure> {
        let fail = |reason: &str, is_final| {
            Err(Failure {
                reason: reason.to_owned(),
                is_final,
            })
        };
        if *self.refuses.lock().expect("not poisoned") {
            return fail("never", true);
        }
        if seconds(now) < *self.down_until.lock().expect("not poisoned") {
            return fail("it is down", false);
        }
        let text = match message {
            Message::Mail(mail) => format!("{}: {}", mail.to, mail.subject),
            Message::Webhook(hook) => {
                let body: Value = serde_json::from_str(&hook.body).expect("JSON");
                format!("{} {}", hook.url, body["type"].as_str().unwrap_or_default())
            }
        };
        self.got.lock().expect("not poisoned").push((id.to_owned(), text));
        Ok(())
    }

    fn can_mail(&self) -> bool {
        true
    }
}

fn outbox() -> (Outbox, Receiver) {
    let receiver = Receiver::default();
    (
        Outbox::new(OperationalStore::in_memory(), receiver.clone()),
        receiver,
    )
}

fn mail() -> Message {
    Message::Mail(Mail {
        to: "ann@example.com".into(),
        subject: "hello".into(),
        text: "a secret link".into(),
        ..Mail::default()
    })
}

/// 37
#[tokio::test]
async fn a_receiver_that_is_down_for_an_hour_gets_it_once() {
    let (outbox, receiver) = outbox();
    *receiver.down_until.lock().expect("not poisoned") = NOW + 3600;
    outbox
        .send((Origin::Portal("main".into()), "test", mail()), at(NOW))
        .await
        .expect("stored");
    let mut time = NOW;
    let mut rounds = 0;
    while let Some(next) = outbox.deliver(at(time)).await.expect("a store") {
        assert!(next > time, "the next attempt is later");
        time = next;
        rounds += 1;
        assert!(rounds < 100, "it ends");
    }
    assert!((NOW + 3600..NOW + 7200).contains(&time), "{}", time - NOW);
    assert_eq!(receiver.got().len(), 1);
    for later in [time + 1, time + 86_400] {
        assert_eq!(outbox.deliver(at(later)).await.expect("a store"), None);
    }
    assert_eq!(receiver.got().len(), 1, "once");
    let listed = outbox.list(at(time)).await.expect("a store");
    let [delivery] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(delivery.state, DeliveryState::Delivered);
    assert_eq!(delivery.attempts.len(), rounds + 1);
    assert_eq!(delivery.attempts[0].outcome, "it is down");
    assert!(
        !format!("{delivery:?}").contains("secret link"),
        "what was delivered is forgotten"
    );
    let Message::Mail(kept) = &delivery.message else {
        panic!("{delivery:?}");
    };
    assert_eq!((kept.to.as_str(), kept.subject.as_str()), ("ann@example.com", ""));
    assert!(outbox.list(at(time) + KEPT).await.expect("a store").is_empty());
}

#[tokio::test]
async fn what_is_given_up_can_be_tried_again() {
    let (outbox, receiver) = outbox();
    *receiver.refuses.lock().expect("not poisoned") = true;
    outbox
        .send((Origin::Portal("main".into()), "test", mail()), at(NOW))
        .await
        .expect("stored");
    assert_eq!(outbox.deliver(at(NOW)).await.expect("a store"), None);
    let failed = outbox.list(at(NOW)).await.expect("a store").remove(0);
    assert_eq!(failed.state, DeliveryState::Failed);
    *receiver.refuses.lock().expect("not poisoned") = false;
    assert!(outbox.retry(&failed.id, at(NOW + 9)).await.expect("a store"));
    outbox.deliver(at(NOW + 9)).await.expect("a store");
    assert_eq!(receiver.got().len(), 1);
    assert!(
        !outbox.retry(&failed.id, at(NOW + 9)).await.expect("a store"),
        "it has arrived"
    );
    assert!(!outbox.retry("none", at(NOW + 9)).await.expect("a store"));
    // A receiver that is down for good is given up after some days.
    *receiver.down_until.lock().expect("not poisoned") = u64::MAX;
    outbox
        .send((Origin::Portal("main".into()), "test", mail()), at(NOW))
        .await
        .expect("stored");
    let mut time = NOW;
    while let Some(next) = outbox.deliver(at(time)).await.expect("a store") {
        time = next;
    }
    assert!(
        time - NOW >= GIVE_UP.as_secs() && time - NOW < GIVE_UP.as_secs() + 3601,
        "{}",
        time - NOW
    );
}

/// While it sends, the message is forgotten.
struct ForgetfulReceiver {
    store: OperationalStore,
    has_arrived: bool,
}

#[async_trait]
impl Transport for ForgetfulReceiver {
    async fn send(&self, id: &str, _: &Message, now: SystemTime) -> Result<(), Failure> {
        let key = key(WAITING, id).expect("a key");
        self.store.remove([key], now).await.expect("removed");
        match self.has_arrived {
            true => Ok(()),
            false => Err(Failure {
                reason: "it is down".to_owned(),
                is_final: false,
            }),
        }
    }

    fn can_mail(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn what_is_forgotten_while_it_is_sent_stays_forgotten() {
    for has_arrived in [true, false] {
        let store = OperationalStore::in_memory();
        let transport = ForgetfulReceiver {
            store: store.clone(),
            has_arrived,
        };
        let outbox = Outbox::new(store, transport);
        outbox
            .send((Origin::Portal("main".into()), "test", mail()), at(NOW))
            .await
            .expect("stored");
        assert_eq!(outbox.deliver(at(NOW)).await.expect("a store"), None);
        let left = outbox.list(at(NOW)).await.expect("a store");
        assert_eq!(left, [], "{has_arrived}");
    }
}

#[tokio::test]
async fn of_two_control_planes_one_delivers() {
    let store = OperationalStore::in_memory();
    let receiver = Receiver::default();
    let one = Outbox::new(store.clone(), receiver.clone());
    let other = Outbox::new(store, receiver.clone());
    one.send((Origin::Portal("main".into()), "test", mail()), at(NOW))
        .await
        .expect("stored");
    for outbox in [&one, &other, &one] {
        outbox.round(Queue::Own, at(NOW)).await.expect("a store");
    }
    assert_eq!(receiver.got().len(), 1);
}

async fn commit(store: &MemoryStore, author: &str, documents: &[(&str, Value)]) {
    let put = |(key, value): &(&str, Value)| {
        Change::put(Key::new(key).expect("a key"), value.to_string().into_bytes())
    };
    let transaction = Transaction {
        author: author.to_owned(),
        note: String::new(),
        time: at(NOW),
        changes: documents.iter().map(put).collect(),
    };
    store.append(transaction).await.expect("committed");
}

fn subscription(state: &str) -> Value {
    json!({"id": "s", "application": "shop", "publication": "pets/1/test", "plan": "gold", "state": state})
}

#[tokio::test]
async fn each_commit_is_sent_once_to_hooks_and_people() {
    let (outbox, receiver) = outbox();
    let store = MemoryStore::new();
    commit(
        &store,
        "ann",
        &[
            (
                "apis/applications/shop",
                json!({"name": "shop", "mails": ["shop@example.com"]}),
            ),
            (
                "apis/apis/pets",
                json!({"name": "pets", "contacts": ["owner@example.com", "https://example.com"]}),
            ),
            (
                "apis/hooks/all",
                json!({"name": "all", "url": "http://all", "secret": "whsec_AA=="}),
            ),
            (
                "apis/hooks/some",
                json!({"name": "some", "url": "http://some", "events": ["credential.*"]}),
            ),
            ("apis/subscriptions/old", subscription("accepted")),
        ],
    )
    .await;
    // What was before the first reading is not sent.
    feed::read(&store, &outbox, at(NOW)).await.expect("read");
    commit(
        &store,
        "shop",
        &[("apis/subscriptions/s", subscription("pending"))],
    )
    .await;
    commit(
        &store,
        "ann",
        &[
            ("apis/subscriptions/s", subscription("accepted")),
            ("apis/credentials/k", json!({"id": "k", "subscription": "s"})),
        ],
    )
    .await;
    commit(&store, "ann", &[("native/routes/r", json!({}))]).await;
    for _ in 0..3 {
        feed::read(&store, &outbox, at(NOW + 1)).await.expect("read");
    }
    outbox.deliver(at(NOW + 1)).await.expect("delivered");
    let mut got = receiver.got();
    got.sort();
    let texts: Vec<&str> = got.iter().map(|(_, text)| text.as_str()).collect();
    let expected = [
        "http://all credential.created",
        "http://all subscription.accepted",
        "http://all subscription.requested",
        "http://some credential.created",
        "owner@example.com: shop asks for a subscription to pets 1",
        "shop@example.com: Subscription to pets 1 accepted",
    ];
    let mut sorted = texts.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    let mut ids: Vec<&String> = got.iter().map(|(id, _)| id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 6, "each has an id of its own");
}

/// A webhook that developers of an application have named.
fn of_application(application: &str, name: &str) -> Message {
    Message::Webhook(Webhook {
        url: format!("http://{application}/{name}"),
        secret: String::new(),
        body: json!({ "type": TEST }).to_string(),
        of_application: Some((application.to_owned(), name.to_owned())),
    })
}

/// Receivers of developers that hang.
struct HangingReceiver {
    receiver: Receiver,
    /// How many of developers are under way.
    hanging: Arc<AtomicUsize>,
}

#[async_trait]
impl Transport for HangingReceiver {
    async fn send(&self, id: &str, message: &Message, now: SystemTime) -> Result<(), Failure> {
        if message.of_application().is_some() {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        self.receiver.send(id, message, now).await
    }

    fn can_mail(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn mails_do_not_wait_for_receivers_of_developers() {
    let receiver = Receiver::default();
    let hanging = Arc::new(AtomicUsize::new(0));
    let transport = HangingReceiver {
        receiver: receiver.clone(),
        hanging: Arc::clone(&hanging),
    };
    let outbox = Outbox::new(OperationalStore::in_memory(), transport);
    let running = tokio::spawn(outbox.clone().run());
    let now = SystemTime::now();
    for _ in 0..20 {
        let hook = of_application("shop", "ci");
        outbox
            .send((Origin::Application("shop".into()), TEST, hook), now)
            .await
            .expect("stored");
    }
    until("a receiver of developers is waited for", || {
        hanging.load(Ordering::SeqCst) > 0
    })
    .await;
    outbox
        .send((Origin::Portal("main".into()), "test", mail()), now)
        .await
        .expect("stored");
    until("the mail has gone", || receiver.got().len() == 1).await;
    running.abort();
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1_500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not within 30 s: {what}");
}

#[tokio::test]
async fn each_application_gets_its_turn() {
    let (outbox, receiver) = outbox();
    for _ in 0..10 {
        let hook = of_application("loud", "ci");
        outbox
            .send((Origin::Application("shop".into()), "x", hook), at(NOW))
            .await
            .expect("stored");
    }
    let quiet = of_application("quiet", "ci");
    outbox
        .send((Origin::Application("quiet".into()), "x", quiet), at(NOW))
        .await
        .expect("stored");
    let next = outbox.deliver(at(NOW)).await.expect("a store");
    assert_eq!(next, Some(NOW), "the rest is due");
    let got = receiver.got();
    assert!(got.iter().any(|(_, text)| text.contains("quiet")), "{got:?}");
    assert!(got.len() < 11, "{got:?}");
}

#[tokio::test]
async fn a_test_is_tried_once() {
    let (outbox, receiver) = outbox();
    *receiver.down_until.lock().expect("not poisoned") = u64::MAX;
    let hook = of_application("shop", "ci");
    outbox
        .send((Origin::Application("shop".into()), TEST, hook), at(NOW))
        .await
        .expect("stored");
    assert_eq!(outbox.deliver(at(NOW)).await.expect("a store"), None);
    let listed = outbox.list(at(NOW)).await.expect("a store");
    assert_eq!(listed[0].state, DeliveryState::Failed);
}

fn own_hook(name: &str, disabled: bool) -> Value {
    json!({ "name": name, "application": "shop", "url": format!("http://shop/{name}"), "disabled": disabled })
}

/// The states of the messages of a webhook.
async fn states(outbox: &Outbox, name: &str) -> Vec<DeliveryState> {
    let all = outbox.list(at(NOW)).await.expect("a store");
    let of_it = all.into_iter().filter(|it| {
        let of = it.message.of_application();
        of.is_some_and(|(_, hook)| hook == name)
    });
    of_it.map(|it| it.state).collect()
}

#[tokio::test]
async fn few_messages_wait_for_an_application() {
    let (outbox, _) = outbox();
    let store = MemoryStore::new();
    let shop = json!({ "name": "shop" });
    let documents = [
        ("apis/applications/shop", shop),
        ("apis/webhooks/shop/ci", own_hook("ci", false)),
    ];
    commit(&store, "ann", &documents).await;
    feed::read(&store, &outbox, at(NOW)).await.expect("read");
    for number in 0..MOST_OF_APPLICATION + 5 {
        assert_eq!(
            outbox.is_full("shop", at(NOW)).await.expect("a store"),
            number >= MOST_OF_APPLICATION
        );
        let key = format!("apis/subscriptions/s{number}");
        commit(&store, "ann", &[(key.as_str(), subscription("pending"))]).await;
        feed::read(&store, &outbox, at(NOW)).await.expect("read");
    }
    assert_eq!(states(&outbox, "ci").await.len(), MOST_OF_APPLICATION);
    assert!(!outbox.is_full("other", at(NOW)).await.expect("a store"));
}

#[tokio::test]
async fn webhooks_that_are_disabled_or_gone_get_nothing() {
    let (outbox, receiver) = outbox();
    let store = MemoryStore::new();
    let names = ["used", "off"];
    let documents = names.map(|it| (format!("apis/webhooks/shop/{it}"), own_hook(it, false)));
    for (key, document) in &documents {
        commit(&store, "ann", &[(key.as_str(), document.clone())]).await;
    }
    feed::read(&store, &outbox, at(NOW)).await.expect("read");
    for name in ["used", "off", "gone"] {
        let hook = of_application("shop", name);
        outbox
            .send((Origin::Application("shop".into()), "x", hook), at(NOW))
            .await
            .expect("stored");
    }
    commit(
        &store,
        "ann",
        &[("apis/webhooks/shop/off", own_hook("off", true))],
    )
    .await;
    feed::read(&store, &outbox, at(NOW)).await.expect("read");
    assert_eq!(states(&outbox, "used").await, [DeliveryState::Waiting]);
    assert_eq!(states(&outbox, "off").await, [DeliveryState::Failed]);
    assert!(states(&outbox, "gone").await.is_empty());
    outbox.deliver(at(NOW)).await.expect("a store");
    let got = receiver.got();
    assert!(got.len() == 1 && got[0].1.contains("used"), "{got:?}");
}

#[test]
fn developers_read_nothing_of_the_operators_network() {
    let visible_outcome = |outcome: &str, is_delivered| {
        let attempt = Attempt {
            at: NOW,
            is_delivered,
            outcome: outcome.to_owned(),
        };
        attempt.for_developers().outcome
    };
    let neutral = visible_outcome("inner.test: failed to lookup address", false);
    assert!(
        !neutral.contains("inner") && !neutral.contains("lookup"),
        "{neutral}"
    );
    for outcome in [
        "10.0.0.1: no flag of the gateway allows it",
        "x: no answer in time",
    ] {
        assert_eq!(visible_outcome(outcome, false), neutral);
    }
    let answered = "the receiver answered 503 Service Unavailable";
    assert_eq!(visible_outcome(answered, false), answered);
    assert_eq!(visible_outcome("delivered", true), "delivered");
}
