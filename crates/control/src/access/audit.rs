//! The audit log: who did what from where, and what came of it.
//!
//! Entries are gathered and written to the store once a second, so that the log costs a commit a second and not one
//! for each write. The writes themselves are in the store's history at once. Entries stay as long as the operator
//! says. Calls that are not let in have a bounded number of documents of their own, so that a caller who may do nothing
//! can neither push out the record of those who may, nor fill the store.

use super::audit_log::{Log, documents_of};
use super::entry::AuditRecord;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use weir_store::{Store, StoreError};

/// The prefix of the log's keys.
pub(super) const PREFIX: &str = "weir/audit/";
/// The prefix of the keys of the log of refused calls.
pub(super) const REFUSED_PREFIX: &str = "weir/audit-refused/";
/// How often gathered entries are written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Entries that wait to be written, at most; the oldest go first.
const MAX_WAITING: usize = 10_000;
/// Entries of a document of the log.
const MAX_ENTRIES: usize = 500;
/// The size of a document of the log, about, in bytes.
const MAX_BYTES: usize = 512 << 10;
/// How often what is too old is removed.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);
/// Refused calls that wait to be written, at most. Further ones are only counted.
const MAX_REFUSED_WAITING: usize = 100;
/// Documents of the log of refused calls, at most; the oldest go first.
pub(super) const MAX_REFUSED_DOCUMENTS: usize = 100;
/// Longest text of an entry that a caller chose, in bytes.
const MAX_TEXT: usize = 512;

/// The log. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Audit(Arc<Mutex<AuditQueue>>);

/// Records that wait to be written.
#[derive(Debug, Default)]
struct AuditQueue {
    let_in: VecDeque<AuditRecord>,
    refused: VecDeque<AuditRecord>,
    /// The last refused call of those that had no place, and how many they are.
    more_refused: Option<(AuditRecord, u64)>,
}

impl Audit {
    /// A log that is written to a store until the process ends. Entries stay for as long as `kept` says.
    pub fn open(store: Arc<dyn Store>, kept: Duration) -> Self {
        let audit = Self::default();
        tokio::spawn(audit.clone().write(Arc::clone(&store)));
        tokio::spawn(prune(store, kept));
        audit
    }

    /// Notes a call that was let in.
    pub fn note(&self, entry: AuditRecord) {
        let mut waiting = self.waiting();
        if waiting.let_in.len() == MAX_WAITING {
            waiting.let_in.pop_front();
        }
        waiting.let_in.push_back(short(entry));
    }

    /// Notes a call that was not let in.
    pub fn note_refused(&self, entry: AuditRecord) {
        let mut waiting = self.waiting();
        if waiting.refused.len() < MAX_REFUSED_WAITING {
            waiting.refused.push_back(short(entry));
            return;
        }
        let count = waiting.more_refused.as_ref().map_or(0, |(_, count)| *count);
        waiting.more_refused = Some((short(entry), count + 1));
    }

    fn waiting(&self) -> MutexGuard<'_, AuditQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest entries that wait, as many as a document takes.
    fn take(&self) -> Vec<AuditRecord> {
        let waiting = &mut self.waiting().let_in;
        let some = waiting.len().min(MAX_ENTRIES);
        waiting.drain(..some).collect()
    }

    fn take_refused(&self) -> Vec<AuditRecord> {
        let mut waiting = self.waiting();
        let mut entries: Vec<AuditRecord> = waiting.refused.drain(..).collect();
        entries.extend(waiting.more_refused.take().map(|(last, count)| AuditRecord {
            what: format!(
                "{count} more calls that were not let in, the last of them {}",
                last.what
            ),
            ..last
        }));
        entries
    }

    fn give_back(&self, entries: Vec<AuditRecord>) {
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
            let mut entries = self.take();
            if entries.is_empty() {
                return;
            }
            for entry in &mut entries {
                super::recorded::fill(store, entry).await;
            }
            while !entries.is_empty() {
                let later = entries.split_off(fitting(&entries));
                if let Err(error) = log.write(store, &entries, SystemTime::now()).await {
                    entries.extend(later);
                    tracing::error!(%error, entries = entries.len(), "the audit log cannot be written; retrying");
                    self.give_back(entries);
                    return;
                }
                entries = later;
            }
        }
    }

    async fn flush_refused(&self, store: &dyn Store, log: &mut Log) {
        let entries = self.take_refused();
        if entries.is_empty() {
            return;
        }
        if let Err(error) = log.write(store, &entries, SystemTime::now()).await {
            tracing::error!(%error, entries = entries.len(), "refused calls cannot be written into the audit log");
        }
    }
}

/// How many entries fit into a document; one at least.
fn fitting(entries: &[AuditRecord]) -> usize {
    let mut size = 0;
    let fits = entries.iter().take_while(|entry| {
        let of_changes = entry
            .changes
            .iter()
            .map(|it| it.before.to_string().len() + it.after.to_string().len());
        size += MAX_TEXT + of_changes.sum::<usize>();
        size <= MAX_BYTES
    });
    fits.count().max(1)
}

