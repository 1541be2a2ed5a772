//! The documents of API management in the configuration's store, in memory, followed.
//!
//! **What it is not**: it writes nothing.

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::watch;
use weir_store::follow::{self, Subscription};
use weir_store::{Changes, Document, Key, Revision, Store, StoreError};

/// The prefix of the keys of API management.
const PREFIX: &str = "apis/";
/// For how long an answer waits until what was just written is known.
const CATCH_UP: Duration = Duration::from_secs(2);
/// Kinds that change often and of which no catalogue is made.
const BUSY: [&str; 5] = [
    "apis/webhooks/",
    "apis/subscriptions/",
    "apis/credentials/",
    "apis/applications/",
    "apis/approvals/",
];

/// The documents. Cheap to share.
#[derive(Clone)]
pub struct Documents(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    known: RwLock<DocumentCache>,
    /// The revision up to which everything is known.
    revision: watch::Sender<u64>,
}

#[derive(Default)]
struct DocumentCache {
    documents: BTreeMap<Key, Document>,
    /// The last revision that changed what a catalogue is made of.
    of_catalogue: u64,
}

impl Documents {
    /// Reads them and follows them until the process ends. To be called inside of a tokio runtime.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let (documents, revision, following) = follow::start(Arc::clone(&store), PREFIX).await?;
        let known = DocumentCache {
            documents: documents.into_iter().map(|it| (it.key.clone(), it)).collect(),
            of_catalogue: revision.0,
        };
        let this = Self(Arc::new(Shared {
            store,
            known: RwLock::new(known),
            revision: watch::Sender::new(revision.0),
        }));
        tokio::spawn(this.clone().follow(following));
        Ok(this)
    }

    async fn follow(self, mut following: Subscription) {
        loop {
            let changes = following.next().await;
            self.apply(changes);
        }
    }

    fn apply(&self, changes: Changes) {
        let revision = changes.revision.0;
        {
            let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
            for (key, document) in changes.documents {
                if !BUSY.iter().any(|prefix| key.as_str().starts_with(prefix)) {
                    known.of_catalogue = revision;
                }
                match document {
                    Some(document) => known.documents.insert(key, document),
                    None => known.documents.remove(&key),
                };
            }
        }
        self.0.revision.send_replace(revision);
    }

    fn known(&self) -> RwLockReadGuard<'_, DocumentCache> {
        // Every change leaves it whole.
        self.0.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last revision that changed what a catalogue is made of.
    pub fn catalogue_revision(&self) -> u64 {
        self.known().of_catalogue
    }

    /// Waits until everything is known that the store holds now, for a bounded time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        let (_, head) = self.0.store.read("apis/portals/").await?;
        let mut revision = self.0.revision.subscribe();
        let reached = revision.wait_for(|known| *known >= head.0);
        // One that is late is shown with the next call.
        let _late = tokio::time::timeout(CATCH_UP, reached).await;
        Ok(())
    }

    /// A document; `None`: it does not exist, or cannot be read.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get_version(key).map(|(_, document)| document)
    }

    /// A document with its version: the revision that changed it last.
    pub fn get_version<T: DeserializeOwned>(&self, key: &str) -> Option<(Revision, T)> {
        let known = self.known();
        let document = known.documents.get(key)?;
        let read = serde_json::from_slice(&document.value).ok()?;
        Some((document.modified, read))
    }

    /// The documents below a prefix, by their keys. Those that are not understood are left out.
    pub fn list<T: DeserializeOwned>(&self, prefix: &str) -> Vec<T> {
        let known = self.known();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let below = known.documents.range::<str, _>(from);
        let below = below.take_while(|(key, _)| key.as_str().starts_with(prefix));
        below
            .filter_map(|(_, document)| serde_json::from_slice(&document.value).ok())
            .collect()
    }

    /// The documents below a prefix as one text: pieces of an uploaded one.
    pub fn joined(&self, prefix: &str) -> Option<String> {
        let known = self.known();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let below = known.documents.range::<str, _>(from);
        let below = below.take_while(|(key, _)| key.as_str().starts_with(prefix));
        let bytes: Vec<u8> = below.flat_map(|(_, it)| it.value.iter().copied()).collect();
        String::from_utf8(bytes).ok().filter(|it| !it.is_empty())
    }
}
