//! The engine of all Admin APIs over a store: one dialect's documents in memory, kept up with the store, and writes that
//! are planned on them.
//!
//! A write is worked out on the state in memory and committed on condition that nothing else was committed since. If
//! another writer was faster, its changes are awaited and the write is worked out again. A store that was set back, or
//! that another one took the place of, is read again as a whole. What the dialect brings is its state ([`ReplicaState`]),
//! the plans of its writes, and the words for what fails ([`WriteError`]).
//!
//! **What it is not**: it knows no document, no HTTP and no user.

mod follow;
#[cfg(test)]
mod tests;

use follow::follow;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime};
use tokio::sync::{Mutex, MutexGuard, watch};
use weir_store::follow::Subscription;
use weir_store::{
    Author, Change, Changes, CommitError, Document, Key, Revision, Store, StoreError, Transaction,
};

/// How often a write is worked out because another writer was faster.
pub const ATTEMPTS: usize = 32;
/// How long a write waits for what another writer committed; then everything is read again.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The documents of a dialect as its Admin API holds them.
pub trait ReplicaState: std::fmt::Debug + Send + Sync + 'static {
    /// The same settings, and no documents.
    fn empty(&self) -> Self;

    /// Applies the change of a document below the prefix; `None` if it was removed. The key has the prefix.
    fn apply(&mut self, key: &Key, document: Option<&Document>);

    /// Everything up to a revision has been taken over. `has_changed`: some of it was below the prefix.
    fn note(&mut self, revision: Revision, has_changed: bool);

    /// The creation time of an existing document, for display.
    fn created(&self, key: &Key) -> Option<Revision> {
        let _unused = key;
        None
    }
}

/// Which state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Everything up to this revision is in it.
    pub revision: Revision,
    /// How many times the whole store was read again. Revisions of different epochs cannot be compared: the store may have
    /// been set back in between.
    epoch: u64,
}

#[derive(Debug)]
struct VersionedState<S> {
    state: S,
    version: Version,
}

/// The state for reading. Held for moments only: writes wait for it.
pub struct StateRef<'r, S>(RwLockReadGuard<'r, VersionedState<S>>);

impl<S> Deref for StateRef<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0.state
    }
}

impl<S> StateRef<'_, S> {
    /// Which state it is.
    pub fn version(&self) -> Version {
        self.0.version
    }
}

/// The documents of a dialect in memory, over a store.
#[derive(Debug)]
pub struct Replica<S> {
    store: Arc<dyn Store>,
    /// What the keys of the documents begin with.
    prefix: &'static str,
    held: RwLock<VersionedState<S>>,
    /// Writers take turns: each must see what the one before wrote.
    turn: Mutex<()>,
    /// Held from a read of the whole store until it is taken over: a write that is taken over meanwhile would be lost.
    reading: Mutex<()>,
    /// What follows the store from the last whole read on. The task that follows takes it in the place of what it had,
    /// which may still bring changes that the store has forgotten.
    renewed: std::sync::Mutex<Option<(u64, Subscription)>>,
    progress: watch::Sender<Version>,
}

/// Who writes, and what for.
#[derive(Debug, Clone)]
pub struct Writer {
    /// Who.
    pub author: Author,
    /// What for, in a few words.
    pub note: String,
    /// When.
    pub time: SystemTime,
    /// Whether nothing is to be stored.
    pub is_dry: bool,
}

/// What a write comes to.
pub struct WritePlan<A> {
    /// The changes; at most one for a document. None: there is nothing to be stored. They may lie outside of the prefix.
    pub changes: Vec<Change>,
    /// What is answered once they are stored.
    pub answer: A,
}

/// The result of a write.
#[derive(Debug)]
pub enum WriteOutcome<A> {
    /// It was only tried.
    Tried(A),
    /// There was nothing to store.
    Unchanged(A),
    /// It is stored.
    Stored(A, Revision),
}

/// Why a write was not made.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// Its plan refuses it.
    #[error("the write is refused")]
    Refused(E),
    /// The engine could not make it.
    #[error(transparent)]
    Failed(#[from] WriteFailure),
}

/// Why the engine could not make a write.
#[derive(Debug, thiserror::Error)]
pub enum WriteFailure {
    /// Other writers were faster each time.
    #[error("other writers were faster {ATTEMPTS} times: try again")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] CommitError),
}

