//! Chains: which plugins work on a route's calls, and in which order.
//!
//! APISIX goes through a request in two phases, each by priority: all `rewrite` work (authentication too), then all
//! `access` work. Global rules go before the route in each phase. Once a consumer is known, its plugins replace
//! those of the route of the same name; what they would have rewritten is past by then, so of plugins that rewrite
//! only those work that the route lacks, after the route's own. Response work is one pass: global rules first, then
//! by priority.

use super::agent_documents;
use super::consumers::{Consumers, REFUSED};
use super::instances::{ConfiguredPlugin, Instances, PluginOwner, chain_step, table_id};
use super::labels;
use super::names::Names;
use crate::document::{self, Item, Plugins};
use crate::plugins::{self, PluginAdapter, is_skippable};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashMap;
use weir_model::{ChainStep, Diagnostic, PluginRef};

/// Places of steps in the order of request work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    GlobalRewrite,
    Rewrite,
    GroupCheck,
    ConsumerRewrite,
    GlobalAccess,
    Access,
    /// Works after all others.
    Last,
    /// Has no request work.
    Response,
}

/// A step with what orders it.
#[derive(Debug, Clone)]
struct OrderedStep {
    stage: Stage,
    /// Response work comes after that of all others.
    is_last: bool,
    is_global: bool,
    /// It works only if the route lacks the plugin of this name.
    yields_to: Option<&'static str>,
    priority: i64,
    step: ChainStep,
}

/// The sources of a route's plugins.
pub struct Sources<'d> {
    pub route: &'d Item<Box<document::Route>>,
    pub plugin_config: Option<&'d Item<document::PluginSet>>,
    pub service: Option<&'d Item<document::Service>>,
}

/// A route's chain.
pub struct Chain {
    pub steps: Vec<ChainStep>,
    /// Whether a plugin could not be made without which no call must be served.
    pub is_lacking: bool,
    /// Whether a variable of its plugins may read labels of the route.
    pub reads_labels: bool,
}

/// The common part of the chains of all routes.
pub struct Chains {
    global: Vec<OrderedStep>,
    global_is_lacking: bool,
    global_authenticates: bool,
    global_reads_labels: bool,
    consumer_plugins: Vec<&'static dyn PluginAdapter>,
    consumers_read_labels: bool,
    some_refused: bool,
}

impl Chains {
    /// Reads the global rules. A plugin that two of them have works in neither, as in APISIX.
    pub fn new(
        rules: &[Item<document::PluginSet>],
        consumers: &Consumers,
        instances: &mut Instances<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in rules.iter().flat_map(|rule| rule.value.plugins.keys()) {
            *counts.entry(name).or_default() += 1;
        }
        let mut global = Vec::new();
        let mut global_is_lacking = false;
        let mut global_authenticates = false;
        let mut global_reads_labels = false;
        for rule in rules {
            let owner = PluginOwner {
                section: "global_rules",
                id: &rule.id,
                path: &rule.path,
            };
            for written in written(&rule.value.plugins, owner) {
                let name = written.mapping.name();
                if counts.get(name) > Some(&1) {
                    let message = format!("{name} is configured in several global rules; it works in none");
                    diagnostics.push(Diagnostic::warning(
                        rule.path.field("plugins").field(name),
                        message,
                    ));
                    continue;
                }
                let meta = written.meta();
                if meta.disable {
                    continue;
                }
                if let Some(id) = instances.shared(written, diagnostics) {
                    global_authenticates |= written.mapping.authenticates();
                    global_reads_labels |= labels::reads_labels(&written);
                    let priority = meta.priority.unwrap_or_else(|| written.mapping.priority());
                    let step = chain_step(Some(PluginRef::Shared(id)), Vec::new());
                    global.push(placed(written.mapping, true, priority, step));
                } else {
                    global_is_lacking |= !is_skippable(name);
                }
            }
        }
        Self {
            global,
            global_is_lacking,
            global_authenticates,
            global_reads_labels,
            consumer_plugins: consumers.plugins.clone(),
            consumers_read_labels: consumers.read_labels,
            some_refused: consumers.has_some_refused(),
        }
    }

    /// The chain for calls that match no route.
    pub fn unmatched(&self) -> Vec<ChainStep> {
        ordered(self.global.clone())
    }

