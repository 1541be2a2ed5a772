//! The thread that the connection lives on.

use super::flush::Flusher;
use super::tables::Tables;
use crate::document::{Revision, Transaction};
use crate::feed::Feed;
use crate::folder_watch::{FolderEvent, FolderWatch};
use crate::store::{CommitError, StoreError, WatchError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;

/// When to look for commits of other processes after their file was written to, while there are watches. The pause doubles
/// with each look that finds none.
const FIRST_LOOK: Duration = Duration::from_millis(5);
/// The longest pause, as not every file system reports writes.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause if the system reports no writes at all.
const BLIND_PAUSE: Duration = Duration::from_millis(50);
/// When to try again what failed.
const RETRY: Duration = Duration::from_secs(1);
/// Attempts of [`Worker::append`] while other processes commit.
const MAX_APPENDS: usize = 1_000;
/// How many changed documents of other processes are read at once.
const CHANGES_AT_ONCE: usize = 5_000;

/// How many commits are forgotten before another job has its turn.
const COMMITS_AT_ONCE: i64 = 1_000;

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// To ask the thread. It ends with the last handle.
#[derive(Debug, Clone)]
pub struct SqliteThread(Arc<Sender<Job>>);

/// The state of the thread.
#[derive(Debug)]
pub struct Worker {
    pub tables: Tables,
    feed: Arc<Feed>,
    /// `None`: SQLite waits for the disk by itself.
    flusher: Option<Flusher>,
    /// The file's state when it was last looked at; another process's commit makes another one of it.
    version: i64,
    /// When the first of the documents goes that do not stay.
    next_end: Option<SystemTime>,
    /// How long until it is looked again, and the longest that this may be.
    look: Duration,
    longest_look: Duration,
}

impl SqliteThread {
    /// `log` is the file that SQLite writes commits to first.
    pub fn start(
        tables: Tables,
        feed: Arc<Feed>,
        flusher: Option<Flusher>,
        log: &Path,
    ) -> Result<Self, StoreError> {
        let mut worker = Worker {
            version: tables.version()?,
            next_end: tables.next_end()?,
            tables,
            feed,
            flusher,
            look: FIRST_LOOK,
            longest_look: LONGEST_PAUSE,
        };
        let (jobs, waiting) = channel();
        let jobs = Arc::new(jobs);
        let watch = watch(log, &jobs)
            .inspect_err(
                |error| tracing::debug!(%error, "the store's file cannot be watched; polling it instead"),
            )
            .ok();
        if watch.is_none() {
            worker.longest_look = BLIND_PAUSE;
        }
        thread::Builder::new()
            .name("weir-store".into())
            .spawn(move || {
                worker.run(&waiting);
                drop(watch);
            })
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self(jobs))
    }

    /// Does something on the thread. It is done even if the caller has gone.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |worker| {
            // The caller may have gone.
            let _ = answer.send(job(worker));
        });
        let gone = || StoreError::Unreachable("its thread has ended".into());
        self.0.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

/// Makes the thread look soon after each write to its file.
fn watch(log: &Path, jobs: &Arc<Sender<Job>>) -> io::Result<FolderWatch> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let folder = log.parent().ok_or_else(invalid)?;
    let name = log.file_name().ok_or_else(invalid)?.to_owned();
    // The thread ends with the last handle, and this does not count as one.
    let jobs = Arc::downgrade(jobs);
    let watch = FolderWatch::start("weir-store-file", move |event: FolderEvent<'_>| {
        // A commit can be seen a moment after its file was written.
        let job: Job = Box::new(|worker| worker.look = FIRST_LOOK);
        let matters = event.name.is_none_or(|it| it == name);
        !matters || jobs.upgrade().is_some_and(|jobs| jobs.send(job).is_ok())
    })?;
    watch.watch(folder)?;
    Ok(watch)
}

impl Worker {
    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            let job = match self.pause() {
                Some(pause) => jobs.recv_timeout(pause),
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match job {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => self.look = (2 * self.look).min(self.longest_look),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Err(error) = self.poll() {
                tracing::warn!(%error, "the store's file cannot be read for changes or expired documents; retrying");
                self.next_end = self.next_end.map(|_| SystemTime::now() + RETRY);
            }
            if let Ok(job) = job {
                job(self);
            }
        }
    }

    /// How long to wait for a job; `None`: until one comes.
    fn pause(&self) -> Option<Duration> {
        let end = self
            .next_end
            .map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        let look = self.feed.is_watched().then_some(self.look);
        end.into_iter().chain(look).min()
    }

    /// Takes notice of what other processes did, and removes what was to stay only so long.
    fn poll(&mut self) -> Result<(), StoreError> {
        let version = self.tables.version()?;
        if version != self.version {
            self.catch_up()?;
            self.version = version;
            self.look = FIRST_LOOK;
            self.next_end = self.tables.next_end()?;
        }
        let now = SystemTime::now();
        if self.next_end.is_some_and(|end| end <= now) {
            self.tables.expire(now)?;
            self.catch_up()?;
            self.next_end = self.tables.next_end()?;
        }
        Ok(())
    }

    /// Feeds what is in the file and not in the feed.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        if !self.feed.is_watched() {
            self.feed.restart(self.tables.revision()?);
            return Ok(());
        }
        loop {
            match self.tables.changes_after(self.feed.newest(), "", CHANGES_AT_ONCE) {
                Ok(commits) if commits.is_empty() => return Ok(()),
                Ok(commits) => commits.into_iter().for_each(|commit| self.feed.push(commit)),
                Err(WatchError::Compacted) => self.feed.restart(self.tables.revision()?),
                Err(WatchError::Store(error)) => return Err(error),
            }
        }
    }

    pub fn commit(&mut self, transaction: Transaction, expected: Revision) -> Result<Revision, CommitError> {
        let is_to_end = transaction.has_end();
        let changes = self.tables.commit(transaction, expected)?;
        let revision = changes.revision;
        if revision == expected {
            return Ok(revision);
        }
        if let Some(flusher) = &self.flusher {
            flusher.flush();
        }
        // It is made; what goes wrong from here on goes wrong again at the next look, which reports it.
        if self.feed.newest() == expected && self.feed.is_watched() {
            self.feed.push(changes);
        } else if let Err(error) = self.catch_up() {
            tracing::warn!(%error, "watchers cannot be notified of a commit yet");
        }
        if is_to_end {
            self.next_end = self.tables.next_end().unwrap_or(self.next_end);
        }
        Ok(revision)
    }

    /// Commits whatever was committed before. Only other processes can be faster.
    pub fn append(&mut self, transaction: Transaction) -> Result<Revision, CommitError> {
        let mut expected = self.feed.newest();
        for _ in 0..MAX_APPENDS {
            match self.commit(transaction.clone(), expected) {
                Err(CommitError::Conflict { current }) => expected = current,
                done => return done,
            }
        }
        self.commit(transaction, expected)
    }

    /// Forgets some of what is older. `false`: there is no more of it.
    pub fn compact(&mut self, before: SystemTime) -> Result<bool, StoreError> {
        let forgotten = self.tables.compact(before, COMMITS_AT_ONCE)?;
        if let Some(last) = forgotten {
            self.feed.forget(last);
        }
        Ok(forgotten.is_some())
    }
}
