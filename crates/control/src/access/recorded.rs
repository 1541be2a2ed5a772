//! Which commits a call has made, for the audit log: a store that notes the revisions of the calls that write to it. What
//! was changed by them is read from the store's history when the log is written.

use super::entry::{AuditRecord, Change};
use crate::api::redact_difference;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;
use weir_store::{
    CommitError, Document, HistoryEntry, Revision, Store, StoreError, Transaction, Watch, WatchError,
};

/// Documents of a call that are recorded, at most.
const MAX_CHANGES: usize = 50;
/// The most bytes that are recorded of a call's documents. Those beyond are only named.
const MAX_BYTES: usize = 16 << 10;
/// The longest text that is recorded as it is, in characters.
const MAX_TEXT: usize = 256;

tokio::task_local! {
    static COMMITS: RefCell<Vec<u64>>;
}

/// Does the work of a call. Also returns the revisions that it has made.
pub async fn commits_of<R>(work: impl Future<Output = R>) -> (R, Vec<u64>) {
    let noting = async {
        let done = work.await;
        (done, COMMITS.with(RefCell::take))
    };
    COMMITS.scope(RefCell::default(), noting).await
}

/// A store that notes the commits of calls.
pub fn recording(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Recording(store))
}

#[derive(Debug)]
struct Recording(Arc<dyn Store>);

fn note(has_changes: bool, made: Result<Revision, CommitError>) -> Result<Revision, CommitError> {
    if let (true, Ok(revision)) = (has_changes, &made) {
        // What commits by itself is no call.
        let _of_no_call = COMMITS.try_with(|known| known.borrow_mut().push(revision.0));
    }
    made
}

#[async_trait]
impl Store for Recording {
    fn is_sealed(&self) -> bool {
        self.0.is_sealed()
    }

    fn largest_document(&self) -> Option<usize> {
        self.0.largest_document()
    }

    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        self.0.read(prefix).await
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.0.watch(prefix, after).await
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        let has_changes = !transaction.changes.is_empty();
        note(has_changes, self.0.commit(transaction, expected).await)
    }

    async fn append(&self, transaction: Transaction) -> Result<Revision, CommitError> {
        let has_changes = !transaction.changes.is_empty();
        note(has_changes, self.0.append(transaction).await)
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

/// Fills in what the commits of a call have changed. If the store cannot say, the entry has the revisions only.
pub async fn fill(store: &dyn Store, entry: &mut AuditRecord) {
    entry.changes.clear();
    let mut room = MAX_BYTES;
    for revision in &entry.revisions {
        let history = store.history("", Some(Revision(revision + 1)), MAX_CHANGES).await;
        let of_it = history.unwrap_or_default();
        let of_it = of_it.iter().filter(|it| it.revision.0 == *revision);
        for change in of_it.take(MAX_CHANGES.saturating_sub(entry.changes.len())) {
            let shortened = without_secrets(change, &mut room);
            entry.changes.push(shortened);
        }
    }
}

/// A change without its secrets, and without what has stayed the same.
fn without_secrets(change: &HistoryEntry, room: &mut usize) -> Change {
    let read = |value: &Option<Arc<[u8]>>| value.as_ref().map_or(Value::Null, |it| read(it));
    let mut item = json!({
        "document": change.key.as_str(),
        "before": read(&change.before),
        "after": read(&change.after),
    });
    redact_difference(&mut item);
    let (mut before, mut after) = (item["before"].take(), item["after"].take());
    prune(&mut before, &mut after);
    shorten(&mut before);
    shorten(&mut after);
    let document = change.key.as_str().to_owned();
    let size = before.to_string().len() + after.to_string().len();
    if size > *room {
        return Change {
            document,
            before: Value::Null,
            after: Value::Null,
            is_omitted: true,
        };
    }
    *room -= size;
    Change {
        document,
        before,
        after,
        is_omitted: false,
    }
}

fn read(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| String::from_utf8_lossy(value).into_owned().into())
}

