//! A store of each kind to try things on, and what cases say often.

use crate::etcd::Cluster;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use weir_store::etcd::EtcdStore;
use weir_store::memory::MemoryStore;
use weir_store::seal::{Sealed, SealingKeys};
use weir_store::sqlite::{Options, SqliteStore};
use weir_store::{Change, Changes, CommitError, Document, Key, Revision, Store, Transaction, Watch};

/// How long to wait for what must come.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Memory,
    Sqlite,
    Etcd,
}

/// An empty store.
pub struct Fixture {
    pub kind: Kind,
    pub store: Arc<dyn Store>,
    place: DocumentStorage,
    keys: Option<SealingKeys>,
}

/// Where its documents are, until the fixture is gone.
enum DocumentStorage {
    Memory(MemoryStore),
    Folder(TempDir),
    Cluster(Box<Cluster>),
}

impl Fixture {
    pub async fn new(kind: Kind, is_sealed: bool) -> Self {
        let place = match kind {
            Kind::Memory => DocumentStorage::Memory(MemoryStore::new()),
            Kind::Sqlite => DocumentStorage::Folder(tempfile::tempdir().expect("a folder")),
            Kind::Etcd => DocumentStorage::Cluster(Box::new(Cluster::start(1, &[]).await)),
        };
        let key = || SealingKeys::generate().expect("a key");
        let keys = is_sealed.then(|| SealingKeys::parse(&key()).expect("keys"));
        let store = open(&place, keys.as_ref());
        Self {
            kind,
            store,
            place,
            keys,
        }
    }

    /// The same documents, as another process has them.
    pub fn another(&self) -> Arc<dyn Store> {
        open(&self.place, self.keys.as_ref())
    }

    /// The operational store of the same place.
    pub async fn operational(&self) -> Arc<dyn Store> {
        let location = match &self.place {
            DocumentStorage::Memory(_) => "memory:".to_owned(),
            DocumentStorage::Folder(folder) => format!("sqlite:{}", folder.path().display()),
            DocumentStorage::Cluster(cluster) => cluster.location(),
        };
        let store = weir_store::open_operational(&location).await.expect("it opens");
        match &self.keys {
            Some(keys) => Arc::new(Sealed::new(store, keys.clone())),
            None => store,
        }
    }

    /// Commits changes on top of everything.
    pub async fn commit(&self, changes: Vec<Change>) -> Revision {
        commit(&*self.store, changes).await
    }

    /// What is below a prefix: names and values.
    pub async fn texts(&self, prefix: &str) -> Vec<(String, String)> {
        let (documents, _) = self.store.read(prefix).await.expect("it is read");
        documents.iter().map(text).collect()
    }

    pub async fn watch(&self, prefix: &str, after: Revision) -> Box<dyn Watch> {
        self.store.watch(prefix, after).await.expect("it is watched")
    }
}

fn open(place: &DocumentStorage, keys: Option<&SealingKeys>) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = match place {
        DocumentStorage::Memory(store) => Arc::new(store.clone()),
        DocumentStorage::Folder(folder) => {
            Arc::new(SqliteStore::open_with(folder.path(), Options::default()).expect("it opens"))
        }
        DocumentStorage::Cluster(cluster) => {
            Arc::new(EtcdStore::connect(&cluster.location()).expect("a location"))
        }
    };
    match keys {
        Some(keys) => Arc::new(Sealed::new(store, keys.clone())),
        None => store,
    }
}

pub fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

pub fn put(name: &str, value: &str) -> Change {
    Change::put(key(name), value.as_bytes())
}

pub fn delete(name: &str) -> Change {
    Change::Delete { key: key(name) }
}

pub fn transaction(changes: Vec<Change>) -> Transaction {
    Transaction {
        author: "ada".into(),
        note: "PUT /things".into(),
        time: SystemTime::now(),
        changes,
    }
}

pub async fn commit(store: &dyn Store, changes: Vec<Change>) -> Revision {
    loop {
        let (_, revision) = store.read("nothing/below").await.expect("it is read");
        match store.commit(transaction(changes.clone()), revision).await {
            Ok(revision) => return revision,
            // Something has just come to its end.
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn text(document: &Document) -> (String, String) {
    let value = String::from_utf8_lossy(&document.value);
    (document.key.as_str().to_owned(), value.into_owned())
}

pub fn texts(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let texts = expected.iter();
    texts
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// What a commit changed: names, and values of those that are there.
pub fn changed(changes: &Changes) -> Vec<(String, Option<String>)> {
    let documents = changes.documents.iter();
    documents
        .map(|(key, document)| {
            let value = document.as_ref().map(|document| text(document).1);
            (key.as_str().to_owned(), value)
        })
        .collect()
}

/// The next commit that a watch reports.
pub async fn next(watch: &mut Box<dyn Watch>) -> Changes {
    let next = tokio::time::timeout(TIMEOUT, watch.next()).await;
    next.expect("something comes").expect("the watch goes on")
}
