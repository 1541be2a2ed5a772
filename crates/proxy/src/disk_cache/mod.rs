//! Caches: folders in which filters keep what is too much for memory, each with a thread of its own.
//!
//! Workers put jobs into a queue and never wait for it. Of files to be read and written, so many wait at most; what is
//! too much is not done. A removal is never left out: what was removed must not come back when the process starts
//! again. One waits for each key, and where too many do, all files go. The thread owns the folder's files and an index of
//! them, which it makes again when it starts, in between the jobs that come meanwhile. What was used longest ago makes room. A file is written beside its place and moved there, and tells its length and its
//! checksum: one that a crash has left half written is found out and removed. Nothing is synchronised with the disk for
//! safety's sake: whatever is here can be fetched again.

mod files;
mod index;

use files::Files;
use index::{Index, Removal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use weir_plugin::{DiskCache, DiskCacheKey, DiskCacheReader, DiskCaches};

/// Files to be read and written that wait for a cache's thread at most.
const QUEUE_JOBS: usize = 1024;
/// Bytes that wait to be written at most.
const QUEUE_BYTES: usize = 64 << 20;
/// While the index is made, so many jobs are done between two folders of it.
const JOBS_BETWEEN: usize = 16;
/// How often a cache's failures are logged at most.
const FAILURE_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// All caches of the process.
#[derive(Default)]
pub struct WorkerDiskCaches(Mutex<HashMap<String, Weak<WorkerDiskCache>>>);

impl DiskCaches for WorkerDiskCaches {
    fn open(&self, folder: &str, max_bytes: u64) -> Arc<dyn DiskCache> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cache) = open.get(folder).and_then(Weak::upgrade) {
            return cache;
        }
        let cache = Arc::new(WorkerDiskCache::start(folder, max_bytes));
        open.retain(|_, cache| cache.strong_count() > 0);
        open.insert(folder.to_owned(), Arc::downgrade(&cache));
        cache
    }
}

enum Job {
    Read(DiskCacheKey, DiskCacheReader),
    /// With the age that it is of.
    Write(DiskCacheKey, Vec<u8>, u64),
    Remove(DiskCacheKey),
    /// There is something to look at.
    Wake,
}

/// The side of a cache that workers see.
struct WorkerDiskCache {
    /// Jobs are counted before they are put in.
    queue: Sender<Job>,
    shared: Arc<Shared>,
}

/// The state that workers and the thread share.
struct Shared {
    index: Mutex<Index>,
    /// Files that wait to be read and written.
    jobs: AtomicUsize,
    /// Bytes that wait to be written.
    waiting: AtomicUsize,
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a job with so many bytes, if there is any.
    fn admit(&self, bytes: usize) -> bool {
        let jobs = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_admitted = jobs <= QUEUE_JOBS && waiting <= QUEUE_BYTES;
        if !is_admitted {
            self.dismiss(bytes);
        }
        is_admitted
    }