/// Takes out of two maps what is the same in both.
fn prune(before: &mut Value, after: &mut Value) {
    let (Value::Object(one), Value::Object(other)) = (before, after) else {
        return;
    };
    let names: Vec<String> = one.keys().cloned().collect();
    for name in names {
        let (Some(was), Some(is)) = (one.get_mut(&name), other.get_mut(&name)) else {
            continue;
        };
        if was == is {
            one.remove(&name);
            other.remove(&name);
        } else {
            prune(was, is);
        }
    }
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => Map::values_mut(fields).for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change as Written, Key};

    fn entry(revisions: Vec<u64>) -> AuditRecord {
        AuditRecord {
            time: 0,
            who: String::new(),
            from: String::new(),
            dialect: String::new(),
            what: String::new(),
            status: 200,
            revisions,
            changes: Vec::new(),
        }
    }

    async fn put(store: &Arc<dyn Store>, values: &[(&str, Value)]) -> Revision {
        let changes = values
            .iter()
            .map(|(key, value)| Written::put(Key::new(key).expect("a key"), value.to_string().into_bytes()));
        let transaction = Transaction {
            author: "ann".to_owned(),
            note: String::new(),
            time: SystemTime::UNIX_EPOCH,
            changes: changes.collect(),
        };
        store.append(transaction).await.expect("made")
    }

    #[tokio::test]
    async fn a_calls_own_commits_are_recorded_with_what_they_changed() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let recording = recording(Arc::clone(&store));
        put(
            &store,
            &[("native/consumers/a", json!({"name": "a", "n": 1, "key": "k1"}))],
        )
        .await;
        let ((), made) = commits_of(async {
            put(
                &recording,
                &[("native/consumers/a", json!({"name": "a", "n": 2, "key": "k2"}))],
            )
            .await;
            // What others commit is theirs.
            put(&store, &[("native/consumers/b", json!({}))]).await;
            put(
                &recording,
                &[("native/consumers/c", json!({"text": "x".repeat(300)}))],
            )
            .await;
        })
        .await;
        assert_eq!(made, [2, 4]);
        let mut recorded = entry(made);
        fill(&*store, &mut recorded).await;
        let changes: Vec<(&str, &Value, String)> = recorded
            .changes
            .iter()
            .map(|it| (it.document.as_str(), &it.before, it.after.to_string()))
            .collect();
        assert_eq!(changes[0].0, "native/consumers/a");
        assert_eq!(
            (changes[0].1, changes[0].2.as_str()),
            (
                &json!({"n": 1, "key": "***"}),
                "{\"key\":\"*** (another)\",\"n\":2}"
            )
        );
        assert_eq!((changes[1].0, changes[1].1), ("native/consumers/c", &Value::Null));
        assert!(
            changes[1].2.len() < 300 && changes[1].2.contains('…'),
            "{changes:?}"
        );
        assert!(commits_of(async {}).await.1.is_empty());
    }

    #[tokio::test]
    async fn what_is_too_much_is_named() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let large: Vec<String> = (0..200).map(|it| format!("{it:0200}")).collect();
        let keys: Vec<String> = (0..MAX_CHANGES + 10)
            .map(|it| format!("native/routes/{it:03}"))
            .collect();
        let values: Vec<(&str, Value)> = keys
            .iter()
            .enumerate()
            .map(|(index, key)| (key.as_str(), if index == 1 { json!(large) } else { json!(index) }))
            .collect();
        let revision = put(&store, &values).await;
        let mut recorded = entry(vec![revision.0]);
        fill(&*store, &mut recorded).await;
        assert_eq!(recorded.changes.len(), MAX_CHANGES);
        let skipped: Vec<bool> = recorded.changes.iter().take(3).map(|it| it.is_omitted).collect();
        assert_eq!(skipped, [false, true, false]);
    }
}
