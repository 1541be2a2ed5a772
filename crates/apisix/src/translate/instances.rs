//! Plugin instances: each plugin of a resource is translated once, however many routes use it.

use crate::document::{CostDecoration, Documents, Item, Service, Upstream};
use crate::plugins::{FieldRemark, Meta, PluginAdapter, PluginContext, Warnings, is_skippable};
use crate::translate::{Options, unknown_variables, vars};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use weir_model::{ChainStep, Diagnostic, DocPath, PluginInstance, PluginRef, RefusalOverride, Severity};

/// A plugin's configuration, and its place.
#[derive(Clone, Copy)]
pub struct ConfiguredPlugin<'d> {
    /// The plugin.
    pub mapping: &'static dyn PluginAdapter,
    /// Its configuration.
    pub config: &'d Value,
    /// The resource it stands in.
    pub owner: PluginOwner<'d>,
}

/// The resource in which a plugin stands.
#[derive(Debug, Clone, Copy)]
pub struct PluginOwner<'d> {
    /// Its list.
    pub section: &'static str,
    /// Its id.
    pub id: &'d str,
    /// Its place in the document.
    pub path: &'d DocPath,
}

impl ConfiguredPlugin<'_> {
    /// The fields of `_meta`.
    pub fn meta(&self) -> Meta {
        Meta::of(self.config)
    }

    fn place(&self) -> DocPath {
        self.owner.path.field("plugins").field(self.mapping.name())
    }

    fn id(&self) -> String {
        format!("{}/{}/{}", self.owner.section, self.owner.id, self.mapping.name())
    }
}

/// All instances that several chains use, by id.
pub struct Instances<'d> {
    metadata: &'d Map<String, Value>,
    upstreams: &'d [Item<Upstream>],
    services: &'d [Item<Service>],
    graphql_costs: &'d BTreeMap<String, BTreeMap<String, CostDecoration>>,
    protos: &'d BTreeMap<String, String>,
    options: &'d Options,
    made: BuiltInstances,
}

/// Instances that have been made, and ids for which none could be.
#[derive(Debug, Default)]
pub struct BuiltInstances {
    shared: Vec<PluginInstance>,
    by_id: HashMap<String, bool>,
}

impl BuiltInstances {
    /// Forgets the instances of a resource, or of all of a list: those whose ids begin so.
    pub fn forget(&mut self, prefix: &str) {
        self.shared.retain(|instance| !instance.id.starts_with(prefix));
        self.by_id.retain(|id, _| !id.starts_with(prefix));
    }

    /// The instances, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = &PluginInstance> {
        self.shared.iter()
    }
}

impl<'d> Instances<'d> {
    /// None yet, for these documents.
    pub fn new(documents: &'d Documents, options: &'d Options) -> Self {
        Self {
            metadata: &documents.metadata,
            upstreams: &documents.upstreams,
            services: &documents.services,
            graphql_costs: &documents.graphql_costs,
            protos: &documents.protos,
            options,
            made: BuiltInstances::default(),
        }
    }

    /// Continues with the instances that were built before.
    pub fn resume(&mut self, made: BuiltInstances) {
        self.made = made;
    }

    /// Returns all that were made, to be resumed with.
    pub fn pause(&mut self) -> BuiltInstances {
        std::mem::take(&mut self.made)
    }

