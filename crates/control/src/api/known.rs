//! All native documents in memory, as they are in the store, and what a write would make of them.

use super::checking::Checker;
use super::problem::Problem;
use axum::http::StatusCode;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use weir_model::{Diagnostic, Model};
use weir_native::incremental;
use weir_plugin::Registry;
use weir_store::follow::Subscription;
use weir_store::{Change, Changes, Document, Key, Revision, Store, StoreError};

/// What the keys of native documents begin with.
pub const PREFIX: &str = "native/";
/// How long to wait for what others wrote.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long until a store that cannot be read is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// All native documents, as they are in the store.
pub struct Resources {
    known: Arc<Known>,
    /// What `known` is of.
    seen: watch::Receiver<Progress>,
    progress: Arc<watch::Sender<Progress>>,
    checker: Arc<Mutex<Checker>>,
    /// Writers take turns, so that each sees what the one before wrote.
    turn: tokio::sync::Mutex<()>,
}

/// What the known documents are of.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    revision: Revision,
    /// Counts the times that the whole store was read again. Revisions of different epochs cannot be compared: the
    /// store may have been set back in between.
    epoch: u64,
}

#[derive(Default)]
struct Known {
    /// Locked for moments only: calls wait for it.
    documents: Mutex<BTreeMap<Key, Document>>,
    /// What they were read as. Checking a write locks it for as long as a whole model takes.
    stored: Mutex<incremental::IncrementalModel>,
    /// Held from a read of the whole store until it is applied: a write that is taken over meanwhile would be lost.
    reading: tokio::sync::Mutex<()>,
    /// What follows the store from the last read on. The task that follows takes it in the place of what it had, which
    /// may still bring changes that the store has forgotten.
    renewed: Mutex<Option<(u64, Subscription)>>,
    is_renewed: Notify,
}

impl Known {
    fn apply(&self, key: &Key, document: Option<Document>) {
        if let Some(short) = key.as_str().strip_prefix(PREFIX) {
            let value = document.as_ref().map(|it| it.value.as_ref());
            lock(&self.stored).apply(short, value);
        }
        let mut documents = lock(&self.documents);
        match document {
            Some(document) => documents.insert(key.clone(), document),
            None => documents.remove(key),
        };
    }

    /// Takes the store's documents in the place of these.
    async fn read_again(
        &self,
        store: &Arc<dyn Store>,
        progress: &watch::Sender<Progress>,
    ) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        let (documents, revision, following) = weir_store::follow::start(Arc::clone(store), PREFIX).await?;
        let epoch = progress.borrow().epoch + 1;
        // From here on, changes of the epoch before are dropped.
        progress.send_modify(|known| known.epoch = epoch);
        let gone: Vec<Key> = {
            let there: HashSet<&Key> = documents.iter().map(|it| &it.key).collect();
            let known = lock(&self.documents);
            known.keys().filter(|key| !there.contains(key)).cloned().collect()
        };
        for key in gone {
            self.apply(&key, None);
        }
        for document in documents {
            self.apply(&document.key.clone(), Some(document));
        }
        progress.send_replace(Progress { revision, epoch });
        *lock(&self.renewed) = Some((epoch, following));
        self.is_renewed.notify_one();
        Ok(())
    }

    /// The models without and with a change of one document, which is known to dialects as `short`.
    fn before_and_after(&self, short: &str, text: Option<&str>) -> (Model, Model) {
        let mut stored = lock(&self.stored);
        let (before, _) = stored.model();
        (before, stored.model_with(short, text.map(str::as_bytes)))
    }
}

