//! The index of a shelf: which files there are, how large, and which was used longest ago.

use std::collections::{BTreeMap, HashMap, HashSet};
use weir_plugin::ShelfKey;

/// What a file takes on a disk is a multiple of this, about.
const BLOCK: u64 = 4096;
/// Files at most, whatever their size, as each takes memory for its place in the index.
const MAX_FILES: usize = 1 << 20;
/// Parts in which the index is made: one for each first byte of a key.
const PARTS: usize = 256;

/// A file that was found: its key, its size, and when it was last written, in any unit.
pub struct Found {
    pub key: ShelfKey,
    pub bytes: u64,
    pub written: u64,
}

/// The index.
pub struct Index {
    max_bytes: u64,
    bytes: u64,
    files: HashMap<ShelfKey, File>,
    /// Keys by the moment of their last use.
    order: BTreeMap<u64, ShelfKey>,
    now: u64,
    /// Parts that have been looked at.
    known: usize,
    /// Keys that are to be removed by jobs that wait; what such a file holds is not wanted any more.
    hidden: HashSet<ShelfKey>,
}

struct File {
    bytes: u64,
    used: u64,
}

impl Index {
    /// That of a shelf of so many bytes at most, which has not been looked at.
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            bytes: 0,
            files: HashMap::new(),
            order: BTreeMap::new(),
            now: 0,
            known: 0,
            hidden: HashSet::new(),
        }
    }

    /// Whether there may be a file.
    pub fn may_have(&self, key: &ShelfKey) -> bool {
        let is_known = usize::from(key[0]) < self.known;
        !self.hidden.contains(key) && (self.files.contains_key(key) || !is_known)
    }

    /// Whether all parts have been looked at.
    pub fn is_whole(&self) -> bool {
        self.known == PARTS
    }

    /// The part to be looked at next.
    pub fn next_part(&self) -> Option<u8> {
        u8::try_from(self.known).ok()
    }

    /// Adds what a part has, behind all that is in use; gives what there is no room for.
    pub fn add_part(&mut self, part: u8, mut found: Vec<Found>) -> Vec<ShelfKey> {
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
    pub fn note(&mut self, key: &ShelfKey, bytes: u64) -> Vec<ShelfKey> {
        self.forget(key);
        self.put(*key, bytes);
        self.make_room()
    }

    /// Notes that a file is to be removed.
    pub fn hide(&mut self, key: &ShelfKey) {
        if self.may_have(key) && self.hidden.len() < MAX_FILES {
            self.hidden.insert(*key);
        }
    }

    /// Whether a file is to be removed.
    pub fn is_hidden(&self, key: &ShelfKey) -> bool {
        self.hidden.contains(key)
    }

    /// Notes that a file is gone.
    pub fn forget(&mut self, key: &ShelfKey) {
        self.hidden.remove(key);
        if let Some(file) = self.files.remove(key) {
            self.bytes -= file.bytes;
            self.order.remove(&file.used);
        }
    }

    fn put(&mut self, key: ShelfKey, bytes: u64) {
        self.now += 1;
        let used = self.now;
        let bytes = bytes.div_ceil(BLOCK).max(1) * BLOCK;
        self.bytes += bytes;
        self.order.insert(used, key);
        self.files.insert(key, File { bytes, used });
    }

    fn make_room(&mut self) -> Vec<ShelfKey> {
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
