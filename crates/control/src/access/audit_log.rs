//! The documents of the audit log in the store: their names, and how those are found that are new or too old.
//!
//! A document is named after the time at which it was written, in milliseconds with leading zeros. What is of one time
//! begins alike, so neither reading the latest entries nor removing old ones looks at all documents.

use super::audit::{MAX_REFUSED_DOCUMENTS, PREFIX, REFUSED_PREFIX};
use super::entry::AuditRecord;
use std::collections::BTreeSet;
use std::time::SystemTime;
use weir_model::unix_time::millis;
use weir_store::{Change, CommitError, Key, Store, StoreError, Transaction};

/// Digits of the time in a name.
const DIGITS: usize = 15;
/// Names that have so many digits in common are of the same 28 hours.
const DAY_DIGITS: usize = 7;
/// So many of these days are read one by one, the latest first, before all the others together.
const DAYS: u128 = 32;
/// Milliseconds of such a day.
const DAY: u128 = 10u128.pow((DIGITS - DAY_DIGITS) as u32);
/// Documents that are removed at once.
const REMOVED_AT_ONCE: usize = 100;

/// One of the logs.
#[derive(Debug)]
pub struct Log {
    prefix: &'static str,
    /// Its documents, at most; `None`: only their age counts.
    limit: Option<usize>,
    /// Distinguishes documents that are written in the same millisecond.
    count: u64,
}

impl Log {
    /// The log of calls that were let in.
    pub fn of_writes() -> Self {
        Self {
            prefix: PREFIX,
            limit: None,
            count: 0,
        }
    }

    /// The log of calls that were not.
    pub fn of_refused() -> Self {
        Self {
            prefix: REFUSED_PREFIX,
            limit: Some(MAX_REFUSED_DOCUMENTS),
            count: 0,
        }
    }

    /// Writes entries as one document.
    pub async fn write(
        &mut self,
        store: &dyn Store,
        entries: &[AuditRecord],
        now: SystemTime,
    ) -> Result<(), CommitError> {
        self.count += 1;
        let (mut changes, newest) = self.surplus(store).await?;
        // If the clock was set back, this one has to be the newest nevertheless.
        let time = u128::from(millis(now)).max(newest + 1);
        // Several processes may write to one store.
        let mark = mark()?;
        let name = format!("{}{time:0DIGITS$}-{:06}-{mark:08x}", self.prefix, self.count);
        let Ok(key) = Key::new(&name) else {
            return Err(StoreError::Failed(format!("not a key: {name}")).into());
        };
        let value = serde_json::to_vec(entries).map_err(|error| StoreError::Failed(error.to_string()))?;
        changes.push(Change::put(key, value));
        store.append(transaction(now, changes)).await?;
        Ok(())
    }

    /// The oldest documents, if there are too many, and the time of the newest.
    async fn surplus(&self, store: &dyn Store) -> Result<(Vec<Change>, u128), StoreError> {
        let Some(limit) = self.limit else {
            return Ok((Vec::new(), 0));
        };
        let (documents, _) = store.read(self.prefix).await?;
        let newest = documents.last().and_then(|it| time_of(&it.key, self.prefix));
        let surplus = (documents.len() + 1).saturating_sub(limit).min(REMOVED_AT_ONCE);
        let oldest = documents.into_iter().take(surplus);
        let gone = oldest.map(|it| Change::Delete { key: it.key });
        Ok((gone.collect(), newest.unwrap_or(0)))
    }
}

/// The time in the name of a document of a log.
fn time_of(key: &Key, prefix: &str) -> Option<u128> {
    let name = key.as_str().strip_prefix(prefix)?;
    name.split('-').next()?.parse().ok()
}

/// Distinguishes the documents of several processes, which may run on several machines.
fn mark() -> Result<u32, StoreError> {
    let mut mark = [0; 4];
    aws_lc_rs::rand::fill(&mut mark).map_err(|_| StoreError::Failed("no random bits".to_owned()))?;
    Ok(u32::from_be_bytes(mark))
}

fn transaction(time: SystemTime, changes: Vec<Change>) -> Transaction {
    Transaction {
        author: "weir".to_owned(),
        note: "audit log".to_owned(),
        time,
        changes,
    }
}

/// The entries of the documents of a log, the latest document first, until they are enough.
pub async fn documents_of(
    store: &dyn Store,
    prefix: &str,
    now: SystemTime,
    is_enough: impl Fn(&[Vec<AuditRecord>]) -> bool,
) -> Result<Vec<Vec<AuditRecord>>, StoreError> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    let today = u128::from(millis(now)) / DAY;
    // Another process may be ahead by a little.
    let days = (today.saturating_sub(DAYS)..=today + 1).rev();
    let latest = days.map(|day| format!("{prefix}{day:0DAY_DIGITS$}"));
    for begin in latest.chain([prefix.to_owned()]) {
        let (documents, _) = store.read(&begin).await?;
        for document in documents.into_iter().rev() {
            if seen.insert(document.key) {
                found.push(serde_json::from_slice(&document.value).unwrap_or_default());
            }
        }
        if is_enough(&found) {
            break;
        }
    }
    Ok(found)
}

/// Removes the documents of a log that were written before a time, to the day.
///
/// # Errors
/// The store cannot be read or written.
pub async fn prune(store: &dyn Store, prefix: &str, before: SystemTime) -> Result<(), CommitError> {
    let oldest = format!("{:0DIGITS$}", u128::from(millis(before)));
    for (place, digit) in oldest.char_indices().take(DAY_DIGITS) {
        // All names with a smaller digit at this place, and the same before it, are older.
        for smaller in ('0'..digit).rev() {
            let begin = format!("{prefix}{}{smaller}", &oldest[..place]);
            let (documents, _) = store.read(&begin).await?;
            for some in documents.chunks(REMOVED_AT_ONCE) {
                let gone = some.iter().map(|it| Change::Delete { key: it.key.clone() });
                store
                    .append(transaction(SystemTime::now(), gone.collect()))
                    .await?;
            }
        }
    }
    Ok(())
}
