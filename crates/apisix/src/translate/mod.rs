//! From APISIX's resources to the model.
//!
//! Values that APISIX works out for each call from several resources are worked out here once: the hosts and upstream
//! of a route and its service, the plugins of a route, its plugin config, its service, the global rules and the
//! consumers, and their order.

mod agent_documents;
mod blocked_items;
mod certificates;
mod chain;
mod checks;
mod consumers;
pub mod incremental;
mod instances;
mod labels;
mod matching;
mod names;
mod patterns;
mod plugin_upstreams;
mod route;
mod stream;
mod stream_plugins;
mod unknown_variables;
mod upstream;
pub mod vars;

pub use upstream::upstream_host;

use crate::document::{self, Documents, Item};
use crate::plugins::error_log_logger;
pub use crate::settings::Router;
use crate::settings::Settings;
use blocked_items::BlockedItems;
use chain::{Chains, Sources};
use consumers::Consumers;
use instances::Instances;
use matching::{Conditions, Rank};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weir_model::{
    DefaultCharset, Diagnostic, DialectSettings, DocPath, Model, PluginInstance, RealIp, Severity,
};
use weir_plugin::MAX_VARIABLE_BODY;

/// The inputs that do not stand in `apisix.yaml`.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// `apisix.router.http`.
    pub router: Router,
    /// `apisix.delete_uri_tail_slash`: a `/` at the end of a path does not count.
    pub delete_uri_tail_slash: bool,
    /// APISIX's `config.yaml`, whose say about the two above does not count here.
    pub settings: &'static Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            router: Router::default(),
            delete_uri_tail_slash: false,
            settings: Settings::stock(),
        }
    }
}

/// Translates a parsed document.
///
/// Resources that are wrong are left out, with a diagnostic of severity [`Severity::Dropped`]. So is what Weir lacks (a
/// plugin, a function in Lua): calls for which it matters are refused, as they are if the resource is in a store.
///
/// # Errors
/// The document is no map of resources.
pub fn translate(document: &Value, options: &Options) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    if !(document.is_object() || document.is_null()) {
        return Err(vec![Diagnostic::error(
            DocPath::root(),
            "expected a map of resources",
        )]);
    }
    let mut documents = document::read(document, options.settings, &mut diagnostics);
    let lacking = BlockedItems::find(&mut documents, &mut diagnostics);
    let routes = std::mem::take(&mut documents.routes);
    let model = Translation::new(&documents, options, &mut diagnostics).run(routes, &lacking);
    // Its calls are refused; those of the other routes need not be.
    for found in diagnostics.iter_mut().filter(|it| it.severity == Severity::Error) {
        found.severity = Severity::Dropped;
    }
    Ok((model, diagnostics))
}

/// Resources by id.
type ById<'d, T> = HashMap<&'d str, &'d Item<T>>;

fn by_id<T>(items: &[Item<T>]) -> ById<'_, T> {
    items.iter().map(|item| (item.id.as_str(), item)).collect()
}

/// Upstreams that were translated.
type TranslatedUpstreams = HashMap<String, Option<upstream::Translated>>;

struct Translation<'d> {
    documents: &'d Documents,
    options: &'d Options,
    diagnostics: &'d mut Vec<Diagnostic>,
    services: ById<'d, document::Service>,
    upstreams: ById<'d, document::Upstream>,
    plugin_configs: ById<'d, document::PluginSet>,
    instances: Instances<'d>,
    /// Upstreams by name in the model; `None`: calls cannot go there.
    upstreams_made: TranslatedUpstreams,
    /// The names of those that routes use.
    upstreams_used: HashSet<String>,
    model: Model,
    ranks: Vec<Vec<Rank>>,
}

impl<'d> Translation<'d> {
    fn new(documents: &'d Documents, options: &'d Options, diagnostics: &'d mut Vec<Diagnostic>) -> Self {
        Self {
            documents,
            options,
            diagnostics,
            services: by_id(&documents.services),
            upstreams: by_id(&documents.upstreams),
            plugin_configs: by_id(&documents.plugin_configs),
            instances: Instances::new(documents, options),
            upstreams_made: HashMap::new(),
            upstreams_used: HashSet::new(),
            model: Model {
                weir: 1,
                dialect: crate::NAME,
                dialect_settings: vec![dialect_settings(options)],
                ..Model::default()
            },
            ranks: Vec::new(),
        }
    }

