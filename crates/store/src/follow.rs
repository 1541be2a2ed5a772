//! Following a part of a store through everything that may happen to it.
//!
//! A [`Watch`] ends when the store is lost or its reader was too slow. A [`Subscription`] does not end: it goes on where
//! the watch was, or, if the store no longer knows that, reads again and reports the difference. Meanwhile its
//! [`ConnectionStatus`] says how long it has heard nothing.

use crate::document::{Document, Key, Revision};
use crate::store::{Changes, Store, StoreError, Watch, WatchError};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::Instant;

/// How long to wait after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// No one replaces a store, or restores a backup of it, within this time. A store that
/// was away for longer is read again, whatever its revision is by now.
const REPLACED: Duration = Duration::from_secs(5);

/// The documents below a prefix, as they change.
#[derive(Debug)]
pub struct Subscription {
    store: Arc<dyn Store>,
    prefix: String,
    /// Everything up to here has been reported.
    revision: Revision,
    /// The last event of each document that is there.
    reported: HashMap<Key, SubscriptionEvent>,
    watch: Option<ActiveWatch>,
    /// Whether the next attempt reads everything: the changes in between are not to be had.
    must_read: bool,
    /// Since when the store is away.
    lost: Option<Instant>,
    pause: Duration,
    next_attempt: Instant,
    link: Sender<ConnectionStatus>,
}

/// A watch that goes on, and since when.
struct ActiveWatch {
    watch: Box<dyn Watch>,
    since: Instant,
}

impl std::fmt::Debug for ActiveWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ActiveWatch").finish_non_exhaustive()
    }
}

/// Enough of a document to see that it is another one by now. A store that was set back to an older state may come to
/// the same revision with another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SubscriptionEvent {
    modified: Revision,
    value: u64,
}

impl SubscriptionEvent {
    fn new(document: &Document) -> Self {
        let mut hasher = DefaultHasher::new();
        document.value.hash(&mut hasher);
        Self {
            modified: document.modified,
            value: hasher.finish(),
        }
    }
}

/// The state of the connection to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Why the store cannot be followed at the moment; what was reported may be stale. `None`: it is followed.
    pub fault: Option<String>,
    /// Since when.
    pub since: SystemTime,
}

impl ConnectionStatus {
    /// Whether all that is committed is reported at once.
    pub fn is_connected(&self) -> bool {
        self.fault.is_none()
    }

    fn connected() -> Self {
        Self {
            fault: None,
            since: SystemTime::now(),
        }
    }

    fn lost(fault: String) -> Self {
        Self {
            fault: Some(fault),
            since: SystemTime::now(),
        }
    }
}

/// Reads what is below a prefix and follows it from there.
///
/// # Errors
/// The store cannot be reached or read. A caller that has older documents continues with them and calls [`resume`].
pub async fn start(
    store: Arc<dyn Store>,
    prefix: &str,
) -> Result<(Vec<Document>, Revision, Subscription), StoreError> {
    let (documents, revision) = store.read(prefix).await?;
    let mut following = Subscription::new(store, prefix, &documents);
    following.revision = revision;
    following.must_read = false;
    following.link.send_replace(ConnectionStatus::connected());
    Ok((documents, revision, following))
}

/// Follows what is below a prefix from documents that were read some time ago, such as those kept on disk. What has
/// changed since comes as the first batch, as soon as the store can be reached.
pub fn resume(store: Arc<dyn Store>, prefix: &str, documents: &[Document]) -> Subscription {
    Subscription::new(store, prefix, documents)
}

impl Subscription {
    fn new(store: Arc<dyn Store>, prefix: &str, documents: &[Document]) -> Self {
        let events = documents
            .iter()
            .map(|it| (it.key.clone(), SubscriptionEvent::new(it)));
        Self {
            store,
            prefix: prefix.to_owned(),
            revision: Revision::default(),
            reported: events.collect(),
            watch: None,
            must_read: true,
            lost: None,
            pause: FIRST_PAUSE,
            next_attempt: Instant::now(),
            link: Sender::new(ConnectionStatus::lost("not reached yet".into())),
        }
    }

    /// Everything up to this revision has been reported.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The state of the connection to the store, now and from then on.
    pub fn link(&self) -> Receiver<ConnectionStatus> {
        self.link.subscribe()
    }

