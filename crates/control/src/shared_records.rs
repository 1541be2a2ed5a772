//! The records that plugins share over all gateways of a store, in its operational part: it is followed for them, and
//! their changes are committed.
//!
//! A gateway that cannot reach the store goes on with what it knows. What it is asked to commit then fails.

use crate::operational::{OperationalEntry, OperationalError, OperationalStore, OperationalWrite, decode};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use weir_model::unix_time;
use weir_plugin::{
    Committed, RecordRead, Registry, SharedChange, SharedRecord, SharedRecords, SharedStore, StoreUnavailable,
};
use weir_store::{Document, Key};

/// How much is read from the store at the same time, and how much is committed. Each has places of its own: anybody can
/// have tokens looked for, and that holds up no commit.
const MAX_AT_ONCE: usize = 128;
/// How long the store may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Makes all plugins of a registry share their records through this store. To be called inside of a tokio runtime,
/// before there are calls.
pub fn share(registry: &Registry, store: &OperationalStore) {
    for (plugin, records) in registry.shared_records() {
        let prefix = format!("shared/{plugin}/");
        records.share(Arc::new(PluginStore {
            store: store.clone(),
            prefix: prefix.clone(),
            runtime: tokio::runtime::Handle::current(),
            free_to_read: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            free_to_commit: Arc::new(Semaphore::new(MAX_AT_ONCE)),
        }));
        tokio::spawn(follow(store.clone(), prefix, records));
    }
}

/// Passes the changes in its part on to a plugin. All that is there comes first.
async fn follow(store: OperationalStore, prefix: String, records: Arc<dyn SharedRecords>) {
    let mut following = weir_store::follow::resume(Arc::clone(store.store()), &prefix, &[]);
    loop {
        let changes = following.next().await;
        let changed = changes.documents.iter().filter_map(|(key, document)| {
            let name = key.as_str().strip_prefix(&prefix)?.to_owned();
            Some((name, document.as_ref().and_then(record)))
        });
        let changed = changed.collect();
        records.apply(changes.revision.0, changed);
    }
}

/// Whether a record has ended is asked by the plugin.
fn record(document: &Document) -> Option<SharedRecord> {
    decode(document, UNIX_EPOCH).map(of_entry)
}

fn of_entry(entry: OperationalEntry<Value>) -> SharedRecord {
    SharedRecord {
        value: entry.value,
        ends_ms: entry.ends.map(unix_time::millis),
    }
}

/// The value that a document must have.
type Expected = (Key, Option<Value>);

/// The part of the store that is a plugin's.
struct PluginStore {
    store: OperationalStore,
    prefix: String,
    runtime: tokio::runtime::Handle,
    free_to_read: Arc<Semaphore>,
    free_to_commit: Arc<Semaphore>,
}

impl PluginStore {
    /// Works with the store in the background. Dropped, if too much is under way.
    fn spawn<T: Send + 'static>(
        &self,
        free: &Arc<Semaphore>,
        work: impl Future<Output = Result<T, OperationalError>> + Send + 'static,
        then: Box<dyn FnOnce(Result<T, StoreUnavailable>) + Send>,
    ) {
        let Ok(permit) = Arc::clone(free).try_acquire_owned() else {
            return;
        };
        self.runtime.spawn(async move {
            let done = tokio::time::timeout(TIMEOUT, work).await;
            then(match done {
                Ok(Ok(done)) => Ok(done),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "shared records of plugins cannot be read or written");
                    Err(StoreUnavailable)
                }
                Err(_) => {
                    tracing::warn!(
                        "shared records of plugins cannot be read or written: the store takes too long"
                    );
                    Err(StoreUnavailable)
                }
            });
            drop(permit);
        });
    }

    fn key(&self, name: &str) -> Result<Key, OperationalError> {
        Key::new(&format!("{}{name}", self.prefix)).map_err(OperationalError::Name)
    }

    fn writes(
        &self,
        change: SharedChange,
    ) -> Result<(Vec<Expected>, Vec<OperationalWrite>), OperationalError> {
        let mut expected = Vec::with_capacity(change.expected.len());
        for (name, value) in change.expected {
            expected.push((self.key(&name)?, value));
        }
        let mut writes = Vec::with_capacity(change.puts.len() + change.removes.len());
        for name in change.removes {
            writes.push(OperationalWrite::Remove(self.key(&name)?));
        }
        for (name, SharedRecord { value, ends_ms }) in change.puts {
            let ends = ends_ms.and_then(|ends| UNIX_EPOCH.checked_add(Duration::from_millis(ends)));
            let key = self.key(&name)?;
            writes.push(OperationalWrite::Put { key, value, ends });
        }
        Ok((expected, writes))
    }
}

impl SharedStore for PluginStore {
    fn read(&self, name: &str, then: RecordRead) {
        let (store, key) = (self.store.clone(), self.key(name));
        let work = async move {
            let (entry, revision) = store.read_at(&key?, SystemTime::now()).await?;
            Ok((entry.map(of_entry), revision.0))
        };
        self.spawn(&self.free_to_read, work, then);
    }

    fn commit(&self, change: SharedChange, then: Committed) {
        let (store, writes) = (self.store.clone(), self.writes(change));
        let work = async move {
            let (expected, writes) = writes?;
            let done = store.write_if(&expected, writes, SystemTime::now()).await?;
            Ok(done.map(|revision| revision.0))
        };
        self.spawn(&self.free_to_commit, work, then);
    }
}

#[cfg(test)]
mod tests;
