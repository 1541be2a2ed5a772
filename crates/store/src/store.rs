//! The contract of a store, which every kind of store keeps to: `tests/conformance` is its other half.

use crate::document::{Document, HistoryEntry, Key, Revision, Transaction};
use async_trait::async_trait;
use std::time::{Duration, Instant};

/// For how long [`Store::append`] tries while others write too.
const APPEND_LIMIT: Duration = Duration::from_secs(20);

/// Versioned documents. Cheap to share; every method may be called at any time and from any task.
///
/// A prefix selects the keys that start with its text; the empty one selects all.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The documents below a prefix in the order of their keys, and the revision that they are of (the store's
    /// newest at that moment).
    ///
    /// # Errors
    /// The store cannot be reached or read.
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError>;

    /// Whether values cannot be read at rest: they are encrypted there, or lie in memory only.
    fn is_sealed(&self) -> bool {
        false
    }

    /// How many bytes a document may have, with its key; `None`: as many as it likes. A commit may have any number of
    /// documents: a store that takes few at once divides it.
    fn largest_document(&self) -> Option<usize> {
        None
    }

    /// Follows the changes below a prefix that come after a revision.
    ///
    /// # Errors
    /// [`WatchError::Compacted`]: the store no longer knows what came right after that revision; read again.
    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError>;

    /// Makes all the changes, as one revision, which it returns. Once it has returned, the changes outlive a kill of
    /// any process. Without changes it only returns whether `expected` is the newest revision.
    ///
    /// # Errors
    /// [`CommitError::Conflict`]: something was committed after `expected`, and nothing was changed.
    /// [`CommitError::Unknown`]: the store was lost before it answered; the changes were made whole or not at all.
    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError>;

    /// Makes all the changes as one revision, whatever was committed before. For changes that stand for themselves: no
    /// other document and no earlier value decides whether they are right.
    ///
    /// # Errors
    /// As [`Store::commit`]; [`CommitError::Conflict`] only after others were faster for a long time.
    async fn append(&self, transaction: Transaction) -> Result<Revision, CommitError> {
        let (begun, mut expected) = (Instant::now(), Revision::default());
        loop {
            match self.commit(transaction.clone(), expected).await {
                Err(CommitError::Conflict { current }) if begun.elapsed() < APPEND_LIMIT => {
                    expected = current
                }
                done => return done,
            }
        }
    }

    /// The changes below a prefix that were made before a revision (`None`: up to now), the latest first and those of
    /// one commit in the order of their keys. There are at most `limit` of them, and all others of the last one's
    /// commit, so that a watch from before its revision misses none. Those older than the store keeps are not
    /// among them.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError>;

    /// Forgets what was recorded before a time, and lets watches of that long ago begin no more.
    ///
    /// # Errors
    /// The store cannot be reached or written.
    async fn compact(&self, before: std::time::SystemTime) -> Result<(), StoreError>;
}

/// The changes of a store as they come.
#[async_trait]
pub trait Watch: Send {
    /// The next changes below the prefix. Every commit comes once, whole and in order. May be dropped while it waits.
    ///
    /// A commit that changed nothing below the prefix comes too, without documents: so a writer that follows only
    /// its own prefix learns up to which revision it has seen everything, and what to expect when it commits.
    ///
    /// # Errors
    /// The watch is over: [`WatchError::Compacted`] when its reader was too slow, or the store is lost. A reader
    /// that wants to go on reads again.
    async fn next(&mut self) -> Result<Changes, WatchError>;
}

/// The changes of one commit below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The commit.
    pub revision: Revision,
    /// Each changed document, in the order of their keys; `None`: it is gone.
    pub documents: Vec<(Key, Option<Document>)>,
}

impl Changes {
    /// The part of it below a prefix.
    pub(crate) fn below(&self, prefix: &str) -> Self {
        let documents = self
            .documents
            .iter()
            .filter(|(key, _)| key.as_str().starts_with(prefix));
        Self {
            revision: self.revision,
            documents: documents.cloned().collect(),
        }
    }
}

/// A store that does not do its part.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// It has no room left.
    #[error("the store is full: {0}")]
    Full(String),
    /// A document is larger than it takes.
    #[error("{document} has {bytes} bytes; the store accepts at most {most}")]
    TooLarge {
        /// The document's key.
        document: String,
        /// How many it has, with its key.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
    /// It holds what it cannot hold, or cannot be decrypted with the key at hand.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Anything else.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// Why a watch cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The next changes are no longer known.
    #[error("the store no longer knows the changes after that revision")]
    Compacted,
    /// The store is lost.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why changes were not made, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another writer was faster.
    #[error("the store is already at revision {current}")]
    Conflict {
        /// The store's newest revision.
        current: Revision,
    },
    /// The store went away in the middle.
    #[error("the result of the commit is unknown: {0}")]
    Unknown(StoreError),
    /// The store refused; nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
