//! A store that is set back to what was saved of it, while dialects work on it: what came after that is nowhere any
//! more.

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tower::ServiceExt as _;
use weir_control::access::Caller;
use weir_control::api::{Api, ApiOptions};
use weir_store::memory::MemoryStore;
use weir_store::{
    Change, Changes, CommitError, Document, HistoryEntry, Revision, Store, StoreError, Transaction, Watch,
    WatchError,
};

/// How long anything may take. Much more than it should: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A store that another one can take the place of.
#[derive(Debug, Clone)]
struct ReplaceableStore {
    store: Arc<Mutex<MemoryStore>>,
    other: watch::Sender<()>,
    gates: Arc<Gates>,
}

/// What keeps callers of the store waiting, so that a test decides in which order things happen.
#[derive(Debug, Default)]
struct Gates {
    /// Whether reads of everything wait.
    reads: watch::Sender<bool>,
    /// Reads that wait now.
    reading: watch::Sender<usize>,
    /// Whether watches wait before they say what has changed.
    watches: watch::Sender<bool>,
    /// Changes that watches have passed on.
    passed_on: watch::Sender<usize>,
}

async fn until_open(gate: &watch::Sender<bool>) {
    let opened = gate.subscribe().wait_for(|is_closed| !is_closed).await.map(drop);
    opened.expect("the gate is there");
}

impl ReplaceableStore {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            other: watch::Sender::new(()),
            gates: Arc::default(),
        }
    }

    fn store(&self) -> MemoryStore {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is there, as a store of its own, of which it is the first revision.
    async fn saved(&self) -> MemoryStore {
        let (documents, _) = self.store().read("").await.expect("documents");
        let put = |it: Document| Change::put(it.key, it.value);
        let transaction = Transaction {
            author: String::new(),
            note: String::new(),
            time: SystemTime::now(),
            changes: documents.into_iter().map(put).collect(),
        };
        let saved = MemoryStore::new();
        saved.commit(transaction, Revision(0)).await.expect("made");
        saved
    }

    /// Waits until watches have passed on more changes than so many, and until those who follow have taken them in.
    async fn until_passed_on(&self, before: usize) {
        let mut passed_on = self.gates.passed_on.subscribe();
        let passed_on = passed_on.wait_for(|count| *count > before);
        let in_time = tokio::time::timeout(TIMEOUT, passed_on).await;
        in_time.expect("in time").map(drop).expect("the gate is there");
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    fn set_back(&self, saved: MemoryStore) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = saved;
        self.other.send_replace(());
    }
}

struct PlaceWatch {
    watch: Box<dyn Watch>,
    other: watch::Receiver<()>,
    gates: Arc<Gates>,
}

#[async_trait]
impl Watch for PlaceWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        tokio::select! {
            biased;
            _ = self.other.changed() => Err(StoreError::Unreachable("it is another one".to_owned()).into()),
            next = async {
                until_open(&self.gates.watches).await;
                self.watch.next().await
            } => {
                self.gates.passed_on.send_modify(|count| *count += 1);
                next
            }
        }
    }
}

#[async_trait]
impl Store for ReplaceableStore {
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        self.gates.reading.send_modify(|count| *count += 1);
        until_open(&self.gates.reads).await;
        self.gates.reading.send_modify(|count| *count -= 1);
        self.store().read(prefix).await
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(PlaceWatch {
            other: self.other.subscribe(),
            gates: Arc::clone(&self.gates),
            watch: self.store().watch(prefix, after).await?,
        }))
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        self.store().commit(transaction, expected).await
    }

    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        self.store().history(prefix, before, limit).await
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        self.store().compact(before).await
    }
}

