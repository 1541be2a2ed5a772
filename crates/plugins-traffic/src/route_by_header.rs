//! `route-by-header`: sends calls to another upstream by their headers.
//!
//! ```yaml
//! rules:
//!   - headers: {X-Region: north}
//!     upstream: north.example
//! ```
//!
//! The first rule whose headers the call all has counts. Values are compared as a whole, upper and lower case apart.
//! **What it is not**: a match of routes; the call has its route and its service already.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, TargetOverride, parse_config};

/// Configuration of `route-by-header`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The rules; the first that holds counts. Without one, calls go to the service's own targets.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The headers that the call must have, with these values.
    pub headers: BTreeMap<String, String>,
    /// The name of an upstream, or of a host.
    pub upstream: String,
    /// The host that is meant if there is no such upstream; absent: the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The plugin `route-by-header`.
pub struct RouteByHeader;

impl Plugin for RouteByHeader {
    fn name(&self) -> &'static str {
        "route-by-header"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        for (index, rule) in config.rules.iter().enumerate() {
            let place = DocPath::root().field("rules").index(index);
            if rule.headers.is_empty() {
                faults.push(Diagnostic::error(
                    place.field("headers"),
                    "expected at least one header",
                ));
            }
            for name in rule.headers.keys().filter(|name| !is_name(name.as_bytes())) {
                let place = place.field("headers").field(name.as_str());
                faults.push(Diagnostic::error(place, "expected a header name"));
            }
            if rule.upstream.is_empty() {
                faults.push(Diagnostic::error(place.field("upstream"), "expected a name"));
            }
        }
        match faults.is_empty() {
            true => Ok(Arc::new(HeaderFilter(config.rules))),
            false => Err(faults),
        }
    }
}

/// An instance of `route-by-header`.
struct HeaderFilter(Vec<Rule>);

impl Rule {
    fn holds(&self, exchange: &Exchange) -> bool {
        let has = |(name, value): (&String, &String)| {
            let mut given = exchange.request.headers.get_all(name.as_bytes());
            given.any(|given| given == value.as_bytes())
        };
        self.headers.iter().all(has)
    }
}

impl Filter for HeaderFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(rule) = self.0.iter().find(|rule| rule.holds(exchange)) {
            let host = rule.host.as_ref().unwrap_or(&rule.upstream);
            exchange.target_override = Some(Box::new(TargetOverride {
                upstream: Some(rule.upstream.clone()),
                host: Some(host.clone()),
                ..TargetOverride::default()
            }));
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
    fn the_first_rule_counts_whose_headers_are_there() {
        let config = json!({"rules": [
            {"headers": {"X-Region": "north", "X-Tier": "gold"}, "upstream": "gold"},
            {"headers": {"X-Region": "north"}, "upstream": "team/north", "host": "north"},
        ]});
        let filter = build(&RouteByHeader, &config).expect("valid");
        let mut exchange = exchange();
        for (headers, wanted) in [
            (&[][..], None),
            (&[("x-region", "north")][..], Some(("team/north", "north"))),
            (&[("X-Region", "North")], None),
            (&[("X-Region", "south"), ("X-Tier", "gold")], None),
            (
                &[("X-Region", "north"), ("X-Tier", "gold")],
                Some(("gold", "gold")),
            ),
            (
                &[("X-Region", "south"), ("X-Region", "north")],
                Some(("team/north", "north")),
            ),
        ] {
            prepare(&mut exchange, "GET /", headers);
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            let found = exchange.target_override.as_ref();
            let found = found.map(|it| (it.upstream.as_deref(), it.host.as_deref()));
            assert_eq!(
                found,
                wanted.map(|(upstream, host)| (Some(upstream), Some(host))),
                "{headers:?}"
            );
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&RouteByHeader, &example(include_str!("route_by_header.rs"))).is_ok());
        for (config, places) in [
            (json!({}), vec![]),
            (
                json!({"rules": [{"headers": {}, "upstream": ""}]}),
                vec!["rules[0].headers", "rules[0].upstream"],
            ),
            (
                json!({"rules": [{"headers": {"a b": "c"}, "upstream": "u"}]}),
                vec!["rules[0].headers.\"a b\""],
            ),
        ] {
            assert_eq!(
                refused_at(&RouteByHeader, &config).len(),
                places.len(),
                "{config}"
            );
        }
    }
}
