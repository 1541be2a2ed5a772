//! Counts that several gateways share in a Redis, which each call asks or with which counts are synchronized from time
//! to time. The shared parts of the limiters: options, and scripts that count in one step.

mod accumulator;
pub(crate) mod scripts;
pub(crate) mod windows;

pub(crate) use accumulator::Accumulator;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::{
    Exchange, Outcome, RedisCall, RedisCommand, RedisResponse, RedisScript, RedisServer, Refusal, RefusalKind,
};
use weir_plugins_shared::config_checks::ConfigErrors;
pub use weir_plugins_shared::redis::{Password, Redis, Sentinel, Tls};

/// The store for counts that several gateways share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The Redis.
    pub redis: Redis,
    /// What happens to calls while the Redis is unavailable.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// The message of a refusal for that reason, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_message: Option<String>,
}

impl Store {
    /// Counts in this Redis, with the defaults of all other options.
    pub fn new(redis: Redis) -> Self {
        Self {
            redis,
            on_unavailable: OnUnavailable::default(),
            unavailable_message: None,
        }
    }
}

/// The store for counts of windows that several gateways share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowStore {
    /// The Redis.
    pub redis: Redis,
    /// What happens to calls while the Redis is unavailable.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// The message of a refusal for that reason, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_message: Option<String>,
    /// Seconds, 0.01 to 3600. If set, no call asks the Redis: each gateway counts for itself, and adds its count to the
    /// common count at this interval, from which it learns the counts of the others. Each other gateway may accept as
    /// many calls beyond the limit as reach it in that time, and never more than the limit itself in a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 3600.0))]
    pub sync_interval_seconds: Option<f64>,
}

impl WindowStore {
    /// Counts in this Redis, which each call asks, with the defaults of all other options.
    pub fn new(redis: Redis) -> Self {
        Self {
            redis,
            on_unavailable: OnUnavailable::default(),
            unavailable_message: None,
            sync_interval_seconds: None,
        }
    }

    /// Builds the store, and reports faults with their places.
    pub(crate) fn compile(self, faults: &mut ConfigErrors) -> Option<Shared> {
        if self
            .sync_interval_seconds
            .is_some_and(|seconds| !(0.01..=3600.0).contains(&seconds))
        {
            faults.add_at(
                &["store", "sync_interval_seconds"],
                "expected 0.01 to 3600 seconds",
            );
        }
        let seconds = self.sync_interval_seconds;
        let store = Store {
            redis: self.redis,
            on_unavailable: self.on_unavailable,
            unavailable_message: self.unavailable_message,
        };
        let shared = store.compile(faults)?;
        Some(Shared {
            sync_interval: seconds
                .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1))),
            ..shared
        })
    }
}

/// What happens to calls while a Redis is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnavailable {
    /// The gateway counts them for itself.
    #[default]
    Local,
    /// They pass uncounted.
    Pass,
    /// They are refused with status 500.
    Refuse,
}

/// A store made ready for many calls.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) server: Arc<RedisServer>,
    pub(crate) prefix: Arc<[u8]>,
    pub(crate) on_unavailable: OnUnavailable,
    unavailable_message: Option<String>,
    pub(crate) sync_interval: Option<Duration>,
}

impl Store {
    /// Builds the store, and reports faults with their places.
    pub(crate) fn compile(self, faults: &mut ConfigErrors) -> Option<Shared> {
        let prefix = self.redis.prefix.clone();
        let server = self.redis.compile(&["store", "redis"], faults)?;
        Some(Shared {
            server: Arc::new(server),
            prefix: prefix.into_bytes().into(),
            on_unavailable: self.on_unavailable,
            unavailable_message: self.unavailable_message,
            sync_interval: None,
        })
    }
}

impl Shared {
    /// The call of a script about counters of this name.
    pub(crate) fn call(&self, script: &'static RedisScript) -> RedisCall {
        RedisCall::new(&self.server, script)
    }

    /// What happens to a call while the Redis is unavailable; `None`: it is counted here.
    pub(crate) fn away(&self, plugin: &'static str) -> Option<Outcome> {
        match self.on_unavailable {
            OnUnavailable::Local => None,
            OnUnavailable::Pass => Some(Outcome::Continue),
            OnUnavailable::Refuse => {
                let reason = "the Redis that counts calls is away";
                let mut refusal = Refusal::new(RefusalKind::PluginFailed { plugin, reason });
                refusal.message.clone_from(&self.unavailable_message);
                Some(Outcome::Refuse(Box::new(refusal)))
            }
        }
    }
}

/// Has the engine run a script.
pub(crate) fn run(call: RedisCall) -> Outcome {
    Outcome::Redis(Box::new(RedisCommand::Run(call)))
}

/// The result of the script that was run last.
pub(crate) fn answer(exchange: &mut Exchange) -> Option<RedisResponse> {
    exchange.redis.take().flatten()
}

#[cfg(test)]
mod tests;
