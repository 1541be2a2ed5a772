//! Translating again after a change: only what the change is about, and what depends on it.

use super::certificates;
use super::chain::Chains;
use super::consumers::Consumers;
use super::instances::BuiltInstances;
use super::matching::{Rank, ordinals};
use super::plugin_upstreams::plugin_upstreams;
use super::{Options, TranslatedUpstreams, Translation, error_log};
use crate::document::{Documents, Item, Route};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use weir_model::{ChainStep, Diagnostic, Model, PluginRef, RouteTarget};

/// The earlier translations of documents.
#[derive(Default)]
pub struct TranslationCache {
    routes: HashMap<String, Translated>,
    instances: BuiltInstances,
    upstreams: TranslatedUpstreams,
    consumers: Option<Consumers>,
    /// The additions of consumers to routes that recognise them: plugins by name, the check of groups, and labels.
    common: (Vec<&'static str>, bool, bool),
}

/// A route as it was translated; `None`: it takes no calls.
struct Translated {
    route: Option<Arc<weir_model::Route>>,
    ranks: Vec<Rank>,
    /// Whether its plugins send calls to upstreams of their own.
    has_plugin_upstreams: bool,
}

impl TranslationCache {
    /// A route is another one, or depends on something that is.
    pub fn forget_route(&mut self, id: &str) {
        self.routes.remove(id);
        self.upstreams.remove(&format!("routes/{id}"));
    }

    /// All routes depend on something that is another one.
    pub fn forget_routes(&mut self) {
        self.routes.clear();
    }

    /// All plugins depend on something that is another one.
    pub fn forget_plugins_and_routes(&mut self) {
        self.forget_plugins("");
        self.forget_consumers();
        self.forget_routes();
    }

    /// A certificate is another one that upstreams may be shown.
    pub fn forget_client_certificates(&mut self) {
        self.upstreams.clear();
        self.routes.clear();
    }

    /// A service, or an upstream by itself, is another one: `services/ID`, `upstreams/ID`.
    pub fn forget_upstream(&mut self, name: &str) {
        self.upstreams.remove(name);
    }

    /// The plugins of a resource (`services/ID/`), or of all resources of a list (`global_rules/`), are others.
    pub fn forget_plugins(&mut self, prefix: &str) {
        self.instances.forget(prefix);
    }

    /// Consumers, their credentials or their groups are others.
    pub fn forget_consumers(&mut self) {
        self.consumers = None;
        self.forget_plugins("consumers/");
        self.forget_plugins("consumer_groups/");
    }

