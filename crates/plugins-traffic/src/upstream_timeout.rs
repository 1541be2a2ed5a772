//! `upstream-timeout`: timeouts for the upstream, instead of the route's own.
//!
//! ```yaml
//! connect_ms: 200
//! read_ms: 1000
//! total_ms: 3000
//! ```
//!
//! If it is configured for a consumer or under a condition, only those calls get these timeouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, UpstreamTimeouts, parse_config};

/// Configuration of `upstream-timeout`. A time that is left out is the route's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Milliseconds to establish a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub connect_ms: Option<u64>,
    /// Milliseconds between two successful writes of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub write_ms: Option<u64>,
    /// Milliseconds between two successful reads of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub read_ms: Option<u64>,
    /// Milliseconds for all tries of a call together; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
}

/// The plugin `upstream-timeout`.
pub struct UpstreamTimeout;

impl Plugin for UpstreamTimeout {
    fn name(&self) -> &'static str {
        "upstream-timeout"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let times = [
            ("connect_ms", config.connect_ms),
            ("write_ms", config.write_ms),
            ("read_ms", config.read_ms),
        ];
        let faults: Vec<Diagnostic> = times
            .into_iter()
            .filter(|(_, time)| *time == Some(0))
            .map(|(field, _)| {
                let place = DocPath::root().field(field);
                Diagnostic::error(place, "expected at least 1 millisecond, found 0")
            })
            .collect();
        match faults.is_empty() {
            true => Ok(Arc::new(TimeoutFilter(UpstreamTimeouts {
                connect_ms: config.connect_ms,
                write_ms: config.write_ms,
                read_ms: config.read_ms,
                total_ms: config.total_ms,
            }))),
            false => Err(faults),
        }
    }
}

/// An instance of `upstream-timeout`.
struct TimeoutFilter(UpstreamTimeouts);

impl Filter for TimeoutFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let before = exchange.upstream_timeouts;
        exchange.upstream_timeouts = UpstreamTimeouts {
            connect_ms: self.0.connect_ms.or(before.connect_ms),
            write_ms: self.0.write_ms.or(before.write_ms),
            read_ms: self.0.read_ms.or(before.read_ms),
            total_ms: self.0.total_ms.or(before.total_ms),
        };
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn times_are_set_where_they_are_given() {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[]);
        for (config, wanted) in [
            (json!({"read_ms": 5}), [None, None, Some(5), None]),
            (json!({"connect_ms": 7}), [Some(7), None, Some(5), None]),
            (json!({}), [Some(7), None, Some(5), None]),
            (
                json!({"read_ms": 6, "total_ms": 0}),
                [Some(7), None, Some(6), Some(0)],
            ),
        ] {
            let filter = build(&UpstreamTimeout, &config).expect("valid");
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            let set = exchange.upstream_timeouts;
            assert_eq!(
                [set.connect_ms, set.write_ms, set.read_ms, set.total_ms],
                wanted,
                "{config}"
            );
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&UpstreamTimeout, &example(include_str!("upstream_timeout.rs"))).is_ok());
        for (config, places) in [
            (json!({"connect_ms": 0}), vec!["connect_ms"]),
            (json!({"write_ms": 0, "read_ms": 0}), vec!["write_ms", "read_ms"]),
        ] {
            assert_eq!(refused_at(&UpstreamTimeout, &config), places, "{config}");
        }
    }
}
