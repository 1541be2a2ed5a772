//! The work that is due by time, on a store in memory: the time is an argument.

use super::*;
use crate::analytics::{Analytics, AnalyticsPaths, Options};
use crate::api::ApiOptions;
use crate::api::apis::commit::CommitResult;
use crate::api::apis::{specs, versions};
use serde_json::{Value, json};
use weir_analytics::aggregate::{Aggregator, FinishedCall};
use weir_apis::due::DAY;
use weir_apis::entities::{
    CanaryKey, CanaryStep, Component, Deprecation, Environment, Guard, PlanState, Version,
};
use weir_store::memory::MemoryStore;

const ID: &str = "pets/1/test";
const NOW: u64 = 1_800_000_000;

/// A control plane in memory, with pets published in `test`.
struct Plane {
    api: Arc<Api>,
}

impl Plane {
    async fn new(analytics: Option<Analytics>) -> Self {
        let options = ApiOptions {
            analytics,
            ..ApiOptions::default()
        };
        let store = Arc::new(MemoryStore::new());
        let api = Api::open(store, options).await.expect("opened");
        let plane = Self { api };
        plane
            .change(NOW, |snapshot| {
                let text = json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"},
                    "paths": {"/pets": {"get": {"operationId": "list", "responses": {"200": {"description": "ok"}}}}}});
                let mut version = Version {
                    api: "pets".into(),
                    version: "1".into(),
                    ..Version::default()
                };
                version.draft.spec = specs::keep(snapshot, &text.to_string())?;
                version.draft.components = vec![Component {
                    name: "main".into(),
                    backend: "main".into(),
                    ..Component::default()
                }];
                snapshot.put(&entity_snapshot::version_key("pets", "1"), &version)?;
                let environment = Environment {
                    name: "test".into(),
                    ..Environment::default()
                };
                snapshot.put(&entity_snapshot::environment_key("test"), &environment)?;
                let revision = versions::freeze(snapshot, ("pets", "1"), "ann", "", NOW)?;
                let publication = Publication {
                    api: "pets".into(),
                    version: "1".into(),
                    environment: "test".into(),
                    revision: revision.number,
                    hash: revision.hash,
                    runtime: serde_json::from_value(json!({"base_path": "/v1",
                        "backends": {"main": {"url": "http://127.0.0.1:1"}}}))
                    .expect("a runtime"),
                    ..Publication::default()
                };
                let plan = Plan {
                    api: "pets".into(),
                    version: "1".into(),
                    name: "gold".into(),
                    state: PlanState::Published,
                    notice_days: Some(vec![7, 1]),
                    ..Plan::default()
                };
                snapshot.put(&entity_snapshot::plan_key("pets", "1", "gold"), &plan)?;
                snapshot.put(&entity_snapshot::publication_key(ID), &publication)
            })
            .await;
        plane
    }

    async fn change(
        &self,
        now: u64,
        work: impl Fn(&mut EntitySnapshot) -> Result<(), Problem> + Send + Sync,
    ) -> CommitResult<()> {
        let done = self.api.manage_at("ann", now, |snapshot| {
            work(snapshot)?;
            Ok(WriteEffects {
                note: "a test".to_owned(),
                publications: BTreeSet::from([ID.to_owned()]),
                answer: (),
            })
        });
        done.await.expect("changed")
    }

    async fn publication(&self, change: impl Fn(&mut Publication) + Send + Sync) {
        self.change(NOW, |snapshot| {
            let mut publication = snapshot.publication(ID)?;
            change(&mut publication);
            snapshot.put(&entity_snapshot::publication_key(ID), &publication)
        })
        .await;
    }

    async fn subscription(&self, change: impl Fn(&mut Subscription) + Send + Sync) {
        self.change(NOW, |snapshot| {
            let mut subscription = Subscription {
                id: "s".into(),
                application: "shop".into(),
                publication: ID.into(),
                plan: "gold".into(),
                state: SubscriptionState::Accepted,
                ..Subscription::default()
            };
            change(&mut subscription);
            snapshot.put(&entity_snapshot::subscription_key("s"), &subscription)
        })
        .await;
    }

    async fn read(&self, key: &str) -> Value {
        let (documents, _) = self.api.store.read(key).await.expect("read");
        let found = documents.iter().find(|it| it.key.as_str() == key);
        found.map_or(Value::Null, |it| serde_json::from_slice(&it.value).expect("JSON"))
    }

    async fn revision(&self) -> u64 {
        self.api.store.read("none/").await.expect("read").1.0
    }
}

