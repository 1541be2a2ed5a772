//! `consumer-headers`: sends more facts about the caller to upstreams, after another plugin has identified the
//! consumer.
//!
//! ```yaml
//! headers:
//!   - {name: X-Team, value: {consumer-label: team}}
//! ```
//!
//! Security: a caller's own copies of these headers are always removed, and so are headers whose names differ only in
//! `_` and `-`.

use crate::identity::IdentityHeader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `consumer-headers`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The request headers.
    pub headers: Vec<IdentityHeader>,
}

/// The plugin `consumer-headers`.
pub struct ConsumerHeaders;

impl Plugin for ConsumerHeaders {
    fn name(&self) -> &'static str {
        "consumer-headers"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let names: Vec<String> = config.headers.iter().map(|header| header.name.clone()).collect();
        faults.check_names("headers", &names);
        faults.done()?;
        Ok(Arc::new(ConsumerHeadersFilter(config.headers)))
    }
}

/// An instance of `consumer-headers`.
struct ConsumerHeadersFilter(Vec<IdentityHeader>);

impl Filter for ConsumerHeadersFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        for header in &self.0 {
            exchange.request.headers.remove_owned(header.name.as_bytes());
            if let Some(identity) = &exchange.identity
                && let Some(value) = header.value.read(identity)
            {
                exchange
                    .request
                    .headers
                    .append(header.name.as_bytes(), value.as_bytes());
            }
        }
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn labels_are_forwarded() {
        let filter = build(&ConsumerHeaders, &example(include_str!("consumer_headers.rs"))).expect("valid");
        for (caller, headers) in [
            (Some("alice"), &["X-Team: blue"][..]),
            (Some("bob"), &[]),
            (None, &[]),
        ] {
            let mut exchange = exchange();
            prepare(
                &mut exchange,
                "GET /",
                &[("X-Team", "spoof"), ("x_team", "spoof")],
            );
            exchange.identity = caller.map(|caller| identity(caller, None));
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            assert_eq!(lines(&exchange.request.headers), headers, "{caller:?}");
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        let config = json!({"headers": [{"name": "a b", "value": "consumer-id"}]});
        assert_eq!(refused_at(&ConsumerHeaders, &config), ["headers[0]"]);
    }
}
