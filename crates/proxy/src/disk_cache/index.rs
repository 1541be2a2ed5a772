//! The index of a cache: which files there are, how large, which was used longest ago, and what jobs that wait will do
//! to them.

use std::collections::{BTreeMap, HashMap};
use weir_plugin::DiskCacheKey;

/// The size of a file on a disk is a multiple of this, about.
const BLOCK: u64 = 4096;
/// Files at most, whatever their size, as each takes memory for its place in the index.
const MAX_FILES: usize = 1 << 20;
/// Parts in which the index is made: one for each first byte of a key.
const PARTS: usize = 256;
/// Removals that wait at most.
pub const MAX_REMOVALS: usize = 1 << 16;

/// A file that was found: its key, its size, and when it was last written, in any unit.
pub struct IndexEntry {
    pub key: DiskCacheKey,
    pub bytes: u64,
    pub written: u64,
}

/// The index.
pub struct Index {
    max_bytes: u64,
    bytes: u64,
    files: HashMap<DiskCacheKey, File>,
    /// Keys by the moment of their last use.
    order: BTreeMap<u64, DiskCacheKey>,
    now: u64,
    /// Parts that have been looked at.
    known: usize,
    /// The effect of jobs that wait, by key.
    waiting: HashMap<DiskCacheKey, PendingJobs>,
    /// Removals among them.
    removals: usize,
    /// How often all was forgotten.
    age: u64,
    /// Whether all files are to go.
    is_void: bool,
}

struct File {
    bytes: u64,
    used: u64,
}

/// Jobs that wait for one key.
struct PendingJobs {
    jobs: u32,
    /// The last of them removes the file: what is there is not wanted any more.
    removes: bool,
}

/// What is to be done about a removal.
#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    /// A job.
    Job,
    /// Nothing: nothing is there, or a job that waits does it.
    Nothing,
    /// All files go, as too many removals wait.
    All,
}

impl Index {
    /// That of a cache of so many bytes at most, which has not been looked at.
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            bytes: 0,
            files: HashMap::new(),
            order: BTreeMap::new(),
            now: 0,
            known: 0,
            waiting: HashMap::new(),
            removals: 0,
            age: 0,
            is_void: false,
        }
    }

    /// Whether there may be a file.
    pub fn may_have(&self, key: &DiskCacheKey) -> bool {
        let is_known = usize::from(key[0]) < self.known;
        !self.is_removed(key) && (self.files.contains_key(key) || !is_known)
    }

    /// Whether all parts have been looked at.
    pub fn is_whole(&self) -> bool {
        self.known == PARTS
    }

    /// The part to be looked at next.
    pub fn next_part(&self) -> Option<u8> {
        u8::try_from(self.known).ok()
    }

    /// Adds the files of a part, after all that is in use; returns those that there is no room for.
    pub fn add_part(&mut self, part: u8, mut found: Vec<IndexEntry>) -> Vec<DiskCacheKey> {
        found.sort_by_key(|file| file.written);
        for file in found {
            if !self.files.contains_key(&file.key) {
                self.put(file.key, file.bytes);
            }
        }
        self.known = usize::from(part) + 1;
        self.make_room()
    }

    /// Notes that a file was written or read; gives what there is no room for any more.
    pub fn note(&mut self, key: &DiskCacheKey, bytes: u64) -> Vec<DiskCacheKey> {
        self.forget(key);
        self.put(*key, bytes);
        self.make_room()
    }

    /// Notes that a job to write a file begins to wait; gives the age that it is of. Until it has been done, a removal
    /// knows of it.
    pub fn will_write(&mut self, key: &DiskCacheKey) -> u64 {
        let waiting = self.waiting.entry(*key).or_insert(PendingJobs {
            jobs: 0,
            removes: false,
        });
        waiting.jobs += 1;
        waiting.removes = false;
        self.age
    }

    /// Notes that a file is to be removed. From now on it counts as gone.
    pub fn will_remove(&mut self, key: &DiskCacheKey) -> Removal {
        let is_there = self.may_have(key) || self.waiting.get(key).is_some_and(|it| !it.removes);
        if !is_there {
            return Removal::Nothing;
        }
        if self.removals >= MAX_REMOVALS {
            self.void();
            return Removal::All;
        }
        self.removals += 1;
        let waiting = self.waiting.entry(*key).or_insert(PendingJobs {
            jobs: 0,
            removes: true,
        });
        waiting.jobs += 1;
        waiting.removes = true;
        Removal::Job
    }

    /// Whether what a job of this age writes is still wanted.
    pub fn wants(&self, key: &DiskCacheKey, age: u64) -> bool {
        age == self.age && !self.is_removed(key)
    }

    /// Notes that a job to write a file has been done, or was left out.
    pub fn end_write(&mut self, key: &DiskCacheKey) {
        self.end_wait(key);
    }

    /// Notes that a file has been removed by a job.
    pub fn end_removal(&mut self, key: &DiskCacheKey) {
        self.removals = self.removals.saturating_sub(1);
        self.end_wait(key);
        self.forget(key);
    }

    fn end_wait(&mut self, key: &DiskCacheKey) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.jobs -= 1;
            if waiting.jobs == 0 {
                self.waiting.remove(key);
            }
        }
    }

    /// Whether a file is to be removed.
    pub fn is_removed(&self, key: &DiskCacheKey) -> bool {
        self.waiting.get(key).is_some_and(|waiting| waiting.removes)
    }

    /// Whether all files are to go; asked by who removes them.
    pub fn take_void(&mut self) -> bool {
        std::mem::take(&mut self.is_void)
    }

    /// Forgets all. Jobs that wait write nothing any more.
    fn void(&mut self) {
        self.age += 1;
        self.is_void = true;
        self.known = PARTS;
        self.bytes = 0;
        self.files.clear();
        self.order.clear();
    }

    /// Notes that a file is gone.
    pub fn forget(&mut self, key: &DiskCacheKey) {
        if let Some(file) = self.files.remove(key) {
            self.bytes -= file.bytes;
            self.order.remove(&file.used);
        }
    }

    fn put(&mut self, key: DiskCacheKey, bytes: u64) {
        self.now += 1;
        let used = self.now;
        let bytes = bytes.div_ceil(BLOCK).max(1) * BLOCK;
        self.bytes += bytes;
        self.order.insert(used, key);
        self.files.insert(key, File { bytes, used });
    }

    fn make_room(&mut self) -> Vec<DiskCacheKey> {
        let mut ousted = Vec::new();
        while self.bytes > self.max_bytes || self.files.len() > MAX_FILES {
            let Some((_, key)) = self.order.pop_first() else {
                break;
            };
            self.forget(&key);
            ousted.push(key);
        }
        ousted
    }
}
