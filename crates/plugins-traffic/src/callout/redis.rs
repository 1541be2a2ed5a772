//! Answers of callouts in a Redis, which gateways share: how they are looked for and kept there.
//!
//! A Redis that is away answers nothing: servers are asked, and nothing is kept. What stands there and is no answer counts as
//! nothing.

use data_encoding::HEXLOWER;
use serde_json::Value;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use weir_plugin::{Exchange, Outcome, RedisCall, RedisCommand, RedisPublisher, RedisScript, RedisServer};
use weir_plugins_shared::redis::script;

/// Most bytes of an answer there. An answer of a Redis has at most a mebibyte.
const MAX_VALUE: usize = 1_000_000;

/// Gives what stands under a key.
static GET: LazyLock<RedisScript> = LazyLock::new(|| script("return {redis.call('GET', KEYS[1])}"));
/// Keeps a value under a key for so many milliseconds.
static SET: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {}",
    )
});

/// Answers in a Redis.
pub(super) struct RedisStore {
    server: Arc<RedisServer>,
    /// What all keys begin with.
    prefix: Vec<u8>,
}

/// What a Redis has said of an answer.
pub(super) enum LookupResult {
    /// The answer.
    Answer(Value),
    /// It has none; over this it can be kept there.
    Nothing(Rc<dyn RedisPublisher>),
    /// The Redis is unavailable.
    Away,
}

impl RedisStore {
    pub(super) fn new(server: RedisServer, prefix: &str) -> Self {
        Self {
            server: Arc::new(server),
            prefix: format!("{prefix}:callout:").into_bytes(),
        }
    }

    fn call(&self, script: &'static RedisScript, key: &[u8]) -> RedisCall {
        let mut call = RedisCall::new(&self.server, script);
        call.key(&[&self.prefix, HEXLOWER.encode(key).as_bytes()]);
        call.is_repeatable = true;
        call
    }

    /// Looks for an answer.
    pub(super) fn look(&self, key: &[u8]) -> Outcome {
        let mut call = self.call(&GET, key);
        call.gives_texts = true;
        Outcome::Redis(Box::new(RedisCommand::Run(call)))
    }

    /// The result of the look-up.
    pub(super) fn found(exchange: &mut Exchange) -> LookupResult {
        let Some(answer) = exchange.redis.take().flatten() else {
            return LookupResult::Away;
        };
        let value = answer
            .texts
            .first()
            .map(|text| serde_json::from_slice::<Value>(text));
        match value {
            Some(Ok(value)) if value["response"]["status"].is_u64() => LookupResult::Answer(value),
            _ => LookupResult::Nothing(answer.outlet),
        }
    }

    /// Keeps an answer, without waiting for it.
    pub(super) fn keep(&self, outlet: &Rc<dyn RedisPublisher>, key: &[u8], answer: &Value, life_ms: u64) {
        let value = answer.to_string();
        if value.len() <= MAX_VALUE {
            let mut call = self.call(&SET, key);
            call.argument(&[value.as_bytes()]);
            call.number(life_ms);
            outlet.fire_and_forget(call);
        }
    }
}
