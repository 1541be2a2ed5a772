//! Writes while others write, stores that are set back, and what readers see meanwhile.

use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_store::memory::MemoryStore;
use weir_store::{HistoryEntry, Watch, WatchError};

const LONG: Duration = Duration::from_secs(60);

/// The values below a prefix.
#[derive(Debug, Default)]
struct Values {
    all: BTreeMap<String, (String, Revision)>,
    changed: Revision,
}

impl ReplicaState for Values {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, key: &Key, document: Option<&Document>) {
        match document {
            Some(document) => {
                let value = String::from_utf8_lossy(&document.value).into_owned();
                let value = (value, document.created);
                self.all.insert(key.as_str().to_owned(), value)
            }
            None => self.all.remove(key.as_str()),
        };
    }

    fn note(&mut self, revision: Revision, has_changed: bool) {
        if has_changed {
            self.changed = revision;
        }
    }

    fn created(&self, key: &Key) -> Option<Revision> {
        self.all.get(key.as_str()).map(|(_, created)| *created)
    }
}

/// A store in whose way another writer gets, and that another store can take the place of.
#[derive(Debug, Clone, Default)]
struct ContendedStore {
    store: Arc<std::sync::Mutex<MemoryStore>>,
    /// Before so many commits, another writer commits.
    others: Arc<AtomicUsize>,
    commits: Arc<AtomicUsize>,
}

impl ContendedStore {
    fn store(&self) -> MemoryStore {
        self.store.lock().expect("no panic").clone()
    }

    async fn put(&self, key: &str, value: &str) -> Revision {
        let change = Change::put(Key::new(key).expect("a key"), value.as_bytes());
        self.store()
            .append(transaction(vec![change]))
            .await
            .expect("made")
    }
}

fn transaction(changes: Vec<Change>) -> Transaction {
    Transaction {
        author: String::new(),
        note: String::new(),
        time: SystemTime::UNIX_EPOCH,
        changes,
    }
}

#[async_trait::async_trait]
impl Store for ContendedStore {
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        self.store().read(prefix).await
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.store().watch(prefix, after).await
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        let left = self
            .others
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if let Ok(left) = left {
            self.put("a/other", &left.to_string()).await;
        }
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

fn writer(is_dry: bool) -> Writer {
    Writer {
        author: Author::anonymous(),
        note: String::new(),
        time: SystemTime::UNIX_EPOCH,
        is_dry,
    }
}

async fn opened(store: &ContendedStore) -> Arc<Replica<Values>> {
    let store = Arc::new(store.clone());
    Replica::open(store, "a/", Values::default())
        .await
        .expect("opened")
}

/// Puts a value; the answer is what was there.
async fn put(
    replica: &Replica<Values>,
    key: &str,
    value: &str,
    is_dry: bool,
) -> Result<WriteOutcome<Option<String>>, WriteError<&'static str>> {
    let plan = |state: &Values| {
        if value == "refused" {
            return Err("refused");
        }
        let changes = match value {
            "" => Vec::new(),
            value => vec![Change::put(Key::new(key).expect("a key"), value.as_bytes())],
        };
        Ok(WritePlan {
            changes,
            answer: state.all.get(key).map(|(value, _)| value.clone()),
        })
    };
    replica.write(&writer(is_dry), plan).await
}

fn value(replica: &Replica<Values>, key: &str) -> Option<String> {
    replica.state().all.get(key).map(|(value, _)| value.clone())
}

async fn until(replica: &Replica<Values>, key: &str, expected: Option<&str>) {
    let mut progress = replica.progress.subscribe();
    let seen = async {
        while value(replica, key).as_deref() != expected {
            progress.changed().await.expect("it is open");
        }
    };
    tokio::time::timeout(LONG, seen).await.expect("in time");
}

#[tokio::test]
async fn replica_writes_are_seen_at_once_and_followed_by_others() {
    let store = ContendedStore::default();
    let (replica, other) = (opened(&store).await, opened(&store).await);
    let written = put(&replica, "a/1", "x", false).await;
    assert!(
        matches!(written, Ok(WriteOutcome::Stored(None, Revision(1)))),
        "{written:?}"
    );
    assert_eq!(value(&replica, "a/1").as_deref(), Some("x"));
    until(&other, "a/1", Some("x")).await;
    for (new, is_dry, expected) in [
        ("y", true, "Ok(Tried(Some(\"x\")))"),
        ("", false, "Ok(Unchanged(Some(\"x\")))"),
        ("refused", false, "Err(Refused(\"refused\"))"),
    ] {
        let written = put(&replica, "a/1", new, is_dry).await;
        assert_eq!(format!("{written:?}"), expected);
        assert_eq!(value(&replica, "a/1").as_deref(), Some("x"));
    }
    assert_eq!(store.commits.load(Ordering::Relaxed), 1);
    // The creation time of a document stays, here and on followers.
    put(&replica, "a/1", "z", false).await.expect("written");
    until(&other, "a/1", Some("z")).await;
    for it in [&replica, &other] {
        let created = it.state().created(&Key::new("a/1").expect("a key"));
        assert_eq!(created, Some(Revision(1)));
    }
    // What is not below the prefix is not held, and is no change of it.
    put(&replica, "b/1", "x", false).await.expect("written");
    assert_eq!(value(&replica, "b/1"), None);
    assert_eq!(replica.state().version().revision, Revision(3));
    assert_eq!(replica.state().changed, Revision(2));
}

#[tokio::test]
async fn replica_writes_are_planned_again_after_those_of_others() {
    for (others, is_written) in [(0, true), (1, true), (ATTEMPTS - 1, true), (ATTEMPTS, false)] {
        let store = ContendedStore::default();
        let replica = opened(&store).await;
        store.others.store(others, Ordering::Relaxed);
        let written = put(&replica, "a/1", "x", false).await;
        match written {
            Ok(WriteOutcome::Stored(..)) if is_written => {}
            Err(WriteError::Failed(WriteFailure::Busy)) if !is_written => {}
            other => panic!("{others}: {other:?}"),
        }
        let commits = store.commits.load(Ordering::Relaxed);
        assert_eq!(commits, (others + 1).min(ATTEMPTS), "{others}");
        assert_eq!(value(&replica, "a/1").is_some(), is_written, "{others}");
    }
}

#[tokio::test]
async fn replica_reads_a_store_again_that_was_set_back() {
    let store = ContendedStore::default();
    let replica = opened(&store).await;
    put(&replica, "a/1", "x", false).await.expect("written");
    let saved = MemoryStore::new();
    let change = Change::put(Key::new("a/1").expect("a key"), *b"x");
    let made = saved.commit(transaction(vec![change]), Revision(0)).await;
    made.expect("made");
    for name in ["a/2", "a/3"] {
        put(&replica, name, "x", false).await.expect("written");
    }
    // The replica is not notified of this.
    *store.store.lock().expect("no panic") = saved;
    put(&replica, "a/4", "x", false).await.expect("written");
    let keys = || -> Vec<String> { replica.state().all.keys().cloned().collect() };
    for _ in 0..100 {
        assert_eq!(
            keys(),
            ["a/1", "a/4"],
            "what is known about the former store is dropped"
        );
        tokio::task::yield_now().await;
    }
    store.put("a/5", "x").await;
    until(&replica, "a/5", Some("x")).await;
}

#[tokio::test]
async fn replica_stops_following_when_it_is_gone() {
    let store = ContendedStore::default();
    let replica = opened(&store).await;
    let weak = Arc::downgrade(&replica);
    drop(replica);
    let gone = async {
        while weak.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("in time");
}
