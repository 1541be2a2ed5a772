//! Quotas of subscriptions over a store in memory, with counts and a time that are arguments.

use super::*;
use crate::developers::Inbox;
use crate::operational::OperationalStore;
use crate::outbox::{Delivery, Failure, Message, Origin, Transport};
use crate::quotas::{Counted, Limited};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Mutex;
use weir_store::memory::MemoryStore;
use weir_store::{Change, Transaction};

/// The first second of a day.
const DAY: u64 = 20_000 * 86_400;

/// A mail server that takes everything.
struct Taken;

#[async_trait]
impl Transport for Taken {
    async fn send(&self, _: &str, _: &Message, _: SystemTime) -> Result<(), Failure> {
        Ok(())
    }

    fn can_mail(&self) -> bool {
        true
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// What limits have counted: the limit, the consumer and the environment, with the calls.
type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

struct Plane {
    watch: Watch,
    outbox: Outbox,
    counts: Counts,
}

impl Plane {
    async fn start() -> Self {
        let store = MemoryStore::new();
        let documents = [
            (
                "apis/plans/pets/1/gold",
                json!({"name": "gold", "api": "pets", "version": "1", "limits": [
                    {"count": 10, "per": "day"}, {"count": 2, "per": "minute"}]}),
            ),
            (
                "apis/product-plans/bundle/gold",
                json!({"name": "gold", "product": "bundle", "limits": [{"count": 100, "per": "month"}]}),
            ),
            (
                "apis/products/bundle",
                json!({"name": "bundle", "state": "published", "publications": {"pets/1/test": [], "cats/1/prod": []}}),
            ),
            (
                "apis/applications/shop",
                json!({"name": "shop", "owner": "developer/ann", "mails": ["shop@example.com"]}),
            ),
            (
                "apis/webhooks/shop/ci",
                json!({"name": "ci", "application": "shop", "url": "https://shop.example.com", "events": ["quota.*"]}),
            ),
            (
                "apis/hooks/billing",
                json!({"name": "billing", "url": "https://billing.example.com", "events": ["quota.reached"]}),
            ),
            (
                "apis/subscriptions/s",
                json!({"id": "s", "application": "shop", "publication": "pets/1/test", "plan": "gold", "state": "accepted"}),
            ),
            (
                "apis/subscriptions/p",
                json!({"id": "p", "application": "shop", "product": "bundle", "plan": "gold", "state": "accepted"}),
            ),
            (
                "apis/subscriptions/c",
                json!({"id": "c", "application": "shop", "publication": "pets/1/test", "plan": "gold", "state": "closed"}),
            ),
        ];
        let put = |(key, value): &(&str, Value)| {
            Change::put(Key::new(key).expect("a key"), value.to_string().into_bytes())
        };
        let transaction = Transaction {
            author: "root".to_owned(),
            note: String::new(),
            time: at(DAY),
            changes: documents.iter().map(put).collect(),
        };
        store.append(transaction).await.expect("written");
        let outbox = Outbox::new(OperationalStore::in_memory(), Taken);
        let counts = Counts::default();
        let asked = Arc::clone(&counts);
        let counted = move |environment: &str, of: &Limited<'_>| {
            let known = asked.lock().expect("whole");
            let used = known.get(&format!("{environment} {} {}", of.limit, of.consumer));
            let end = quota::window(of.per, DAY).1;
            Some(Counted {
                used: used.copied().unwrap_or_default(),
                reset_ms: (end - DAY) * 1_000,
            })
        };
        let meter = Meter::new(Arc::new(counted), None);
        Self {
            watch: Watch::new(Arc::new(store), outbox.clone(), meter),
            outbox,
            counts,
        }
    }

    fn count(&self, what: &str, calls: u64) {
        self.counts.lock().expect("whole").insert(what.to_owned(), calls);
    }

    async fn round(&self, time: u64) -> usize {
        self.watch.round(at(time)).await.expect("a round")
    }

    async fn sent(&self) -> Vec<String> {
        let all = self.outbox.list(at(DAY)).await.expect("read");
        let line = |it: &Delivery| {
            assert_eq!(it.origin, Origin::Application("shop".to_owned()));
            format!("{} {}", it.kind, it.message.receiver())
        };
        let mut lines: Vec<String> = all.iter().map(line).collect();
        lines.sort();
        lines
    }
}

const OF_PETS: &str = "test test.pets.1.plan.gold sub.s";
const OF_BUNDLE: &str = "prod products.bundle.plan.gold sub.p";

#[tokio::test]
async fn each_level_is_told_once_in_a_window() {
    let plane = Plane::start().await;
    plane.count(OF_PETS, 7);
    assert_eq!(plane.round(DAY).await, 0);
    plane.count(OF_PETS, 8);
    assert_eq!((plane.round(DAY).await, plane.round(DAY).await), (1, 0));
    let near = ["quota.near shop.example.com", "quota.near shop@example.com"];
    assert_eq!(plane.sent().await, near);
    plane.count(OF_PETS, 9);
    assert_eq!(plane.round(DAY).await, 0);
    plane.count(OF_PETS, 10);
    assert_eq!((plane.round(DAY).await, plane.round(DAY).await), (1, 0));
    let both = [
        "quota.near shop.example.com",
        "quota.near shop@example.com",
        "quota.reached billing.example.com",
        "quota.reached shop.example.com",
        "quota.reached shop@example.com",
    ];
    assert_eq!(plane.sent().await, both);
    let bell = Inbox::of(plane.outbox.store(), "shop", at(DAY))
        .await
        .expect("read");
    let titles: Vec<&str> = bell.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "80 % of the quota of pets 1 is used",
            "The quota of pets 1 is used up"
        ]
    );
    // The next day it is told again. What jumps to the end is told once.
    assert_eq!(plane.round(DAY + 86_400).await, 1);
}

#[tokio::test]
async fn quotas_of_products_count_by_environment() {
    let plane = Plane::start().await;
    plane.count(OF_BUNDLE, 100);
    assert_eq!((plane.round(DAY).await, plane.round(DAY).await), (1, 0));
    let bell = Inbox::of(plane.outbox.store(), "shop", at(DAY))
        .await
        .expect("read");
    assert!(
        bell[0]
            .text
            .starts_with("shop has used 100 of 100 calls of this month to bundle (prod)."),
        "{bell:?}"
    );
    plane.count("test products.bundle.plan.gold sub.p", 80);
    assert_eq!((plane.round(DAY).await, plane.round(DAY).await), (1, 0));
}

/// Of two control planes one tells.
#[tokio::test]
async fn two_control_planes_tell_once() {
    let plane = Plane::start().await;
    let other = Watch {
        store: Arc::clone(&plane.watch.store),
        outbox: Outbox::new(plane.outbox.store().clone(), Taken),
        meter: plane.watch.meter.clone(),
    };
    plane.count(OF_PETS, 8);
    assert_eq!(plane.round(DAY).await, 1);
    assert_eq!(other.round(at(DAY)).await.expect("a round"), 0);
    // It takes over later, and knows what was told.
    assert_eq!(other.round(at(DAY + 3_600)).await.expect("a round"), 0);
}
