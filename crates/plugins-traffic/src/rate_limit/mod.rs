//! `rate-limit`: lets at most so many calls pass in a window of time.
//!
//! ```yaml
//! limits:
//!   - {count: 5, per: second}
//!   - {count: 1000, per: hour}
//! by: consumer
//! ```
//!
//! Counts are exact over all workers: of any number of concurrent calls exactly as many pass as the limit says. They
//! belong to the process, outlive reloads, and are held for about a million callers. Beyond that, a limit that has more
//! than its share drops its own counters, those at their limit last. With a `store` several gateways share them: see
//! `docs/redis.md`. With `across: gateways` the gateways synchronize them through the control plane.
//!
//! Security: callers that can choose the key escape the limit. Count by a header only if something in front of the
//! gateway sets it, and by address only if the gateway knows the client's.

mod across;
mod compiled;
mod engine;
mod faults;
mod shared;

use crate::graphql_cost::{self, QueryCost, SchemaCache};
use crate::persistent_counters::PersistentLimiter;
pub use crate::rate_key::{LimitValue, MissingKey, OnFailure, RateLimitKey};
use crate::redis::{Accumulator, WindowStore};
use crate::shared_limits::SharedLimits;
use across::LimitsAcross;
use engine::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{RedisLimits, SyncedLimits};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_flow::rate_limit::Limiter;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Filter, PersistentCounters, Plugin, SharedCounts, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Counters that are held at most, for all instances together.
const MAX_COUNTERS: usize = 1 << 20;

/// The plugin; it owns the counters.
#[derive(Clone)]
pub struct RateLimit {
    limiter: Arc<Limiter>,
    shared: Arc<SharedLimits>,
    schemas: SchemaCache,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::of(MAX_COUNTERS)
    }
}

impl RateLimit {
    /// One that holds so many counters at most.
    fn of(counters: usize) -> Self {
        Self {
            limiter: Arc::new(Limiter::new(counters)),
            // Gateways of other versions know its counters by names without one in front.
            shared: Arc::new(SharedLimits::of("")),
            schemas: SchemaCache::default(),
        }
    }
}

impl Plugin for RateLimit {
    fn name(&self) -> &'static str {
        "rate-limit"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn evictions(&self) -> Option<Arc<AtomicU64>> {
        Some(self.limiter.evictions())
    }

    fn persistent_counters(&self) -> Option<Arc<dyn PersistentCounters>> {
        Some(PersistentLimiter::over(&self.limiter))
    }

    fn shared_counts(&self) -> Option<Arc<dyn SharedCounts>> {
        Some(Arc::clone(&self.shared) as Arc<dyn SharedCounts>)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.extend(faults::faults(&config));
        if let Some(cost) = &config.graphql {
            graphql_cost::check(cost, "graphql", &mut faults);
        }
        let is_shared = config.across == CountScope::Gateways;
        let store = config.store.take();
        let shared = store.and_then(|store| store.compile(&mut faults));
        faults.done()?;
        let limits = Limits::build(config, context.instance_id, &self.limiter, &self.schemas);
        if is_shared {
            let shared = Arc::clone(&self.shared);
            return Ok(Arc::new(LimitsAcross { limits, shared }));
        }
        let Some(shared) = shared else {
            return Ok(Arc::new(limits));
        };
        let Some(delay) = shared.sync_interval else {
            return Ok(Arc::new(RedisLimits { limits, shared }));
        };
        let ledger = Arc::new(Accumulator::new(shared, limits.counters.clone(), delay));
        Ok(Arc::new(SyncedLimits { limits, ledger }))
    }
}