    fn run(mut self, routes: Vec<Item<Box<document::Route>>>, lacking: &BlockedItems) -> Model {
        let consumers = Consumers::translate(self.documents, &mut self.instances, self.diagnostics);
        let chains = Chains::new(
            &self.documents.global_rules,
            &consumers,
            &mut self.instances,
            self.diagnostics,
        );
        let upstreams = plugin_upstreams::plugin_upstreams(self.documents, routes.iter());
        self.model.routes.reserve(routes.len());
        self.ranks.reserve(routes.len());
        for item in routes.into_iter().filter(|item| item.value.status == 1) {
            let before = self.model.routes.len();
            self.route(&item, &chains);
            if lacking.refuses(&item) {
                for route in &mut self.model.routes[before..] {
                    Arc::make_mut(route).refuse_calls();
                }
            }
        }
        self.add_plugin_upstreams(upstreams);
        self.stream_routes();
        self.assign_precedence();
        self.model.certificates = certificates::translate(self.documents, self.diagnostics);
        self.model.unmatched = chains.unmatched();
        self.model.consumers = consumers.consumers;
        self.model.consumer_tables = consumers.tables;
        self.model.plugins = self.instances.finish();
        self.model
            .plugins
            .extend(error_log(self.documents, self.diagnostics));
        self.model
    }

    fn assign_precedence(&mut self) {
        let routes = self.model.routes.iter_mut();
        let matches = routes.flat_map(|route| &mut Arc::make_mut(route).matches);
        let ranks = std::mem::take(&mut self.ranks).into_iter().flatten();
        let mut ranked: Vec<_> = ranks.zip(matches).collect();
        matching::assign_precedence(&mut ranked);
    }

    /// The plugins of a route by their sources, the strongest first.
    fn sources<'r>(&self, route: &'r Item<Box<document::Route>>) -> Sources<'r>
    where
        'd: 'r,
    {
        let plugin_config = route
            .value
            .plugin_config_id
            .as_ref()
            .and_then(|id| self.plugin_configs.get(id.0.as_str()));
        let service = self.service_of(route);
        Sources {
            route,
            plugin_config: plugin_config.copied(),
            service,
        }
    }

    fn service_of(&self, route: &Item<Box<document::Route>>) -> Option<&'d Item<document::Service>> {
        let id = route.value.service_id.as_ref()?;
        self.services.get(id.0.as_str()).copied()
    }
}

/// The instance that sends the gateway's own log, if metadata say so.
fn error_log(documents: &Documents, diagnostics: &mut Vec<Diagnostic>) -> Option<PluginInstance> {
    error_log_logger::instance(&documents.metadata).unwrap_or_else(|error| {
        let place = DocPath::root()
            .field("plugin_metadata")
            .field(error_log_logger::NAME);
        diagnostics.push(Diagnostic {
            severity: Severity::Dropped,
            ..Diagnostic::error(place, error.to_string())
        });
        None
    })
}

/// The settings for all calls in APISIX's configuration of its server.
fn dialect_settings(options: &Options) -> DialectSettings {
    let settings = options.settings;
    DialectSettings {
        answer_expect: true,
        trusts_real_ip_peers: false,
        forwarded_from: Some(settings.trusted_addresses.clone()),
        plain_header_names: true,
        dialect: crate::NAME,
        real_ip: Some(RealIp {
            header: settings.real_ip.header.clone(),
            trusted: settings.real_ip.from.clone(),
        }),
        strips_path_parameters: settings.strips_path_parameters,
        drops_tail_slash: options.delete_uri_tail_slash,
        keeps_escaped_slashes: settings.keeps_escaped_slashes,
        graphql_max_bytes: (settings.graphql_max_bytes != MAX_VARIABLE_BODY)
            .then_some(settings.graphql_max_bytes),
        charset: Some(DefaultCharset::of_texts("utf-8")),
        keys_may_repeat: true,
        consumers_may_be_missing: true,
    }
}