impl From<StoreError> for WriteFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl<S: ReplicaState> Replica<S> {
    /// Reads the documents below a prefix and follows them for as long as the replica lives. To be called inside of a
    /// tokio runtime.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(
        store: Arc<dyn Store>,
        prefix: &'static str,
        empty: S,
    ) -> Result<Arc<Self>, StoreError> {
        let (documents, revision, following) = weir_store::follow::start(Arc::clone(&store), prefix).await?;
        let version = Version { revision, epoch: 0 };
        let replica = Arc::new(Self {
            store,
            prefix,
            held: RwLock::new(VersionedState {
                state: filled(empty, &documents, revision),
                version,
            }),
            turn: Mutex::new(()),
            reading: Mutex::new(()),
            renewed: std::sync::Mutex::new(None),
            progress: watch::Sender::new(version),
        });
        tokio::spawn(follow(Arc::downgrade(&replica), following));
        Ok(replica)
    }

    /// The state as it is now.
    pub fn state(&self) -> StateRef<'_, S> {
        StateRef(self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a panic left half applied is applied again with the next change of the document.
    fn held(&self) -> RwLockWriteGuard<'_, VersionedState<S>> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of a writer.
    pub async fn turn(&self) -> WriteGuard<'_, S> {
        WriteGuard {
            replica: self,
            attempts: 0,
            _turn: self.turn.lock().await,
        }
    }

    /// Works changes out and stores them. `plan` is called with the state as it is, again for each attempt.
    ///
    /// # Errors
    /// `plan` refuses, or the changes cannot be stored; nothing was changed then, unless the store was lost in the middle.
    pub async fn write<A, E>(
        &self,
        writer: &Writer,
        plan: impl Fn(&S) -> Result<WritePlan<A>, E>,
    ) -> Result<WriteOutcome<A>, WriteError<E>> {
        let mut turn = self.turn().await;
        loop {
            let (WritePlan { changes, answer }, version) = {
                let state = turn.attempt()?;
                let planned = plan(&state).map_err(WriteError::Refused)?;
                (planned, state.version())
            };
            if writer.is_dry {
                return Ok(WriteOutcome::Tried(answer));
            }
            if changes.is_empty() {
                return Ok(WriteOutcome::Unchanged(answer));
            }
            let transaction = Transaction {
                author: writer.author.0.to_string(),
                note: writer.note.clone(),
                time: writer.time,
                changes,
            };
            if let Some(revision) = turn.commit(transaction, version).await? {
                return Ok(WriteOutcome::Stored(answer, revision));
            }
        }
    }

    /// Applies a local commit before the store reports it. If the store was read again in the meantime, the newly read
    /// state counts.
    async fn apply_committed(&self, changes: Vec<Change>, revision: Revision, epoch: u64) {
        let documents = {
            let state = self.state();
            let each = changes.into_iter().map(|change| match change {
                Change::Delete { key } => (key, None),
                Change::Put { key, value, .. } => {
                    let document = Document {
                        key: key.clone(),
                        value,
                        created: state.created(&key).unwrap_or(revision),
                        modified: revision,
                    };
                    (key, Some(document))
                }
            });
            each.collect()
        };
        self.take(&Changes { revision, documents }, epoch).await;
    }

    /// Takes over what a revision brought, unless it is known already.
    async fn take(&self, changes: &Changes, epoch: u64) {
        let _reading = self.reading.lock().await;
        let revision = changes.revision;
        let mut held = self.held();
        if held.version.epoch != epoch || revision <= held.version.revision {
            return;
        }
        let own = changes.documents.iter();
        let mut own = own
            .filter(|(key, _)| key.as_str().starts_with(self.prefix))
            .peekable();
        let has_changed = own.peek().is_some();
        for (key, document) in own {
            held.state.apply(key, document.as_ref());
        }
        held.state.note(revision, has_changed);
        held.version.revision = revision;
        let version = held.version;
        drop(held);
        self.progress.send_replace(version);
    }

    /// Waits until a revision has been taken over; if it does not come, everything is read again.
    async fn catch_up(&self, wanted: Revision) -> Result<(), StoreError> {
        let mut progress = self.progress.subscribe();
        let arrival = progress.wait_for(|known| known.revision >= wanted);
        if matches!(tokio::time::timeout(TIMEOUT, arrival).await, Ok(Ok(_))) {
            return Ok(());
        }
        self.read_again().await
    }

    /// Takes the store's documents in the place of what is known.
    async fn read_again(&self) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        let (documents, revision, following) =
            weir_store::follow::start(Arc::clone(&self.store), self.prefix).await?;
        let empty = self.state().empty();
        let mut state = filled(empty, &documents, revision);
        let version = {
            let mut held = self.held();
            // What was there is freed behind the lock.
            std::mem::swap(&mut held.state, &mut state);
            held.version = Version {
                revision,
                epoch: held.version.epoch + 1,
            };
            held.version
        };
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some((version.epoch, following));
        self.progress.send_replace(version);
        Ok(())
    }
}

fn filled<S: ReplicaState>(mut empty: S, documents: &[Document], revision: Revision) -> S {
    for document in documents {
        empty.apply(&document.key, Some(document));
    }
    empty.note(revision, true);
    empty
}

/// The turn of a writer: no other writer of this process commits meanwhile.
pub struct WriteGuard<'r, S> {
    replica: &'r Replica<S>,
    attempts: usize,
    _turn: MutexGuard<'r, ()>,
}

impl<'r, S: ReplicaState> WriteGuard<'r, S> {
    /// The state for the next attempt.
    ///
    /// # Errors
    /// There were too many.
    pub fn attempt(&mut self) -> Result<StateRef<'r, S>, WriteFailure> {
        self.attempts += 1;
        if self.attempts > ATTEMPTS {
            return Err(WriteFailure::Busy);
        }
        Ok(self.replica.state())
    }

    /// Commits what was worked out on the state of a version, and takes it over. `None`: another writer was faster, or the
    /// store was set back; the state is the new one now.
    ///
    /// # Errors
    /// The store fails.
    pub async fn commit(
        &self,
        transaction: Transaction,
        version: Version,
    ) -> Result<Option<Revision>, WriteFailure> {
        let replica = self.replica;
        let changes = transaction.changes.clone();
        match replica.store.commit(transaction, version.revision).await {
            Ok(revision) => {
                replica.apply_committed(changes, revision, version.epoch).await;
                return Ok(Some(revision));
            }
            // The store was set back.
            Err(CommitError::Conflict { current }) if current < version.revision => {
                replica.read_again().await?;
            }
            Err(CommitError::Conflict { current }) => replica.catch_up(current).await?,
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }
}
