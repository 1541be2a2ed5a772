//! The audit log: who did what from where, and what came of it.
//!
//! Entries are gathered and written to the store once a second, so that the log costs a commit a second and not one
//! for each write. The writes themselves are in the store's history at once.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_store::{Change, CommitError, Key, Revision, Store, StoreError, Transaction};

/// What the keys of the log begin with.
const PREFIX: &str = "weir/audit/";
/// How often gathered entries are written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Entries that wait to be written, at most; the oldest go first.
const MAX_WAITING: usize = 10_000;
/// Documents of the log, at most; the oldest go first.
const MAX_DOCUMENTS: usize = 2_000;
/// Longest text of an entry that a caller chose, in bytes.
const MAX_TEXT: usize = 512;
/// Attempts to write while others write too.
const MAX_ATTEMPTS: usize = 20;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in milliseconds since the Unix epoch.
    pub time: u64,
    /// Who: a user's name, or `anonymous`.
    pub who: String,
    /// From which address.
    pub from: String,
    /// Through which door.
    pub door: String,
    /// What: method and path.
    pub what: String,
    /// The status of the answer.
    pub status: u16,
}

/// The log. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Audit(Arc<Mutex<VecDeque<Entry>>>);

impl Audit {
    /// A log that is written to a store until the process ends.
    pub fn open(store: Arc<dyn Store>) -> Self {
        let audit = Self::default();
        tokio::spawn(audit.clone().write(store));
        audit
    }

    /// Notes a call.
    pub fn note(&self, mut entry: Entry) {
        shorten(&mut entry.what);
        shorten(&mut entry.who);
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(entry);
    }

    fn take(&self) -> Vec<Entry> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.drain(..).collect()
    }

    async fn write(self, store: Arc<dyn Store>) {
        let mut known: Option<BTreeSet<Key>> = None;
        let mut expected = Revision::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let entries = self.take();
            if entries.is_empty() {
                continue;
            }
            if let Err(error) = write_once(&*store, &entries, &mut known, &mut expected).await {
                tracing::error!(%error, entries = entries.len(), "the audit log cannot be written; it is tried again");
                let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_WAITING - waiting.len();
                for entry in entries.into_iter().rev().take(room) {
                    waiting.push_front(entry);
                }
            }
        }
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}

async fn write_once(
    store: &dyn Store,
    entries: &[Entry],
    known: &mut Option<BTreeSet<Key>>,
    expected: &mut Revision,
) -> Result<(), CommitError> {
    let keys = match known {
        Some(keys) => keys,
        None => {
            let (documents, revision) = store.read(PREFIX).await?;
            *expected = revision;
            known.insert(documents.into_iter().map(|it| it.key).collect())
        }
    };
    let now = SystemTime::now();
    let milliseconds = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let name = format!("{PREFIX}{milliseconds:015}-{}", uniqueness());
    let Ok(key) = Key::new(&name) else {
        return Err(StoreError::Failed(format!("not a key: {name}")).into());
    };
    let value = serde_json::to_vec(entries).map_err(|error| StoreError::Failed(error.to_string()))?;
    let surplus = (keys.len() + 1).saturating_sub(MAX_DOCUMENTS);
    let gone: Vec<Key> = keys.iter().take(surplus).cloned().collect();
    let mut changes = vec![Change::put(key.clone(), value)];
    changes.extend(gone.iter().map(|key| Change::Delete { key: key.clone() }));
    let transaction = Transaction {
        author: "weir".to_owned(),
        note: "audit log".to_owned(),
        time: now,
        changes,
    };
    *expected = crate::commit::insist(store, transaction, *expected, MAX_ATTEMPTS).await?;
    gone.iter().for_each(|key| {
        keys.remove(key);
    });
    keys.insert(key);
    Ok(())
}

/// Several processes may write to one store in the same millisecond.
fn uniqueness() -> u32 {
    std::process::id()
}

/// The log of a store, the latest entry first, at most `limit` of them.
///
/// # Errors
/// The store cannot be reached or read.
pub async fn read(store: &dyn Store, limit: usize) -> Result<Vec<Entry>, StoreError> {
    let (documents, _) = store.read(PREFIX).await?;
    let entries = documents.iter().rev().flat_map(|document| {
        let entries: Vec<Entry> = serde_json::from_slice(&document.value).unwrap_or_default();
        entries.into_iter().rev()
    });
    Ok(entries.take(limit).collect())
}