    /// The chain of a route.
    pub fn of_route(
        &self,
        sources: &Sources<'_>,
        instances: &mut Instances<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Chain {
        let owner = sources.owner();
        let merged = sources.merged();
        let names = sources.names();
        let authenticates = self.global_authenticates
            || merged
                .iter()
                .any(|it| it.mapping.authenticates() && !it.meta().disable);
        let is_on = |name: &str| {
            let mut routes = merged.iter();
            routes.any(|it| it.mapping.name() == name && !it.meta().disable)
        };
        let global = self.global.iter().filter(|it| !it.yields_to.is_some_and(is_on));
        let mut steps: Vec<OrderedStep> = global.cloned().collect();
        let mut is_lacking = self.global_is_lacking;
        for written in &merged {
            let mapping = written.mapping;
            let meta = written.meta();
            let plugin = match meta.disable {
                true => None,
                false => {
                    let config = sources.config(mapping, names.fill(written.config), written.config, &merged);
                    instances.step(*written, config, owner, diagnostics)
                }
            };
            is_lacking |= plugin.is_none() && !meta.disable && !is_skippable(mapping.name());
            // What rewrites has done so before the consumer is known.
            let replaceable = authenticates && !mapping.phases().rewrite && self.has_table(mapping);
            let overrides: Vec<String> = replaceable
                .then(|| table_id(mapping.name()))
                .into_iter()
                .collect();
            if plugin.is_some() || !overrides.is_empty() {
                let priority = meta.priority.unwrap_or_else(|| mapping.priority());
                steps.push(placed(mapping, false, priority, chain_step(plugin, overrides)));
            }
        }
        if authenticates {
            self.add_consumers_own(&merged, &mut steps);
        }
        let reads_labels = self.global_reads_labels
            || authenticates && self.consumers_read_labels
            || merged.iter().any(labels::reads_labels);
        Chain {
            steps: ordered(steps),
            is_lacking,
            reads_labels,
        }
    }

    fn has_table(&self, mapping: &dyn PluginAdapter) -> bool {
        self.consumer_plugins
            .iter()
            .any(|known| known.name() == mapping.name())
    }

    /// Adds steps for plugins that consumers have and the route lacks.
    fn add_consumers_own(&self, merged: &[ConfiguredPlugin<'_>], steps: &mut Vec<OrderedStep>) {
        if self.some_refused {
            steps.push(OrderedStep {
                stage: Stage::GroupCheck,
                is_last: false,
                is_global: false,
                yields_to: None,
                priority: 0,
                step: chain_step(None, vec![REFUSED.to_owned()]),
            });
        }
        for mapping in &self.consumer_plugins {
            if merged.iter().any(|it| it.mapping.name() == mapping.name()) {
                continue;
            }
            let step = chain_step(None, vec![table_id(mapping.name())]);
            let mut step = placed(*mapping, false, mapping.priority(), step);
            if step.stage == Stage::Rewrite {
                step.stage = Stage::ConsumerRewrite;
            }
            steps.push(step);
        }
    }
}

fn placed(mapping: &dyn PluginAdapter, is_global: bool, priority: i64, step: ChainStep) -> OrderedStep {
    let phases = mapping.phases();
    let stage = match (phases.rewrite, phases.access, is_global) {
        (true, ..) | (_, true, _) if phases.last => Stage::Last,
        (true, _, true) => Stage::GlobalRewrite,
        (true, _, false) => Stage::Rewrite,
        (false, true, true) => Stage::GlobalAccess,
        (false, true, false) => Stage::Access,
        (false, false, _) => Stage::Response,
    };
    OrderedStep {
        stage,
        is_last: phases.last,
        is_global,
        yields_to: (is_global && mapping.yields_to_route()).then(|| mapping.name()),
        priority,
        step,
    }
}

/// Puts steps into the order of request work, and numbers them in the order of response work.
fn ordered(mut steps: Vec<OrderedStep>) -> Vec<ChainStep> {
    steps.sort_by_key(|it| (it.is_last, Reverse(it.is_global), Reverse(it.priority)));
    for (step, order) in steps.iter_mut().zip(0..) {
        step.step.response_order = order;
        step.step.response_only = step.stage == Stage::Response;
    }
    steps.sort_by_key(|it| (it.stage, Reverse(it.priority)));
    steps.into_iter().map(|it| it.step).collect()
}

fn written<'d>(plugins: &'d Plugins, owner: PluginOwner<'d>) -> Vec<ConfiguredPlugin<'d>> {
    plugins
        .iter()
        .filter_map(|(name, config)| {
            Some(ConfiguredPlugin {
                mapping: plugins::mapping(name)?,
                config,
                owner,
            })
        })
        .collect()
}

impl<'d> Sources<'d> {
    fn owner(&self) -> PluginOwner<'d> {
        PluginOwner {
            section: "routes",
            id: &self.route.id,
            path: &self.route.path,
        }
    }

    fn names(&self) -> Names<'d> {
        Names {
            route_name: self.route.value.name.as_deref(),
            service_name: self.service.and_then(|service| service.value.name.as_deref()),
            service_id: self.service.map(|service| service.id.as_str()),
        }
    }

    /// The configuration of a plugin if it is the route's own: with names filled in, or with the data about the route.
    fn config(
        &self,
        mapping: &dyn PluginAdapter,
        filled: Option<Value>,
        written: &Value,
        merged: &[ConfiguredPlugin<'_>],
    ) -> Option<Value> {
        let documents = || {
            let plugins = merged.iter();
            let plugins = plugins.map(|it| (it.mapping.name().to_owned(), it.config.clone()));
            agent_documents::of(self.route, plugins.collect(), self.service)
        };
        let outcome = mapping.of_route(filled.as_ref().unwrap_or(written), &documents);
        outcome.or(filled)
    }

    /// The plugins that count: the route's own, then those of its plugin config, then those of its service.
    fn merged(&self) -> Vec<ConfiguredPlugin<'d>> {
        let mut merged = written(&self.route.value.plugins, self.owner());
        let mut add = |plugins: &'d Plugins, owner: PluginOwner<'d>| {
            for weaker in written(plugins, owner) {
                if !merged.iter().any(|it| it.mapping.name() == weaker.mapping.name()) {
                    merged.push(weaker);
                }
            }
        };
        if let Some(config) = self.plugin_config {
            let owner = PluginOwner {
                section: "plugin_configs",
                id: &config.id,
                path: &config.path,
            };
            add(&config.value.plugins, owner);
        }
        if let Some(service) = self.service {
            let owner = PluginOwner {
                section: "services",
                id: &service.id,
                path: &service.path,
            };
            add(&service.value.plugins, owner);
        }
        merged
    }
}
