//! Answers of callouts in a Redis, which gateways share. How values are kept there is `redis_values`.
//!
//! A Redis that is away answers nothing: servers are asked, and nothing is kept. What stands there and is no answer counts as
//! nothing.

use serde_json::Value;
use std::rc::Rc;
use weir_plugin::{Exchange, Outcome, RedisPublisher, RedisServer};
use weir_plugins_shared::redis_values::{RedisLookup, RedisValues};

/// Answers in a Redis.
pub(super) struct RedisStore(RedisValues);

/// What a Redis has said of an answer.
pub(super) enum LookupResult {
    /// The answer.
    Answer(Value),
    /// It has none; over this it can be kept there.
    Nothing(Rc<dyn RedisPublisher>),
    /// The Redis is unavailable.
    Unavailable,
}

impl RedisStore {
    pub(super) fn new(server: RedisServer, prefix: &str) -> Self {
        Self(RedisValues::new(server, format!("{prefix}:callout:")))
    }

    /// Looks for an answer.
    pub(super) fn look(&self, key: &[u8]) -> Outcome {
        self.0.look(key)
    }

    /// The result of the look-up.
    pub(super) fn found(exchange: &mut Exchange) -> LookupResult {
        match RedisValues::result(exchange) {
            RedisLookup::Unavailable => LookupResult::Unavailable,
            RedisLookup::Nothing(outlet) => LookupResult::Nothing(outlet),
            RedisLookup::Value(text, outlet) => match serde_json::from_slice::<Value>(&text) {
                Ok(value) if value["response"]["status"].is_u64() => LookupResult::Answer(value),
                _ => LookupResult::Nothing(outlet),
            },
        }
    }

    /// Keeps an answer, without waiting for it.
    pub(super) fn keep(&self, outlet: &Rc<dyn RedisPublisher>, key: &[u8], answer: &Value, life_ms: u64) {
        self.0.keep(outlet, key, answer.to_string().as_bytes(), life_ms);
    }
}
