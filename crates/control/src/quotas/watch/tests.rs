//! Quotas of subscriptions over a store in memory, with counts and a time that are arguments.

use super::*;
use crate::developers::Inbox;
use crate::operational::OperationalStore;
use crate::outbox::{Delivery, Failure, Message, Origin, Transport};
use crate::quotas::{Limited, WindowUsage};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;
use weir_store::memory::MemoryStore;
use weir_store::{Change, Transaction};

/// The first second of a day.
const DAY: u64 = 20_000 * 86_400;

/// A mail server that takes everything.
struct AcceptingMailServer;

#[async_trait]
impl Transport for AcceptingMailServer {
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

/// The counts of limits: the limit, the consumer and the environment, with the calls.
type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

struct Plane {
    watch: QuotaWatcher,
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
        let outbox = Outbox::new(OperationalStore::in_memory(), AcceptingMailServer);
        let counts = Counts::default();
        let asked = Arc::clone(&counts);
        let counted = move |environment: &str, of: &Limited<'_>| {
            let known = asked.lock().expect("whole");
            let used = known.get(&format!("{environment} {} {}", of.limit, of.consumer));
            let end = quota::window(of.per, DAY).1;
            Some(WindowUsage {
                used: used.copied().unwrap_or_default(),
                reset_ms: (end - DAY) * 1_000,
            })
        };
        let meter = Meter::new(Arc::new(counted), None);
        Self {
            watch: QuotaWatcher::new(Arc::new(store), outbox.clone(), meter),
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
async fn each_level_is_notified_once_in_a_window() {
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
    // The next day it is sent again. A jump to the end sends one notice.
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

/// A level of another limit is news, in the same window, too.
#[tokio::test]
async fn a_raised_limit_is_notified_again() {
    let plane = Plane::start().await;
    plane.count(OF_PETS, 10);
    assert_eq!(plane.round(DAY).await, 1);
    let plan = |limits: &[u64]| {
        let limits = limits.iter().map(|it| json!({"count": it, "per": "day"}));
        json!({"name": "gold", "api": "pets", "version": "1", "limits": limits.collect::<Vec<_>>()})
    };
    for (limits, calls, expected) in [
        (&[20][..], 10, 0),
        (&[20], 16, 1),
        (&[20], 17, 0),
        (&[20], 20, 1),
        // Of two limits in one window the smaller one counts.
        (&[50, 25], 20, 1),
        (&[50, 25], 24, 0),
        (&[50, 25], 40, 1),
        (&[50, 25], 40, 0),
    ] {
        let key = Key::new("apis/plans/pets/1/gold").expect("a key");
        let transaction = Transaction {
            author: "root".to_owned(),
            note: String::new(),
            time: at(DAY),
            changes: vec![Change::put(key, plan(limits).to_string().into_bytes())],
        };
        plane.watch.store.append(transaction).await.expect("written");
        plane.count(OF_PETS, calls);
        assert_eq!(plane.round(DAY).await, expected, "{calls} of {limits:?}");
    }
}

/// What an earlier version has sent counts as sent.
#[tokio::test]
async fn a_notice_that_was_sent_without_its_limit_is_not_sent_again() {
    let plane = Plane::start().await;
    let key = Key::new("quotas/s/test/day").expect("a key");
    let store = plane.outbox.store();
    let ends = Some(at(DAY + 86_400));
    let notified = json!({"level": 80});
    store
        .put(&key, &notified, (ends, at(DAY)))
        .await
        .expect("written");
    plane.count(OF_PETS, 8);
    assert_eq!(plane.round(DAY).await, 0);
    plane.count(OF_PETS, 10);
    assert_eq!(plane.round(DAY).await, 1);
}

impl Plane {
    /// The quotas as this control plane has found them, and what it notifies with, at a time.
    async fn found(&self, time: u64) -> (Vec<(Quota, QuotaLevel)>, NotifyContext) {
        let (documents, _) = self.watch.store.read("apis/").await.expect("read");
        let found = quotas(&documents).into_iter();
        let found = found.filter(|it| it.subscription.id == "s");
        let reached = QuotaLevel {
            level: 80,
            used: 8,
            resets: DAY + 86_400,
        };
        let context = NotifyContext {
            receivers: Receivers::of(&documents),
            waiting: self.outbox.waiting(at(time)).await.expect("read"),
            now: at(time),
            began: Instant::now(),
        };
        (found.map(|it| (it, reached)).collect(), context)
    }
}

/// Of two control planes that have read the same, one sends.
#[tokio::test]
async fn a_notice_that_another_one_has_sent_meanwhile_is_not_sent() {
    let plane = Plane::start().await;
    for expected in [true, false] {
        let (found, mut context) = plane.found(DAY).await;
        let (quota, reached) = &found[0];
        let key = quota.key().expect("a key");
        let is_notified = plane.watch.notify((quota, reached), (key, None), &mut context);
        assert_eq!(is_notified.await.expect("a store"), expected);
        assert_eq!(plane.sent().await.len(), 2);
    }
}

#[tokio::test]
async fn a_control_plane_without_the_lease_sends_nothing() {
    let plane = Plane::start().await;
    let other = Outbox::new(plane.outbox.store().clone(), AcceptingMailServer);
    assert!(plane.outbox.is_still_alone(at(DAY)).await.expect("a store"));
    for (time, is_other, expected) in [(DAY + 61, true, 0), (DAY + 3_600, false, 1)] {
        if is_other {
            assert!(other.is_still_alone(at(time)).await.expect("a store"));
        }
        let (found, context) = plane.found(time).await;
        let count = plane.watch.notify_all(&found, context).await;
        assert_eq!(count.expect("a store"), expected, "{time}");
    }
}

/// Of two control planes one sends.
#[tokio::test]
async fn two_control_planes_send_one_notice() {
    let plane = Plane::start().await;
    let other = QuotaWatcher {
        store: Arc::clone(&plane.watch.store),
        outbox: Outbox::new(plane.outbox.store().clone(), AcceptingMailServer),
        meter: plane.watch.meter.clone(),
    };
    plane.count(OF_PETS, 8);
    assert_eq!(plane.round(DAY).await, 1);
    assert_eq!(other.round(at(DAY)).await.expect("a round"), 0);
    // It takes over later, and knows what was sent.
    assert_eq!(other.round(at(DAY + 3_600)).await.expect("a round"), 0);
}

/// A plan that closes moves all its subscriptions within seconds.
#[test]
fn subscriptions_that_were_moved_in_one_minute_are_asked_for_at_once() {
    let quota = |moved: Option<u64>| Quota {
        subscription: Subscription {
            moved,
            ..Subscription::default()
        },
        place: QuotaScope {
            environment: "test".to_owned(),
            limit: String::new(),
        },
        limit: Limit {
            count: 10,
            per: Period::Day,
        },
    };
    let moved = [
        None,
        Some(DAY - 5),
        Some(DAY + 120),
        Some(DAY + 121),
        Some(DAY + 179),
        Some(DAY + 180),
    ];
    let times = by_time(moved.map(quota).into(), DAY + 600);
    let found: Vec<(u64, usize)> = times.iter().map(|((begin, _), it)| (*begin, it.len())).collect();
    assert_eq!(found, [(DAY, 2), (DAY + 120, 3), (DAY + 180, 1)]);
}
