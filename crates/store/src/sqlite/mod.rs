//! A store in a file, with SQLite: the one that comes without being asked for.
//!
//! The connection lives on a thread of its own, which does what it is asked to one by one: no lock, and no task of a
//! runtime ever waits for a disk. Several processes may use one file. When the system reports that it was written to,
//! each looks whether another one has committed (`PRAGMA data_version`, which reads a word of shared memory); at rest,
//! none looks more often than every few seconds.
//!
//! ```text
//!  read, commit, history ──job──► thread ──► tables (WAL, one SQLite transaction a commit)
//!  watch ◄── feed ◄── commits of this process, and of others once they are noticed
//! ```

mod flush;
mod tables;
mod thread;
mod write;

use crate::document::{Document, HistoryEntry, Revision, Transaction};
use crate::feed::{Feed, NextChange};
use crate::store::{Changes, CommitError, Store, StoreError, Watch, WatchError};
use async_trait::async_trait;
use flush::Flusher;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tables::Tables;
use thread::SqliteThread;
use tokio::sync::watch::Receiver;

/// The file's name in its folder.
pub const FILE_NAME: &str = "store.db";
/// The name of the operational store's file in the same folder.
pub const OPERATIONAL_FILE_NAME: &str = "operational.db";
/// How many changed documents a slow watch reads from the disk at once, or a single commit.
const CHANGES_AT_ONCE: usize = 1_000;
/// How many changed documents are kept in memory for those who watch; they read older ones from the disk.
const FEED_LENGTH: usize = 5_000;

/// The faults that a commit outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A kill of any process. Commits are brought to the disk right after they were made, without waiting for it: a
    /// loss of power, or a fall of the whole machine, may take the last moments with it, but never a part of a commit
    /// and never one before a commit that is left.
    #[default]
    Process,
    /// A loss of power as well: each commit waits until the disk has it, as long as the disk takes.
    Power,
}

/// How a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The file's name in its folder.
    pub file_name: &'static str,
    /// The faults that a commit outlives.
    pub durability: Durability,
    /// The file's largest size in bytes; commits that need more are [`StoreError::Full`]. `None`: as large as its disk.
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file_name: FILE_NAME,
            durability: Durability::default(),
            max_bytes: None,
        }
    }
}

/// The store. Clones share the connection, which closes with the last of them.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    thread: SqliteThread,
    feed: Arc<Feed>,
}

impl SqliteStore {
    /// The store in a folder, both created if they are missing: `store.db`, which only its owner may read.
    ///
    /// # Errors
    /// The file cannot be opened or is not a store.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_with(folder: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let path = prepare(folder.as_ref(), options.file_name)
            .map_err(|error| StoreError::Unreachable(format!("{}: {error}", folder.as_ref().display())))?;
        let tables = Tables::open(&path, options)?;
        let mut log = path.into_os_string();
        log.push("-wal");
        let log = PathBuf::from(log);
        let flusher = match options.durability {
            Durability::Process => Some(Flusher::start(log.clone())?),
            Durability::Power => None,
        };
        let feed = Arc::new(Feed::new(tables.revision()?, FEED_LENGTH));
        Ok(Self {
            thread: SqliteThread::start(tables, feed.clone(), flusher, &log)?,
            feed,
        })
    }
}

/// Makes folder and file, so that the files that SQLite makes next to it get its rights. A file that is there is never
/// opened: to close it again would end the locks that connections of this process have on it, and another program
/// (`sqlite3`, a backup) could then take away the log of writes under them.
fn prepare(folder: &Path, file_name: &str) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(file_name);
    let made = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&path);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path),
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        let prefix = prefix.to_owned();
        self.thread.run(move |worker| worker.tables.read(&prefix)).await?
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        // First, so that the thread knows that there is a watch.
        let newer = self.feed.subscribe();
        self.thread
            .run(move |worker| worker.tables.changes_after(after, "", 0))
            .await??;
        Ok(Box::new(SqliteWatch {
            thread: self.thread.clone(),
            feed: self.feed.clone(),
            prefix: prefix.to_owned(),
            after,
            newer,
            late: VecDeque::new(),
        }))
    }

    async fn commit(&self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        transaction.check()?;
        let done = self
            .thread
            .run(move |worker| worker.commit(transaction, expected))
            .await;
        done.map_err(CommitError::Unknown)?
    }

    async fn append(&self, transaction: Transaction) -> Result<Revision, CommitError> {
        transaction.check()?;
        let done = self.thread.run(move |worker| worker.append(transaction)).await;
        done.map_err(CommitError::Unknown)?
    }

    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let prefix = prefix.to_owned();
        self.thread
            .run(move |worker| worker.tables.history(&prefix, before, limit))
            .await?
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        while self.thread.run(move |worker| worker.compact(before)).await?? {}
        Ok(())
    }
}

struct SqliteWatch {
    thread: SqliteThread,
    feed: Arc<Feed>,
    prefix: String,
    after: Revision,
    newer: Receiver<Revision>,
    /// The next changes, read from the disk because the feed has forgotten them.
    late: VecDeque<Changes>,
}

#[async_trait]
impl Watch for SqliteWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        loop {
            self.newer.mark_unchanged();
            let next = match self.late.pop_front() {
                Some(changes) => NextChange::Commit(changes),
                None => self.feed.after(self.after, &self.prefix),
            };
            match next {
                NextChange::Commit(changes) => {
                    self.after = changes.revision;
                    return Ok(changes);
                }
                NextChange::Gone => {
                    let (after, prefix) = (self.after, self.prefix.clone());
                    let changes = self
                        .thread
                        .run(move |worker| worker.tables.changes_after(after, &prefix, CHANGES_AT_ONCE));
                    self.late = changes.await??.into();
                    if !self.late.is_empty() {
                        continue;
                    }
                }
                NextChange::Nothing => {}
            }
            let newer = self.newer.changed().await;
            newer.map_err(|_| StoreError::Unreachable("it was closed".into()))?;
        }
    }
}
