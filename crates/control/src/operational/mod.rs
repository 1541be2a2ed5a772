//! The operational store: what is not configuration. Sessions, one-time tokens, deliveries, sign-ups and the time of last
//! use are here. They change often, end by themselves, and must neither fill the configuration's history nor make its
//! writers try again.
//!
//! It is a [`Store`] like the other one, opened next to it: `operational.db` in the same folder, another prefix in the
//! same etcd, or memory. A document is `{"ends":MILLISECONDS,"value":…}`. Whether it has ended is decided by the
//! caller's clock. The store removes it later by itself.
//!
//! **What it is not**: gateways read nothing of it except what plugins share ([`crate::shared_records`]), it is not
//! part of a roll back, and it has no history for people.

mod cache;

pub use cache::Cache;

use crate::follow::sealed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time;
use weir_store::memory::MemoryStore;
use weir_store::seal::SealingKeys;
use weir_store::{Change, CommitError, Document, Key, Revision, Store, StoreError, Transaction};

/// For how long the store knows what was changed. Only its watches need that.
pub const HISTORY: Duration = Duration::from_secs(3600);
/// How often a change is tried while others write too.
const MAX_ATTEMPTS: usize = 50;
/// How many documents are changed in one commit, if each stands for itself.
const A_COMMIT: usize = 100;
/// The note of each change in the history of the store.
const NOTE: &str = "operational";

/// The store of what is not configuration. Cheap to share.
#[derive(Debug, Clone)]
pub struct OperationalStore(Arc<dyn Store>);

/// A document of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationalEntry<T> {
    /// Its name.
    pub key: Key,
    /// Its value.
    pub value: T,
    /// From when on it is no longer there; `None`: it stays.
    pub ends: Option<SystemTime>,
    /// The commit that created it. Of two documents the later one has the greater one.
    pub created: Revision,
    /// The last commit that changed it.
    pub modified: Revision,
}

/// How many documents there may be.
#[derive(Debug, Clone, Copy)]
pub struct DocumentLimit<'p> {
    /// The documents that count: those whose keys begin with this text.
    pub prefix: &'p str,
    /// At most so many.
    pub max: usize,
    /// The rule for one more.
    pub when_full: OverflowPolicy,
}

/// The rule for a new document if there are as many as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// It is refused with [`OperationalError::Full`].
    Refuse,
    /// The oldest one is removed.
    RemoveOldest,
}

/// Why something was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum OperationalError {
    /// There is a document of that name already.
    #[error("{0} exists already")]
    Exists(Key),
    /// There are as many as may be.
    #[error("there are already {0} of them, the maximum")]
    Full(usize),
    /// A text is no name of a document.
    #[error("not a name: {0}")]
    Name(weir_store::BadKey),
    /// Others were always faster.
    #[error("conflicting concurrent writes; try again")]
    Busy,
    /// A value has no JSON form.
    #[error("a document cannot be written: {0}")]
    Unwritable(serde_json::Error),
    /// The store does not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CommitError> for OperationalError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. } => Self::Busy,
            CommitError::Unknown(error) | CommitError::Store(error) => Self::Store(error),
        }
    }
}

/// A document as it is stored.
#[derive(Serialize, Deserialize)]
struct OperationalRecord<T> {
    /// In milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<u64>,
    value: T,
}

/// A document that is written or removed together with others.
#[derive(Debug, Clone)]
pub enum OperationalWrite {
    /// It becomes this.
    Put {
        /// Its name.
        key: Key,
        /// Its value.
        value: serde_json::Value,
        /// From when on it is no longer there; `None`: it stays.
        ends: Option<SystemTime>,
    },
    /// It is removed.
    Remove(Key),
}

impl OperationalWrite {
    /// A document becomes this.
    ///
    /// # Errors
    /// The value has no JSON form.
    pub fn put<T: Serialize>(
        key: Key,
        value: &T,
        ends: Option<SystemTime>,
    ) -> Result<Self, OperationalError> {
        let value = serde_json::to_value(value).map_err(OperationalError::Unwritable)?;
        Ok(Self::Put { key, value, ends })
    }
}