impl Resources {
    /// Reads them and follows them from then on.
    pub async fn open(store: Arc<dyn Store>, registry: Registry) -> Result<Self, StoreError> {
        let (documents, revision, following) = weir_store::follow::start(Arc::clone(&store), PREFIX).await?;
        let known = Arc::new(Known::default());
        for document in documents {
            known.apply(&document.key.clone(), Some(document));
        }
        let (progress, seen) = watch::channel(Progress { revision, epoch: 0 });
        let progress = Arc::new(progress);
        tokio::spawn(follow(
            Arc::clone(&known),
            store,
            following,
            Arc::clone(&progress),
        ));
        Ok(Self {
            known,
            seen,
            progress,
            checker: Arc::new(Mutex::new(Checker::new(registry))),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// The turn of a writer: each sees what the one before wrote.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The revision that is known.
    pub fn revision(&self) -> Revision {
        self.seen.borrow().revision
    }

    /// How many times the whole store was read again.
    pub fn epoch(&self) -> u64 {
        self.seen.borrow().epoch
    }

    /// A document as it is now.
    pub fn get(&self, key: &Key) -> Option<Document> {
        lock(&self.known.documents).get(key).cloned()
    }

    /// The first documents behind a key, in the order of their keys, whose keys begin so.
    pub fn page(&self, prefix: &str, begin: &str, size: usize) -> Vec<Document> {
        let documents = lock(&self.known.documents);
        let behind = (Bound::Excluded(begin), Bound::Unbounded);
        (documents.range::<str, _>(behind))
            .take_while(|(key, _)| key.as_str().starts_with(prefix))
            .map(|(_, document)| document.clone())
            .take(size)
            .collect()
    }

    /// Waits until what was committed up to a revision is known here.
    pub async fn catch_up(&self, revision: Revision) -> Result<(), Problem> {
        let mut seen = self.seen.clone();
        let caught_up = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| seen.revision >= revision)).await;
        match caught_up {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store is followed too slowly",
            )),
        }
    }

    /// Takes the store's documents in the place of what is known: the store was set back.
    pub async fn read_again(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        self.known.read_again(store, &self.progress).await
    }

    /// Takes over what was committed here, on the revision that was known, before the store tells of it. `epoch`: the
    /// one before the commit. If the store was read again meanwhile, what was read decides.
    pub async fn take_over(&self, change: Change, revision: Revision, epoch: u64) {
        let _reading = self.known.reading.lock().await;
        let created = self.get(change.key()).map_or(revision, |it| it.created);
        let (key, document) = match change {
            Change::Delete { key } => (key, None),
            Change::Put { key, value, .. } => {
                let document = Document {
                    key: key.clone(),
                    value,
                    created,
                    modified: revision,
                };
                (key, Some(document))
            }
        };
        advance(&self.progress, Progress { revision, epoch }, || {
            self.known.apply(&key, document)
        });
    }

    /// What would be wrong with the native configuration if the document were this. It is compiled on another thread;
    /// a commit afterwards is for the revision that was seen before.
    ///
    /// Returns what is to be said of it although it can be served.
    pub async fn check(&self, key: &Key, value: Option<&Value>) -> Result<Vec<Diagnostic>, Problem> {
        let short = key.as_str().strip_prefix(PREFIX).unwrap_or_default().to_owned();
        let mut warnings = Vec::new();
        if let Some(value) = value {
            let (kind, name) = short.split_once('/').unwrap_or_default();
            let read = incremental::resource(kind, name, value);
            (_, warnings) = read.map_err(|found| Problem::invalid(&found))?;
        }
        let text = value.map(Value::to_string);
        let (known, checker) = (Arc::clone(&self.known), Arc::clone(&self.checker));
        let checking = tokio::task::spawn_blocking(move || {
            let (before, after) = known.before_and_after(&short, text.as_deref());
            lock(&checker).new_faults(&before, &after)
        });
        let new = checking
            .await
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        match new.as_slice() {
            [] => Ok(warnings),
            new => Err(Problem::invalid(new)),
        }
    }
}

/// What a panic left behind is told by the compile.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over what others commit.
async fn follow(
    known: Arc<Known>,
    store: Arc<dyn Store>,
    mut following: Subscription,
    progress: Arc<watch::Sender<Progress>>,
) {
    let mut epoch = 0;
    let mut told = following.revision();
    let mut link = following.link();
    while progress.receiver_count() > 0 {
        let changes = tokio::select! {
            changes = following.next() => Some(changes),
            // The sender lives in what is followed.
            _ = link.changed() => None,
            () = known.is_renewed.notified() => None,
        };
        if let Some(renewed) = lock(&known.renewed).take() {
            (epoch, following) = renewed;
            told = following.revision();
            link = following.link();
            continue;
        }
        let is_back = changes.is_none() && link.borrow_and_update().is_connected();
        let is_set_back = changes.as_ref().is_some_and(|it| it.revision < told);
        // A store that was away may have been set back, or be another one: what was committed here may be forgotten.
        if is_back || is_set_back {
            while let Err(error) = known.read_again(&store, &progress).await {
                tracing::warn!(%error, "the store is back and cannot be read");
                tokio::time::sleep(PAUSE).await;
            }
            continue;
        }
        let Some(Changes { revision, documents }) = changes else {
            continue;
        };
        told = revision;
        advance(&progress, Progress { revision, epoch }, || {
            for (key, document) in documents {
                known.apply(&key, document);
            }
        });
    }
}

/// Takes over what a revision brought, unless it is known already, or the store was read again since.
fn advance(progress: &watch::Sender<Progress>, told: Progress, apply: impl FnOnce()) {
    progress.send_if_modified(|known| {
        let is_new = told.epoch == known.epoch && told.revision > known.revision;
        if is_new {
            apply();
            *known = told;
        }
        is_new
    });
}