/// The status of a call.
async fn call(router: &Router, method: &str, path: &str) -> u16 {
    let body = match (method, path.contains("apisix")) {
        ("GET", _) => "",
        (_, true) => "{\"uri\": \"/\", \"plugins\": {}}",
        (_, false) => "{\"url\": \"http://h\"}",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", "application/json")
        .body(Body::from(body))
        .expect("a request");
    let answer = router.clone().oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let _body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    status
}

/// All dialects, with what their resources' paths begin with and what a new one is answered with.
async fn dialects(place: &ReplaceableStore) -> [(Router, &'static str, u16); 3] {
    let store = || Arc::new(place.clone()) as Arc<dyn Store>;
    let kong = weir_kong::admin::Admin::open(store(), weir_kong::admin::AdminOptions::default());
    let mut options = weir_apisix::AdminOptions::new(SystemTime::now);
    options.keys.clear();
    let apisix = weir_apisix::Admin::open(store(), options);
    let options = ApiOptions::default();
    let native = Api::open(store(), options).await.expect("opened").router();
    [
        (
            native.layer(axum::Extension(Caller::LocalAnonymous)),
            "/api/v1/resources/services/",
            201,
        ),
        (kong.await.expect("opened").router(), "/services/", 200),
        (
            apisix.await.expect("opened").router(),
            "/apisix/admin/routes/",
            201,
        ),
    ]
}

/// Waits until a call is answered so.
async fn until(router: &Router, path: &str, status: u16) {
    let answered = async {
        while call(router, "GET", path).await != status {
            tokio::task::yield_now().await;
        }
    };
    let answered = tokio::time::timeout(TIMEOUT, answered).await;
    answered.unwrap_or_else(|_| panic!("{path}: not {status} in time"));
}

#[tokio::test]
async fn admin_apis_forget_what_the_store_has_forgotten() {
    let place = ReplaceableStore::new();
    let others = dialects(&place).await;
    for ((router, prefix, new), (other, ..)) in dialects(&place).await.into_iter().zip(others) {
        let of = |name: &str| format!("{prefix}{name}");
        assert_eq!(call(&router, "PUT", &of("1a")).await, new);
        let saved = place.saved().await;
        for name in ["1b", "1c"] {
            assert_eq!(call(&router, "PUT", &of(name)).await, new);
        }
        // It follows the store, up to here.
        assert_eq!(call(&other, "PUT", &of("1d")).await, new);
        until(&router, &of("1d"), 200).await;
        place.set_back(saved);
        until(&router, &of("1d"), 404).await;
        for (name, expected) in [("1a", 200), ("1b", 404), ("1c", 404)] {
            assert_eq!(call(&router, "GET", &of(name)).await, expected, "{prefix}{name}");
        }
        assert_eq!(call(&router, "PUT", &of("1e")).await, new);
        assert_eq!(call(&router, "GET", &of("1e")).await, 200);
    }
}

#[tokio::test]
async fn a_write_right_after_the_store_was_set_back_is_made() {
    let place = ReplaceableStore::new();
    for (router, prefix, new) in dialects(&place).await {
        let of = |name: &str| format!("{prefix}{name}");
        assert_eq!(call(&router, "PUT", &of("1a")).await, new);
        let saved = place.saved().await;
        for name in ["1b", "1c", "1d"] {
            assert_eq!(call(&router, "PUT", &of(name)).await, new);
        }
        // No watch reports it.
        *place.store.lock().expect("whole") = saved;
        assert_eq!(call(&router, "PUT", &of("1e")).await, new, "{prefix}");
        // The follower may still be reading what was before: reads are stable once it has seen the new revision.
        for (name, expected) in [("1a", 200), ("1b", 404), ("1e", 200)] {
            until(&router, &of(name), expected).await;
        }
    }
}

#[tokio::test]
async fn changes_of_before_the_store_was_set_back_are_not_taken_over() {
    for which in 0..3 {
        let place = ReplaceableStore::new();
        let mut all = dialects(&place).await.into_iter();
        let (router, prefix, new) = all.nth(which).expect("three");
        drop(all);
        let of = |name: &str| format!("{prefix}{name}");
        assert_eq!(call(&router, "PUT", &of("1a")).await, new);
        let saved = place.saved().await;
        // The follower has learned of this one.
        place.until_passed_on(0).await;
        // It does not learn of these yet.
        place.gates.watches.send_replace(true);
        for name in ["1b", "1c", "1d"] {
            assert_eq!(call(&router, "PUT", &of(name)).await, new);
        }
        // The store is another one, and no watch says so. The next write finds out, and reads everything again.
        *place.store.lock().expect("whole") = saved;
        place.gates.reads.send_replace(true);
        let written = tokio::spawn({
            let (router, path) = (router.clone(), of("1e"));
            async move { call(&router, "PUT", &path).await }
        });
        let mut reading = place.gates.reading.subscribe();
        let is_read = reading.wait_for(|count| *count > 0);
        let in_time = tokio::time::timeout(TIMEOUT, is_read).await;
        in_time.expect("in time").map(drop).expect("the gate is there");
        // While it reads, the follower learns of the changes of the former store.
        let before = *place.gates.passed_on.borrow();
        place.gates.watches.send_replace(false);
        place.until_passed_on(before).await;
        place.gates.reads.send_replace(false);
        assert_eq!(written.await.expect("no panic"), new);
        let all = [("1a", 200), ("1b", 404), ("1c", 404), ("1d", 404), ("1e", 200)];
        for round in 0..100 {
            for (name, expected) in all {
                let found = call(&router, "GET", &of(name)).await;
                assert_eq!(found, expected, "{prefix}{name}, {round}");
            }
            tokio::task::yield_now().await;
        }
        // It follows the store that is there now.
        let (other, ..) = dialects(&place).await.into_iter().nth(which).expect("three");
        assert_eq!(call(&other, "PUT", &of("1f")).await, new);
        until(&router, &of("1f"), 200).await;
    }
}