    /// The next changes, or, after the store was lost, all changes meanwhile. There may be no documents in it:
    /// then only the revision is new. May be dropped while it waits; nothing is lost then.
    pub async fn next(&mut self) -> Changes {
        loop {
            let Some(joined) = &mut self.watch else {
                match self.join().await {
                    Ok(Some(changes)) => return changes,
                    Ok(None) => {}
                    Err(error) => self.lose(&error),
                }
                continue;
            };
            match joined.watch.next().await {
                Ok(changes) => {
                    self.note(&changes);
                    return changes;
                }
                Err(error) => {
                    // A store that lets watches begin only to end them is not asked without a pause.
                    if joined.since.elapsed() > LONGEST_PAUSE {
                        self.pause = FIRST_PAUSE;
                    }
                    self.watch = None;
                    self.lose(&error);
                }
            }
        }
    }

    /// Watches again, from the end of the last watch if that can be.
    async fn join(&mut self) -> Result<Option<Changes>, WatchError> {
        tokio::time::sleep_until(self.next_attempt).await;
        self.must_read |= self.lost.is_some_and(|lost| lost.elapsed() > REPLACED);
        if !self.must_read {
            let watch = self.store.watch(&self.prefix, self.revision).await?;
            self.joined(watch);
            return Ok(None);
        }
        let (documents, revision) = self.store.read(&self.prefix).await?;
        let watch = self.store.watch(&self.prefix, revision).await?;
        let changes = self.difference(documents, revision);
        self.must_read = false;
        self.note(&changes);
        self.joined(watch);
        Ok(Some(changes))
    }

    fn joined(&mut self, watch: Box<dyn Watch>) {
        self.lost = None;
        self.watch = Some(ActiveWatch {
            watch,
            since: Instant::now(),
        });
        self.link.send_if_modified(|link| {
            let is_new = !link.is_connected();
            if is_new {
                *link = ConnectionStatus::connected();
            }
            is_new
        });
    }

    fn lose(&mut self, error: &WatchError) {
        if matches!(error, WatchError::Compacted) {
            self.must_read = true;
        } else {
            self.lost.get_or_insert_with(Instant::now);
            self.link.send_if_modified(|link| {
                let is_new = link.is_connected();
                if is_new {
                    *link = ConnectionStatus::lost(error.to_string());
                }
                is_new
            });
        }
        tracing::debug!(prefix = self.prefix, %error, "the store cannot be followed; retrying");
        self.next_attempt = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn difference(&self, documents: Vec<Document>, revision: Revision) -> Changes {
        let mut gone: HashMap<&Key, SubscriptionEvent> =
            self.reported.iter().map(|(key, event)| (key, *event)).collect();
        let mut changed = Vec::new();
        for document in documents {
            if gone.remove(&document.key) != Some(SubscriptionEvent::new(&document)) {
                changed.push((document.key.clone(), Some(document)));
            }
        }
        changed.extend(gone.into_keys().map(|key| (key.clone(), None)));
        changed.sort_by(|(one, _), (other, _)| one.cmp(other));
        Changes {
            revision,
            documents: changed,
        }
    }

    fn note(&mut self, changes: &Changes) {
        self.revision = changes.revision;
        self.pause = FIRST_PAUSE;
        for (key, document) in &changes.documents {
            match document {
                Some(document) => self
                    .reported
                    .insert(key.clone(), SubscriptionEvent::new(document)),
                None => self.reported.remove(key),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Change, Transaction};
    use crate::memory::MemoryStore;

    /// A store with a commit for each document.
    async fn filled(documents: &[(&str, &str)]) -> Arc<dyn Store> {
        let store = MemoryStore::new();
        for (revision, (key, value)) in documents.iter().enumerate() {
            let transaction = Transaction {
                author: String::new(),
                note: String::new(),
                time: SystemTime::UNIX_EPOCH,
                changes: vec![Change::put(Key::new(key).unwrap(), value.as_bytes())],
            };
            store
                .commit(transaction, Revision(revision as u64))
                .await
                .unwrap();
        }
        Arc::new(store)
    }

    #[tokio::test]
    async fn a_store_that_was_away_for_long_may_be_another_one() {
        for (away, expected) in [
            (Duration::ZERO, &["b"][..]),
            (REPLACED + Duration::from_secs(1), &["a", "b"]),
        ] {
            let (_, _, mut following) = start(filled(&[("a", "1")]).await, "").await.unwrap();
            following.store = filled(&[("a", "2"), ("b", "1")]).await;
            following.lost = Instant::now().checked_sub(away);
            let changes = following.next().await;
            let keys: Vec<&str> = changes.documents.iter().map(|(key, _)| key.as_str()).collect();
            assert_eq!((keys.as_slice(), changes.revision), (expected, Revision(2)));
            assert_eq!(following.lost, None);
        }
    }
}
