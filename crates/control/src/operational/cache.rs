//! A part of the operational store in memory: for what is asked with every call. It follows the store, so that what one
//! control plane ends has ended on all of them.

use super::{OperationalEntry, OperationalStore, decode};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_store::follow::Subscription;
use weir_store::{Document, Key, StoreError};

/// Documents by the last segment of their keys. Cheap to share.
#[derive(Debug)]
pub struct Cache<T>(Arc<Mutex<HashMap<String, Arc<OperationalEntry<T>>>>>);

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// The last segment of a key.
fn last_segment(key: &Key) -> &str {
    let text = key.as_str();
    text.rsplit_once('/').map_or(text, |(_, last)| last)
}

impl<T: DeserializeOwned + Send + Sync + 'static> Cache<T> {
    /// Reads the documents below a prefix and follows them. To be called inside of a tokio runtime.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(store: &OperationalStore, prefix: &str) -> Result<Self, StoreError> {
        let (documents, _, following) = weir_store::follow::start(Arc::clone(store.store()), prefix).await?;
        let cache = Self::default();
        for document in &documents {
            cache.apply(&document.key, Some(document));
        }
        tokio::spawn(cache.clone().follow(following));
        Ok(cache)
    }

    async fn follow(self, mut following: Subscription) {
        loop {
            for (key, document) in following.next().await.documents {
                self.apply(&key, document.as_ref());
            }
        }
    }

    fn apply(&self, key: &Key, document: Option<&Document>) {
        // Whether it has ended is asked when it is read.
        match document.and_then(|it| decode(it, UNIX_EPOCH)) {
            Some(entry) => {
                let entry = Arc::new(entry);
                self.known().insert(last_segment(key).to_owned(), entry);
            }
            None => self.forget(key),
        }
    }
}

impl<T> Cache<T> {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<OperationalEntry<T>>>> {
        // Every change leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The document whose key ends with this segment, if it is there now.
    pub fn get(&self, last_segment: &str, now: SystemTime) -> Option<Arc<OperationalEntry<T>>> {
        let entry = self.known().get(last_segment).cloned();
        entry.filter(|it| it.ends.is_none_or(|ends| ends > now))
    }

    /// The documents below a prefix that are there now, the oldest first.
    pub fn below(&self, prefix: &str, now: SystemTime) -> Vec<Arc<OperationalEntry<T>>> {
        let known = self.known();
        let is_wanted = |it: &&Arc<OperationalEntry<T>>| {
            it.key.as_str().starts_with(prefix) && it.ends.is_none_or(|ends| ends > now)
        };
        let mut found: Vec<_> = known.values().filter(is_wanted).cloned().collect();
        drop(known);
        found.sort_by(|one, other| (one.created, &one.key).cmp(&(other.created, &other.key)));
        found
    }

    /// Takes over a document that was just written: the followed state is a moment behind.
    pub fn remember(&self, entry: Arc<OperationalEntry<T>>) {
        self.known().insert(last_segment(&entry.key).to_owned(), entry);
    }

    /// Takes over that a document was removed just now.
    pub fn forget(&self, key: &Key) {
        self.known().remove(last_segment(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn it_knows_what_the_store_holds() {
        let (store, now) = (OperationalStore::in_memory(), UNIX_EPOCH + Duration::from_secs(9));
        let key = |name: &str| Key::new(name).expect("a key");
        let ends = Some(now + Duration::from_secs(5));
        store
            .put(&key("a/x/1"), &1_u32, (ends, now))
            .await
            .expect("written");
        let cache = Cache::<u32>::open(&store, "a/").await.expect("opened");
        assert_eq!(cache.get("1", now).expect("there").value, 1);
        assert_eq!(cache.get("1", now + Duration::from_secs(5)), None, "it has ended");
        store
            .put(&key("a/y/2"), &2_u32, (None, now))
            .await
            .expect("written");
        store
            .put(&key("b/3"), &3_u32, (None, now))
            .await
            .expect("written");
        store.remove([key("a/x/1")], now).await.expect("removed");
        let holds = |names: &[&str]| {
            let found = cache.below("a/", now);
            found.iter().map(|it| it.key.as_str()).eq(names.iter().copied())
        };
        while !holds(&["a/y/2"]) {
            tokio::task::yield_now().await;
        }
        assert!(cache.get("3", now).is_none() && cache.below("a/x/", now).is_empty());
        cache.forget(&key("a/y/2"));
        assert!(holds(&[]));
    }
}
