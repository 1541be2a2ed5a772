//! `workflow`: refuses or limits calls by the first rule that matches.
//!
//! ```yaml
//! rules:
//!   - {when: ["http_x_tier", "==", "free"], then: {plugin: {rate-limit: {limits: [{count: 10, per: minute}]}}}}
//!   - {when: ["uri", "~~", "^/internal"], then: {refuse: {status: 403}}}
//! ```
//!
//! After a rule has run a plugin, the plugin's own instance in the chain skips the call.

use crate::concurrency_limit::ConcurrencyLimit;
use crate::rate_key::handled::mark_done;
use crate::rate_limit::RateLimit;
use crate::throttle::Throttle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{
    BuildContext, Condition, Exchange, Filter, Indeterminate, Outcome, Phases, Plugin, RedisCommand, Refusal,
    RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::{ConfigErrors, within};

/// Configuration of `workflow`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The rules; the first that holds counts.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// When it holds; left out: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// What happens then.
    pub then: Action,
}

/// The action of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The call is refused.
    Refuse(Refuse),
    /// A plugin that limits works on the call: a map of its name (`rate-limit`, `concurrency-limit` or `throttle`) to
    /// its configuration.
    Plugin(BTreeMap<String, Value>),
}

/// How a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refuse {
    /// Status of the response, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The plugin, with those that its rules can run.
pub struct Workflow {
    rate_limit: RateLimit,
    concurrency_limit: ConcurrencyLimit,
    throttle: Throttle,
}

impl Workflow {
    /// Counts in the counters of these plugins.
    pub fn new(rate_limit: &RateLimit, concurrency_limit: &ConcurrencyLimit, throttle: &Throttle) -> Self {
        Self {
            rate_limit: rate_limit.clone(),
            concurrency_limit: concurrency_limit.clone(),
            throttle: throttle.clone(),
        }
    }

    fn plugin(&self, name: &str) -> Option<&dyn Plugin> {
        Some(match name {
            "rate-limit" => &self.rate_limit,
            "concurrency-limit" => &self.concurrency_limit,
            "throttle" => &self.throttle,
            _ => return None,
        })
    }

    fn compile(
        &self,
        rule: Rule,
        place: &DocPath,
        context: &BuildContext<'_>,
    ) -> Result<Compiled, Vec<Diagnostic>> {
        let when = rule.when.as_ref().map(Condition::compile).transpose();
        let when = when.map_err(|message| vec![Diagnostic::error(place.field("when"), message)])?;
        let place = place.field("then");
        let then = match rule.then {
            Action::Refuse(refuse) => {
                let mut faults = ConfigErrors::default();
                faults.check_status("status", refuse.status);
                let found = faults.done().err().into_iter().flatten().collect();
                let found: Vec<_> = within(&place.field("refuse"), found).collect();
                if !found.is_empty() {
                    return Err(found);
                }
                RuleAction::Refuse(refuse)
            }
            Action::Plugin(plugins) => {
                let place = place.field("plugin");
                let mut plugins = plugins.into_iter();
                let (Some((name, config)), None) = (plugins.next(), plugins.next()) else {
                    return Err(vec![Diagnostic::error(place, "expected one plugin")]);
                };
                let place = place.field(name.as_str());
                let Some(plugin) = self.plugin(&name) else {
                    let message = "expected rate-limit, concurrency-limit or throttle";
                    return Err(vec![Diagnostic::error(place, message)]);
                };
                let filter = plugin
                    .build(&config, context)
                    .map_err(|found| within(&place, found).collect::<Vec<_>>())?;
                RuleAction::Run(plugin.name(), filter)
            }
        };
        Ok(Compiled { when, then })
    }
}

impl Plugin for Workflow {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let (mut rules, mut faults) = (Vec::new(), Vec::new());
        for (index, rule) in config.rules.into_iter().enumerate() {
            let place = DocPath::root().field("rules").index(index);
            // Each rule counts for itself.
            let instance_id = format!("{}/{index}", context.instance_id);
            let context = BuildContext {
                instance_id: &instance_id,
                ..*context
            };
            match self.compile(rule, &place, &context) {
                Ok(rule) => rules.push(rule),
                Err(found) => faults.extend(found),
            }
        }
        match faults.is_empty() {
            true => Ok(Arc::new(Rules(rules))),
            false => Err(faults),
        }
    }
}

/// A rule made ready for many calls.
struct Compiled {
    when: Option<Condition>,
    then: RuleAction,
}

enum RuleAction {
    Refuse(Refuse),
    Run(&'static str, Arc<dyn Filter>),
}

/// An instance of `workflow`.
struct Rules(Vec<Compiled>);

impl Filter for Rules {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.0.iter().any(|rule| {
            rule.when.as_ref().is_some_and(Condition::needs_body)
                || matches!(&rule.then, RuleAction::Run(_, filter) if filter.needs_body())
        })
    }