    /// The id of the shared instance for what is written; made when it is first asked for. `None` if it cannot
    /// be made, which has been reported.
    pub fn shared(
        &mut self,
        written: ConfiguredPlugin<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<String> {
        let id = written.id();
        if let Some(made) = self.made.by_id.get(&id) {
            return made.then_some(id);
        }
        let instance = self.instance(written, written.config, id.clone(), diagnostics);
        self.made.by_id.insert(id.clone(), instance.is_some());
        self.made.shared.push(instance?);
        Some(id)
    }

    /// Adds an instance that no resource has written.
    pub fn add(&mut self, instance: PluginInstance) {
        if self.made.by_id.insert(instance.id.clone(), true).is_none() {
            self.made.shared.push(instance);
        }
    }

    /// A step that runs what is written. A route's own plugins stand in its chain, all others are shared. `config`
    /// is what is written, perhaps with the route's names filled in, which makes it the route's own too.
    pub fn step(
        &mut self,
        written: ConfiguredPlugin<'_>,
        config: Option<Value>,
        route: PluginOwner<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<PluginRef> {
        if config.is_none() && written.owner.section != route.section {
            return self.shared(written, diagnostics).map(PluginRef::Shared);
        }
        let id = format!("{}/{}/{}", route.section, route.id, written.mapping.name());
        let config = config.as_ref().unwrap_or(written.config);
        let instance = self.instance(written, config, id, diagnostics)?;
        Some(PluginRef::Inline(instance.into()))
    }

    fn instance(
        &self,
        written: ConfiguredPlugin<'_>,
        config: &Value,
        id: String,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<PluginInstance> {
        let place = || written.place();
        let mut notes = Warnings::default();
        let context = PluginContext {
            instance: &id,
            metadata: self.metadata,
            upstreams: self.upstreams,
            services: self.services,
            graphql_costs: self.graphql_costs,
            protos: self.protos,
            settings: self.options.settings,
        };
        let count_before = diagnostics.len();
        let translated = written.mapping.translate(config, &context, &mut notes);
        report(notes, &place, diagnostics);
        let config = match translated {
            // Some do nothing to calls.
            Ok(Value::Null) => return None,
            Ok(config) => config,
            Err(error) => {
                diagnostics.push(Diagnostic::error(place(), error.to_string()));
                return None;
            }
        };
        let meta = written.meta();
        let place = || place().field("_meta");
        if meta.pre_function.is_some() {
            let message = "\"pre_function\" (a function in Lua) is not available in this version of Weir";
            diagnostics.push(Diagnostic::error(place().field("pre_function"), message));
        }
        let when = match meta.filter.as_deref().map(vars::compile) {
            None => None,
            Some(Ok(condition)) => condition,
            Some(Err(fault)) => {
                diagnostics.push(Diagnostic::error(place().field("filter"), fault.to_string()));
                return None;
            }
        };
        if let Some(when) = &when {
            unknown_variables::warn_of_condition(when, &place().field("filter"), diagnostics);
        }
        unknown_variables::warn_of_plugin(
            written.mapping.name(),
            written.config,
            &written.place(),
            diagnostics,
        );
        // A plugin that would do less than it is configured to do is no replacement.
        let is_faulty = diagnostics[count_before..]
            .iter()
            .any(|it| it.severity == Severity::Error);
        if is_faulty && !is_skippable(written.mapping.name()) {
            return None;
        }
        Some(PluginInstance {
            id,
            name: written.mapping.plugin().to_owned(),
            config,
            when,
            on_refusal: meta.error_response.map(|body| RefusalOverride {
                // A map is written with a newline behind it, a text as it is.
                body: match body {
                    Value::Object(map) => Value::String(format!("{}\n", Value::Object(map))),
                    body => body,
                },
                content_type: Some(crate::errors::TEXT.to_owned()),
            }),
            workspace: None,
            state: None,
            placeholder_for: None,
        })
    }

    /// All shared instances.
    pub fn finish(self) -> Vec<PluginInstance> {
        self.made.shared
    }
}

fn report(notes: Warnings, place: &dyn Fn() -> DocPath, diagnostics: &mut Vec<Diagnostic>) {
    for FieldRemark {
        severity,
        field,
        message,
    } in notes.0
    {
        diagnostics.push(Diagnostic {
            severity,
            ..Diagnostic::error(place().field(field), message)
        });
    }
}

/// The id of the table of a plugin's instances by consumer.
pub fn table_id(plugin: &str) -> String {
    format!("consumers/{plugin}")
}

/// A step for a plugin in one place of a chain.
pub fn chain_step(plugin: Option<PluginRef>, overrides: Vec<String>) -> ChainStep {
    ChainStep {
        plugin,
        consumer_overrides: overrides,
        ..ChainStep::default()
    }
}
