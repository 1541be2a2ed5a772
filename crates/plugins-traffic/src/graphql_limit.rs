//! `graphql-limit`: limits the sum of the depths of GraphQL queries in a window.
//!
//! ```yaml
//! limit: 100
//! window_seconds: 60
//! by: consumer
//! ```
//!
//! The cost of a query is the depth of its operations times a factor; a fragment counts at every place that uses it.
//! With `fields`, the cost is that of the fields that the query selects, by weights and by arguments such as `first:
//! 100`. Refused calls are counted too, so a caller that requests too much has to wait.

use crate::graphql_cost::{self, CompiledFields, FieldCosts, FieldSum, SchemaCache, countable};
use crate::persistent_counters::PersistentLimiter;
use crate::rate_key::{RateKey, RateLimitKey};
use crate::redis::{Accumulator, Shared, WindowStore, answer, run, windows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_flow::rate_limit::{Counters, Limiter, Window, WindowLimit, WindowState};
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Indeterminate, Outcome, PersistentCounters, Phases, Plugin,
    RedisAccumulator, RedisCommand, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::graphql::{self, GraphqlError, Query};

/// Configuration of `graphql-limit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The sum of depths that passes in one window.
    pub limit: u64,
    /// Seconds of a window, which opens with a caller's first call.
    pub window_seconds: u64,
    /// The key that calls are counted by; a call without a value for it is counted by its address.
    pub by: RateLimitKey,
    /// Which counters are used. Default: the instance's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Status of the response to calls over the limit, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message for calls over the limit, instead of the dialect's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The store for counts that several gateways share. Left out: in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<WindowStore>,
    /// The response header with the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_header: Option<String>,
    /// The response header with the remaining amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_header: Option<String>,
    /// The response header with the seconds until the window ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_header: Option<String>,
    /// The response header with the query's cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_header: Option<String>,
    /// What costs are multiplied with, more than 0. They are rounded up, and at least 1.
    pub cost_factor: f64,
    /// The number that is added to a cost before it is multiplied, at least 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_offset: f64,
    /// The cost of the selected fields, which counts instead of the depth. If there are weights, queries to a service
    /// that does not reveal its schema are refused with status 400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldCosts>,
    /// What one query may cost; one that costs more is counted, and refused with status 403.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<u64>,
    /// The longest body in bytes in which a query is looked for, 1,048,576 if absent; a longer one
    /// is refused with status 400, or 413 if the call does not tell its length.
    #[serde(skip_serializing_if = "graphql::is_default_max_body")]
    pub max_body_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limit: 100,
            window_seconds: 60,
            by: RateLimitKey::default(),
            scope: None,
            status: 429,
            message: None,
            store: None,
            limit_header: None,
            remaining_header: None,
            reset_header: None,
            cost_header: None,
            cost_factor: 1.0,
            cost_offset: 0.0,
            fields: None,
            max_cost: None,
            max_body_bytes: graphql::DEFAULT_MAX_BODY_BYTES,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

const NAME: &str = "graphql-limit";
const NO_SCHEMA: &str = "Invalid graphql request: failed to introspect the upstream graphql schema";
/// Counters that are held at most, for all instances together.
const MAX_COUNTERS: usize = 1 << 18;

/// The plugin; it owns the counters and the schemas of services.
pub struct GraphqlLimit {
    limiter: Arc<Limiter>,
    schemas: SchemaCache,
}

impl Default for GraphqlLimit {
    fn default() -> Self {
        Self {
            limiter: Arc::new(Limiter::new(MAX_COUNTERS)),
            schemas: SchemaCache::default(),
        }
    }
}

impl Plugin for GraphqlLimit {
    fn name(&self) -> &'static str {
        "graphql-limit"
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

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_status("status", config.status);
        if config.window_seconds == 0 {
            faults.add("window_seconds", "expected at least a second");
        }
        if !(config.cost_factor > 0.0 && config.cost_factor.is_finite()) {
            faults.add("cost_factor", "expected a number above 0");
        }
        if !(config.cost_offset >= 0.0 && config.cost_offset.is_finite()) {
            faults.add("cost_offset", "expected a number of at least 0");
        }
        if let Some(fields) = &config.fields {
            graphql_cost::check_services(&fields.services, "fields", &mut faults);
        }
        let names = [
            ("limit_header", &config.limit_header),
            ("remaining_header", &config.remaining_header),
            ("reset_header", &config.reset_header),
            ("cost_header", &config.cost_header),
        ];
        for (field, name) in names {
            if let Some(name) = name {
                faults.check_name(field, name);
            }
        }
        let store = config.store.take();
        let shared = store.and_then(|store| store.compile(&mut faults));
        faults.done()?;
        let scope = config.scope.as_deref().unwrap_or(context.instance_id);
        let counters = self.limiter.counters(scope);
        let counts = shared.map(|shared| match shared.sync_interval {
            None => Counts::Asked(shared),
            Some(delay) => Counts::Settled(Arc::new(Accumulator::new(shared, counters.clone(), delay))),
        });
        Ok(Arc::new(CostFilter {
            by: RateKey::new(scope, 0, config.by.clone()),
            counters,
            limit: WindowLimit {
                window: Window::FromFirst {
                    length_ms: config.window_seconds.saturating_mul(1000),
                },
                limit: config.limit,
            },
            counts,
            fields: config
                .fields
                .take()
                .map(|it| CompiledFields::new(&it, NAME, context.instance_id, &self.schemas)),
            config,
        }))
    }
}

