//! Things of a worker that wait for their next use, because making one costs more than keeping it.
//!
//! There are never more than were in use at once, nor than a bound; and objects that were not needed for some time are freed,
//! so that a burst of calls leaves no memory behind.

use std::cell::{Cell, RefCell};

/// Things that wait for their next use; the one that was used last is taken first, as it is warm in the cache.
pub struct ObjectPool<T> {
    kept: RefCell<Vec<T>>,
    most: usize,
    /// The fewest that there were since [`ObjectPool::trim`]: so many were not needed.
    fewest: Cell<usize>,
}

impl<T> ObjectPool<T> {
    /// None yet, and never more than `most`.
    pub const fn new(most: usize) -> Self {
        Self {
            kept: RefCell::new(Vec::new()),
            most,
            fewest: Cell::new(0),
        }
    }

    /// Takes an object, if there is one.
    #[inline]
    pub fn take(&self) -> Option<T> {
        let mut kept = self.kept.borrow_mut();
        let taken = kept.pop();
        self.fewest.set(self.fewest.get().min(kept.len()));
        taken
    }

    /// Whether one more would be kept.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.kept.borrow().len() < self.most
    }

    /// Takes an object back, if there is room for it.
    #[inline]
    pub fn give(&self, it: T) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() < self.most {
            kept.push(it);
        }
    }

    /// Removes and returns half of those that were not needed since the last time.
    pub fn trim(&self) -> Vec<T> {
        let mut kept = self.kept.borrow_mut();
        let unneeded = self.fewest.get().div_ceil(2);
        let gone: Vec<T> = kept.drain(..unneeded).collect();
        if kept.capacity() > 4 * kept.len().max(16) {
            kept.shrink_to_fit();
        }
        self.fewest.set(kept.len());
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_pools_drop_what_is_not_needed_bit_by_bit() {
        let pool: ObjectPool<u32> = ObjectPool::new(8);
        for number in 0..10 {
            pool.give(number);
        }
        assert!(!pool.has_room());
        // The first time nothing is known of what was needed.
        assert!(pool.trim().is_empty());
        let (last, before) = (pool.take(), pool.take());
        assert_eq!((last, before), (Some(7), Some(6)));
        pool.give(6);
        pool.give(7);
        // Six of eight were never needed.
        assert_eq!(pool.trim(), [0, 1, 2]);
        assert_eq!(pool.trim(), [3, 4, 5]);
        assert_eq!(pool.trim(), [6]);
        assert_eq!(pool.trim(), [7]);
        assert_eq!(pool.take(), None);
        assert!(pool.trim().is_empty());
    }
}
