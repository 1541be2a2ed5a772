//! How many bytes of values are held by calls that wait for servers. What it is not: the values.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all calls hold at most.
const ALL_BYTES: usize = 256 << 20;
/// Bytes that the calls of one instance hold at most.
const INSTANCE_BYTES: usize = ALL_BYTES / 2;

/// The bytes that calls hold now: of all instances, and of one.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryBudget {
    all: Arc<AtomicUsize>,
    own: Arc<AtomicUsize>,
}

impl MemoryBudget {
    /// Those of another instance.
    pub(super) fn of_instance(&self) -> Self {
        Self {
            all: Arc::clone(&self.all),
            own: Arc::default(),
        }
    }

    /// Counts what a call holds; `None`: it is too much.
    pub(super) fn hold(&self, bytes: usize) -> Option<MemoryPermit> {
        let add = |counter: &AtomicUsize, most: usize| {
            let more = |held: usize| held.checked_add(bytes).filter(|held| *held <= most);
            let added = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
            added.is_ok()
        };
        if !add(&self.own, INSTANCE_BYTES) {
            return None;
        }
        if !add(&self.all, ALL_BYTES) {
            self.own.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let bytes_of = self.clone();
        Some(MemoryPermit { bytes_of, bytes })
    }
}

/// What a call holds, until it goes on.
#[derive(Debug)]
pub(super) struct MemoryPermit {
    bytes_of: MemoryBudget,
    bytes: usize,
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.bytes_of.all.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes_of.own.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_hold_no_more_than_their_share() {
        let all = MemoryBudget::default();
        let (one, other, third) = (all.of_instance(), all.of_instance(), all.of_instance());
        let held = one.hold(INSTANCE_BYTES);
        assert!(held.is_some());
        assert!(one.hold(1).is_none());
        let more = other.hold(INSTANCE_BYTES);
        assert!(more.is_some());
        // All together are at their bound, and what is refused is not counted.
        assert!(third.hold(1).is_none());
        drop(held);
        assert!(third.hold(INSTANCE_BYTES).is_some());
        assert!(one.hold(usize::MAX).is_none());
        assert!(one.hold(INSTANCE_BYTES).is_some());
        drop(more);
        assert_eq!(all.all.load(Ordering::Relaxed), 0);
    }
}