/// An instance of `graphql-limit`.
struct CostFilter {
    by: RateKey,
    counters: Counters,
    limit: WindowLimit,
    /// `None`: it counts in this process.
    counts: Option<Counts>,
    /// `None`: depths cost.
    fields: Option<CompiledFields>,
    config: Config,
}

/// How calls are counted if several gateways share the counts.
enum Counts {
    /// Each call asks.
    Asked(Shared),
    /// Calls are counted here, and synchronized later.
    Settled(Arc<Accumulator>),
}

/// That the Redis has been asked about a query of this cost.
struct RedisQueried(u64);

impl CostFilter {
    /// What a call costs, or what becomes of it before that is known.
    fn cost(&self, exchange: &mut Exchange) -> Result<u64, Outcome> {
        let fault = |fault: GraphqlError| fault.outcome(NAME);
        let max_bytes = self.config.max_body_bytes;
        let sum = match &self.fields {
            None => match graphql::query(&exchange.request, max_bytes).map_err(fault)? {
                Some(query) => Query::read(&query).map_err(|it| fault(it.into()))?.depth as f64,
                None => return Err(Outcome::NeedBody { max_bytes }),
            },
            Some(fields) => match fields.of(exchange, max_bytes) {
                FieldSum::This(sum) => sum,
                FieldSum::Otherwise(outcome) => return Err(outcome),
                FieldSum::NoSchema => return Err(fault(GraphqlError::Invalid(NO_SCHEMA.to_owned()))),
            },
        };
        Ok(countable(
            (sum + self.config.cost_offset) * self.config.cost_factor,
        ))
    }

    /// Counts a query in this process, and says how it goes on.
    fn count(&self, exchange: &mut Exchange, cost: u64) -> Option<Box<Refusal>> {
        let now_ms = exchange.unix_ms();
        let key = self.key(exchange);
        self.counters.add(key, &[self.limit], cost, now_ms);
        let used = self.counters.used(key, self.limit.window, now_ms);
        let mut states = [WindowState::default()];
        let _counts_nothing = self.counters.peek(key, &[self.limit], now_ms, &mut states);
        self.conclude(exchange, cost, used, states[0].reset_ms)
    }

    fn key(&self, exchange: &Exchange) -> u128 {
        let key = self.by.key(exchange);
        key.unwrap_or_else(|| self.by.key_of_address(exchange.request.client))
    }

    fn name(&self, exchange: &Exchange) -> Vec<u8> {
        let name = self.by.name(exchange);
        name.unwrap_or_else(|| self.by.name_of_address(exchange.request.client))
    }

    /// Reports how much of the limit is used, this query included. Returns a refusal if that is too much.
    fn conclude(&self, exchange: &mut Exchange, cost: u64, used: u64, reset_ms: u64) -> Option<Box<Refusal>> {
        let numbers = [
            (&self.config.cost_header, cost),
            (&self.config.limit_header, self.limit.limit),
            (
                &self.config.remaining_header,
                self.limit.limit.saturating_sub(used),
            ),
            (&self.config.reset_header, reset_ms.div_ceil(1000)),
        ];
        for (name, number) in numbers {
            if let Some(name) = name {
                let mut digits = itoa::Buffer::new();
                exchange
                    .response_headers
                    .append(name.as_bytes(), digits.format(number).as_bytes());
            }
        }
        if let Some(most) = self.config.max_cost.filter(|most| cost > *most) {
            let mut refusal = Refusal::new(RefusalKind::Forbidden { plugin: NAME });
            refusal.message = Some(format!(
                "Invalid graphql request: query cost {cost} exceeds max_cost {most}"
            ));
            return Some(Box::new(refusal));
        }
        (used > self.limit.limit).then(|| {
            let mut refusal = Refusal::with_status(RefusalKind::RateLimited, self.config.status);
            refusal.message.clone_from(&self.config.message);
            Box::new(refusal)
        })
    }

