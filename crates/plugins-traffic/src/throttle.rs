//! `throttle`: passes calls at a steady rate; faster calls wait their turn, or are refused.
//!
//! ```yaml
//! rate_per_second: 10
//! burst: 20
//! by: consumer
//! ```
//!
//! It is a leaky bucket: up to `burst` calls wait, each for its turn at the rate.
//!
//! Security: calls that wait hold their connections, so a large `burst` is work that anybody can pile up. Callers can
//! escape a limit if they can choose the key, such as a header.

use crate::rate_key::handled::is_handled;
use crate::rate_key::{MissingKey, RateKey, RateLimitKey};
use crate::redis::{Shared, Store, answer, run, scripts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use weir_flow::leaky_bucket::{Buckets, LeakyBuckets, Rate};
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Indeterminate, Outcome, Phases, Plugin, Refusal, RefusalKind,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Buckets that are held at most, for all instances together.
const MAX_BUCKETS: usize = 1 << 20;

/// Configuration of `throttle`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Calls that pass in a second; a fraction lets one pass in several.
    pub rate_per_second: f64,
    /// Calls that may wait.
    #[serde(default)]
    pub burst: f64,
    /// Whether calls within the burst wait. `false`: they pass at once.
    #[serde(default = "weir_plugins_shared::yes")]
    pub delay: bool,
    /// The key that calls are counted by.
    #[serde(default)]
    pub by: RateLimitKey,
    /// The key for calls without a value for `by`; with `fail` they get status 500.
    #[serde(default)]
    pub when_key_missing: MissingKey,
    /// Which buckets are used. Instances with equal scopes share them. Default: the instance's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Status of the refusal, 200 to 599.
    #[serde(default = "unavailable")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The store for buckets that several gateways share. Left out: in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}

impl Config {
    /// The defaults of all options, with this rate.
    pub fn new(rate_per_second: f64) -> Self {
        Self {
            rate_per_second,
            burst: 0.0,
            delay: true,
            by: RateLimitKey::default(),
            when_key_missing: MissingKey::default(),
            scope: None,
            status: unavailable(),
            message: None,
            store: None,
        }
    }
}

fn unavailable() -> u16 {
    503
}

/// The plugin; it owns the buckets.
#[derive(Clone)]
pub struct Throttle(Arc<LeakyBuckets>);

impl Default for Throttle {
    fn default() -> Self {
        Self(Arc::new(LeakyBuckets::new(MAX_BUCKETS)))
    }
}

impl Plugin for Throttle {
    fn name(&self) -> &'static str {
        "throttle"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn evictions(&self) -> Option<Arc<AtomicU64>> {
        Some(self.0.evictions())
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if !(config.rate_per_second > 0.0 && config.rate_per_second.is_finite()) {
            faults.add("rate_per_second", "expected a number above 0");
        }
        if !(config.burst >= 0.0 && config.burst.is_finite()) {
            faults.add("burst", "expected a number of at least 0");
        }
        faults.check_status("status", config.status);
        let shared = config.store.and_then(|store| store.compile(&mut faults));
        faults.done()?;
        let scope = config.scope.as_deref().unwrap_or(context.instance_id);
        let bucket = Bucket {
            by: RateKey::new(scope, 0, config.by),
            when_key_missing: config.when_key_missing,
            buckets: self.0.buckets(scope),
            rate: Rate {
                per_second: config.rate_per_second,
                burst: config.burst,
            },
            delay: config.delay,
            status: config.status,
            message: config.message,
        };
        Ok(match shared {
            None => Arc::new(bucket),
            Some(shared) => Arc::new(SharedBucket { bucket, shared }),
        })
    }
}

/// An instance of `throttle` whose buckets are those of this process.
struct Bucket {
    by: RateKey,
    when_key_missing: MissingKey,
    buckets: Buckets,
    rate: Rate,
    delay: bool,
    status: u16,
    message: Option<String>,
}

/// By what a call is counted.
enum Subject {
    Own,
    Address,
}

impl Bucket {
    /// The subject that the call is counted by, or the outcome if it has no value to count by.
    fn subject(&self, has_own: bool) -> Result<Subject, Outcome> {
        match (has_own, self.when_key_missing) {
            (true, _) => Ok(Subject::Own),
            (false, MissingKey::Ip) => Ok(Subject::Address),
            (false, MissingKey::Nothing) => Err(Outcome::Continue),
            (false, MissingKey::Fail) => Err(Outcome::refuse(RefusalKind::PluginFailed {
                plugin: "throttle",
                reason: "the call has nothing to count by",
            })),
        }
    }

    /// Asks the bucket here.
    fn take(&self, exchange: &mut Exchange) -> Outcome {
        let now_ms = exchange.unix_ms();
        let own = self.by.key(exchange);
        let key = match (self.subject(own.is_some()), own) {
            (Ok(Subject::Own), Some(key)) => key,
            (Ok(_), _) => self.by.key_of_address(exchange.request.client),
            (Err(outcome), _) => return outcome,
        };
        self.conclude(self.buckets.take(key, self.rate, now_ms))
    }

    /// How a call goes on that is to wait so many milliseconds, or is rejected.
    fn conclude(&self, wait_ms: Option<f64>) -> Outcome {
        match wait_ms {
            // Shorter times are those of the call's own work.
            Some(wait_ms) if self.delay && wait_ms >= 1.0 => {
                Outcome::Delay(Duration::from_secs_f64(wait_ms.min(3.6e6) / 1_000.0))
            }
            Some(_) => Outcome::Continue,
            None => {
                let mut refusal = Refusal::with_status(RefusalKind::RateLimited, self.status);
                refusal.message.clone_from(&self.message);
                Outcome::Refuse(Box::new(refusal))
            }
        }
    }
}

impl Filter for Bucket {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.by.needs_body()
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.by.indeterminate(exchange)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "throttle") {
            return Outcome::Continue;
        }
        self.take(exchange)
    }
}