/// 27
#[tokio::test]
async fn a_subscription_is_announced_before_its_end_and_refused_after() {
    let plane = Plane::new(None).await;
    plane.subscription(|it| it.ends = Some(NOW + 10 * DAY)).await;
    let mut ticker = Ticker::new(Arc::clone(&plane.api), "one");
    let mut seen = Vec::new();
    for hour in 0..24 * 12 {
        let now = NOW + hour * 3600;
        let before = plane.revision().await;
        ticker.tick(now).await.expect("ticked");
        // Once is enough, by whichever control plane.
        Ticker::new(Arc::clone(&plane.api), "one")
            .tick(now)
            .await
            .expect("ticked");
        let after = plane.revision().await;
        if after > before {
            let subscription = plane.read("apis/subscriptions/s").await;
            seen.push((
                hour,
                after - before,
                subscription["noticed"].clone(),
                subscription["state"].clone(),
            ));
        }
    }
    assert_eq!(
        seen,
        [
            (3 * 24, 1, json!(7), json!("accepted")),
            (9 * 24, 1, json!(1), json!("accepted")),
            (10 * 24, 1, json!(1), json!("expired")),
        ]
    );
    let access = plane
        .read("env/test/native/consumer_tables/test.pets.1.access")
        .await;
    assert_eq!(access["instances"]["sub.s"], "test.pets.1.expired");
    let history = plane.api.store.history("apis/", None, 1).await.expect("read");
    assert_eq!(
        (history[0].author.as_str(), history[0].note.as_str()),
        ("weir", "by time: the subscription s of shop has ended")
    );
}

/// 21
#[tokio::test]
async fn keys_go_when_their_time_is_over_without_another_change() {
    let plane = Plane::new(None).await;
    plane.subscription(|_| {}).await;
    plane
        .change(NOW, |snapshot| {
            let key = |id: &str, expires| Credential {
                id: id.into(),
                subscription: "s".into(),
                hash: format!("{:064}", 1),
                expires,
                ..Credential::default()
            };
            let mut old = key("old", Some(NOW + 7200));
            old.hash = format!("{:064}", 2);
            snapshot.put(&entity_snapshot::credential_key("old"), &old)?;
            snapshot.put(&entity_snapshot::credential_key("new"), &key("new", None))
        })
        .await;
    let mut ticker = Ticker::new(Arc::clone(&plane.api), "one");
    for (after, expected, next) in [
        (0, 2, Some(NOW + 7200)),
        (7199, 2, Some(NOW + 7200)),
        (7200, 1, None),
        (9000, 1, None),
    ] {
        let found = ticker.tick(NOW + after).await.expect("ticked");
        assert_eq!(found, next, "{after}");
        let consumer = plane.read("env/test/native/consumers/sub.s").await;
        assert_eq!(
            consumer["credentials"].as_array().expect("a list").len(),
            expected,
            "{after}"
        );
    }
}

/// 13
#[tokio::test]
async fn an_enforced_sunset_comes_by_itself() {
    let plane = Plane::new(None).await;
    plane
        .publication(|it| {
            it.deprecation = Some(Deprecation {
                since: NOW,
                sunset: Some(NOW + 50),
                enforce: true,
                successor: Some("https://example.com/v2".into()),
                ..Deprecation::default()
            });
        })
        .await;
    let mut ticker = Ticker::new(Arc::clone(&plane.api), "one");
    assert_eq!(ticker.tick(NOW).await.expect("ticked"), Some(NOW + 50));
    let gone = "env/test/native/plugins/test.pets.1.gone";
    assert_eq!(plane.read(gone).await, Value::Null);
    ticker.tick(NOW + 50).await.expect("ticked");
    assert_eq!(plane.read(gone).await["request-termination"]["status"], 410);
    let history = plane.read("apis/publications/pets/1/test").await["history"].clone();
    assert_eq!(
        (&history[0]["action"], &history[0]["by"]),
        (&json!("sunset"), &json!("weir"))
    );
}

fn canary(guards: Vec<Guard>) -> Option<Canary> {
    Some(Canary {
        revision: 1,
        backends: BTreeMap::new(),
        share: 1_000,
        by: CanaryKey::Address,
        when: None,
        steps: vec![CanaryStep {
            after: 600,
            share: 5_000,
        }],
        guards,
        started: NOW,
    })
}

#[tokio::test]
async fn canaries_get_their_later_shares() {
    let plane = Plane::new(None).await;
    plane.publication(|it| it.canary = canary(Vec::new())).await;
    let mut ticker = Ticker::new(Arc::clone(&plane.api), "one");
    for (after, share) in [(599, 1_000), (600, 5_000)] {
        ticker.tick(NOW + after).await.expect("ticked");
        let publication = plane.read("apis/publications/pets/1/test").await;
        assert_eq!(publication["canary"]["share"], share, "{after}");
    }
}