    /// A rule that cannot be judged stands before all that follow.
    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        for rule in &self.0 {
            match rule
                .when
                .as_ref()
                .map_or(Ok(true), |when| when.evaluate_strict(exchange))
            {
                Ok(false) => {}
                Ok(true) => match &rule.then {
                    RuleAction::Run(_, filter) if filter.needs_body() => {
                        return filter.indeterminate(exchange);
                    }
                    _ => return None,
                },
                Err(reason) => return Some(reason),
            }
        }
        None
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let holds = |rule: &&Compiled| rule.when.as_ref().is_none_or(|when| when.holds(exchange));
        match self.0.iter().find(holds).map(|rule| &rule.then) {
            None => Outcome::Continue,
            Some(RuleAction::Refuse(refuse)) => {
                let kind = RefusalKind::Forbidden { plugin: "workflow" };
                let mut refusal = Refusal::with_status(kind, refuse.status);
                refusal.message.clone_from(&refuse.message);
                Outcome::Refuse(Box::new(refusal))
            }
            Some(RuleAction::Run(name, filter)) => {
                let outcome = filter.on_request(exchange);
                // One that waits for an answer has not done its work yet.
                if !matches!(&outcome, Outcome::Redis(work) if matches!(**work, RedisCommand::Run(_))) {
                    mark_done(exchange, name);
                }
                outcome
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn workflow() -> (Workflow, RateLimit) {
        let rate_limit = RateLimit::default();
        let workflow = Workflow::new(&rate_limit, &ConcurrencyLimit::default(), &Throttle::default());
        (workflow, rate_limit)
    }

    #[test]
    fn the_first_rule_that_holds_counts() {
        let limit = |count| json!({"plugin": {"rate-limit": {"limits": [{"count": count, "per": "hour"}]}}});
        let config = json!({"rules": [
            {"when": ["arg_a", "==", "1"], "then": {"refuse": {"status": 401}}},
            {"when": ["arg_b", "==", "1"], "then": limit(1)},
            {"when": ["arg_b", "==", "2"], "then": limit(2)},
            {"when": ["arg_b", "==", "1"], "then": {"refuse": {"status": 402}}},
        ]});
        let filter = build(&workflow().0, &config).expect("valid");
        for (line, expected) in [
            ("GET /?a=1&b=1", "forbidden 401"),
            ("GET /?b=1", "continue"),
            ("GET /?b=2", "continue"),
            ("GET /?b=2", "continue"),
            ("GET /?b=2", "rate_limited 429"),
            ("GET /?b=1", "rate_limited 429"),
            ("GET /", "continue"),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, line, &[]);
            assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{line}");
        }
    }

    #[test]
    fn rules_that_cannot_be_judged_let_nothing_pass() {
        let config = json!({"rules": [
            {"when": ["arg_free", "==", "1"], "then": {"plugin": {"throttle": {"rate_per_second": 9}}}},
            {"when": [["post_arg.role", "==", "admin"], ["uri", "==", "/"]], "then": {"refuse": {"status": 403}}},
            {"when": ["graphql_operation", "==", "mutation"], "then": {"refuse": {"status": 403}}},
            {"then": {"plugin": {"rate-limit": {"limits": [{"count": 9, "per": "hour"}], "by": {"template": "$post_arg.k"}}}}},
        ]});
        let filter = build(&workflow().0, &config).expect("valid");
        assert!(filter.needs_body());
        let two = r#"{"query": "{a} mutation m {b}", "operationName": "m"}"#;
        const JSON: &str = "application/json";
        for (line, content_type, body, expected) in [
            ("POST /", JSON, None, Some(Indeterminate::TooLarge)),
            ("POST /?free=1", JSON, None, None),
            ("POST /x", JSON, None, Some(Indeterminate::TooLarge)),
            ("PUT /x", JSON, None, Some(Indeterminate::TooLarge)),
            ("PUT /x", "text/plain", None, None),
            ("POST /", JSON, Some("{}"), None),
            ("POST /", JSON, Some(two), Some(Indeterminate::Ambiguous)),
            (
                "POST /",
                JSON,
                Some(r#"{"role": "admin", "query": "{a} {b}"}"#),
                None,
            ),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, line, &[("Content-Type", content_type)]);
            exchange.request.has_body = true;
            exchange.request.body = body.map(|body| body.as_bytes().to_vec());
            assert_eq!(
                filter.indeterminate(&exchange),
                expected,
                "{line} {content_type} {body:?}"
            );
        }
    }

    #[test]
    fn what_a_rule_has_run_does_not_run_again() {
        let (workflow, rate_limit) = workflow();
        let limits = json!({"limits": [{"count": 0, "per": "hour"}], "reject": true});
        let own = build(&rate_limit, &limits).expect("valid");
        let config = json!({"rules": [
            {"when": ["arg_a", "==", "1"], "then": {"plugin": {"throttle": {"rate_per_second": 9}}}},
            {"then": {"plugin": {"rate-limit": {"limits": [{"count": 9, "per": "hour"}]}}}},
        ]});
        let filter = build(&workflow, &config).expect("valid");
        for (line, expected) in [("GET /", "continue"), ("GET /?a=1", "rate_limited 429")] {
            let mut exchange = exchange();
            prepare(&mut exchange, line, &[]);
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue", "{line}");
            assert_eq!(word(&own.on_request(&mut exchange)), expected, "{line}");
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({}), &[""][..]),
            (
                json!({"rules": [
                    {"when": ["a", "~~", "("], "then": {"refuse": {"status": 400}}},
                    {"then": {"refuse": {"status": 99}}},
                    {"then": {"plugin": {"cors": {}}}},
                    {"then": {"plugin": {}}},
                    {"then": {"plugin": {"throttle": {"rate_per_second": 0}}}},
                ]}),
                &[
                    "rules[0].when",
                    "rules[1].then.refuse.status",
                    "rules[2].then.plugin.cors",
                    "rules[3].then.plugin",
                    "rules[4].then.plugin.throttle.rate_per_second",
                ],
            ),
        ] {
            assert_eq!(refused_at(&workflow().0, &config), places, "{config}");
        }
        assert!(build(&workflow().0, &example(include_str!("workflow.rs"))).is_ok());
    }
}