    fn limit(&self, exchange: &mut Exchange, cost: u64) -> Outcome {
        match &self.counts {
            None => outcome(self.count(exchange, cost)),
            Some(Counts::Asked(shared)) => {
                let (name, now_ms) = (self.name(exchange), exchange.unix_ms());
                let window = self.limit.window;
                let of = std::iter::once((&*name, window, window.end_ms(now_ms)));
                let call = windows::add(shared, of, cost);
                exchange.filter_state.put(self, RedisQueried(cost));
                run(call)
            }
            Some(Counts::Settled(ledger)) => {
                let (key, now_ms) = (self.key(exchange), exchange.unix_ms());
                let refusal = self.count(exchange, cost);
                ledger.note(key, &[self.limit], cost, now_ms, || self.name(exchange));
                match ledger.starts() {
                    true => {
                        let ledger = Arc::clone(ledger) as Arc<dyn RedisAccumulator>;
                        Outcome::Redis(Box::new(RedisCommand::Settle(ledger, refusal)))
                    }
                    false => outcome(refusal),
                }
            }
        }
    }

    /// The result of the request.
    fn finish(&self, shared: &Shared, exchange: &mut Exchange, cost: u64) -> Outcome {
        let answer = answer(exchange);
        let added = answer.and_then(|answer| windows::added(&answer.numbers).next());
        match added {
            Some((used, left_ms)) => outcome(self.conclude(exchange, cost, used, left_ms.unwrap_or(0))),
            None => {
                let away = shared.away(NAME);
                away.unwrap_or_else(|| outcome(self.count(exchange, cost)))
            }
        }
    }
}

fn outcome(refusal: Option<Box<Refusal>>) -> Outcome {
    refusal.map_or(Outcome::Continue, Outcome::Refuse)
}

