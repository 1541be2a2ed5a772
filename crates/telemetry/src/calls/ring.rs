//! A ring of words with one writer and one reader: neither waits for the other. What the words mean is not its concern.

use std::sync::atomic::{AtomicU64, Ordering};

/// A value on cache lines of its own, so that the two sides of a ring do not fight for one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// A ring with one writer and one reader.
#[derive(Debug)]
pub(super) struct Ring<const LENGTH: usize> {
    records: Box<[[AtomicU64; LENGTH]]>,
    /// Records written. Only the writer changes it.
    written: Apart,
    /// Records read. Only the reader changes it.
    read: Apart,
    /// Records that found no room. Only the writer changes it.
    pub(super) dropped: AtomicU64,
}

impl<const LENGTH: usize> Ring<LENGTH> {
    pub(super) fn new(records: usize) -> Self {
        Self {
            records: (0..records)
                .map(|_| [const { AtomicU64::new(0) }; LENGTH])
                .collect(),
            written: Apart::default(),
            read: Apart::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Writes a record. Says whether there was room.
    #[inline]
    pub(super) fn push(&self, words: &[u64; LENGTH]) -> bool {
        let written = self.written.0.load(Ordering::Relaxed);
        // What the reader has read is no more read once it says so.
        let read = self.read.0.load(Ordering::Acquire);
        if written.wrapping_sub(read) >= self.records.len() as u64 {
            let dropped = self.dropped.load(Ordering::Relaxed);
            self.dropped.store(dropped + 1, Ordering::Relaxed);
            return false;
        }
        let slot = &self.records[written as usize % self.records.len()];
        for (place, word) in slot.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.written.0.store(written + 1, Ordering::Release);
        true
    }

    pub(super) fn drain(&self, mut each: impl FnMut(&[u64; LENGTH])) {
        let written = self.written.0.load(Ordering::Acquire);
        let mut read = self.read.0.load(Ordering::Relaxed);
        while read != written {
            let slot = &self.records[read as usize % self.records.len()];
            let words = std::array::from_fn(|place| slot[place].load(Ordering::Relaxed));
            read += 1;
            self.read.0.store(read, Ordering::Release);
            each(&words);
        }
    }
}
