//! `traffic-split`: `traffic-split` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, PluginUpstreamRef, Warnings, meta, read};
use crate::document::{self, Item, Upstream};
use crate::schema::{Schema, any, array, id, integer, object};
use crate::translate::vars;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;
use weir_model::{Predicate, UpstreamHost};
use weir_plugins::traffic_split::{Choice, Config, Rule};

/// The plugin `traffic-split`.
pub struct TrafficSplit;

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    rules: Vec<RuleOptions>,
}

#[derive(Deserialize)]
struct RuleOptions {
    r#match: Option<Vec<MatchOptions>>,
    weighted_upstreams: Vec<WeightedUpstream>,
}

#[derive(Deserialize)]
struct MatchOptions {
    #[serde(default)]
    vars: Vec<Value>,
}

#[derive(Deserialize)]
struct WeightedUpstream {
    weight: u32,
    upstream_id: Option<Value>,
    upstream: Option<Value>,
}

impl PluginAdapter for TrafficSplit {
    fn name(&self) -> &'static str {
        "traffic-split"
    }

    fn priority(&self) -> i64 {
        966
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let weighted = object([
                ("upstream_id", id()),
                ("upstream", document::new_upstream_shape()),
                ("weight", integer().at_least(0).or(1)),
            ]);
            let rule = object([
                ("match", array(object([("vars", array(any()))]))),
                (
                    "weighted_upstreams",
                    array(weighted)
                        .min_items(1)
                        .max_items(20)
                        .or(json!([{"weight": 1}])),
                ),
            ]);
            object([("rules", array(rule)), ("_meta", meta::shape())])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let rules = config.get("rules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            let matches = rule.get("match").and_then(Value::as_array);
            for conditions in matches
                .into_iter()
                .flatten()
                .filter_map(|it| it.get("vars")?.as_array())
            {
                vars::check(conditions)
                    .map_err(|error| format!("failed to validate the 'vars' expression: {error}"))?;
            }
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "traffic-split"
    }

    fn upstreams(&self, config: &Value) -> Vec<(String, PluginUpstreamRef)> {
        let options: Options = read(config).unwrap_or(Options { rules: Vec::new() });
        let mut upstreams = Vec::new();
        for weighted in options.rules.into_iter().flat_map(|rule| rule.weighted_upstreams) {
            if let Some(name) = weighted.service() {
                upstreams.extend(weighted.plugin_upstream().map(|upstream| (name, upstream)));
            }
        }
        upstreams
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let mut rules = Vec::with_capacity(options.rules.len());
        for rule in options.rules {
            let choices = rule.weighted_upstreams.iter();
            rules.push(Rule {
                when: any_of(rule.r#match, notes),
                choices: choices
                    .map(|weighted| Choice {
                        service: weighted.service(),
                        host: weighted.host(context.upstreams),
                        weight: weighted.weight,
                    })
                    .collect(),
            });
        }
        serde_json::to_value(Config { rules })
    }
}

impl WeightedUpstream {
    /// The name that its service has in the model; `None`: the route's own. Equal upstreams are one.
    fn service(&self) -> Option<String> {
        match (self.id(), &self.upstream) {
            (Some(id), _) => Some(format!("upstreams/{id}")),
            (None, Some(upstream)) => {
                let mut hasher = DefaultHasher::new();
                upstream.to_string().hash(&mut hasher);
                Some(format!("traffic-split/{:016x}", hasher.finish()))
            }
            (None, None) => None,
        }
    }

    fn id(&self) -> Option<String> {
        match self.upstream_id.as_ref()? {
            Value::String(id) => Some(id.clone()),
            id => Some(id.to_string()),
        }
    }

    fn own(&self) -> Option<Upstream> {
        let upstream = self.upstream.as_ref().filter(|_| self.upstream_id.is_none())?;
        Upstream::deserialize(upstream).ok()
    }

    fn host(&self, known: &[Item<Upstream>]) -> UpstreamHost {
        let Some(upstream) = self.own() else {
            let id = self.id();
            let named = known.iter().find(|item| Some(&item.id) == id.as_ref());
            return named.map_or(UpstreamHost::Client, |item| {
                crate::translate::upstream_host(&item.value)
            });
        };
        match (crate::translate::upstream_host(&upstream), upstream.only_host()) {
            // The original sends the host of a single node without its port, unless it has been told to use TLS.
            (UpstreamHost::Target, Some(host)) if upstream.scheme != "https" => UpstreamHost::Fixed(host),
            (host, _) => host,
        }
    }

    fn plugin_upstream(self) -> Option<PluginUpstreamRef> {
        match self.id() {
            Some(id) => Some(PluginUpstreamRef::Known(id)),
            None => self
                .own()
                .map(|upstream| PluginUpstreamRef::Own(Box::new(upstream))),
        }
    }
}

/// That one of several conditions holds; without any, all calls are meant.
fn any_of(matches: Option<Vec<MatchOptions>>, notes: &mut Warnings) -> Option<Predicate> {
    let matches = matches.filter(|matches| !matches.is_empty())?;
    let mut compiled = Vec::with_capacity(matches.len());
    for conditions in matches {
        match vars::compile(&conditions.vars) {
            Ok(condition) => compiled.push(condition.unwrap_or(Predicate::All(Vec::new()))),
            Err(fault) => notes.error("rules", fault.to_string()),
        }
    }
    Some(Predicate::Any(compiled))
}