    /// Such a job waits no more.
    fn dismiss(&self, bytes: usize) {
        self.jobs.fetch_sub(1, Ordering::Relaxed);
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl WorkerDiskCache {
    fn start(folder: &str, max_bytes: u64) -> Self {
        let (queue, jobs) = mpsc::channel();
        let shared = Arc::new(Shared {
            index: Mutex::new(Index::new(max_bytes)),
            jobs: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        });
        let keeper = WriterThread {
            files: Files::new(folder),
            shared: Arc::clone(&shared),
            put_off: Vec::new(),
            failure_logged_at: None,
        };
        let thread = std::thread::Builder::new().name("weir-disk-cache".to_owned());
        // Without its thread the queue has no other end, and nothing is kept.
        if let Err(error) = thread.spawn(move || keeper.run(&jobs)) {
            tracing::warn!(folder, %error, "the disk cache is off: its thread cannot be started");
        }
        Self { queue, shared }
    }
}

impl DiskCache for WorkerDiskCache {
    fn may_have(&self, key: &DiskCacheKey) -> bool {
        self.shared.index().may_have(key)
    }

    fn read(&self, key: DiskCacheKey, then: DiskCacheReader) {
        // A job that there is no room for is dropped, and `then` with it.
        if self.shared.admit(0) {
            self.put(Job::Read(key, then));
        }
    }

    fn write(&self, key: DiskCacheKey, data: Vec<u8>) {
        if self.shared.admit(data.len()) {
            let age = self.shared.index().will_write(&key);
            self.put(Job::Write(key, data, age));
        } else {
            // What is there is older than what could not be written.
            self.remove(key);
        }
    }

    fn remove(&self, key: DiskCacheKey) {
        // Lookups find nothing from now on, whenever the file goes.
        let removal = self.shared.index().will_remove(&key);
        match removal {
            Removal::Nothing => {}
            Removal::Job => self.put(Job::Remove(key)),
            Removal::All => self.put(Job::Wake),
        }
    }
}

impl WorkerDiskCache {
    /// Without a thread, no job would be done.
    fn put(&self, job: Job) {
        drop(self.queue.send(job));
    }
}

/// The thread's side of a cache.
struct WriterThread {
    files: Files,
    shared: Arc<Shared>,
    /// Files to be removed once the folder is held.
    put_off: Vec<DiskCacheKey>,
    /// When a failure was logged.
    failure_logged_at: Option<Instant>,
}

impl WriterThread {
    fn run(mut self, jobs: &Receiver<Job>) {
        // What this is about is not known before the first job; no other process may have the folder by then.
        let mut done = 0;
        loop {
            let is_whole = self.shared.index().is_whole();
            let job = match is_whole {
                true => jobs.recv().ok(),
                false if done < JOBS_BETWEEN => match jobs.try_recv() {
                    Ok(job) => Some(job),
                    Err(TryRecvError::Empty) if !self.files.is_held() => jobs.recv().ok(),
                    Err(TryRecvError::Empty) => {
                        self.look_around();
                        continue;
                    }
                    Err(TryRecvError::Disconnected) => None,
                },
                false => {
                    done = 0;
                    self.look_around();
                    continue;
                }
            };
            let Some(job) = job else { return };
            done += usize::from(!is_whole);
            self.handle(job);
        }
    }

    /// Adds what one folder has to the index.
    fn look_around(&mut self) {
        if !self.hold() {
            return;
        }
        let Some(part) = self.shared.index().next_part() else {
            return;
        };
        let found = self.files.list(part);
        let ousted = self.shared.index().add_part(part, found);
        self.files.remove_all(&ousted);
    }

    /// Whether the folder is this process's. Another one may still be about to end.
    fn hold(&mut self) -> bool {
        if let Err(error) = self.files.hold() {
            self.log_error(&error);
            return false;
        }
        let put_off = std::mem::take(&mut self.put_off);
        self.remove(&put_off);
        if self.shared.index().take_void() {
            for part in 0..=u8::MAX {
                let found = self.files.list(part);
                let keys: Vec<DiskCacheKey> = found.iter().map(|file| file.key).collect();
                self.files.remove_all(&keys);
            }
        }
        true
    }

    fn remove(&self, keys: &[DiskCacheKey]) {
        self.files.remove_all(keys);
        for key in keys {
            self.shared.index().end_removal(key);
        }
    }

    fn handle(&mut self, job: Job) {
        let is_held = self.hold();
        match job {
            Job::Read(key, then) => {
                self.shared.dismiss(0);
                if is_held {
                    let is_removed = self.shared.index().is_removed(&key);
                    let data = if is_removed { None } else { self.files.read(&key) };
                    then(self.take_note(&key, data));
                }
            }
            Job::Write(key, data, age) => {
                self.shared.dismiss(data.len());
                let is_wanted = self.shared.index().wants(&key, age);
                if is_held && is_wanted {
                    self.write(&key, &data);
                }
                self.shared.index().end_write(&key);
            }
            Job::Remove(key) if is_held => self.remove(&[key]),
            Job::Remove(key) => self.put_off.push(key),
            Job::Wake => {}
        }
    }

    fn write(&mut self, key: &DiskCacheKey, data: &[u8]) {
        let ousted = match self.files.write(key, data) {
            Ok(()) => self.shared.index().note(key, data.len() as u64),
            Err(error) => {
                self.log_error(&error);
                self.shared.index().forget(key);
                vec![*key]
            }
        };
        self.files.remove_all(&ousted);
    }

    /// Notes what was read. What is to be removed is as good as gone, and stays marked as such, though it was whole
    /// when the reading began.
    fn take_note(&self, key: &DiskCacheKey, data: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut index = self.shared.index();
        if index.is_removed(key) {
            return None;
        }
        let Some(data) = data else {
            index.forget(key);
            return None;
        };
        let ousted = index.note(key, data.len() as u64);
        drop(index);
        self.files.remove_all(&ousted);
        Some(data)
    }

    fn log_error(&mut self, error: &std::io::Error) {
        if self
            .failure_logged_at
            .is_none_or(|at| at.elapsed() > FAILURE_LOG_INTERVAL)
        {
            self.failure_logged_at = Some(Instant::now());
            tracing::warn!(folder = %self.files.folder().display(), %error, "the disk cache cannot store a response");
        }
    }
}

#[cfg(test)]
mod tests;
