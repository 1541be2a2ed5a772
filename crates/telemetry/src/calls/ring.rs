//! A ring of words with one writer and one reader: neither waits for the other. What the words mean is not its concern.

use std::sync::atomic::{AtomicU64, Ordering};

/// Records that are read before their room is given back. The writer looks at that line of memory rarely.
const PIECE: u64 = 64;

/// A record. One of eight words is one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<const LENGTH: usize>([AtomicU64; LENGTH]);

/// What only the writer changes, on cache lines of its own, so that the two sides do not fight for one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Writer {
    /// Records written.
    written: AtomicU64,
    /// Records of which it knows that they are read: it looks again when there seems to be no room.
    known_read: AtomicU64,
    /// Records that found no room.
    dropped: AtomicU64,
}

/// What only the reader changes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Reader {
    /// Records read.
    read: AtomicU64,
}

/// A ring with one writer and one reader.
#[derive(Debug)]
pub(super) struct Ring<const LENGTH: usize> {
    slots: Box<[Slot<LENGTH>]>,
    writer: Writer,
    reader: Reader,
}

impl<const LENGTH: usize> Ring<LENGTH> {
    /// A ring with room for so many records, which is a power of two.
    pub(super) fn new(records: usize) -> Self {
        assert!(records.is_power_of_two(), "{records} is not a power of two");
        Self {
            slots: (0..records)
                .map(|_| Slot([const { AtomicU64::new(0) }; LENGTH]))
                .collect(),
            writer: Writer::default(),
            reader: Reader::default(),
        }
    }

    #[inline]
    fn slot(&self, record: u64) -> &[AtomicU64; LENGTH] {
        &self.slots[record as usize & (self.slots.len() - 1)].0
    }

    /// Writes a record. Says how many were written by now; `None`: there was no room.
    #[inline]
    pub(super) fn push(&self, words: &[u64; LENGTH]) -> Option<u64> {
        let written = self.writer.written.load(Ordering::Relaxed);
        let known_read = self.writer.known_read.load(Ordering::Relaxed);
        if written.wrapping_sub(known_read) >= self.slots.len() as u64 && !self.has_room(written) {
            return None;
        }
        for (place, word) in self.slot(written).iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.writer.written.store(written + 1, Ordering::Release);
        Some(written + 1)
    }

    /// Looks how far the reader is. A record that finds no room is counted.
    #[cold]
    fn has_room(&self, written: u64) -> bool {
        // What the reader has read is no more read once it says so.
        let read = self.reader.read.load(Ordering::Acquire);
        self.writer.known_read.store(read, Ordering::Relaxed);
        let has_room = written.wrapping_sub(read) < self.slots.len() as u64;
        if !has_room {
            let dropped = self.writer.dropped.load(Ordering::Relaxed);
            self.writer.dropped.store(dropped + 1, Ordering::Relaxed);
        }
        has_room
    }

    /// Records that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.writer.dropped.load(Ordering::Relaxed)
    }

    /// Records that were read.
    #[cfg(test)]
    pub(super) fn read(&self) -> u64 {
        self.reader.read.load(Ordering::Acquire)
    }

    /// Reads what was written by now.
    pub(super) fn drain(&self, mut each: impl FnMut(&[u64; LENGTH])) {
        let written = self.writer.written.load(Ordering::Acquire);
        let mut read = self.reader.read.load(Ordering::Relaxed);
        while read != written {
            for record in read..written.min(read + PIECE) {
                let slot = self.slot(record);
                each(&std::array::from_fn(|place| slot[place].load(Ordering::Relaxed)));
            }
            read = written.min(read + PIECE);
            self.reader.read.store(read, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_cache_lines() {
        assert_eq!((size_of::<Slot<8>>(), align_of::<Slot<8>>()), (64, 64));
        let ring = Ring::<8>::new(4);
        assert_eq!(std::ptr::from_ref(&ring.slots[0]).addr() % 64, 0);
    }

    #[test]
    fn room_is_found_as_soon_as_it_is_needed() {
        let ring = Ring::<1>::new(4);
        let mut next = 0;
        for round in 0..300_u64 {
            let most = round % 6;
            let written = (0..most)
                .filter(|number| ring.push(&[next + number]).is_some())
                .count() as u64;
            assert_eq!(written, most.min(4), "round {round}");
            let mut seen = Vec::new();
            ring.drain(|words| seen.push(words[0]));
            assert_eq!(seen, (next..next + written).collect::<Vec<_>>());
            next += written;
        }
        assert_eq!(ring.dropped(), 50, "one of each six rounds has one too many");
    }
}
