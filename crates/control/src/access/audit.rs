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
/// Entries of a document of the log.
const MAX_ENTRIES: usize = 500;
/// Documents of the log, at most; the oldest go first.
const MAX_DOCUMENTS: usize = 500;
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

    /// The oldest entries that wait, as many as a document takes.
    fn take(&self) -> Vec<Entry> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let some = waiting.len().min(MAX_ENTRIES);
        waiting.drain(..some).collect()
    }

    fn give_back(&self, entries: Vec<Entry>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_WAITING - waiting.len();
        for entry in entries.into_iter().rev().take(room) {
            waiting.push_front(entry);
        }
    }

    async fn write(self, store: Arc<dyn Store>) {
        let mut log = Log::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.flush(&*store, &mut log).await;
        }
    }

    /// Writes what waits.
    async fn flush(&self, store: &dyn Store, log: &mut Log) {
        loop {
            let entries = self.take();
            if entries.is_empty() {
                return;
            }
            if let Err(error) = log.write(store, &entries).await {
                tracing::error!(%error, entries = entries.len(), "the audit log cannot be written; it is tried again");
                self.give_back(entries);
                return;
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

/// What is known of the log in the store.
#[derive(Debug, Default)]
struct Log {
    /// Its documents; `None`: not read yet.
    keys: Option<BTreeSet<Key>>,
    /// The newest revision that was seen.
    revision: Revision,
    /// Tells documents apart that are written in the same millisecond.
    count: u64,
}

impl Log {
    async fn write(&mut self, store: &dyn Store, entries: &[Entry]) -> Result<(), CommitError> {
        let keys = match &mut self.keys {
            Some(keys) => keys,
            None => {
                let (documents, revision) = store.read(PREFIX).await?;
                self.revision = revision;
                self.keys.insert(documents.into_iter().map(|it| it.key).collect())
            }
        };
        let now = SystemTime::now();
        let milliseconds = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        self.count += 1;
        // Several processes may write to one store.
        let name = format!(
            "{PREFIX}{milliseconds:015}-{:06}-{}",
            self.count,
            std::process::id()
        );
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
        self.revision = crate::commit::insist(store, transaction, self.revision, MAX_ATTEMPTS).await?;
        for key in &gone {
            keys.remove(key);
        }
        keys.insert(key);
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_store::memory::MemoryStore;

    fn entry(number: u64) -> Entry {
        Entry {
            time: number,
            who: "w".repeat(1000),
            from: String::new(),
            door: String::new(),
            what: String::new(),
            status: 200,
        }
    }

    #[tokio::test]
    async fn the_log_is_written_in_order_and_bounded() {
        let (store, audit, mut log) = (MemoryStore::new(), Audit::default(), Log::default());
        let written = MAX_ENTRIES as u64 + 10;
        (0..written).for_each(|number| audit.note(entry(number)));
        audit.flush(&store, &mut log).await;
        let entries = read(&store, 20).await.expect("entries");
        let times: Vec<u64> = entries.iter().map(|it| it.time).collect();
        assert_eq!(times, (written - 20..written).rev().collect::<Vec<_>>());
        assert_eq!(entries[0].who.chars().count(), MAX_TEXT + 1);
        for number in 0..MAX_DOCUMENTS as u64 {
            audit.note(entry(number));
            audit.flush(&store, &mut log).await;
        }
        let (documents, _) = store.read(PREFIX).await.expect("documents");
        assert_eq!(documents.len(), MAX_DOCUMENTS);
        // Another process begins where this one is.
        audit.note(entry(7));
        audit.flush(&store, &mut Log::default()).await;
        assert_eq!(
            store.read(PREFIX).await.expect("documents").0.len(),
            MAX_DOCUMENTS
        );
        (0..2 * MAX_WAITING as u64).for_each(|number| audit.note(entry(number)));
        assert_eq!(audit.0.lock().expect("whole").len(), MAX_WAITING);
    }
}
