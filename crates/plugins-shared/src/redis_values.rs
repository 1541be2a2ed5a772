//! Values that gateways share in a Redis: how they are looked for and kept there.
//!
//! What it is not: what a value means. A Redis that is away has no values, and nothing is kept there.

use crate::redis::script;
use data_encoding::HEXLOWER;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use weir_plugin::{Exchange, Outcome, RedisCall, RedisCommand, RedisPublisher, RedisScript, RedisServer};

/// Most bytes of a value. An answer of a Redis has at most a mebibyte.
pub const MAX_VALUE: usize = 1_000_000;

/// Gives what stands under a key.
static GET: LazyLock<RedisScript> = LazyLock::new(|| script("return {redis.call('GET', KEYS[1])}"));
/// Keeps a value under a key for so many milliseconds.
static SET: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {}",
    )
});

/// Values in a Redis.
pub struct RedisValues {
    server: Arc<RedisServer>,
    /// What all keys begin with.
    prefix: Vec<u8>,
}

/// What a Redis has said of a value.
pub enum RedisLookup {
    /// The value. Over this, another one can be kept there.
    Value(Vec<u8>, Rc<dyn RedisPublisher>),
    /// It has none.
    Nothing(Rc<dyn RedisPublisher>),
    /// The Redis is unavailable.
    Unavailable,
}

impl RedisValues {
    /// Values in this Redis, whose keys begin with `prefix`.
    pub fn new(server: RedisServer, prefix: String) -> Self {
        Self {
            server: Arc::new(server),
            prefix: prefix.into_bytes(),
        }
    }

    fn call(&self, script: &'static RedisScript, key: &[u8]) -> RedisCall {
        let mut call = RedisCall::new(&self.server, script);
        call.key(&[&self.prefix, HEXLOWER.encode(key).as_bytes()]);
        call.is_repeatable = true;
        call
    }

    fn set(&self, key: &[u8], value: &[u8], life_ms: u64) -> RedisCall {
        let mut call = self.call(&SET, key);
        call.argument(&[value]);
        call.number(life_ms);
        call
    }

    /// Looks for a value.
    pub fn look(&self, key: &[u8]) -> Outcome {
        let mut call = self.call(&GET, key);
        call.gives_texts = true;
        Outcome::Redis(Box::new(RedisCommand::Run(call)))
    }

    /// The result of the look-up.
    pub fn result(exchange: &mut Exchange) -> RedisLookup {
        match exchange.redis.take().flatten() {
            None => RedisLookup::Unavailable,
            Some(mut answer) if !answer.texts.is_empty() => {
                RedisLookup::Value(answer.texts.swap_remove(0), answer.outlet)
            }
            Some(answer) => RedisLookup::Nothing(answer.outlet),
        }
    }

    /// Keeps a value, without waiting for it. One that is too long is not kept.
    pub fn keep(&self, outlet: &Rc<dyn RedisPublisher>, key: &[u8], value: &[u8], life_ms: u64) {
        if value.len() <= MAX_VALUE {
            outlet.fire_and_forget(self.set(key, value, life_ms));
        }
    }

    /// Keeps a value of at most [`MAX_VALUE`] bytes, and waits until it is there.
    pub fn store(&self, key: &[u8], value: &[u8], life_ms: u64) -> Outcome {
        Outcome::Redis(Box::new(RedisCommand::Run(self.set(key, value, life_ms))))
    }

    /// Whether the value is there.
    pub fn is_stored(exchange: &mut Exchange) -> bool {
        exchange.redis.take().flatten().is_some()
    }
}