impl OperationalStore {
    /// Over a store that holds nothing else.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// In memory, for a process without a store.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::new()))
    }

    /// Opens the one of a location ([`weir_store::open_operational`]); `keys` seal what is in it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn open(location: &str, keys: Option<&SealingKeys>) -> Result<Self, StoreError> {
        let store = weir_store::open_operational(location).await?;
        Ok(Self::new(sealed(store, keys)))
    }

    /// The store itself, to follow a part of it. [`decode`] reads its values.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0
    }

    /// The document of a name, if it is there now.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn read<T: DeserializeOwned>(
        &self,
        key: &Key,
        now: SystemTime,
    ) -> Result<Option<OperationalEntry<T>>, OperationalError> {
        let (documents, _) = self.0.read(key.as_str()).await?;
        let mut found = documents.iter().filter(|it| it.key == *key);
        Ok(found.next().and_then(|it| decode(it, now)))
    }

    /// The same, with the revision of the store then.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn read_at<T: DeserializeOwned>(
        &self,
        key: &Key,
        now: SystemTime,
    ) -> Result<(Option<OperationalEntry<T>>, Revision), OperationalError> {
        let (documents, revision) = self.0.read(key.as_str()).await?;
        let found = documents.iter().find(|it| it.key == *key);
        Ok((found.and_then(|it| decode(it, now)), revision))
    }

    /// The documents below a prefix that are there now, in the order of their keys.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn list<T: DeserializeOwned>(
        &self,
        prefix: &str,
        now: SystemTime,
    ) -> Result<Vec<OperationalEntry<T>>, OperationalError> {
        let (documents, _) = self.0.read(prefix).await?;
        Ok(documents.iter().filter_map(|it| decode(it, now)).collect())
    }

    /// Writes a document, whatever was there.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn put<T: Serialize>(
        &self,
        key: &Key,
        value: &T,
        (ends, now): (Option<SystemTime>, SystemTime),
    ) -> Result<(), OperationalError> {
        let change = change(key, value, ends, now)?;
        self.0.append(transaction(vec![change], now)).await?;
        Ok(())
    }

    /// Writes and removes documents as one change, whatever was there.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn write(
        &self,
        writes: Vec<OperationalWrite>,
        now: SystemTime,
    ) -> Result<(), OperationalError> {
        let changes = writes.into_iter().map(|it| written(it, now));
        let changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
        self.0.append(transaction(changes, now)).await?;
        Ok(())
    }

    /// Writes and removes documents as one change, if these documents hold what is expected of them (`None`: they are not
    /// there). `None`: one does not, and nothing is changed.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn write_if(
        &self,
        expected: &[(Key, Option<serde_json::Value>)],
        writes: Vec<OperationalWrite>,
        now: SystemTime,
    ) -> Result<Option<Revision>, OperationalError> {
        let changes = writes.into_iter().map(|it| written(it, now));
        let changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
        if expected.is_empty() {
            return Ok(Some(self.0.append(transaction(changes, now)).await?));
        }
        for _ in 0..MAX_ATTEMPTS {
            let mut revision: Option<Revision> = None;
            for (key, expected) in expected {
                let (entry, at) = self.read_at::<serde_json::Value>(key, now).await?;
                // A commit on the first revision fails if anything came in between.
                revision.get_or_insert(at);
                if entry.map(|it| it.value) != *expected {
                    return Ok(None);
                }
            }
            let made = transaction(changes.clone(), now);
            match self.0.commit(made, revision.unwrap_or_default()).await {
                Ok(revision) => return Ok(Some(revision)),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(OperationalError::Busy)
    }

    /// Writes and removes documents as one change, if a document is there, whatever it holds. `false`: it is not, and nothing
    /// is changed.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn write_if_there(
        &self,
        key: &Key,
        writes: Vec<OperationalWrite>,
        now: SystemTime,
    ) -> Result<bool, OperationalError> {
        let changes = writes.into_iter().map(|it| written(it, now));
        let changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
        for _ in 0..MAX_ATTEMPTS {
            let (documents, revision) = self.0.read(key.as_str()).await?;
            if !documents.iter().any(|it| it.key == *key && is_live(it, now)) {
                return Ok(false);
            }
            if self.try_commit(changes.clone(), revision, now).await? {
                return Ok(true);
            }
        }
        Err(OperationalError::Busy)
    }

    /// Removes documents. Those that are not there do no harm.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn remove(
        &self,
        keys: impl IntoIterator<Item = Key>,
        now: SystemTime,
    ) -> Result<(), OperationalError> {
        let changes: Vec<Change> = keys.into_iter().map(|key| Change::Delete { key }).collect();
        if !changes.is_empty() {
            self.0.append(transaction(changes, now)).await?;
        }
        Ok(())
    }

    /// Writes a document that must not exist, if the bound allows one more.
    ///
    /// # Errors
    /// [`OperationalError::Exists`], [`OperationalError::Full`], or the store cannot be reached or written.
    pub async fn create<T: Serialize>(
        &self,
        key: &Key,
        value: &T,
        (ends, now): (Option<SystemTime>, SystemTime),
        bound: DocumentLimit<'_>,
    ) -> Result<(), OperationalError> {
        let new = change(key, value, ends, now)?;
        for _ in 0..MAX_ATTEMPTS {
            let (documents, revision) = self.0.read(bound.prefix).await?;
            let (mut live, ended): (Vec<&Document>, Vec<&Document>) =
                documents.iter().partition(|it| is_live(it, now));
            if live.iter().any(|it| it.key == *key) {
                return Err(OperationalError::Exists(key.clone()));
            }
            let mut gone: Vec<Key> = ended.into_iter().map(|it| it.key.clone()).collect();
            let excess = (live.len() + 1).saturating_sub(bound.max);
            if excess > 0 && (bound.when_full == OverflowPolicy::Refuse || bound.max == 0) {
                return Err(OperationalError::Full(bound.max));
            }
            live.sort_by_key(|it| it.created);
            gone.extend(live.into_iter().take(excess).map(|it| it.key.clone()));
            let removals = gone.into_iter().filter(|it| it != key);
            let mut changes: Vec<Change> = removals.map(|key| Change::Delete { key }).collect();
            changes.push(new.clone());
            if self.try_commit(changes, revision, now).await? {
                return Ok(());
            }
        }
        Err(OperationalError::Busy)
    }

    /// Reads a document and removes it, as one change: of several callers one gets it. For what counts once.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn take<T: DeserializeOwned>(
        &self,
        key: &Key,
        now: SystemTime,
    ) -> Result<Option<OperationalEntry<T>>, OperationalError> {
        for _ in 0..MAX_ATTEMPTS {
            let (documents, revision) = self.0.read(key.as_str()).await?;
            let Some(document) = documents.iter().find(|it| it.key == *key) else {
                return Ok(None);
            };
            let changes = vec![Change::Delete { key: key.clone() }];
            if self.try_commit(changes, revision, now).await? {
                return Ok(decode(document, now));
            }
        }
        Err(OperationalError::Busy)
    }

    /// Changes a document as a function says of what is there now. `None` from the function: it stays as it is.
    /// The function may be called several times. Returns the document as it is afterwards.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    pub async fn update<T: Serialize + DeserializeOwned>(
        &self,
        key: &Key,
        now: SystemTime,
        mut changed: impl FnMut(Option<&OperationalEntry<T>>) -> Option<(T, Option<SystemTime>)>,
    ) -> Result<Option<T>, OperationalError> {
        for _ in 0..MAX_ATTEMPTS {
            let (documents, revision) = self.0.read(key.as_str()).await?;
            let known = documents.iter().find(|it| it.key == *key);
            let known = known.and_then(|it| decode::<T>(it, now));
            let Some((value, ends)) = changed(known.as_ref()) else {
                return Ok(known.map(|it| it.value));
            };
            let changes = vec![change(key, &value, ends, now)?];
            if self.try_commit(changes, revision, now).await? {
                return Ok(Some(value));
            }
        }
        Err(OperationalError::Busy)
    }

    /// Changes the documents below a prefix of which a function says something, many in a commit. What others write or
    /// remove meanwhile is read again, and is not undone. Returns how many were changed.
    ///
    /// # Errors
    /// The store cannot be reached or written, or others were always faster. What was changed until then stays changed.
    pub async fn update_each<T: Serialize + DeserializeOwned>(
        &self,
        prefix: &str,
        now: SystemTime,
        changed: impl Fn(&OperationalEntry<T>) -> Option<T>,
    ) -> Result<usize, OperationalError> {
        let (mut count, mut lost) = (0, 0);
        while lost < MAX_ATTEMPTS {
            let (documents, mut revision) = self.0.read(prefix).await?;
            let known = documents.iter().filter_map(|it| decode::<T>(it, now));
            let changes = known.filter_map(|it| Some(change(&it.key, &changed(&it)?, it.ends, now)));
            let changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
            let mut is_through = true;
            for batch in changes.chunks(A_COMMIT) {
                match self.0.commit(transaction(batch.to_vec(), now), revision).await {
                    // Nothing came between: the rest is as it was read.
                    Ok(made) => (revision, lost) = (made, 0),
                    Err(CommitError::Conflict { .. }) => {
                        is_through = false;
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
                count += batch.len();
            }
            if is_through {
                return Ok(count);
            }
            lost += 1;
        }
        Err(OperationalError::Busy)
    }

    /// Changes a document, and writes others in the same step, as a function says of what is there now. The function may be
    /// called several times. Returns the document as it is afterwards.
    ///
    /// # Errors
    /// The store cannot be reached or written, or what the function refuses.
    pub async fn update_with<T: Serialize + DeserializeOwned, E: From<OperationalError>>(
        &self,
        key: &Key,
        now: SystemTime,
        changed: impl Fn(Option<T>) -> Result<(T, Vec<OperationalWrite>), E>,
    ) -> Result<T, E> {
        for _ in 0..MAX_ATTEMPTS {
            let (documents, revision) = self.0.read(key.as_str()).await.map_err(OperationalError::from)?;
            let known = documents.iter().find(|it| it.key == *key);
            let known = known.and_then(|it| decode::<T>(it, now));
            let ends = known.as_ref().and_then(|it| it.ends);
            let (value, more) = changed(known.map(|it| it.value))?;
            let mut changes = vec![change(key, &value, ends, now)?];
            for write in more {
                changes.push(written(write, now)?);
            }
            if self.try_commit(changes, revision, now).await? {
                return Ok(value);
            }
        }
        Err(OperationalError::Busy.into())
    }

    /// `false`: another writer was faster.
    async fn try_commit(
        &self,
        changes: Vec<Change>,
        expected: Revision,
        now: SystemTime,
    ) -> Result<bool, OperationalError> {
        match self.0.commit(transaction(changes, now), expected).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The value of a document; `None`: it has ended, or cannot be read.
pub fn decode<T: DeserializeOwned>(document: &Document, now: SystemTime) -> Option<OperationalEntry<T>> {
    if !is_live(document, now) {
        return None;
    }
    let written: OperationalRecord<T> = serde_json::from_slice(&document.value)
        .inspect_err(|error| tracing::error!(key = %document.key, %error, "a document of the operational store cannot be parsed and is ignored"))
        .ok()?;
    Some(OperationalEntry {
        key: document.key.clone(),
        value: written.value,
        ends: written.ends.map(unix_time::from_millis),
        created: document.created,
        modified: document.modified,
    })
}

fn is_live(document: &Document, now: SystemTime) -> bool {
    let written = serde_json::from_slice::<OperationalRecord<serde::de::IgnoredAny>>(&document.value);
    written.is_ok_and(|it| it.ends.is_none_or(|ends| unix_time::from_millis(ends) > now))
}

fn written(write: OperationalWrite, now: SystemTime) -> Result<Change, OperationalError> {
    match write {
        OperationalWrite::Put { key, value, ends } => change(&key, &value, ends, now),
        OperationalWrite::Remove(key) => Ok(Change::Delete { key }),
    }
}

fn change<T: Serialize>(
    key: &Key,
    value: &T,
    ends: Option<SystemTime>,
    now: SystemTime,
) -> Result<Change, OperationalError> {
    let written = OperationalRecord {
        ends: ends.map(unix_time::millis),
        value,
    };
    let value = serde_json::to_vec(&written).map_err(OperationalError::Unwritable)?;
    let left = ends.map(|it| it.duration_since(now).unwrap_or_default());
    Ok(match left {
        // It has ended already.
        Some(Duration::ZERO) => Change::Delete { key: key.clone() },
        time_to_live => Change::Put {
            key: key.clone(),
            value: value.into(),
            time_to_live,
        },
    })
}

fn transaction(changes: Vec<Change>, now: SystemTime) -> Transaction {
    Transaction {
        author: String::new(),
        note: NOTE.to_owned(),
        time: now,
        changes,
    }
}

#[cfg(test)]
mod tests;
