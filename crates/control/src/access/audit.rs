//! The audit log: who did what from where, and what came of it.
//!
//! Entries are gathered and written to the store once a second, so that the log costs a commit a second and not one
//! for each write. The writes themselves are in the store's history at once. Calls that are not let in have places of
//! their own, so that whoever may do nothing cannot push out the record of those who may.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_store::{Change, CommitError, Key, Revision, Store, StoreError, Transaction};

/// What the keys of the log begin with.
const PREFIX: &str = "weir/audit/";
/// What the keys of the log of refused calls begin with.
const REFUSED_PREFIX: &str = "weir/audit-refused/";
/// How often gathered entries are written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Entries that wait to be written, at most; the oldest go first.
const MAX_WAITING: usize = 10_000;
/// Entries of a document of the log.
const MAX_ENTRIES: usize = 500;
/// Documents of the log, at most; the oldest go first.
const MAX_DOCUMENTS: usize = 500;
/// Refused calls that wait to be written, at most. Of those that come beyond, the number is told.
const MAX_REFUSED_WAITING: usize = 100;
/// Documents of the log of refused calls, at most.
const MAX_REFUSED_DOCUMENTS: usize = 100;
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
pub struct Audit(Arc<Mutex<Waiting>>);

/// What waits to be written.
#[derive(Debug, Default)]
struct Waiting {
    let_in: VecDeque<Entry>,
    refused: VecDeque<Entry>,
    /// The last refused call of those that had no place, and how many they are.
    more_refused: Option<(Entry, u64)>,
}

impl Audit {
    /// A log that is written to a store until the process ends.
    pub fn open(store: Arc<dyn Store>) -> Self {
        let audit = Self::default();
        tokio::spawn(audit.clone().write(store));
        audit
    }

    /// Notes a call that was let in.
    pub fn note(&self, entry: Entry) {
        let mut waiting = self.waiting();
        if waiting.let_in.len() == MAX_WAITING {
            waiting.let_in.pop_front();
        }
        waiting.let_in.push_back(short(entry));
    }

