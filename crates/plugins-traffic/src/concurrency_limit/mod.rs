//! `concurrency-limit`: limits how many calls are in progress at the same time.
//!
//! ```yaml
//! limits: [{count: 10, burst: 5}]
//! by: consumer
//! delay_seconds: 0.1
//! ```
//!
//! A call counts until its response has been sent or the connection breaks. Calls within the burst wait a while first.
//! Counts are exact across all workers.
//!
//! Security: a slow client holds its slot for as long as it is slow. If callers share a count, one of them can use up
//! the slots of all.

mod shared;

use crate::rate_key::handled::is_handled;
use crate::rate_key::{LimitValue, MissingKey, Number, OnFailure, RateKey, RateLimitKey};
use crate::redis::Store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::SharedConcurrencyFilter;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Indeterminate, Outcome, Permit, Phases, Plugin, Refusal, RefusalKind,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `concurrency-limit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How many calls may be under way, 1 to 8 limits that are checked one after the other.
    #[schemars(length(min = 1, max = 8))]
    pub limits: Vec<Limit>,
    /// The key that calls are counted by, for limits without their own.
    #[serde(default)]
    pub by: RateLimitKey,
    /// The key for calls without a value for `by`.
    #[serde(default)]
    pub when_key_missing: MissingKey,
    /// Which counters are used. Instances with equal scopes share them. Default: the instance's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// How long a call waits that is over a limit but within its burst, in seconds; for each time that the limit is
    /// reached once more. At most an hour.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub delay_seconds: f64,
    /// Status of the refusal, 200 to 599.
    #[serde(default = "unavailable")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What happens to a call for which no limit can be found out.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The store for counts that several gateways share. Left out: in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// With a store: the number of seconds after which a call's slot is free again, even if the gateway never reported
    /// its end. At least 1.
    #[serde(default = "one_hour")]
    #[schemars(range(min = 1))]
    pub forget_after_seconds: u32,
}

impl Default for Config {
    /// The defaults of all options, with no limit in the list yet.
    fn default() -> Self {
        Self {
            limits: Vec::new(),
            by: RateLimitKey::default(),
            when_key_missing: MissingKey::default(),
            scope: None,
            delay_seconds: 0.0,
            status: unavailable(),
            message: None,
            on_failure: OnFailure::default(),
            store: None,
            forget_after_seconds: one_hour(),
        }
    }
}

fn one_hour() -> u32 {
    3_600
}

fn unavailable() -> u16 {
    503
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Calls that may be under way.
    pub count: LimitValue,
    /// Further calls that may be under way after they have waited.
    #[serde(default = "nothing")]
    pub burst: LimitValue,
    /// The key that this limit counts by, instead of the configuration's `by`. A limit with its own key is skipped for
    /// calls that have no value for the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<RateLimitKey>,
}

fn nothing() -> LimitValue {
    LimitValue::Number(0)
}

/// The plugin; it owns the counters.
#[derive(Clone, Default)]
pub struct ConcurrencyLimit(Arc<Counters>);

impl Plugin for ConcurrencyLimit {
    fn name(&self) -> &'static str {
        "concurrency-limit"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn works_on_streams(&self) -> bool {
        true
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_status("status", config.status);
        if !(1..=MOST).contains(&config.limits.len()) {
            faults.add("limits", format!("expected 1 to {MOST} limits"));
        }
        if !(0.0..=3600.0).contains(&config.delay_seconds) {
            faults.add("delay_seconds", "expected 0 to 3600 seconds");
        }
        if config.forget_after_seconds == 0 {
            faults.add("forget_after_seconds", "expected at least a second");
        }
        let shared = config.store.and_then(|store| store.compile(&mut faults));
        faults.done()?;
        let scope = config.scope.as_deref().unwrap_or(context.instance_id);
        let limits = config
            .limits
            .into_iter()
            .zip(0..)
            .map(|(limit, number)| Compiled {
                when_key_missing: limit.by.is_none().then_some(config.when_key_missing),
                by: RateKey::new(scope, number, limit.by.unwrap_or_else(|| config.by.clone())),
                count: Number::new(limit.count),
                burst: Number::new(limit.burst),
            });
        let forget_ms = u64::from(config.forget_after_seconds) * 1_000;
        let places = ConcurrencyFilter {
            limits: limits.collect(),
            counters: Arc::clone(&self.0),
            delay_seconds: config.delay_seconds,
            status: config.status,
            message: config.message,
            on_failure: config.on_failure,
        };
        Ok(match shared {
            None => Arc::new(places),
            Some(shared) => Arc::new(SharedConcurrencyFilter::new(places, shared, forget_ms)),
        })
    }
}

/// How many calls are under way, by key.
struct Counters(Box<[Mutex<Shard>]>);

type Shard = HashMap<u128, Arc<AtomicU64>>;

/// Limits that one configuration can have.
const MOST: usize = 8;

const SHARDS: usize = 64;
/// Counters of a shard from which on those that count nothing are looked for.
const CROWDED: usize = 1024;

impl Default for Counters {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl Counters {
    fn of(&self, key: u128) -> Arc<AtomicU64> {
        let shard = &self.0[(key >> 64) as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shard.get(&key) {
            return Arc::clone(known);
        }
        if shard.len() >= CROWDED && shard.len().is_power_of_two() {
            // A call that is counted holds on to the counter.
            shard.retain(|_, counter| Arc::strong_count(counter) > 1);
        }
        Arc::clone(shard.entry(key).or_default())
    }
}

/// A limit made ready for many calls.
struct Compiled {
    by: RateKey,
    /// `None`: a limit with its own `by`.
    when_key_missing: Option<MissingKey>,
    count: Number,
    burst: Number,
}

/// An instance of `concurrency-limit` that counts in this process.
struct ConcurrencyFilter {
    limits: Vec<Compiled>,
    counters: Arc<Counters>,
    delay_seconds: f64,
    status: u16,
    message: Option<String>,
    on_failure: OnFailure,
}

/// The places that a call holds, one for each limit.
type Permits = [Option<Permit>; MOST];

/// Why a call does not go on.
enum RejectReason {
    Full,
    Failure,
}

/// What a limit means for a call.
enum LimitDecision {
    /// So many calls may be under way, and so many more that have waited.
    Limit { count: u64, burst: u64 },
    /// Nothing, as the call has nothing to count by; that it may pass so.
    Pass,
    /// Nothing.
    Skip,
}

impl Compiled {
    fn read(&self, has_own: bool, exchange: &Exchange) -> Result<LimitDecision, RejectReason> {
        match (has_own, self.when_key_missing) {
            (true, _) | (false, Some(MissingKey::Ip)) => {}
            (false, Some(MissingKey::Fail)) => return Err(RejectReason::Failure),
            (false, Some(MissingKey::Nothing)) => return Ok(LimitDecision::Pass),
            (false, None) => return Ok(LimitDecision::Skip),
        }
        match (
            self.count.read(exchange),
            self.burst.read(exchange),
            self.when_key_missing,
        ) {
            (Some(count @ 1..), Some(burst), _) => Ok(LimitDecision::Limit { count, burst }),
            (_, _, Some(_)) => Err(RejectReason::Failure),
            (_, _, None) => Ok(LimitDecision::Skip),
        }
    }
}

impl ConcurrencyFilter {
    /// The places that the call takes, and how many seconds it waits.
    fn take(&self, exchange: &Exchange) -> Result<(Permits, f64), RejectReason> {
        let (mut permits, mut delay) = (Permits::default(), 0.0);
        let mut is_counted = false;
        for (limit, place) in self.limits.iter().zip(&mut permits) {
            let own = limit.by.key(exchange);
            let (count, burst) = match limit.read(own.is_some(), exchange)? {
                LimitDecision::Skip => continue,
                LimitDecision::Pass => {
                    is_counted = true;
                    continue;
                }
                LimitDecision::Limit { count, burst } => (count, burst),
            };
            let key = own.unwrap_or_else(|| limit.by.key_of_address(exchange.request.client));
            is_counted = true;
            let counter = self.counters.of(key);
            let (permit, taken) =
                Permit::take(&counter, count.saturating_add(burst)).ok_or(RejectReason::Full)?;
            *place = Some(permit);
            delay += self.delay(taken, count);
        }
        match is_counted {
            true => Ok((permits, delay)),
            false => Err(RejectReason::Failure),
        }
    }

    /// How many seconds a call waits that has the `taken`th place of `count`.
    fn delay(&self, taken: u64, count: u64) -> f64 {
        (taken.saturating_sub(1) / count.max(1)) as f64 * self.delay_seconds
    }

    /// Counts the call here.
    fn take_local(&self, exchange: &mut Exchange) -> Outcome {
        match self.take(exchange) {
            Ok((permits, delay)) => {
                exchange.filter_state.put(self, permits);
                pass(delay)
            }
            Err(stop) => self.stop(&stop),
        }
    }

    fn stop(&self, stop: &RejectReason) -> Outcome {
        match (stop, self.on_failure) {
            (RejectReason::Full, _) => {
                let mut refusal = Refusal::with_status(RefusalKind::RateLimited, self.status);
                refusal.message.clone_from(&self.message);
                Outcome::Refuse(Box::new(refusal))
            }
            (RejectReason::Failure, OnFailure::Pass) => Outcome::Continue,
            (RejectReason::Failure, OnFailure::Refuse) => Outcome::refuse(RefusalKind::PluginFailed {
                plugin: "concurrency-limit",
                reason: "no limit can be found out for the call",
            }),
        }
    }
}

/// How a call goes on that has its places, after so many seconds.
fn pass(delay: f64) -> Outcome {
    // Shorter times are those of the call's own work.
    match delay >= 0.001 {
        true => Outcome::Delay(Duration::from_secs_f64(delay.min(3600.0))),
        false => Outcome::Continue,
    }
}

impl Filter for ConcurrencyFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        let mut limits = self.limits.iter();
        limits.any(|it| it.by.needs_body() || it.count.needs_body() || it.burst.needs_body())
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.limits.iter().find_map(|limit| {
            let numbers = [&limit.count, &limit.burst].into_iter();
            let by = limit.by.indeterminate(exchange);
            by.or_else(|| {
                numbers
                    .into_iter()
                    .find_map(|number| number.indeterminate(exchange))
            })
        })
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "concurrency-limit") {
            return Outcome::Continue;
        }
        self.take_local(exchange)
    }
}

#[cfg(test)]
mod tests;
