//! The cache of nodes `cache`: values by key, in memory or in a Redis that gateways share. What it is not: the nodes.

use super::data::Datum;
use serde_json::Value;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{Exchange, Outcome};
use weir_plugins_shared::redis_values::{MAX_VALUE, RedisLookup, RedisValues};

/// Values that instances keep in memory.
pub(super) type ValueCache = ExpiringMap<Datum>;

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
            RedisLookup::Value(text, _) => match serde_json::from_slice::<Value>(&text) {
                Ok(value) => CacheLookup::Hit(Datum::json(value)),
                Err(_) => CacheLookup::Miss,
            },
        }
    }

    /// Keeps a value. Whether it is kept: one that is too large is not.
    pub(super) fn keep(&self, key: &[u8], value: &Datum, ttl_ms: u64, now_ms: u64) -> CacheStep<bool> {
        let key = self.key(key);
        if ttl_ms == 0 || value.size() > MAX_VALUE {
            return CacheStep::Done(false);
        }
        match &self.redis {
            None => {
                let lifetime = Lifetime::fresh(ttl_ms);
                self.memory
                    .insert(&key, value.clone(), value.size(), lifetime, now_ms);
                CacheStep::Done(true)
            }
            Some(redis) => {
                let text = value.to_json().to_string();
                match text.len() <= MAX_VALUE {
                    true => CacheStep::Wait(redis.store(&key, text.as_bytes(), ttl_ms)),
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
