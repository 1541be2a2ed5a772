//! `traffic-split`: sends shares of the calls to other services than the route's own.
//!
//! ```yaml
//! rules:
//!   - when: [http_x_canary, "==", "1"]
//!     choices: [{service: canary}]
//!   - choices: [{service: canary, weight: 5}, {weight: 95}]
//! ```
//!
//! The first rule that holds counts. Shares are exact over each round of as many calls as the weights sum up to.

use crate::weighted_rules::WeightedRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Predicate, UpstreamHost};
use weir_plugin::{BuildContext, DestinationId, Exchange, Filter, Outcome, Phases, Plugin, parse_config};

/// Configuration of `traffic-split`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The rules; the first one that matches counts. If none does, calls go to the route's own service.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The rule is for calls for which this holds; absent: for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// The destinations of the calls.
    pub choices: Vec<Choice>,
}

/// One of several services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The service's name; absent: the route's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The `Host` for the service.
    #[serde(default)]
    pub host: UpstreamHost,
    /// Its share, to the sum of all.
    #[serde(default = "one")]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

/// The plugin `traffic-split`.
pub struct TrafficSplit;

impl Plugin for TrafficSplit {
    fn name(&self) -> &'static str {
        "traffic-split"
    }

    fn works_on_streams(&self) -> bool {
        true
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut rules = WeightedRules::default();
        for (index, rule) in config.rules.iter().enumerate() {
            let path = DocPath::root().field("rules").index(index);
            if rule.choices.is_empty() {
                faults.push(Diagnostic::error(
                    path.field("choices"),
                    "expected at least one choice",
                ));
            }
            let destinations = rule.choices.iter().map(|choice| {
                let service = choice.service.as_deref()?;
                Some(context.destination(service, &choice.host))
            });
            let weights = rule.choices.iter().map(|choice| choice.weight);
            rules.add(
                rule.when.as_ref(),
                destinations.collect(),
                weights,
                &path,
                &mut faults,
            );
        }
        match faults.is_empty() {
            true => Ok(Arc::new(SplitFilter(rules))),
            false => Err(faults),
        }
    }
}

/// An instance of `traffic-split`; `None`: the route's own service.
struct SplitFilter(WeightedRules<Option<DestinationId>>);

impl Filter for SplitFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.0.need_body()
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(destination) = self.0.choose(exchange).copied() {
            exchange.destination = destination;
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
    fn calls_are_shared_out() {
        let config = json!({"rules": [
            {"when": ["arg_c", "==", "1"], "choices": [{"service": "b"}]},
            {"choices": [{"service": "a", "weight": 3}, {"weight": 1}]},
        ]});
        let filter = build(&TrafficSplit, &config).expect("valid");
        let mut exchange = exchange();
        let mut to = |call: &str| {
            prepare(&mut exchange, call, &[]);
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            exchange.destination
        };
        assert_eq!(to("GET /?c=1"), Some(DestinationId(0)));
        let mut others: Vec<_> = (0..8).map(|_| to("GET /")).collect();
        others.sort();
        let second = Some(DestinationId(1));
        assert_eq!(
            others,
            [None, None, second, second, second, second, second, second]
        );
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&TrafficSplit, &example(include_str!("mod.rs"))).is_ok());
        for (config, places) in [
            (json!({}), vec![]),
            (json!({"rules": [{"choices": []}]}), vec!["rules[0].choices"]),
            (
                json!({"rules": [{"choices": [{}], "when": ["a", "~~", "("]}]}),
                vec!["rules[0].when"],
            ),
        ] {
            assert_eq!(refused_at(&TrafficSplit, &config), places, "{config}");
        }
    }
}
