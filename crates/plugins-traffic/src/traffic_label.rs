//! `traffic-label`: marks requests by setting headers, by rules and shares.
//!
//! ```yaml
//! rules:
//!   - when: [arg_beta, "==", "1"]
//!     actions:
//!       - {weight: 1, headers: [{set: {X-Group: a}}]}
//!       - {weight: 3, headers: [{set: {X-Group: b}}]}
//! ```
//!
//! The first rule that holds counts; of its actions one is taken, by weight.

use crate::weighted_rules::WeightedRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::header_edits::{HeaderEdit, HeaderEdits, HeaderTarget};
use weir_plugins_shared::path_captures::RegexMatch;

/// Configuration of `traffic-label`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The rules; the first that holds counts.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The rule is for calls for which this holds; absent: for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// What may be done with them; one is taken.
    pub actions: Vec<Action>,
}

/// What may be done with a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its share, to the sum of all.
    #[serde(default = "one")]
    pub weight: u32,
    /// Changes of the headers, with variables; none: the call stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderEdit>,
}

fn one() -> u32 {
    1
}

/// The plugin `traffic-label`.
pub struct TrafficLabel;

impl Plugin for TrafficLabel {
    fn name(&self) -> &'static str {
        "traffic-label"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut rules = WeightedRules::default();
        for (index, rule) in config.rules.iter().enumerate() {
            let path = DocPath::root().field("rules").index(index);
            let (mut actions, mut of_actions) = (Vec::with_capacity(rule.actions.len()), Vec::new());
            for (index, action) in rule.actions.iter().enumerate() {
                let place = path.field("actions").index(index).field("headers");
                match HeaderEdits::compile(&action.headers, true, &place) {
                    Ok(steps) => actions.push(steps),
                    Err(more) => of_actions.extend(more),
                }
            }
            let weights = rule.actions.iter().map(|action| action.weight);
            rules.add(rule.when.as_ref(), actions, weights, &path, &mut faults);
            faults.extend(of_actions);
        }
        match faults.is_empty() {
            true => Ok(Arc::new(LabelFilter(rules))),
            false => Err(faults),
        }
    }
}

/// An instance of `traffic-label`.
struct LabelFilter(WeightedRules<HeaderEdits>);

impl Filter for LabelFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.0.need_body() || self.0.choices().any(HeaderEdits::need_body)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(steps) = self.0.choose(exchange) {
            steps.apply(exchange, HeaderTarget::Request, &RegexMatch::default());
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
    fn requests_are_marked() {
        let set = |value: &str| json!([{"set": {"X-L": value}}]);
        let config = json!({"rules": [
            {"when": ["arg_a", "==", "1"], "actions": [{"headers": set("a")}]},
            {"when": ["arg_w", "==", "1"], "actions": [{"headers": set("w")}, {"weight": 2}]},
            {"actions": [{"headers": set("$uri")}]},
        ]});
        let filter = build(&TrafficLabel, &config).expect("valid");
        let mut exchange = exchange();
        let mut mark = |call: &str| {
            prepare(&mut exchange, call, &[("X-L", "client")]);
            filter.on_request(&mut exchange);
            lines(&exchange.request.headers).join(",")
        };
        assert_eq!(mark("GET /x?a=1&w=1"), "X-L: a");
        assert_eq!(mark("GET /x"), "X-L: /x");
        let mut shares: Vec<_> = (0..6).map(|_| mark("GET /?w=1")).collect();
        shares.sort();
        assert_eq!(
            shares.concat(),
            "X-L: clientX-L: clientX-L: clientX-L: clientX-L: wX-L: w"
        );
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&TrafficLabel, &example(include_str!("traffic_label.rs"))).is_ok());
        let config =
            json!({"rules": [{"when": ["a", "~~", "("], "actions": [{"headers": [{"set": {"a b": "x"}}]}]}]});
        assert_eq!(
            refused_at(&TrafficLabel, &config),
            ["rules[0].when", "rules[0].actions[0].headers[0].set.a b"]
        );
    }
}
