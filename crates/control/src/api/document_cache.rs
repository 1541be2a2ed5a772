//! All native documents in memory, as they are in the store, and what a write would make of them. How they are kept up
//! with the store and written stands in [`weir_dialect::Replica`].

use super::checking::{Checker, Dependent};
use super::problem::Problem;
use axum::http::StatusCode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_dialect::{DialectName, DialectSet, PluginCheck, Replica, ReplicaState, WriteGuard};
use weir_model::{Diagnostic, DocPath, Model, PluginInstance, Severity};
pub use weir_native::PREFIX;
use weir_native::incremental;
use weir_plugin::Registry;
use weir_store::{Document, Key, Revision, Store, StoreError};

/// The native documents.
#[derive(Default)]
pub struct NativeDocuments {
    all: BTreeMap<Key, Document>,
    /// Changes that the checker did not get yet. Locked for moments only.
    pending: Mutex<PendingUpdates>,
}

/// Documents may hold secrets.
impl std::fmt::Debug for NativeDocuments {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("NativeDocuments")
            .field("all", &self.all.len())
            .finish_non_exhaustive()
    }
}

/// The update of a document; its key is without the prefix.
type DocumentUpdate = (String, Option<Arc<[u8]>>);

/// Changes that a checker did not get yet.
#[derive(Default)]
enum PendingUpdates {
    /// Anything.
    #[default]
    Everything,
    /// The updates of these.
    Some(BTreeSet<Key>),
}

impl NativeDocuments {
    /// A document as it is now.
    pub fn get(&self, key: &Key) -> Option<&Document> {
        self.all.get(key)
    }

    /// The updates for a checker: what has changed since the last call, or everything.
    fn take_pending(&self) -> (bool, Vec<DocumentUpdate>) {
        let pending = std::mem::replace(&mut *lock(&self.pending), PendingUpdates::Some(BTreeSet::new()));
        let current = |key: &Key| {
            let value = self.all.get(key).map(|it| Arc::clone(&it.value));
            (short(key).to_owned(), value)
        };
        match pending {
            PendingUpdates::Everything => (true, self.all.keys().map(current).collect()),
            PendingUpdates::Some(keys) => (false, keys.iter().map(current).collect()),
        }
    }

    /// The checker has lost what it knew: it has to receive everything again.
    fn reset_pending(&self) {
        *lock(&self.pending) = PendingUpdates::Everything;
    }
}

impl ReplicaState for NativeDocuments {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, key: &Key, document: Option<&Document>) {
        match document {
            Some(document) => self.all.insert(key.clone(), document.clone()),
            None => self.all.remove(key),
        };
        if let PendingUpdates::Some(keys) = &mut *lock(&self.pending) {
            keys.insert(key.clone());
        }
    }

    fn note(&mut self, _revision: Revision, _has_changed: bool) {}

    fn created(&self, key: &Key) -> Option<Revision> {
        Some(self.all.get(key)?.created)
    }
}

/// What gateways cannot serve of the plugins of a resource although they are right.
fn plugin_warnings(check: &PluginCheck, model: &Model) -> Vec<Diagnostic> {
    let warnings = |instance: &PluginInstance| {
        let found = check.findings(&instance.name, &instance.config, DialectName::NATIVE);
        let found = found.into_iter().filter(|it| it.severity == Severity::Warning);
        let texts = found.map(|it| format!("plugin '{}': {}", instance.name, it.message));
        texts.collect::<Vec<_>>()
    };
    let texts = model.plugin_instances().flat_map(warnings);
    texts
        .map(|text| Diagnostic::warning(DocPath::root(), text))
        .collect()
}

/// A key as the dialect knows it.
fn short(key: &Key) -> &str {
    key.as_str().strip_prefix(PREFIX).unwrap_or_default()
}

/// All native documents, as they are in the store.
pub struct Resources {
    replica: Arc<Replica<NativeDocuments>>,
    /// Locked for as long as a compile takes, on threads that may take their time.
    checker: Arc<Mutex<Checker>>,
    dialects: DialectSet,
    plugin_check: PluginCheck,
}

