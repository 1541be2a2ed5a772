//! `graphql-limit`: lets GraphQL calls pass as long as the depths of their queries do not sum up to more than a limit.
//!
//! ```yaml
//! limit: 100
//! window_seconds: 60
//! by: consumer
//! ```
//!
//! A query costs as much as its operations go deep; fragments count where they are spread. What does not pass is counted
//! too, so that who asks for too much has to wait.

use crate::counting::{CountBy, Counted};
use crate::graphql::{self, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_flow::rate_limit::{Limiter, Verdict, Window, WindowLimit, WindowState};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};

/// Configuration of `graphql-limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The sum of depths that passes in one window.
    pub limit: u64,
    /// Seconds of a window, which opens with a caller's first call.
    pub window_seconds: u64,
    /// What calls are counted by; a call without a value for it is counted by its address.
    pub by: CountBy,
    /// Which counters are used. Default: the instance's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Status of the answer to calls over the limit, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// What calls over the limit are told, in place of the voice's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The header that tells the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_header: Option<String>,
    /// The header that tells what is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_header: Option<String>,
    /// The header that tells the seconds until the window ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_header: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limit: 100,
            window_seconds: 60,
            by: CountBy::default(),
            scope: None,
            status: 429,
            message: None,
            limit_header: None,
            remaining_header: None,
            reset_header: None,
        }
    }
}

/// Counters that are held at most, for all instances together.
const MAX_COUNTERS: usize = 1 << 18;
/// The longest body that is read.
const MAX_BODY: usize = 1 << 20;

/// The plugin; it owns the counters.
pub struct GraphqlLimit(Arc<Limiter>);

impl Default for GraphqlLimit {
    fn default() -> Self {
        Self(Arc::new(Limiter::new(MAX_COUNTERS)))
    }
}

impl Plugin for GraphqlLimit {
    fn name(&self) -> &'static str {
        "graphql-limit"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(DocPath::root().field(field), message));
        };
        if !(200..=599).contains(&config.status) {
            fault("status", "expected a status from 200 to 599");
        }
        if config.window_seconds == 0 {
            fault("window_seconds", "expected at least a second");
        }
        let names = [
            ("limit_header", &config.limit_header),
            ("remaining_header", &config.remaining_header),
            ("reset_header", &config.reset_header),
        ];
        for (field, name) in names {
            if name.as_ref().is_some_and(|name| !is_name(name.as_bytes())) {
                fault(field, "expected a header name");
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let scope = config.scope.as_deref().unwrap_or(context.instance_id);
        Ok(Arc::new(DepthFilter {
            by: Counted::new(scope, 0, config.by.clone()),
            limiter: Arc::clone(&self.0),
            limit: WindowLimit {
                window: Window::FromFirst {
                    length_ms: config.window_seconds.saturating_mul(1000),
                },
                limit: config.limit,
            },
            config,
        }))
    }
}

/// An instance of `graphql-limit`.
struct DepthFilter {
    by: Counted,
    limiter: Arc<Limiter>,
    limit: WindowLimit,
    config: Config,
}

impl DepthFilter {
    /// Counts a query. Says whether it passes.
    fn count(&self, exchange: &mut Exchange, depth: u64) -> bool {
        let now_ms = exchange.unix_ms();
        let key = self.by.key(exchange);
        let key = key.unwrap_or_else(|| self.by.key_of_address(exchange.request.client));
        self.limiter.add(key, &[self.limit.window], depth, now_ms);
        let passes = self.limiter.used(key, self.limit.window, now_ms) <= self.limit.limit;
        let mut states = [WindowState::default()];
        let (Verdict::Allowed | Verdict::Rejected { .. }) =
            self.limiter.peek(key, &[self.limit], now_ms, &mut states);
        let [state] = states;
        let numbers = [
            (&self.config.limit_header, self.limit.limit),
            (&self.config.remaining_header, state.remaining),
            (&self.config.reset_header, state.reset_ms.div_ceil(1000)),
        ];
        for (name, number) in numbers {
            if let Some(name) = name {
                let mut digits = itoa::Buffer::new();
                exchange
                    .response_headers
                    .append(name.as_bytes(), digits.format(number).as_bytes());
            }
        }
        passes
    }
}

impl Filter for DepthFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.by.needs_body()
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if exchange.request.method != b"POST" {
            return graphql::Fault::Method.outcome("graphql-limit");
        }
        let query = match graphql::query(&exchange.request) {
            Ok(Some(query)) => Query::read(&query).map_err(graphql::Fault::from),
            Ok(None) => return Outcome::NeedBody { max_bytes: MAX_BODY },
            Err(fault) => Err(fault),
        };
        match query {
            Err(fault) => fault.outcome("graphql-limit"),
            Ok(query) if self.count(exchange, query.depth as u64) => Outcome::Continue,
            Ok(_) => {
                let mut refusal = Refusal::with_status(RefusalKind::RateLimited, self.config.status);
                refusal.message.clone_from(&self.config.message);
                Outcome::Refuse(Box::new(refusal))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::*;
    use serde_json::json;

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
            let mut exchange = exchange();
            prepare(
                &mut exchange,
                "POST /",
                &[("Content-Type", "application/graphql")],
            );
            exchange.request.body = Some(query.as_bytes().to_vec());
            assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{query}");
            let told = lines(&exchange.response_headers);
            assert_eq!(
                told.first().map(String::as_str).unwrap_or_default(),
                left,
                "{query}"
            );
        }
        assert_eq!(word(&filter.on_request(&mut exchange())), "answered 405");
    }

    #[test]
    fn configurations_are_checked() {
        let example = example(include_str!("graphql_limit.rs"));
        assert!(build(&GraphqlLimit::default(), &example).is_ok());
        let config = json!({"status": 99, "window_seconds": 0, "limit_header": "a b"});
        assert_eq!(
            refused_at(&GraphqlLimit::default(), &config),
            ["status", "window_seconds", "limit_header"]
        );
    }
}
