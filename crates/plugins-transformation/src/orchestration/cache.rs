//! The cache of nodes `cache`: values by key, in memory or in a Redis that gateways share. What it is not: the nodes.

use super::data::Datum;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{Exchange, Outcome};
use weir_plugins_shared::redis_values::{MAX_VALUE, RedisLookup, RedisValues};

/// Bytes of the values that an instance keeps in memory. One of [`MAX_VALUE`] bytes fits into a part of the map.
const CACHE_BYTES: usize = 16 << 20;
/// What stands before bytes that are no text, in a Redis. No JSON begins with it.
const BYTES_MARK: u8 = b'=';

/// Values that an instance keeps in memory.
pub(super) type ValueCache = ExpiringMap<Datum>;

/// The values of all instances. Each has a share of its own, so that none drives out those of others, and an instance that is
/// built again finds its own.
#[derive(Default)]
pub(super) struct Caches(Mutex<BTreeMap<String, Weak<ValueCache>>>);

impl Caches {
    /// The values of this instance.
    pub(super) fn of(&self, instance: &str) -> Arc<ValueCache> {
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = caches.get(instance).and_then(Weak::upgrade) {
            return known;
        }
        caches.retain(|_, cache| cache.strong_count() > 0);
        let cache = ExpiringMap::new(CACHE_BYTES);
        caches.insert(instance.to_owned(), Arc::downgrade(&cache));
        cache
    }
}

/// A value as it is kept in a Redis.
fn written(value: &Datum) -> Vec<u8> {
    match value {
        Datum::Bytes(bytes) => [&[BYTES_MARK], STANDARD.encode(bytes).as_bytes()].concat(),
        Datum::Packed(text) => text.to_vec(),
        Datum::Json(value) => value.to_string().into_bytes(),
    }
}

/// The value that was kept like this.
fn read(text: &[u8]) -> Option<Datum> {
    match text.strip_prefix(&[BYTES_MARK]) {
        Some(bytes) => STANDARD.decode(bytes).ok().map(|it| Datum::Bytes(it.into())),
        None => serde_json::from_slice::<Value>(text).ok().map(Datum::json),
    }
}

/// Where an instance keeps values.
pub(super) struct Store {
    /// Distinguishes its keys from those of other instances.
    pub(super) instance: String,
    pub(super) memory: Arc<ValueCache>,
    /// The cache for values, if they are not cached in memory.
    pub(super) redis: Option<RedisValues>,
}

/// What comes of a step.
pub(super) enum CacheStep<T> {
    Done(T),
    /// The Redis is asked.
    Wait(Outcome),
}

/// The result of a look-up.
pub(super) enum CacheLookup {
    Hit(Datum),
    Miss,
    /// The Redis is unavailable.
    Away,
}

impl Store {
    /// The key in the store: keys of nodes may be long.
    fn key(&self, key: &[u8]) -> Vec<u8> {
        let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        context.update(&(self.instance.len() as u64).to_be_bytes());
        context.update(self.instance.as_bytes());
        context.update(key);
        context.finish().as_ref().to_vec()
    }

    pub(super) fn look(&self, key: &[u8], now_ms: u64) -> CacheStep<CacheLookup> {
        let key = self.key(key);
        match &self.redis {
            Some(redis) => CacheStep::Wait(redis.look(&key)),
            None => CacheStep::Done(match self.memory.get(&key, now_ms) {
                Some(value) => CacheLookup::Hit(value),
                None => CacheLookup::Miss,
            }),
        }
    }

    /// What the Redis has said.
    pub(super) fn looked_up(exchange: &mut Exchange) -> CacheLookup {
        match RedisValues::result(exchange) {
            RedisLookup::Unavailable => CacheLookup::Away,
            RedisLookup::Nothing(_) => CacheLookup::Miss,
            RedisLookup::Value(text, _) => read(&text).map_or(CacheLookup::Miss, CacheLookup::Hit),
        }
    }

    /// Keeps a value. Whether it is kept: one that is too large is not.
    pub(super) fn keep(&self, key: &[u8], value: &Datum, ttl_ms: u64, now_ms: u64) -> CacheStep<bool> {
        let key = self.key(key);
        if ttl_ms == 0 {
            return CacheStep::Done(false);
        }
        match &self.redis {
            None => {
                let value = value.clone().packed();
                let size = value.size();
                if size > MAX_VALUE {
                    return CacheStep::Done(false);
                }
                self.memory
                    .insert(&key, value, size, Lifetime::fresh(ttl_ms), now_ms);
                CacheStep::Done(true)
            }
            Some(redis) => {
                let text = written(value);
                match text.len() <= MAX_VALUE {
                    true => CacheStep::Wait(redis.store(&key, &text, ttl_ms)),
                    false => CacheStep::Done(false),
                }
            }
        }
    }

    /// Whether the Redis has kept the value; `None`: it is unavailable.
    pub(super) fn kept(exchange: &mut Exchange) -> Option<bool> {
        RedisValues::is_stored(exchange).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_come_back_out_of_a_redis_as_they_were() {
        for value in [json!({"a": [1]}), json!("=a"), json!(vec![0; 10_000])] {
            let kept = Datum::json(value.clone());
            for kept in [kept.clone(), kept.packed()] {
                let found = read(&written(&kept)).map(|it| it.to_json());
                assert_eq!(found, Some(value.clone()));
            }
        }
        let bytes = [0xff, 0, 1];
        let found = read(&written(&Datum::of_bytes(bytes.to_vec()))).expect("a value");
        let Datum::Bytes(found) = found else {
            panic!("bytes");
        };
        assert_eq!(&*found, &bytes);
        for nonsense in ["", "=", "=%", "{"] {
            let is_empty = nonsense == "=";
            assert_eq!(read(nonsense.as_bytes()).is_some(), is_empty, "{nonsense}");
        }
    }

    #[test]
    fn instances_have_values_of_their_own() {
        let caches = Caches::default();
        let keep = |store: &Store, key: &str, value: &Datum| {
            let kept = store.keep(key.as_bytes(), value, 1000, 0);
            assert!(matches!(kept, CacheStep::Done(true)));
        };
        let store = |instance: &str| Store {
            instance: instance.to_owned(),
            memory: caches.of(instance),
            redis: None,
        };
        let (one, other) = (store("one"), store("other"));
        keep(&one, "k", &Datum::json(1));
        let large = Datum::json("a".repeat(900_000));
        for number in 0..200 {
            keep(&other, &number.to_string(), &large);
        }
        // It is found as long as an instance of this name lives.
        let again = store("one");
        drop(one);
        let found = again.look(b"k", 1);
        assert!(matches!(found, CacheStep::Done(CacheLookup::Hit(_))));
        drop(again);
        let found = store("one").look(b"k", 1);
        assert!(matches!(found, CacheStep::Done(CacheLookup::Miss)));
        assert!(other.memory.bytes() <= CACHE_BYTES);
    }
}
