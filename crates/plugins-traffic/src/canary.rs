//! `canary`: sends a share of the calls to another upstream, host, port or path. The share is fixed, grows over time, or is
//! that of groups of consumers.
//!
//! ```yaml
//! percent: 10
//! by: consumer
//! host: canary.example
//! port: 8080
//! ```
//!
//! A caller that is in the share stays in it while the share grows. **What it is not**: a balancer; `traffic-split` shares
//! single calls out among services.

use crate::upstream_address::host_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_flow::hash_key;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, TargetOverride, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::consumer_labels::ConsumerLabels;

/// Configuration of `canary`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The share in percent, 0 to 100. It goes before `ramp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<f64>,
    /// A share that grows from nothing to all calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
    /// Routes the calls of these consumers, instead of a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    /// The property that groups calls: all calls of one caller are routed alike.
    pub by: CallerKey,
    /// In how many parts callers are divided.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps: u32,
    /// A request header that decides alone: `always` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by_header: Option<String>,
    /// The name of an upstream. If there is no such upstream, `host` and `port` count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// A name or an address; absent: the service's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A port; absent: the service's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// The path to request, instead of the call's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Calls go to the service's own targets while too few of `upstream` are healthy.
    pub only_if_healthy: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            percent: None,
            ramp: None,
            groups: None,
            by: CallerKey::default(),
            steps: 1000,
            decided_by_header: None,
            upstream: None,
            host: None,
            port: None,
            path: None,
            only_if_healthy: false,
        }
    }
}

/// A share that grows evenly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// When it begins, in Unix seconds.
    pub start_s: f64,
    /// After how many seconds all calls are in it.
    #[serde(default = "hour")]
    pub duration_s: f64,
}

fn hour() -> f64 {
    3600.0
}

/// Consumers by the values of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// The label.
    pub label: String,
    /// The values.
    pub values: Vec<String>,
    /// Routes the calls of all other consumers instead.
    #[serde(default)]
    pub others: bool,
}

/// The property by which calls are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallerKey {
    /// The consumer; the client's address if there is none.
    #[default]
    Consumer,
    /// The client's address.
    Ip,
    /// The value of this header; the client's address if there is none.
    Header(String),
    /// Nothing: each call is decided by chance.
    Random,
}

/// The plugin `canary`.
pub struct Canary;

impl Plugin for Canary {
    fn name(&self) -> &'static str {
        "canary"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        check(&config)?;
        Ok(Arc::new(CanaryFilter {
            labels: config.groups.is_some().then(|| ConsumerLabels::of(context)),
            config,
        }))
    }
}

fn check(config: &Config) -> Result<(), Vec<Diagnostic>> {
    let mut faults = ConfigErrors::default();
    if config
        .percent
        .is_some_and(|percent| !(0.0..=100.0).contains(&percent))
    {
        faults.add("percent", "expected a percentage from 0 to 100");
    }
    let ramp = config.ramp.as_ref();
    if ramp.is_some_and(|ramp| ramp.duration_s.is_nan() || ramp.duration_s <= 0.0) {
        faults.add_at(&["ramp", "duration_s"], "expected more than 0 seconds");
    }
    if !(1..=1_000_000).contains(&config.steps) {
        faults.add("steps", "expected 1 to 1000000 parts");
    }
    if config.percent.is_none() && config.ramp.is_none() && config.groups.is_none() {
        faults.add("percent", "expected a share: 'percent', 'ramp' or 'groups'");
    }
    if config.upstream.is_none() && config.host.is_none() && config.port.is_none() && config.path.is_none() {
        faults.add("host", "expected a place: 'upstream', 'host', 'port' or 'path'");
    }
    if config.port == Some(0) {
        faults.add("port", "expected a port from 1 to 65535, found 0");
    }
    if config.path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        faults.add("path", "expected a path that begins with /");
    }
    if config
        .host
        .as_deref()
        .is_some_and(|host| host_of(host.as_bytes()).is_none())
    {
        faults.add("host", "expected a name or an address");
    }
    if let CallerKey::Header(name) = &config.by {
        faults.check_name("by", name);
    }
    if let Some(name) = &config.decided_by_header {
        faults.check_name("decided_by_header", name);
    }
    faults.done()
}

/// An instance of `canary`.
struct CanaryFilter {
    config: Config,
    labels: Option<Arc<ConsumerLabels>>,
}

impl CanaryFilter {
    fn takes(&self, exchange: &mut Exchange) -> bool {
        let header = self.config.decided_by_header.as_ref();
        match header.and_then(|name| exchange.request.headers.get(name.as_bytes())) {
            Some(b"always") => return true,
            Some(b"never") => return false,
            _ => {}
        }
        if let Some(groups) = &self.config.groups {
            return self.is_member(groups, exchange) != groups.others;
        }
        let steps = f64::from(self.config.steps);
        let share = match (self.config.percent, &self.config.ramp) {
            (Some(percent), _) => percent / 100.0,
            (None, Some(ramp)) => {
                let now_s = exchange.unix_ms() as f64 / 1000.0;
                ((now_s - ramp.start_s) / ramp.duration_s).clamp(0.0, 1.0)
            }
            (None, None) => 0.0,
        };
        f64::from(self.part(exchange)) < (share * steps).floor()
    }

    fn is_member(&self, groups: &Groups, exchange: &Exchange) -> bool {
        let label = || {
            let identity = exchange.identity.as_ref()?;
            self.labels.as_ref()?.get(identity, &groups.label)
        };
        label().is_some_and(|label| {
            let mut values = label.values.iter();
            values.any(|value| groups.values.iter().any(|it| **it == **value))
        })
    }