impl Resources {
    /// Reads them and follows them from then on.
    pub async fn open(
        store: Arc<dyn Store>,
        registry: Registry,
        dialects: DialectSet,
        plugin_check: PluginCheck,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            replica: Replica::open(store, PREFIX, NativeDocuments::default()).await?,
            checker: Arc::new(Mutex::new(Checker::new(registry))),
            dialects,
            plugin_check,
        })
    }

    /// The turn of a writer: each sees what the one before wrote.
    pub async fn turn(&self) -> WriteGuard<'_, NativeDocuments> {
        self.replica.turn().await
    }

    /// A document as it is now.
    pub fn get(&self, key: &Key) -> Option<Document> {
        self.replica.state().get(key).cloned()
    }

    /// The first documents after a key, in the order of their keys, whose keys begin so.
    pub fn page(&self, prefix: &str, begin: &str, size: usize) -> Vec<Document> {
        let state = self.replica.state();
        let behind = (Bound::Excluded(begin), Bound::Unbounded);
        (state.all.range::<str, _>(behind))
            .take_while(|(key, _)| key.as_str().starts_with(prefix))
            .map(|(_, document)| document.clone())
            .take(size)
            .collect()
    }

    /// The faults of the native configuration if the document were this; see [`Self::check_all`].
    pub async fn check(&self, key: &Key, value: Option<&Value>) -> Result<Vec<Diagnostic>, Problem> {
        self.check_all(&[(key, value)]).await
    }

    /// The faults of the native configuration if the documents were these. They are compiled on another
    /// thread; a commit afterwards is for the version that was seen before.
    ///
    /// Returns what is to be said of them although they can be served.
    pub async fn check_all(&self, changes: &[(&Key, Option<&Value>)]) -> Result<Vec<Diagnostic>, Problem> {
        let mut warnings = Vec::new();
        for (key, value) in changes {
            let Some(value) = value else { continue };
            let (kind, name) = short(key).split_once('/').unwrap_or_default();
            let read = incremental::resource(kind, name, value);
            let (model, found) = read.map_err(|found| Problem::invalid(&found))?;
            let unknown = self.dialects.unknown_names(&model);
            if !unknown.is_empty() {
                return Err(Problem::invalid(&unknown));
            }
            warnings.extend(found);
            warnings.extend(plugin_warnings(&self.plugin_check, &model));
        }
        let texts: Vec<(String, Option<String>)> = changes
            .iter()
            .map(|(key, value)| (short(key).to_owned(), value.map(Value::to_string)))
            .collect();
        let asked = self.ask(move |checker| {
            let tried: Vec<(&str, Option<&[u8]>)> = texts
                .iter()
                .map(|(key, text)| (key.as_str(), text.as_deref().map(str::as_bytes)))
                .collect();
            checker.new_faults(&tried)
        });
        match asked.await?.as_slice() {
            [] => Ok(warnings),
            new => Err(Problem::invalid(new)),
        }
    }

    /// The documents that could not be served without a document.
    pub async fn dependents(&self, key: &Key) -> Result<Vec<Dependent>, Problem> {
        let short = short(key).to_owned();
        let mut found = self.ask(move |checker| checker.dependents(&short)).await?;
        let state = self.replica.state();
        for it in &mut found {
            let document = state.all.get(format!("{PREFIX}{}/{}", it.kind, it.name).as_str());
            let value = document.and_then(|it| serde_json::from_slice::<Value>(&it.value).ok());
            it.owned_by = value.and_then(|it| Some(it.get(incremental::OWNER)?.as_str()?.to_owned()));
        }
        Ok(found)
    }

    /// Asks the checker, once it knows what the store holds. It works on another thread.
    async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Checker) -> R + Send + 'static,
    ) -> Result<R, Problem> {
        let (replica, checker) = (Arc::clone(&self.replica), Arc::clone(&self.checker));
        let asking = tokio::task::spawn_blocking(move || {
            let mut checker = checker.lock().unwrap_or_else(|poisoned| {
                // A compile has panicked.
                checker.clear_poison();
                replica.state().reset_pending();
                poisoned.into_inner()
            });
            // The state is not held while documents are read.
            let (is_whole, pending) = replica.state().take_pending();
            checker.update(is_whole, pending);
            question(&mut checker)
        });
        asking
            .await
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