impl Filter for CostFilter {
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
        if let Some(Counts::Asked(shared)) = &self.counts
            && let Some(RedisQueried(cost)) = exchange.filter_state.take(self)
        {
            return self.finish(shared, exchange, cost);
        }
        if exchange.request.method != b"POST" {
            return GraphqlError::Method.outcome(NAME);
        }
        match self.cost(exchange) {
            Ok(cost) => self.limit(exchange, cost),
            Err(outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugin::SubrequestResponse;
    use weir_plugins_testkit::*;

    fn asking(query: &str) -> Exchange {
        let mut exchange = exchange();
        let headers = [("Content-Type", "application/graphql")];
        prepare(&mut exchange, "POST /", &headers);
        exchange.request.body = Some(query.as_bytes().to_vec());
        exchange
    }

    #[test]
    fn depths_are_counted() {
        let config =
            json!({"limit": 4, "window_seconds": 21, "remaining_header": "Left", "reset_header": "Reset"});
        let filter = build(&GraphqlLimit::default(), &config).expect("valid");
        for (query, expected, left) in [
            ("query { a { b } }", "continue", "Left: 2"),
            ("query { a { b { c } } }", "rate_limited 429", "Left: 0"),
            ("query { a }", "rate_limited 429", "Left: 0"),
            ("no", "reply 400", ""),
        ] {
            let mut exchange = asking(query);
            assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{query}");
            let headers = lines(&exchange.response_headers);
            assert_eq!(
                headers.first().map(String::as_str).unwrap_or_default(),
                left,
                "{query}"
            );
        }
        assert_eq!(word(&filter.on_request(&mut exchange())), "answered 405");
    }

    #[test]
    fn costs_are_reported_and_bounded() {
        let config = json!({
            "limit": 9, "window_seconds": 21, "cost_factor": 1.5, "max_cost": 4, "cost_header": "Cost",
            "remaining_header": "Left",
        });
        let filter = build(&GraphqlLimit::default(), &config).expect("valid");
        for (query, expected, headers) in [
            ("{ a { b } }", "continue", ["Cost: 3", "Left: 6"]),
            ("{ a { b { c } } }", "forbidden 403", ["Cost: 5", "Left: 1"]),
            ("{ a }", "rate_limited 429", ["Cost: 2", "Left: 0"]),
            ("{ a { b { c } } }", "forbidden 403", ["Cost: 5", "Left: 0"]),
        ] {
            let mut exchange = asking(query);
            assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{query}");
            assert_eq!(lines(&exchange.response_headers), headers, "{query}");
        }
    }

    /// The schema is fetched with the path and the host of the call. The cost is counted before it is bounded.
    #[test]
    fn fields_cost_in_place_of_depths() {
        let config = json!({
            "limit": 60, "window_seconds": 21, "cost_offset": 0.01, "max_cost": 40, "cost_header": "Cost",
            "remaining_header": "Left",
            "fields": {"strategy": "node-quantifier", "services": [{
                "introspection": {"url": "http://127.0.0.1:1980/", "use_request_path": true, "use_request_host": true,
                    "headers": {"X-Key": "k"}},
                "weights": [{"path": "Query.products", "multiply_arguments": ["first"]},
                    {"path": "Product.reviews", "multiply_arguments": ["first"]}],
            }]},
        });
        let schema = json!({"data": {"__schema": {"queryType": {"name": "Query"}, "types": [
            {"name": "Query", "fields": [{"name": "products", "type": {"name": "Product"}}]},
            {"name": "Product", "fields": [{"name": "reviews", "type": {"name": "Review"}}]},
        ]}}});
        let filter = build(&GraphqlLimit::default(), &config).expect("valid");
        let call = |path: &str, query: &str| {
            let mut exchange = exchange();
            let headers = [
                ("Content-Type", "application/graphql"),
                ("Host", "shop.example:81"),
            ];
            prepare(&mut exchange, &format!("POST {path}"), &headers);
            exchange.request.body = Some(query.as_bytes().to_vec());
            exchange
        };
        let answer = |exchange: &mut Exchange, status: u16| {
            let Outcome::Subrequest(asked) = filter.on_request(exchange) else {
                panic!("the schema is asked for");
            };
            let message = String::from_utf8_lossy(&asked.message).into_owned();
            exchange.subrequest_response = Some(Some(SubrequestResponse {
                status,
                body: schema.to_string().into_bytes(),
                ..SubrequestResponse::default()
            }));
            (message, word(&filter.on_request(exchange)))
        };
        let dear = "{ products(first: 40) { reviews(first: 9) { id } } }";
        let mut first = call("/graphql", dear);
        let (message, outcome) = answer(&mut first, 200);
        assert!(
            message.starts_with("POST /graphql HTTP/1.1\r\nHost: shop.example:81\r\n")
                && message.contains("\r\nX-Key: k\r\n"),
            "{message}"
        );
        assert_eq!(outcome, "forbidden 403");
        assert_eq!(lines(&first.response_headers), ["Cost: 42", "Left: 18"]);
        for (query, expected, expected_headers) in [
            (
                "{ products(first: 8) { reviews(first: 9) { id } } }",
                "continue",
                ["Cost: 10", "Left: 8"],
            ),
            ("{ products { id } }", "continue", ["Cost: 1", "Left: 7"]),
            (
                "{ products(first: 9) { reviews(first: 9) { id } } }",
                "rate_limited 429",
                ["Cost: 11", "Left: 0"],
            ),
        ] {
            let mut exchange = call("/graphql", query);
            assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{query}");
            assert_eq!(lines(&exchange.response_headers), expected_headers, "{query}");
        }
        // Another path has another schema, and no path can be a second header.
        let mut other = call("/a%0d%0aX-B:c", dear);
        let (message, outcome) = answer(&mut other, 500);
        assert!(message.starts_with("POST /a%0"), "{message}");
        assert!(!message.contains("\r\nX-B"), "{message}");
        assert_eq!(outcome, "reply 400");
        assert_eq!(lines(&other.response_headers), [""; 0]);
        assert_eq!(
            word(&filter.on_request(&mut call("/graphql", "{ a }"))),
            "rate_limited 429"
        );
    }

    #[test]
    fn configurations_are_checked() {
        let example = example(include_str!("graphql_limit.rs"));
        assert!(build(&GraphqlLimit::default(), &example).is_ok());
        let config = json!({"status": 99, "window_seconds": 0, "limit_header": "a b", "cost_factor": 0,
            "cost_offset": -1, "fields": {"services": [{"weights": [{"path": "A.b"}]}]}});
        assert_eq!(
            refused_at(&GraphqlLimit::default(), &config),
            [
                "status",
                "window_seconds",
                "cost_factor",
                "cost_offset",
                "fields.services",
                "limit_header"
            ]
        );
    }
}