    /// The model of documents, which are sorted by id. The calls of routes for which `refuses` holds are refused.
    ///
    /// The findings in `diagnostics` are about what was translated now.
    pub fn model(
        &mut self,
        documents: &Documents,
        options: &Options,
        refuses: &dyn Fn(&Item<Box<Route>>) -> bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Model {
        let mut translation = Translation::new(documents, options, diagnostics);
        translation.instances.resume(std::mem::take(&mut self.instances));
        translation.upstreams_made = std::mem::take(&mut self.upstreams);
        let consumers = self.consumers.take().unwrap_or_else(|| {
            Consumers::translate(documents, &mut translation.instances, translation.diagnostics)
        });
        let chains = Chains::new(
            &documents.global_rules,
            &consumers,
            &mut translation.instances,
            translation.diagnostics,
        );
        let common = (
            consumers.plugins.iter().map(|mapping| mapping.name()).collect(),
            consumers.has_some_refused(),
            consumers.read_labels,
        );
        if common != self.common {
            self.common = common;
            self.routes.clear();
        }
        let are_on = || documents.routes.iter().filter(|item| item.value.status == 1);
        for item in are_on() {
            if !self.routes.contains_key(&item.id) {
                let translated = translation.alone(item, &chains, refuses(item));
                self.routes.insert(item.id.clone(), translated);
            }
        }
        let ordinals = ordinals(
            are_on()
                .filter_map(|item| self.routes.get(&item.id))
                .flat_map(|known| &known.ranks),
        );
        let mut routes = Vec::with_capacity(documents.routes.len());
        for item in are_on() {
            if let Some(known) = self.routes.get_mut(&item.id) {
                known.take_places(&ordinals);
                routes.extend(known.route.clone());
            }
        }
        let with_plugin_upstreams = documents.routes.iter().filter(|item| {
            self.routes
                .get(&item.id)
                .is_some_and(|known| known.has_plugin_upstreams)
        });
        translation.model.routes = routes;
        translation.use_upstreams();
        translation.add_plugin_upstreams(plugin_upstreams(documents, with_plugin_upstreams));
        translation.stream_routes();
        translation.model.certificates = certificates::translate(documents, translation.diagnostics);
        self.instances = translation.instances.pause();
        self.upstreams = std::mem::take(&mut translation.upstreams_made);
        let mut model = translation.model;
        model.unmatched = chains.unmatched();
        model.consumers.clone_from(&consumers.consumers);
        model.consumer_tables.clone_from(&consumers.tables);
        model.plugins = used(&self.instances, &model);
        model.plugins.extend(error_log(documents, diagnostics));
        self.consumers = Some(consumers);
        model
    }
}

impl Translated {
    /// Gives its matches their places among those of all routes. A route whose places are the same stays the same.
    fn take_places(&mut self, ordinals: &BTreeMap<Rank, u64>) {
        let Some(route) = &mut self.route else { return };
        let places = || self.ranks.iter().map(|rank| ordinals.get(rank).copied());
        if !places().eq(route.matches.iter().map(|it| it.precedence)) {
            for (route_match, place) in Arc::make_mut(route).matches.iter_mut().zip(places()) {
                route_match.precedence = place;
            }
        }
    }
}

impl Translation<'_> {
    /// One route, taken out of the model again.
    fn alone(&mut self, item: &Item<Box<Route>>, chains: &Chains, is_refused: bool) -> Translated {
        self.route(item, chains);
        let mut route = self.model.routes.pop();
        if let Some(route) = route.as_mut().filter(|_| is_refused) {
            Arc::make_mut(route).refuse_calls();
        }
        Translated {
            route,
            ranks: self.ranks.pop().unwrap_or_default(),
            has_plugin_upstreams: !plugin_upstreams(&Documents::default(), std::iter::once(item)).is_empty(),
        }
    }

    /// Puts the upstreams into the model that its routes use, in the order of the routes.
    fn use_upstreams(&mut self) {
        self.model.upstreams.clear();
        self.model.services.clear();
        let mut used = HashSet::new();
        for route in &self.model.routes {
            let RouteTarget::Service(name) = &route.target else {
                continue;
            };
            if let Some(Some(made)) = self.upstreams_made.get(name)
                && used.insert(name.as_str())
            {
                self.model.upstreams.push(Arc::clone(&made.upstream));
                self.model.services.push(Arc::clone(&made.service));
            }
        }
    }
}

/// The instances that a model uses, in the order of their ids.
fn used(made: &BuiltInstances, model: &Model) -> Vec<weir_model::PluginInstance> {
    fn shared(steps: &[ChainStep]) -> impl Iterator<Item = &str> {
        steps.iter().filter_map(|step| match &step.plugin {
            Some(PluginRef::Shared(id)) => Some(id.as_str()),
            _ => None,
        })
    }
    let mut ids: HashSet<&str> = shared(&model.unmatched).collect();
    ids.extend(model.routes.iter().flat_map(|route| shared(&route.plugins)));
    let tables = model.consumer_tables.iter();
    ids.extend(tables.flat_map(|table| table.instances.values().flatten().map(String::as_str)));
    let mut instances: Vec<_> = made
        .iter()
        .filter(|instance| ids.contains(instance.id.as_str()))
        .cloned()
        .collect();
    instances.sort_by(|one, other| one.id.cmp(&other.id));
    instances
}
