//! `circuit-breaker`: stops calling a service that fails, for 2 seconds after the first round of failures, 4 after the
//! second, 8, 16, … up to a bound, until it answers well again.
//!
//! ```yaml
//! failures: 5
//! failure_statuses: [500, 502, 503]
//! max_open_seconds: 60
//! by: path
//! ```
//!
//! What was counted outlives a reload of the configuration. Failures that the gateway answers for the service (502,
//! 504) count by their status as well.
//!
//! Security: callers that can make a service fail can close it to all callers that share the count. By path, any caller can make
//! counts; their number is bounded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_flow::breaker::{BreakerRules, BreakerStore, Breakers};
use weir_flow::health::StatusSet;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, Reply, Template,
    parse_config,
};

/// Breakers of all instances that are remembered, of 48 bytes each in tables that are at least three eighths full.
const CAPACITY: usize = 65_536;

/// Configuration of `circuit-breaker`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Failures of a round, after which the breaker opens.
    #[schemars(range(min = 1))]
    pub failures: u32,
    /// Statuses of responses that count as failures.
    pub failure_statuses: Vec<u16>,
    /// Successes after which everything is forgotten.
    #[schemars(range(min = 1))]
    pub successes: u32,
    /// Statuses of responses that count as successes.
    pub success_statuses: Vec<u16>,
    /// Seconds for which the breaker is open at most.
    #[schemars(range(min = 1))]
    pub max_open_seconds: u64,
    /// The unit that has a breaker of its own.
    pub by: BreakerScope,
    /// Status of the response while the breaker is open, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// Body of that response; absent: the dialect's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// `Content-Type` of `body`.
    pub content_type: String,
    /// Further headers beside `body`, name and value; values may have `$variables`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            failures: 3,
            failure_statuses: vec![500, 502, 503, 504],
            successes: 3,
            success_statuses: (200..400).collect(),
            max_open_seconds: 300,
            by: BreakerScope::Instance,
            status: 503,
            body: None,
            content_type: "text/plain; charset=utf-8".to_owned(),
            headers: Vec::new(),
        }
    }
}

/// The unit that has a breaker of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerScope {
    /// The instance of the plugin: all calls of its route or service have the same one.
    #[default]
    Instance,
    /// Each host and path that is called.
    Path,
}

/// The plugin `circuit-breaker`.
pub struct CircuitBreaker {
    breakers: BreakerStore,
    /// Keyed by a secret of each process, so that no caller can find two paths with one breaker.
    hasher: RandomState,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            breakers: BreakerStore::new(CAPACITY),
            hasher: RandomState::new(),
        }
    }
}

impl Plugin for CircuitBreaker {
    fn name(&self) -> &'static str {
        "circuit-breaker"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn evictions(&self) -> Option<Arc<AtomicU64>> {
        Some(self.breakers.evictions())
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let faults = faults(&config);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Arc::new(BreakerFilter {
            breakers: self.breakers.breakers(context.instance_id),
            hasher: self.hasher.clone(),
            instance: self.hasher.hash_one(context.instance_id),
            rules: BreakerRules {
                failures: config.failures,
                successes: config.successes,
                max_open_s: config.max_open_seconds,
            },
            failure_statuses: config.failure_statuses.into_iter().collect(),
            success_statuses: config.success_statuses.into_iter().collect(),
            by: config.by,
            status: config.status,
            answer: config.body.map(|body| OpenResponse {
                body,
                content_type: config.content_type,
                headers: config
                    .headers
                    .into_iter()
                    .map(|(name, value)| (name, Template::parse(&value)))
                    .collect(),
            }),
        }))
    }
}

fn faults(config: &Config) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let mut fault = |place: DocPath, message: &str| faults.push(Diagnostic::error(place, message));
    let root = DocPath::root();
    for (field, is_zero) in [
        ("failures", config.failures == 0),
        ("successes", config.successes == 0),
        ("max_open_seconds", config.max_open_seconds == 0),
    ] {
        if is_zero {
            fault(root.field(field), "expected at least 1");
        }
    }
    for (field, statuses) in [
        ("failure_statuses", &config.failure_statuses),
        ("success_statuses", &config.success_statuses),
    ] {
        for (index, status) in statuses.iter().enumerate() {
            if !(100..=999).contains(status) {
                fault(
                    root.field(field).index(index),
                    "expected a status from 100 to 999",
                );
            }
        }
    }
    if !(200..=599).contains(&config.status) {
        fault(root.field("status"), "expected a status from 200 to 599");
    }
    if !is_value(config.content_type.as_bytes()) {
        fault(root.field("content_type"), "expected a media type");
    }
    for (index, (name, _)) in config.headers.iter().enumerate() {
        if !is_name(name.as_bytes()) {
            fault(
                root.field("headers").index(index),
                "expected the name of a header",
            );
        }
    }
    if config.body.is_none() && !config.headers.is_empty() {
        fault(root.field("headers"), "expected a body together with headers");
    }
    faults
}

/// An instance of `circuit-breaker`.
struct BreakerFilter {
    breakers: Breakers,
    hasher: RandomState,
    instance: u64,
    rules: BreakerRules,
    failure_statuses: StatusSet,
    success_statuses: StatusSet,
    by: BreakerScope,
    status: u16,
    /// `None`: the dialect's own response.
    answer: Option<OpenResponse>,
}

struct OpenResponse {
    body: String,
    content_type: String,
    headers: Vec<(String, Template)>,
}

impl BreakerFilter {
    fn key(&self, exchange: &Exchange) -> u64 {
        match self.by {
            BreakerScope::Instance => self.instance,
            BreakerScope::Path => {
                let mut hasher = self.hasher.build_hasher();
                self.instance.hash(&mut hasher);
                exchange.request.host.hash(&mut hasher);
                exchange.request.raw_path.hash(&mut hasher);
                hasher.finish()
            }
        }
    }

    fn refuse(&self, exchange: &Exchange) -> Outcome {
        let Some(answer) = &self.answer else {
            let plugin = "circuit-breaker";
            let refusal = Refusal::with_status(RefusalKind::Answered { plugin }, self.status);
            return Outcome::Refuse(Box::new(refusal));
        };
        let mut reply = Reply::new(self.status, answer.content_type.clone(), answer.body.as_str());
        for (name, value) in &answer.headers {
            let mut text = Vec::new();
            value.render(exchange, &mut text);
            if is_value(&text) {
                reply = reply.with_header(name.as_str(), text);
            }
        }
        Outcome::Reply(Box::new(reply))
    }
}

impl Filter for BreakerFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn needs_body(&self) -> bool {
        let headers = self.answer.iter().flat_map(|answer| &answer.headers);
        headers.into_iter().any(|(_, value)| value.needs_body())
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.breakers.is_empty() {
            return Outcome::Continue;
        }
        let now_s = exchange.unix_ms() / 1_000;
        match self.breakers.allows(self.key(exchange), &self.rules, now_s) {
            true => Outcome::Continue,
            false => self.refuse(exchange),
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        // A response that the gateway itself made says nothing about the service.
        if exchange.upstream.is_none() {
            return;
        }
        let status = exchange.response.status;
        if self.failure_statuses.contains(status) {
            let now_s = exchange.unix_ms() / 1_000;
            let key = self.key(exchange);
            self.breakers.note_failure(key, &self.rules, now_s);
        } else if !self.breakers.is_empty() && self.success_statuses.contains(status) {
            self.breakers.note_success(self.key(exchange), &self.rules);
        }
    }
}

#[cfg(test)]
mod tests;
