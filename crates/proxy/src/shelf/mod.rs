//! Shelves: folders in which filters keep what is too much for memory, each with a thread of its own.
//!
//! Workers put jobs into a bounded queue and never wait for it; what does not fit is not done. The thread owns the
//! folder's files and an index of them, which it makes anew when it starts, in between the jobs that come meanwhile. What
//! was used longest ago makes room. A file is written beside its place and moved there, and tells its length and its
//! checksum: one that a crash has left half written is found out and removed. Nothing is synchronised with the disk for
//! safety's sake: whatever is here can be fetched again.

mod files;
mod index;

use files::Files;
use index::Index;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use weir_plugin::{Shelf, ShelfKey, ShelfReader, Shelves};

/// Jobs that wait for a shelf's thread at most.
const QUEUE_JOBS: usize = 1024;
/// Bytes that wait to be written at most.
const QUEUE_BYTES: usize = 64 << 20;
/// While the index is made, so many jobs are done between two folders of it.
const JOBS_BETWEEN: usize = 16;
/// How often a shelf's failures are told of at most.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// All shelves of the process.
#[derive(Default)]
pub struct DiskShelves(Mutex<HashMap<String, Weak<DiskShelf>>>);

impl Shelves for DiskShelves {
    fn open(&self, folder: &str, max_bytes: u64) -> Arc<dyn Shelf> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = open.get(folder).and_then(Weak::upgrade) {
            return shelf;
        }
        let shelf = Arc::new(DiskShelf::start(folder, max_bytes));
        open.retain(|_, shelf| shelf.strong_count() > 0);
        open.insert(folder.to_owned(), Arc::downgrade(&shelf));
        shelf
    }
}

enum Job {
    Read(ShelfKey, ShelfReader),
    Write(ShelfKey, Vec<u8>),
    Remove(ShelfKey),
}

/// The side of a shelf that workers see.
struct DiskShelf {
    queue: SyncSender<Job>,
    shared: Arc<Shared>,
}

/// What workers and the thread share.
struct Shared {
    index: Mutex<Index>,
    /// Bytes that wait to be written.
    waiting: AtomicUsize,
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskShelf {
    fn start(folder: &str, max_bytes: u64) -> Self {
        let (queue, jobs) = mpsc::sync_channel(QUEUE_JOBS);
        let shared = Arc::new(Shared {
            index: Mutex::new(Index::new(max_bytes)),
            waiting: AtomicUsize::new(0),
        });
        let keeper = Keeper {
            files: Files::new(folder),
            shared: Arc::clone(&shared),
            told: None,
        };
        let thread = std::thread::Builder::new().name("weir-shelf".to_owned());
        // Without its thread the queue has no other end, and nothing is kept.
        if let Err(error) = thread.spawn(move || keeper.run(&jobs)) {
            tracing::warn!(folder, %error, "nothing is kept on disk: no thread can be started");
        }
        Self { queue, shared }
    }
}

impl Shelf for DiskShelf {
    fn may_have(&self, key: &ShelfKey) -> bool {
        self.shared.index().may_have(key)
    }

    fn read(&self, key: ShelfKey, then: ShelfReader) {
        // A job that there is no room for is dropped, and `then` with it.
        drop(self.queue.try_send(Job::Read(key, then)));
    }

    fn write(&self, key: ShelfKey, data: Vec<u8>) {
        let size = data.len();
        let waiting = self.shared.waiting.fetch_add(size, Ordering::Relaxed) + size;
        if waiting > QUEUE_BYTES || self.queue.try_send(Job::Write(key, data)).is_err() {
            self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
            // What is there is older than what could not be written.
            self.remove(key);
        }
    }

    fn remove(&self, key: ShelfKey) {
        // Whoever looks from now on finds nothing, whenever the file goes.
        self.shared.index().hide(&key);
        drop(self.queue.try_send(Job::Remove(key)));
    }
}

/// The thread's side of a shelf.
struct Keeper {
    files: Files,
    shared: Arc<Shared>,
    /// When a failure was told of.
    told: Option<Instant>,
}

impl Keeper {
    fn run(mut self, jobs: &Receiver<Job>) {
        // What this is about is not known before the first job; nobody else may have the folder by then.
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
        match self.files.hold() {
            Ok(()) => true,
            Err(error) => {
                self.tell(&error);
                false
            }
        }
    }

    fn handle(&mut self, job: Job) {
        if !self.hold() {
            if let Job::Write(_, data) = &job {
                self.shared.waiting.fetch_sub(data.len(), Ordering::Relaxed);
            }
            return;
        }
        match job {
            Job::Read(key, then) => {
                let is_hidden = self.shared.index().is_hidden(&key);
                let data = if is_hidden { None } else { self.files.read(&key) };
                then(self.take_note(&key, data));
            }
            Job::Write(key, data) => {
                self.shared.waiting.fetch_sub(data.len(), Ordering::Relaxed);
                let ousted = match self.files.write(&key, &data) {
                    Ok(()) => self.shared.index().note(&key, data.len() as u64),
                    Err(error) => {
                        self.tell(&error);
                        self.shared.index().forget(&key);
                        vec![key]
                    }
                };
                self.files.remove_all(&ousted);
            }
            Job::Remove(key) => {
                self.shared.index().forget(&key);
                self.files.remove_all(&[key]);
            }
        }
    }

    /// Notes what was read. What is to be removed is as good as gone, and stays marked as such, though it was whole
    /// when the reading began.
    fn take_note(&self, key: &ShelfKey, data: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut index = self.shared.index();
        if index.is_hidden(key) {
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

    fn tell(&mut self, error: &std::io::Error) {
        if self.told.is_none_or(|at| at.elapsed() > TELL_EVERY) {
            self.told = Some(Instant::now());
            tracing::warn!(folder = %self.files.folder().display(), %error, "nothing is kept on disk");
        }
    }
}

#[cfg(test)]
mod tests;