/// Configuration of `rate-limit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How many calls pass, 1 to 8 limits. Those without a `by` of their own are checked together: a call passes when
    /// all of them allow it, and is counted in all or in none.
    #[schemars(length(min = 1, max = 8))]
    pub limits: Vec<Limit>,
    /// The key that calls are counted by.
    #[serde(default)]
    pub by: RateLimitKey,
    /// The key for calls without a value for `by`.
    #[serde(default)]
    pub when_key_missing: MissingKey,
    /// Which counters are used. Instances with equal scopes share them. Default: the instance's id, so that each
    /// instance counts for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Status of the response to calls over the limit, 200 to 599.
    #[serde(default = "too_many_requests")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message for calls over the limit, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether a refusal by a window of a day or longer says that a quota is spent (`quota-spent` in the problem's
    /// `type`), not that a rate is reached. Plans of APIs set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quota: bool,
    /// Whether calls over the limit are refused. `false`: they pass, and only the headers report it.
    #[serde(default = "weir_plugins_shared::yes")]
    pub reject: bool,
    /// Names of the response headers for the tightest limit. If absent: the draft's names (`RateLimit-Limit`, …) and
    /// `Retry-After`; if given: only the headers that it names.
    #[serde(default)]
    pub headers: SummaryHeaders,
    /// The maximum number of seconds added at random to `retry_after` on refusals, so that callers do not all come back
    /// at the same moment.
    #[serde(default)]
    pub retry_after_jitter_seconds: u64,
    /// Whether the time until a window ends is given in hundredths of a second (`12.34`), rounded down, instead of
    /// whole seconds, rounded up.
    #[serde(default)]
    pub fractional_reset: bool,
    /// The store for counts that several gateways share. Left out: in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<WindowStore>,
    /// Which calls are counted together: those of this gateway, or, without a `store`, of all gateways that serve the
    /// same environments of one control plane. The gateways synchronize their counts several times a second; a limit
    /// may be exceeded by the calls that reach the other gateways in half a second. The windows must be of the clock or
    /// sliding.
    #[serde(default, skip_serializing_if = "CountScope::is_gateway")]
    pub across: CountScope,
    /// Calls are GraphQL queries, and count as what they cost. A query passes if all that it costs is left; one that does
    /// not pass is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql: Option<QueryCost>,
    /// What happens to a call for which no limit can be found out: a count that is not a valid number, or no limit with
    /// something to count by. Such a call is answered with status 500, or let through.
    #[serde(default)]
    pub on_failure: OnFailure,
}

impl Default for Config {
    /// The defaults of all options, with no limit in the list yet.
    fn default() -> Self {
        Self {
            limits: Vec::new(),
            by: RateLimitKey::default(),
            when_key_missing: MissingKey::default(),
            scope: None,
            status: too_many_requests(),
            message: None,
            quota: false,
            reject: true,
            headers: SummaryHeaders::default(),
            retry_after_jitter_seconds: 0,
            fractional_reset: false,
            store: None,
            across: CountScope::default(),
            graphql: None,
            on_failure: OnFailure::default(),
        }
    }
}

fn too_many_requests() -> u16 {
    429
}

/// Which calls are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountScope {
    /// Those of one gateway.
    #[default]
    Gateway,
    /// Those of all gateways.
    Gateways,
}

impl CountScope {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(crate) fn is_gateway(&self) -> bool {
        *self == Self::Gateway
    }
}

/// One limit: a number of calls in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Calls that pass in one window.
    pub count: LimitValue,
    /// The window.
    pub per: Per,
    /// The key that this limit counts by, instead of the configuration's `by`. Limits with their own key are checked
    /// one after the other, before the common ones. A limit is skipped for calls that have no value for its key. Calls
    /// that were counted before a refusal stay counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<RateLimitKey>,
    /// Names of the response headers for this limit; absent: no headers.
    #[serde(default, skip_serializing_if = "LimitHeaders::is_empty")]
    pub headers: LimitHeaders,
}

/// A window of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// The second of the clock; like all windows of the clock and calendar, in UTC.
    Second,
    /// The minute of the clock.
    Minute,
    /// The hour of the clock.
    Hour,
    /// The day.
    Day,
    /// The week, from Monday on.
    Week,
    /// The calendar month.
    Month,
    /// The calendar year.
    Year,
    /// So many seconds of the clock, at least 1: the time since 1970 is divided into windows of this length.
    ClockSeconds(LimitValue),
    /// So many seconds, beginning with the first call that is counted; at least 1.
    Seconds(LimitValue),
    /// The last seconds, as many as given, at least 1. Calls are counted in windows of the clock; those of the window
    /// before count in proportion to its part of the span, as if they had come evenly.
    SlidingSeconds(LimitValue),
}

/// Names of the response headers about the tightest limit: the one with the fewest calls left, of several such the
/// one with the longest window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryHeaders {
    /// How many calls may pass in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How many still pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<String>,
    /// Seconds until the window ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// On refusals only: seconds until the window ends, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
}

impl SummaryHeaders {
    /// No header at all.
    pub const NONE: Self = Self {
        limit: None,
        remaining: None,
        reset: None,
        retry_after: None,
    };
}

impl Default for SummaryHeaders {
    fn default() -> Self {
        Self {
            limit: Some("RateLimit-Limit".into()),
            remaining: Some("RateLimit-Remaining".into()),
            reset: Some("RateLimit-Reset".into()),
            retry_after: Some("Retry-After".into()),
        }
    }
}

/// Names of the response headers about one limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitHeaders {
    /// How many calls may pass in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How many still pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<String>,
    /// Seconds until the window ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
}

impl LimitHeaders {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests;