    /// Notes a call that was not let in.
    pub fn note_refused(&self, entry: Entry) {
        let mut waiting = self.waiting();
        if waiting.refused.len() < MAX_REFUSED_WAITING {
            waiting.refused.push_back(short(entry));
            return;
        }
        let count = waiting.more_refused.as_ref().map_or(0, |(_, count)| *count);
        waiting.more_refused = Some((short(entry), count + 1));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest entries that wait, as many as a document takes.
    fn take(&self) -> Vec<Entry> {
        let waiting = &mut self.waiting().let_in;
        let some = waiting.len().min(MAX_ENTRIES);
        waiting.drain(..some).collect()
    }

    fn take_refused(&self) -> Vec<Entry> {
        let mut waiting = self.waiting();
        let mut entries: Vec<Entry> = waiting.refused.drain(..).collect();
        entries.extend(waiting.more_refused.take().map(|(last, count)| Entry {
            what: format!(
                "{count} more calls that were not let in, the last of them {}",
                last.what
            ),
            ..last
        }));
        entries
    }

    fn give_back(&self, entries: Vec<Entry>) {
        let waiting = &mut self.waiting().let_in;
        let room = MAX_WAITING - waiting.len();
        for entry in entries.into_iter().rev().take(room) {
            waiting.push_front(entry);
        }
    }

    async fn write(self, store: Arc<dyn Store>) {
        let (mut log, mut refused) = (Log::of_writes(), Log::of_refused());
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.flush(&*store, &mut log).await;
            self.flush_refused(&*store, &mut refused).await;
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

    async fn flush_refused(&self, store: &dyn Store, log: &mut Log) {
        let entries = self.take_refused();
        if entries.is_empty() {
            return;
        }
        if let Err(error) = log.write(store, &entries).await {
            tracing::error!(%error, entries = entries.len(), "refused calls cannot be written into the audit log");
        }
    }
}

fn short(mut entry: Entry) -> Entry {
    shorten(&mut entry.what);
    shorten(&mut entry.who);
    entry
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

/// What is known of a log in the store.
#[derive(Debug)]
struct Log {
    prefix: &'static str,
    /// Its documents, at most.
    limit: usize,
    /// Its documents; `None`: not read yet.
    keys: Option<BTreeSet<Key>>,
    /// The newest revision that was seen.
    revision: Revision,
    /// Tells documents apart that are written in the same millisecond.
    count: u64,
}

impl Log {
    fn of_writes() -> Self {
        Self::new(PREFIX, MAX_DOCUMENTS)
    }

    fn of_refused() -> Self {
        Self::new(REFUSED_PREFIX, MAX_REFUSED_DOCUMENTS)
    }

    fn new(prefix: &'static str, limit: usize) -> Self {
        Self {
            prefix,
            limit,
            keys: None,
            revision: Revision(0),
            count: 0,
        }
    }

    async fn write(&mut self, store: &dyn Store, entries: &[Entry]) -> Result<(), CommitError> {
        let keys = match &mut self.keys {
            Some(keys) => keys,
            None => {
                let (documents, revision) = store.read(self.prefix).await?;
                self.revision = revision;
                self.keys.insert(documents.into_iter().map(|it| it.key).collect())
            }
        };
        let now = SystemTime::now();
        let milliseconds = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        // The oldest go by their names. Where the clock was set back, this one has to be the newest nevertheless.
        let newest = keys.last().and_then(|key| time_of(key, self.prefix)).unwrap_or(0);
        let milliseconds = milliseconds.max(newest + 1);
        self.count += 1;
        // Several processes may write to one store.
        let name = format!(
            "{}{milliseconds:015}-{:06}-{}",
            self.prefix,
            self.count,
            std::process::id()
        );
        let Ok(key) = Key::new(&name) else {
            return Err(StoreError::Failed(format!("not a key: {name}")).into());
        };
        let value = serde_json::to_vec(entries).map_err(|error| StoreError::Failed(error.to_string()))?;
        let surplus = (keys.len() + 1).saturating_sub(self.limit);
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

/// The time in the name of a document of the log, in milliseconds since the Unix epoch.
fn time_of(key: &Key, prefix: &str) -> Option<u128> {
    let name = key.as_str().strip_prefix(prefix)?;
    name.split('-').next()?.parse().ok()
}

/// The log of a store, the latest entry first, at most `limit` of them.
///
/// # Errors
/// The store cannot be reached or read.
pub async fn read(store: &dyn Store, limit: usize) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    for prefix in [PREFIX, REFUSED_PREFIX] {
        let (documents, _) = store.read(prefix).await?;
        let latest = documents.iter().rev().flat_map(|document| {
            let entries: Vec<Entry> = serde_json::from_slice(&document.value).unwrap_or_default();
            entries.into_iter().rev()
        });
        entries.extend(latest.take(limit));
    }
    // Stable, so that those of one millisecond stay in their order.
    entries.sort_by_key(|entry| Reverse(entry.time));
    entries.truncate(limit);
    Ok(entries)
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
        let (store, audit, mut log) = (MemoryStore::new(), Audit::default(), Log::of_writes());
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
        audit.flush(&store, &mut Log::of_writes()).await;
        assert_eq!(
            store.read(PREFIX).await.expect("documents").0.len(),
            MAX_DOCUMENTS
        );
        (0..2 * MAX_WAITING as u64).for_each(|number| audit.note(entry(number)));
        assert_eq!(audit.waiting().let_in.len(), MAX_WAITING);
    }

    #[tokio::test]
    async fn a_clock_that_was_set_back_takes_nothing_away() {
        let (store, audit, mut log) = (MemoryStore::new(), Audit::default(), Log::of_writes());
        // Another process wrote all of these in a time to come.
        let later = |number: usize| format!("{PREFIX}{:015}-{number:06}-1", u64::MAX / 100_000);
        let put = |number| Change::put(Key::new(&later(number)).expect("a key"), *b"[]");
        let full = Transaction {
            author: String::new(),
            note: String::new(),
            time: SystemTime::now(),
            changes: (1..=MAX_DOCUMENTS).map(put).collect(),
        };
        store.commit(full, Revision(0)).await.expect("made");
        for number in 0..3 {
            audit.note(entry(number));
            audit.flush(&store, &mut log).await;
        }
        let entries = read(&store, 20).await.expect("entries");
        assert_eq!(entries.len(), 3);
    }

    #[tokio::test]
    async fn a_flood_of_refused_calls_pushes_out_nothing_but_refused_calls() {
        let (store, audit) = (MemoryStore::new(), Audit::default());
        let (mut log, mut refused) = (Log::of_writes(), Log::of_refused());
        audit.note(entry(1));
        audit.flush(&store, &mut log).await;
        for _ in 0..MAX_REFUSED_DOCUMENTS + 10 {
            (0..5_000).for_each(|number| audit.note_refused(entry(2 + number)));
            audit.flush_refused(&store, &mut refused).await;
        }
        let (documents, _) = store.read(REFUSED_PREFIX).await.expect("documents");
        assert_eq!(documents.len(), MAX_REFUSED_DOCUMENTS);
        let all = read(&store, usize::MAX).await.expect("entries");
        assert_eq!(all.len(), 1 + MAX_REFUSED_DOCUMENTS * (MAX_REFUSED_WAITING + 1));
        assert_eq!(all.last().map(|it| it.time), Some(1));
        assert!(all[0].what.starts_with("4900 more calls"), "{}", all[0].what);
    }
}