/// An instance whose buckets several gateways share.
struct SharedBucket {
    bucket: Bucket,
    shared: Shared,
}

/// That the Redis has been asked.
struct RedisQueried;

impl SharedBucket {
    fn ask(&self, exchange: &mut Exchange) -> Outcome {
        let bucket = &self.bucket;
        let own = bucket.by.name(exchange);
        let name = match (bucket.subject(own.is_some()), own) {
            (Ok(Subject::Own), Some(name)) => name,
            (Ok(_), _) => bucket.by.name_of_address(exchange.request.client),
            (Err(outcome), _) => return outcome,
        };
        let mut call = self.shared.call(&scripts::LEAK);
        call.key(&[&self.shared.prefix, b":", &name, b":leak"]);
        call.number(bucket.rate.per_second);
        call.number(bucket.rate.burst);
        // Until a full bucket is empty, and a little more.
        let memory_ms = (bucket.rate.burst + 1.0) * 1_000.0 / bucket.rate.per_second + 1_000.0;
        call.number(memory_ms.min(1e12) as u64);
        exchange.filter_state.put(self, RedisQueried);
        run(call)
    }
}

impl Filter for SharedBucket {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.bucket.needs_body()
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.bucket.indeterminate(exchange)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "throttle") {
            return Outcome::Continue;
        }
        if exchange.filter_state.take::<_, RedisQueried>(self).is_none() {
            return self.ask(exchange);
        }
        match answer(exchange).as_ref().map(|answer| answer.numbers.as_slice()) {
            Some([1, level]) => {
                let level = *level as f64 / 1e6;
                self.bucket
                    .conclude(Some(level * 1_000.0 / self.bucket.rate.per_second))
            }
            Some([0, _]) => self.bucket.conclude(None),
            _ => {
                let away = self.shared.away("throttle");
                away.unwrap_or_else(|| self.bucket.take(exchange))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn calls_pass_at_the_rate() {
        let waiting = json!({"rate_per_second": 2, "burst": 1, "status": 429});
        let at_once = json!({"rate_per_second": 2, "burst": 1, "delay": false});
        let header = json!({"rate_per_second": 0.1, "by": {"template": "$http_a $http_b"}, "when_key_missing": "fail"});
        type Call<'c> = (&'c [(&'c str, &'c str)], &'c str);
        let cases: [(&Value, &[Call<'_>]); 3] = [
            (
                &waiting,
                &[(&[], "continue"), (&[], "delay 500"), (&[], "rate_limited 429")],
            ),
            (
                &at_once,
                &[(&[], "continue"), (&[], "continue"), (&[], "rate_limited 503")],
            ),
            (
                &header,
                &[
                    (&[("A", "1"), ("B", "2")], "continue"),
                    (&[("A", "1"), ("B", "3")], "continue"),
                    (&[("A", "1"), ("B", "2")], "rate_limited 503"),
                    (&[], "plugin_failed 500"),
                ],
            ),
        ];
        for (config, calls) in cases {
            let filter = build(&Throttle::default(), config).expect("valid");
            for (headers, expected) in calls {
                let mut exchange = exchange();
                prepare(&mut exchange, "GET /", headers);
                let outcome = filter.on_request(&mut exchange);
                assert_eq!(word(&outcome), *expected, "{config} {headers:?}");
            }
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({}), &[""][..]),
            (
                json!({"rate_per_second": 0, "burst": -1, "status": 1}),
                &["rate_per_second", "burst", "status"],
            ),
        ] {
            assert_eq!(refused_at(&Throttle::default(), &config), places, "{config}");
        }
        assert!(build(&Throttle::default(), &example(include_str!("throttle.rs"))).is_ok());
    }
}