/// Counts 300 calls of a service, of which so many failed.
async fn count(analytics: &Analytics, service: &str, failing: u64) {
    let mut aggregator = Aggregator::new("g", "", NOW * 1000 + failing);
    let service = aggregator.name(service);
    for number in 0..300 {
        aggregator.add(&FinishedCall {
            minute: (NOW / 60 + 1 + number % 3) as u32,
            service,
            status: if number < failing { 502 } else { 200 },
            total_us: 1_000,
            ..FinishedCall::default()
        });
    }
    let batch = aggregator.take_batch(NOW + 300, false);
    let counted = analytics.with(move |kept| kept.store.ingest(&batch, NOW + 300));
    counted.await.expect("counted");
}

/// 17
#[tokio::test]
async fn a_failing_candidate_goes_back_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let analytics = Analytics::open(&AnalyticsPaths::of(folder.path()), Options::default()).expect("opened");
    let plane = Plane::new(Some(analytics.clone())).await;
    let guard = Guard {
        metric: "share_5xx".into(),
        above: 0.02,
        period: 180,
        min_calls: 20,
    };
    plane
        .publication(|it| it.canary = canary(vec![guard.clone()]))
        .await;
    // The stable side fails too, which is no matter of the canary.
    count(&analytics, "test.pets.1.main", 200).await;
    count(&analytics, "test.pets.1.main.canary", 3).await;
    let mut ticker = Ticker::new(Arc::clone(&plane.api), "one");
    let at = NOW + 240;
    ticker.tick(at).await.expect("ticked");
    let key = "apis/publications/pets/1/test";
    assert_eq!(
        plane.read(key).await["canary"]["share"],
        1_000,
        "1 % is not above 2 %"
    );
    count(&analytics, "test.pets.1.main.canary", 30).await;
    let before = plane.revision().await;
    ticker.tick(NOW + 179).await.expect("ticked");
    assert_eq!(plane.revision().await, before, "the period is not over");
    ticker.tick(at).await.expect("ticked");
    assert_eq!(plane.revision().await, before + 1, "one commit");
    let publication = plane.read(key).await;
    assert_eq!(publication["canary"], Value::Null);
    let last = publication["history"]
        .as_array()
        .and_then(|it| it.last())
        .cloned()
        .unwrap_or_default();
    assert_eq!(last["action"], "canary rolled back");
    assert!(
        last["note"]
            .as_str()
            .is_some_and(|it| it.starts_with("5xx share was 5.5 % in the last 3m, above 2 %")),
        "{last}"
    );
    let canary_service = plane
        .read("env/test/native/services/test.pets.1.main.canary")
        .await;
    assert_eq!(canary_service, Value::Null);
    // Those who look at alerts see it, until another candidate comes.
    let alerts = async || {
        let api = axum::extract::State(Arc::clone(&plane.api));
        let caller = axum::Extension(crate::access::Caller::LocalAnonymous);
        let answer = crate::api::alerts::list(api, caller).await;
        serde_json::to_value(answer.expect("alerts").0).expect("JSON")["items"].clone()
    };
    let messages = alerts().await;
    let alert = &messages[0]["alerts"][0];
    assert_eq!(
        (
            &messages[0]["id"],
            &messages[0]["metric"],
            &alert["state"],
            &alert["since"]
        ),
        (
            &json!("canary:pets/1/test"),
            &json!("share_5xx"),
            &json!("ongoing"),
            &json!(at)
        ),
        "{messages:#}"
    );
    // Who has seen it ends it: once.
    let acknowledged = async || {
        let api = axum::extract::State(Arc::clone(&plane.api));
        let caller = axum::Extension(crate::access::Caller::LocalAnonymous);
        let id = axum::extract::Path("canary:pets/1/test".to_owned());
        crate::api::alerts::remove(api, caller, id, axum::http::HeaderMap::new())
            .await
            .map(|answer| answer.status())
            .map_err(|problem| axum::response::IntoResponse::into_response(problem).status())
    };
    assert_eq!(acknowledged().await, Ok(axum::http::StatusCode::NO_CONTENT));
    assert_eq!(alerts().await, json!([]));
    assert_eq!(acknowledged().await, Err(axum::http::StatusCode::NOT_FOUND));
    let publication = plane.read(key).await;
    let steps = publication["history"].as_array().expect("a history");
    assert_eq!(steps.last().expect("a step")["action"], "alert acknowledged");
}
