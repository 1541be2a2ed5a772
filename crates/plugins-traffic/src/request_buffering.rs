//! `request-buffering`: whether a request's body is read whole before the service is asked, or passed on as it comes.
//!
//! ```yaml
//! enabled: true
//! max_bytes: 1048576
//! ```
//!
//! Without the plugin bodies are passed on as they come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};

/// Configuration of `request-buffering`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether bodies are read whole first.
    pub enabled: bool,
    /// The largest body that is read whole; larger ones are passed on as they come.
    #[schemars(range(max = 16_777_216))]
    pub max_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            max_bytes: 1 << 20,
        }
    }
}

/// The most that `max_bytes` may be.
const MOST: usize = 16 << 20;

/// The plugin `request-buffering`.
pub struct RequestBuffering;

impl Plugin for RequestBuffering {
    fn name(&self) -> &'static str {
        "request-buffering"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        match config.max_bytes > MOST {
            true => {
                let place = DocPath::root().field("max_bytes");
                Err(vec![Diagnostic::error(
                    place,
                    format!("expected at most {MOST} bytes"),
                )])
            }
            false => Ok(Arc::new(BufferingFilter(config))),
        }
    }
}

/// An instance of `request-buffering`.
struct BufferingFilter(Config);

impl Filter for BufferingFilter {
    fn phases(&self) -> Phases {
        match self.0.enabled {
            true => Phases::REQUEST,
            false => Phases::default(),
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let is_waiting = exchange.request.has_body && exchange.request.body.is_none();
        if !is_waiting || !exchange.filter_state.mark_body_requested(self) {
            return Outcome::Continue;
        }
        Outcome::NeedBody {
            max_bytes: self.0.max_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn bodies_are_asked_for_once() {
        let filter = build(&RequestBuffering, &example(include_str!("request_buffering.rs"))).expect("valid");
        let mut exchange = exchange();
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        exchange.request.has_body = true;
        for expected in ["body", "continue"] {
            assert_eq!(word(&filter.on_request(&mut exchange)), expected);
        }
        let off = build(&RequestBuffering, &json!({"enabled": false})).expect("valid");
        assert_eq!(off.phases(), Phases::default());
        assert_eq!(
            refused_at(&RequestBuffering, &json!({"max_bytes": 1u64 << 30})),
            ["max_bytes"]
        );
    }
}
