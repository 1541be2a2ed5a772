//! Semaphores: permits that calls hold until they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One place among those that a counter counts; given back when it is dropped.
#[derive(Debug)]
pub struct Permit(Arc<AtomicU64>);

impl Permit {
    /// Takes a place if fewer than `most` are taken. Also returns how many are taken now, this one included.
    pub fn take(counter: &Arc<AtomicU64>, most: u64) -> Option<(Self, u64)> {
        let more = |taken: u64| (taken < most).then_some(taken + 1);
        let before = counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some((Self(Arc::clone(counter)), before + 1))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let counter = Arc::new(AtomicU64::new(0));
        let taken = |count: Option<&(Permit, u64)>| count.map(|(_, count)| *count);
        let first = Permit::take(&counter, 2);
        let second = Permit::take(&counter, 2);
        assert_eq!(
            (taken(first.as_ref()), taken(second.as_ref())),
            (Some(1), Some(2))
        );
        assert!(Permit::take(&counter, 2).is_none());
        drop(first);
        assert_eq!(taken(Permit::take(&counter, 2).as_ref()), Some(2));
        assert_eq!(counter.load(Ordering::Relaxed), 1);
    }
}
