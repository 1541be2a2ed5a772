//! A map of values that live only as long as a snapshot uses them: what the next one needs too is not made again.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Values that are in use, by key. Holds none of them alive.
pub(crate) struct WeakMap<K, V>(Mutex<HashMap<K, Weak<V>>>);

impl<K, V> Default for WeakMap<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> WeakMap<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Weak<V>>> {
        // A panic under the lock leaves whole entries only, so the map stays good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value that is in use.
    pub(crate) fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.lock().get(key).and_then(Weak::upgrade)
    }

    /// The value that is in use, or a new one. Making it takes next to no time.
    pub(crate) fn find_or_make(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut map = self.lock();
        let slot = map.entry(key).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let made = Arc::new(make());
            *slot = Arc::downgrade(&made);
            made
        })
    }

    /// The value that is in use, or a new one, which may take time to build.
    pub(crate) fn find_or_build<Q, E>(
        &self,
        key: &Q,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(known) = self.find(key) {
            return Ok(known);
        }
        let built = Arc::new(build()?);
        self.lock().insert(key.to_owned(), Arc::downgrade(&built));
        Ok(built)
    }

    /// Forgets what is not in use any more.
    pub(crate) fn prune(&self) {
        let mut map = self.lock();
        map.retain(|_, value| value.strong_count() > 0);
        if map.capacity() > 4 * map.len() {
            map.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_used_is_kept() {
        let map: WeakMap<String, u32> = WeakMap::default();
        let kept = map.find_or_make("kept".to_owned(), || 1);
        for number in 0..100 {
            drop(map.find_or_make(number.to_string(), || number));
            drop(map.find_or_build::<_, ()>(&format!("built {number}"), || Ok(number)));
        }
        assert_eq!(map.find_or_build("failed", || Err("why")), Err("why"));
        map.prune();
        assert_eq!(map.lock().len(), 1);
        assert!(Arc::ptr_eq(&map.find_or_make("kept".to_owned(), || 2), &kept));
        assert_eq!(map.find_or_build::<str, ()>("kept", || Ok(3)), Ok(kept));
        assert_eq!(map.find("0"), None);
    }
}
