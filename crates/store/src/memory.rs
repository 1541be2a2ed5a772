//! A store in memory: for tests, and for a control plane that is filled again at each start. It keeps the whole
//! contract, but for what outlives the process.

use crate::document::{Change, Document, HistoryEntry, Key, Revision, Transaction};
use crate::feed::{Feed, NextChange};
use crate::store::{Changes, CommitError, Store, StoreError, Watch, WatchError};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch::Receiver;

/// How many changed documents those who watch may lag behind.
const FEED_LENGTH: usize = 50_000;

/// The store. Clones share their documents.
#[derive(Debug, Clone)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<MemoryState>,
    feed: Feed,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct MemoryState {
    revision: Revision,
    documents: BTreeMap<Key, Entry>,
    /// When the documents go that do not stay.
    ends: BTreeSet<(SystemTime, Key)>,
    /// The changes of each commit, in the order of their revisions.
    history: VecDeque<Vec<HistoryEntry>>,
    /// Of all keys and values.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    document: Document,
    ends: Option<SystemTime>,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.document.key.as_str().len() + self.document.value.len()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// An empty store that is [`StoreError::Full`] when its keys and values, without the history, come to more than
    /// so many bytes.
    pub fn with_limit(max_bytes: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            feed: Feed::new(Revision::default(), FEED_LENGTH),
            max_bytes,
        }))
    }
}

impl Shared {
    /// The state, from which everything is gone that does not stay so long.
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // A panic leaves no change half-made: all that may fail is checked before the first.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        if state.ends.first().is_some_and(|(end, _)| *end <= now) {
            let gone = state.ends.iter().take_while(|(end, _)| *end <= now);
            let changes = gone.map(|(_, key)| Change::Delete { key: key.clone() }).collect();
            self.feed.push(state.apply(Transaction::expiry(now, changes)));
        }
        state
    }
}

impl MemoryState {
    /// How large the store will be after the changes.
    fn bytes_after(&self, changes: &[Change]) -> usize {
        changes.iter().fold(self.bytes, |bytes, change| {
            let old = self.documents.get(change.key()).map_or(0, Entry::bytes);
            let new = match change {
                Change::Put { key, value, .. } => key.as_str().len() + value.len(),
                Change::Delete { .. } => 0,
            };
            bytes - old + new
        })
    }

    fn apply(&mut self, transaction: Transaction) -> Changes {
        self.revision.0 += 1;
        self.bytes = self.bytes_after(&transaction.changes);
        let (revision, time) = (self.revision, transaction.time);
        let mut changes = transaction.changes;
        changes.sort_by(|one, other| one.key().cmp(other.key()));
        let mut documents = Vec::with_capacity(changes.len());
        let mut record = Vec::with_capacity(changes.len());
        for change in changes {
            let key = change.key().clone();
            let old = self.remove(&key);
            let new = match change {
                Change::Put {
                    value, time_to_live, ..
                } => {
                    let document = Document {
                        key: key.clone(),
                        value,
                        created: old.as_ref().map_or(revision, |old| old.created),
                        modified: revision,
                    };
                    self.insert(document.clone(), time_to_live.map(|it| SystemTime::now() + it));
                    Some(document)
                }
                // What was not there needs no word.
                Change::Delete { .. } if old.is_none() => continue,
                Change::Delete { .. } => None,
            };
            record.push(HistoryEntry {
                revision,
                time,
                author: transaction.author.clone(),
                note: transaction.note.clone(),
                key: key.clone(),
                before: old.map(|old| old.value),
                after: new.as_ref().map(|new| new.value.clone()),
            });
            documents.push((key, new));
        }
        self.history.push_back(record);
        Changes { revision, documents }
    }

    fn insert(&mut self, document: Document, ends: Option<SystemTime>) {
        if let Some(end) = ends {
            self.ends.insert((end, document.key.clone()));
        }
        self.documents
            .insert(document.key.clone(), Entry { document, ends });
    }

    fn remove(&mut self, key: &Key) -> Option<Document> {
        let entry = self.documents.remove(key)?;
        if let Some(end) = entry.ends {
            self.ends.remove(&(end, key.clone()));
        }
        Some(entry.document)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn is_sealed(&self) -> bool {
        true
    }

    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        let state = self.0.state();
        let below = state
            .documents
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(|(key, _)| key.as_str().starts_with(prefix));
        let documents = below.map(|(_, entry)| entry.document.clone()).collect();
        Ok((documents, state.revision))
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        let watch = MemoryWatch {
            newer: self.0.feed.subscribe(),
            shared: self.0.clone(),
            prefix: prefix.to_owned(),
            after,
        };
        match watch.shared.feed.after(after, prefix) {
            NextChange::Gone => Err(WatchError::Compacted),
            _ => Ok(Box::new(watch)),
        }
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        transaction.check()?;
        let mut state = self.0.state();
        if state.revision != expected {
            return Err(CommitError::Conflict {
                current: state.revision,
            });
        }
        if transaction.changes.is_empty() {
            return Ok(expected);
        }
        if state.bytes_after(&transaction.changes) > self.0.max_bytes {
            return Err(StoreError::Full(format!("it may hold {} bytes", self.0.max_bytes)).into());
        }
        let changes = state.apply(transaction);
        let revision = changes.revision;
        // Under the lock, so that commits are reported in their order.
        self.0.feed.push(changes);
        Ok(revision)
    }

    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let state = self.0.state();
        let mut history = Vec::new();
        for commit in state.history.iter().rev() {
            let wanted = commit.iter().filter(|recorded| {
                before.is_none_or(|before| recorded.revision < before)
                    && recorded.key.as_str().starts_with(prefix)
            });
            history.extend(wanted.cloned());
            if history.len() >= limit {
                break;
            }
        }
        Ok(history)
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        let mut state = self.0.state();
        let mut forgotten = None;
        let is_old = |commit: &Vec<HistoryEntry>| commit.iter().all(|recorded| recorded.time < before);
        while state.history.front().is_some_and(is_old) {
            let commit = state.history.pop_front().unwrap_or_default();
            forgotten = commit.last().map(|recorded| recorded.revision).or(forgotten);
        }
        if let Some(up_to) = forgotten {
            self.0.feed.forget(up_to);
        }
        Ok(())
    }
}

struct MemoryWatch {
    shared: Arc<Shared>,
    prefix: String,
    after: Revision,
    newer: Receiver<Revision>,
}

#[async_trait]
impl Watch for MemoryWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        loop {
            self.newer.mark_unchanged();
            let next_end = self.shared.state().ends.first().map(|(end, _)| *end);
            match self.shared.feed.after(self.after, &self.prefix) {
                NextChange::Commit(changes) => {
                    self.after = changes.revision;
                    return Ok(changes);
                }
                NextChange::Gone => return Err(WatchError::Compacted),
                NextChange::Nothing => {}
            }
            let expiry = async {
                match next_end {
                    Some(end) => {
                        tokio::time::sleep(end.duration_since(SystemTime::now()).unwrap_or_default()).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                newer = self.newer.changed() => newer.map_err(|_| WatchError::Compacted)?,
                () = expiry => {}
            }
        }
    }
}