    /// The part that the caller is in, from 0 on.
    fn part(&self, exchange: &mut Exchange) -> u32 {
        let identity = exchange.identity.as_ref();
        let hash = match &self.config.by {
            CallerKey::Random => return (exchange.random_u64() % u64::from(self.config.steps)) as u32,
            CallerKey::Consumer => identity.map(|identity| hash_key(identity.consumer.id.as_bytes())),
            CallerKey::Header(name) => exchange.request.headers.get(name.as_bytes()).map(hash_key),
            CallerKey::Ip => None,
        };
        let hash = hash.unwrap_or_else(|| hash_key(exchange.request.client.to_string().as_bytes()));
        hash % self.config.steps
    }
}

impl Filter for CanaryFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if !self.takes(exchange) {
            return Outcome::Continue;
        }
        let config = &self.config;
        if config.upstream.is_some() || config.host.is_some() || config.port.is_some() {
            exchange.target_override = Some(Box::new(TargetOverride {
                upstream: config.upstream.clone(),
                host: config.host.clone(),
                port: config.port,
                only_if_healthy: config.only_if_healthy,
            }));
        }
        if let Some(path) = &config.path {
            exchange.upstream_path = Some(path.as_bytes().to_vec());
        }
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn taken(config: Value, headers: &[(&str, &str)], caller: Option<&str>) -> bool {
        let mut whole = json!({"host": "canary.example"});
        for (field, value) in config.as_object().expect("fields") {
            whole[field] = value.clone();
        }
        let filter = build(&Canary, &whole).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", headers);
        exchange.identity = caller.map(|caller| identity(caller, None));
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        exchange.target_override.is_some()
    }

    #[test]
    fn shares_headers_and_groups_decide() {
        let now_s = NOW_MS / 1000;
        let blue = json!({"groups": {"label": "team", "values": ["blue"]}});
        let others = json!({"groups": {"label": "team", "values": ["blue"], "others": true}});
        let header = |percent: u32| json!({"percent": percent, "decided_by_header": "x-c"});
        for (config, headers, caller, wanted) in [
            (json!({"percent": 0}), &[][..], None, false),
            (json!({"percent": 100}), &[], None, true),
            (header(0), &[("X-C", "always")], None, true),
            (header(100), &[("X-C", "never")], None, false),
            (header(100), &[("X-C", "other")], None, true),
            (json!({"ramp": {"start_s": now_s + 1}}), &[], None, false),
            (json!({"ramp": {"start_s": now_s - 3600}}), &[], None, true),
            (blue.clone(), &[], Some("alice"), true),
            (blue.clone(), &[], Some("bob"), false),
            (blue, &[], None, false),
            (others.clone(), &[], Some("alice"), false),
            (others, &[], Some("bob"), true),
        ] {
            assert_eq!(
                taken(config.clone(), headers, caller),
                wanted,
                "{config} {headers:?} {caller:?}"
            );
        }
    }

    #[test]
    fn callers_stay_in_a_share_that_grows() {
        let share = |percent: u32, by: &Value| -> Vec<bool> {
            let caller = |number: u32| {
                let name = number.to_string();
                taken(json!({"percent": percent, "by": by}), &[("X-User", &name)], None)
            };
            (0..400).map(caller).collect()
        };
        let by = json!({"header": "x-user"});
        let (small, large) = (share(10, &by), share(50, &by));
        let count = |share: &[bool]| share.iter().filter(|it| **it).count();
        assert!((15..70).contains(&count(&small)), "{}", count(&small));
        assert!((150..250).contains(&count(&large)), "{}", count(&large));
        assert!(small.iter().zip(&large).all(|(small, large)| !small || *large));
        // Without the header, the client's address decides: it is the same for all.
        let one = taken(json!({"percent": 50, "by": "ip"}), &[], None);
        assert_eq!(taken(json!({"percent": 50, "by": by}), &[], None), one);
    }

    #[test]
    fn calls_are_sent_to_the_place() {
        let config =
            json!({"percent": 100, "by": "random", "upstream": "u", "host": "h", "port": 81, "path": "/p"});
        let filter = build(&Canary, &config).expect("valid");
        let mut exchange = exchange();
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        let wanted = TargetOverride {
            upstream: Some("u".to_owned()),
            host: Some("h".to_owned()),
            port: Some(81),
            only_if_healthy: false,
        };
        assert_eq!(exchange.target_override.as_deref(), Some(&wanted));
        assert_eq!(exchange.upstream_path.as_deref(), Some(&b"/p"[..]));
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&Canary, &example(include_str!("canary.rs"))).is_ok());
        for (config, places) in [
            (json!({}), vec!["percent", "host"]),
            (json!({"percent": 101, "port": 0}), vec!["percent", "port"]),
            (
                json!({"ramp": {"start_s": 1, "duration_s": 0}, "path": "p"}),
                vec!["ramp.duration_s", "path"],
            ),
            (json!({"percent": 1, "host": "h", "steps": 0}), vec!["steps"]),
            (
                json!({"percent": 1, "host": "h", "by": {"header": "a b"}, "decided_by_header": ""}),
                vec!["by", "decided_by_header"],
            ),
            (json!({"percent": 1, "host": "a b:1"}), vec!["host"]),
        ] {
            assert_eq!(refused_at(&Canary, &config), places, "{config}");
        }
    }
}
