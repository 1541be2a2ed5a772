//! No room left: it is said so, nothing is changed, and what was there is served.

use crate::etcd::Cluster;
use crate::fixture::{delete, put, text, texts, transaction};
use weir_store::etcd::EtcdStore;
use weir_store::memory::MemoryStore;
use weir_store::sqlite::{Options, SqliteStore};
use weir_store::{Change, CommitError, Revision, Store, StoreError};

/// A commit of so many bytes in one document, or in many.
fn large(bytes: usize, documents: usize) -> Vec<Change> {
    let value = "x".repeat(bytes / documents);
    (0..documents)
        .map(|number| put(&format!("large/{number}"), &value))
        .collect()
}

async fn assert_full(store: &dyn Store, bytes: usize, revision: Revision) {
    for documents in [1, 300] {
        let (before, _) = store.read("").await.expect("it is read");
        let mut changes = large(bytes, documents);
        changes.extend([put("a", "2"), delete("b")]);
        let refused = store.commit(transaction(changes), revision).await;
        let is_full = matches!(refused, Err(CommitError::Store(StoreError::Full(_))));
        assert!(is_full, "{documents}: {refused:?}");
        let (after, _) = store.read("").await.expect("it is read");
        assert_eq!(before, after);
        assert_eq!(
            after.iter().map(text).collect::<Vec<_>>(),
            texts(&[("a", "1"), ("b", "1")])
        );
        assert_eq!(store.history("", None, 10).await.expect("the history").len(), 2);
    }
}

async fn begin(store: &dyn Store) -> Revision {
    let (_, start) = store.read("").await.expect("it is read");
    let changes = vec![put("a", "1"), put("b", "1")];
    store
        .commit(transaction(changes), start)
        .await
        .expect("it is made")
}

/// What takes no more room is written still.
async fn assert_goes_on(store: &dyn Store, revision: Revision) {
    let commit = store.commit(transaction(vec![put("a", "2")]), revision);
    assert!(commit.await.is_ok());
}

#[tokio::test]
async fn memory() {
    let store = MemoryStore::with_limit(1 << 20);
    let revision = begin(&store).await;
    assert_full(&store, 2 << 20, revision).await;
    assert_goes_on(&store, revision).await;
}

#[tokio::test]
async fn sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        max_bytes: Some(1 << 20),
        ..Options::default()
    };
    let store = SqliteStore::open_with(folder.path(), options).expect("it opens");
    let revision = begin(&store).await;
    assert_full(&store, 2 << 20, revision).await;
    assert_goes_on(&store, revision).await;
}

/// etcd takes no more writes at all once it was full, until an operator makes room and says so.
#[tokio::test]
async fn etcd() {
    let cluster = Cluster::start(1, &["--quota-backend-bytes=4000000"]).await;
    let store = EtcdStore::connect(&cluster.location()).expect("a location");
    let revision = begin(&store).await;
    for number in 0.. {
        // Another program fills it, through the JSON that etcd also speaks.
        let value = "eHh4".repeat(200_000);
        let body = format!("{{\"key\": \"b3RoZXI{}\", \"value\": \"{value}\"}}", number % 10);
        if cluster.call(0, "/v3/kv/put", &body).contains("space exceeded") {
            break;
        }
        assert!(number < 100, "it is never full");
    }
    assert_full(&store, 1 << 20, revision).await;
}