fn short(mut entry: AuditRecord) -> AuditRecord {
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

/// Removes what is too old, now and then until the process ends.
async fn prune(store: Arc<dyn Store>, kept: Duration) {
    let mut tick = tokio::time::interval(PRUNE_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(before) = SystemTime::now().checked_sub(kept) else {
            continue;
        };
        if let Err(error) = super::audit_log::prune(&*store, PREFIX, before).await {
            tracing::warn!(%error, "old entries of the audit log cannot be removed; retrying");
        }
    }
}

/// The log of a store, the latest entry first, at most `limit` of them.
///
/// # Errors
/// The store cannot be reached or read.
pub async fn read(store: &dyn Store, limit: usize) -> Result<Vec<AuditRecord>, StoreError> {
    let mut entries = Vec::new();
    for prefix in [PREFIX, REFUSED_PREFIX] {
        let is_enough =
            |documents: &[Vec<AuditRecord>]| documents.iter().map(Vec::len).sum::<usize>() >= limit;
        let documents = documents_of(store, prefix, SystemTime::now(), is_enough).await?;
        let latest = documents
            .into_iter()
            .flat_map(|entries| entries.into_iter().rev());
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
    use weir_store::{CommitError, Document, HistoryEntry, Revision, Transaction, Watch, WatchError};

    fn entry(number: u64) -> AuditRecord {
        AuditRecord {
            time: number,
            who: "w".repeat(1000),
            from: String::new(),
            dialect: String::new(),
            what: String::new(),
            status: 200,
            revisions: Vec::new(),
            changes: Vec::new(),
        }
    }

    #[tokio::test]
    async fn the_log_is_written_in_order_and_stays() {
        let (store, audit, mut log) = (MemoryStore::new(), Audit::default(), Log::of_writes());
        let written = MAX_ENTRIES as u64 + 10;
        (0..written).for_each(|number| audit.note(entry(number)));
        audit.flush(&store, &mut log).await;
        let entries = read(&store, 20).await.expect("entries");
        let times: Vec<u64> = entries.iter().map(|it| it.time).collect();
        assert_eq!(times, (written - 20..written).rev().collect::<Vec<_>>());
        assert_eq!(entries[0].who.chars().count(), MAX_TEXT + 1);
        // However many seconds with writes there are, and whichever process wrote.
        for number in 0..1_200 {
            audit.note(entry(number));
            let mut other = Log::of_writes();
            audit
                .flush(&store, if number % 2 == 0 { &mut log } else { &mut other })
                .await;
        }
        let entries = read(&store, usize::MAX).await.expect("entries");
        assert_eq!(entries.len() as u64, written + 1_200);
        (0..2 * MAX_WAITING as u64).for_each(|number| audit.note(entry(number)));
        assert_eq!(audit.waiting().let_in.len(), MAX_WAITING);
    }

    #[tokio::test]
    async fn what_is_too_old_goes_and_nothing_else() {
        const DAY: u64 = 86_400;
        let store = MemoryStore::new();
        let now = SystemTime::now();
        let ages = [0, 1, 30, 399, 402, 500, 4_000];
        for age in ages {
            let then = now - Duration::from_secs(age * DAY);
            Log::of_writes()
                .write(&store, &[entry(age)], then)
                .await
                .expect("written");
        }
        let left = async || {
            let entries = read(&store, usize::MAX).await.expect("entries");
            let mut ages: Vec<u64> = entries.iter().map(|it| it.time).collect();
            ages.sort_unstable();
            ages
        };
        assert_eq!(left().await, ages);
        for (kept, expected) in [(400, &ages[..4]), (400, &ages[..4]), (20, &ages[..2])] {
            let before = now - Duration::from_secs(kept * DAY);
            super::super::audit_log::prune(&store, PREFIX, before)
                .await
                .expect("pruned");
            assert_eq!(left().await, expected);
        }
    }

    /// A store to which others write so fast that every commit comes too late at first.
    #[derive(Debug)]
    struct BusyStore(MemoryStore, std::sync::atomic::AtomicUsize);

    #[async_trait::async_trait]
    impl Store for BusyStore {
        async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
            self.0.read(prefix).await
        }

        async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
            self.0.watch(prefix, after).await
        }

        async fn commit(
            &self,
            transaction: Transaction,
            expected: Revision,
        ) -> Result<Revision, CommitError> {
            let left = self.1.load(std::sync::atomic::Ordering::Relaxed);
            if left > 0 {
                self.1.store(left - 1, std::sync::atomic::Ordering::Relaxed);
                return Err(CommitError::Conflict {
                    current: self.0.read("").await?.1,
                });
            }
            self.0.commit(transaction, expected).await
        }

        async fn history(
            &self,
            prefix: &str,
            before: Option<Revision>,
            limit: usize,
        ) -> Result<Vec<HistoryEntry>, StoreError> {
            self.0.history(prefix, before, limit).await
        }

        async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
            self.0.compact(before).await
        }
    }

    #[tokio::test]
    async fn writers_who_are_always_faster_do_not_keep_the_log_from_being_written() {
        let (store, audit) = (BusyStore(MemoryStore::new(), 100.into()), Audit::default());
        audit.note(entry(7));
        audit.flush(&store, &mut Log::of_writes()).await;
        assert_eq!(read(&store, 20).await.expect("entries").len(), 1);
        assert!(audit.waiting().let_in.is_empty());
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
