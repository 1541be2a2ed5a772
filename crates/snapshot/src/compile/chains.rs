//! Chains: builds plugin instances, each shared one once for each dialect that uses it, and strings them together.

use super::cache::SharedParts;
use super::url::check_host_header;
use crate::chain::{Chain, ConsumerTable, Instance, RefusalBody, Step};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weir_model::{
    ChainStep, Diagnostic, DialectName, DocPath, Model, PluginInstance, PluginRef, RefusalOverride, Severity,
    UpstreamHost,
};
use weir_plugin::last_use::{CredentialUses, SUBSCRIBER_LABEL};
use weir_plugin::{
    BuildContext, Condition, ConsumerIdentity, CredentialIndexes, CredentialSource, Destinations, Identity,
    Registry,
};

/// Steps of a chain at most.
const MAX_STEPS: usize = 1024;

/// Builds the chains of one model.
pub(super) struct Chains<'m> {
    model: &'m Model,
    registry: &'m Registry,
    consumers: HashMap<(DialectName, String), Arc<ConsumerIdentity>>,
    /// The same, by their numbers.
    identities: Vec<Arc<ConsumerIdentity>>,
    credentials: HashMap<String, Vec<CredentialSource<'m>>>,
    indexes: CredentialIndexes,
    credential_diagnostics: RefCell<Vec<Diagnostic>>,
    destinations: Destinations,
    /// The names of all services, once a filter needs one.
    services: OnceCell<HashSet<&'m str>>,
    shared_by_id: HashMap<&'m str, usize>,
    tables_by_id: HashMap<&'m str, usize>,
    /// Shared instances; `None`: could not be built.
    shared: HashMap<(usize, DialectName), Option<Arc<Instance>>>,
    tables: HashMap<(usize, DialectName), Arc<ConsumerTable>>,
    diagnostics: Vec<Diagnostic>,
}

impl<'m> Chains<'m> {
    /// Reads consumers and checks their credentials. `known` holds for this model.
    pub(super) fn new(
        model: &'m Model,
        registry: &'m Registry,
        known: SharedParts,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let SharedParts {
            instances,
            tables,
            destinations,
        } = known;
        let instances = instances.into_iter();
        let mut chains = Self {
            model,
            registry,
            consumers: HashMap::with_capacity(model.consumers.len()),
            identities: Vec::with_capacity(model.consumers.len()),
            credentials: HashMap::new(),
            indexes: RefCell::default(),
            credential_diagnostics: RefCell::default(),
            destinations: RefCell::new(destinations),
            services: OnceCell::new(),
            shared_by_id: positions(model.plugins.iter().map(|it| it.id.as_str())),
            tables_by_id: positions(model.consumer_tables.iter().map(|it| it.id.as_str())),
            shared: instances.map(|(place, it)| (place, Some(it))).collect(),
            tables,
            diagnostics: Vec::new(),
        };
        let mut checks = HashMap::new();
        for (index, consumer) in model.consumers.iter().enumerate() {
            let labels = consumer.labels.iter();
            let ids = consumer
                .credentials
                .iter()
                .map(|it| it.id.as_deref().map(Arc::from));
            let ids: Vec<Option<Arc<str>>> = ids.collect();
            let is_noted = consumer.labels.contains_key(SUBSCRIBER_LABEL);
            let noted = ids.iter().flatten().filter(|_| is_noted);
            let identity = Arc::new(ConsumerIdentity {
                index: index as u32,
                id: consumer.own_id().to_owned(),
                username: consumer.username.clone(),
                custom_id: consumer.custom_id.clone(),
                group: consumer.group.clone(),
                labels: labels
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
                details: consumer.details.clone(),
                uses: CredentialUses::of(noted.cloned()),
            });
            for (position, credential) in consumer.credentials.iter().enumerate() {
                let place = || {
                    let place = DocPath::root().field("consumers").index(index);
                    place.field("credentials").index(position)
                };
                let check = checks
                    .entry(credential.plugin.as_str())
                    .or_insert_with(|| credential_check(registry, &credential.plugin));
                match check.as_ref().map(|check| check(&credential.config)) {
                    Ok(Ok(())) => {}
                    Ok(Err(found)) => {
                        diagnostics.extend(within(&place().field("config"), Severity::Error, found))
                    }
                    Err(message) => {
                        diagnostics.push(Diagnostic::error(place().field("plugin"), message.clone()));
                    }
                }
                let list = chains.credentials.entry(credential.plugin.clone()).or_default();
                list.push(CredentialSource {
                    config: &credential.config,
                    place: place(),
                    identity: Identity {
                        consumer: Arc::clone(&identity),
                        credential_id: ids[position].clone(),
                    },
                    expires: credential.expires,
                    dialect: consumer.dialect,
                    workspace: consumer.workspace.as_ref(),
                });
            }
            chains.identities.push(Arc::clone(&identity));
            chains
                .consumers
                .insert((consumer.dialect, consumer.id.clone()), identity);
        }
        chains
    }

    /// The consumers, by their numbers.
    pub(super) fn take_identities(&mut self) -> Vec<Arc<ConsumerIdentity>> {
        std::mem::take(&mut self.identities)
    }

    /// Builds a chain. `owner` gives names to its nameless instances, `place` is its place in the document.
    pub(super) fn chain(
        &mut self,
        steps: &'m [ChainStep],
        dialect: DialectName,
        owner: &str,
        place: &dyn Fn() -> DocPath,
    ) -> Chain {
        if steps.is_empty() {
            return Chain::default();
        }
        if steps.len() > MAX_STEPS {
            let message = format!("expected at most {MAX_STEPS} steps, found {}", steps.len());
            self.diagnostics.push(Diagnostic::error(place(), message));
            return Chain::default();
        }
        let mut chain = Chain::default();
        let (mut made, mut response_work, mut log_steps) = (Vec::new(), Vec::new(), Vec::new());
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            let instance = match &step.plugin {
                None => None,
                Some(PluginRef::Shared(id)) => {
                    let shared = self.shared_by_id.get(id.as_str()).copied();
                    shared.and_then(|index| self.shared(index, dialect))
                }
                Some(PluginRef::Inline(instance)) => {
                    let number = uses.entry(&instance.name).or_default();
                    let id = instance_id(instance, dialect, owner, *number);
                    *number += 1;
                    self.build(instance, id, dialect, &|| place().index(index).field("use"))
                }
            };
            let overrides = step.consumer_overrides.iter();
            let tables = overrides.filter_map(|id| {
                let table = *self.tables_by_id.get(id.as_str())?;
                Some(self.table(table, dialect))
            });
            let step_made = Step {
                response_only: step.response_only,
                instance,
                tables: tables.collect(),
            };
            let (mut request, mut response, mut log, mut needs_body) = (false, false, false, false);
            for instance in step_made.instances() {
                needs_body |= instance.needs_body();
                chain.requests_client_certificate |= instance.filter.requests_client_certificate();
                request |= instance.phases.request && !step.response_only;
                response |= instance.phases.response;
                log |= instance.phases.log;
            }
            if !request && !response && !log {
                continue;
            }
            chain.has_request_work |= request || needs_body;
            chain.needs_body |= needs_body;
            if response {
                response_work.push((step.response_order, made.len() as u16));
            }
            if log {
                log_steps.push(made.len() as u16);
            }
            made.push(step_made);
        }
        response_work.sort_by_key(|(order, _)| *order);
        chain.response_order = response_work.into_iter().map(|(_, step)| step).collect();
        chain.log_steps = log_steps.into();
        chain.steps = made.into();
        chain
    }

    /// How much was found to be wrong so far.
    pub(super) fn findings(&self) -> usize {
        self.diagnostics.len() + self.credential_diagnostics.borrow().len()
    }

    /// Checks what no chain uses. Returns all findings, and the parts for the next compile, such as the destinations of
    /// filters.
    pub(super) fn finish(mut self) -> (Vec<Diagnostic>, SharedParts) {
        let used: HashSet<usize> = self.shared.keys().map(|(index, _)| *index).collect();
        for index in (0..self.model.plugins.len()).filter(|index| !used.contains(index)) {
            self.shared(index, self.model.dialect);
        }
        self.check_table_consumers();
        let credential_findings = self.credential_diagnostics.get_mut();
        // The filter that used the credentials first is built again, so that their errors are reported again.
        if !credential_findings.is_empty() {
            self.shared.clear();
            self.tables.clear();
        }
        self.diagnostics.append(credential_findings);
        // What is used in several dialects has been built, and complained of, once for each.
        let mut reported = HashSet::new();
        self.diagnostics
            .retain(|it| reported.insert((it.path.clone(), it.message.clone())));
        let instances = self.shared.into_iter();
        let known = SharedParts {
            instances: instances.filter_map(|(place, it)| Some((place, it?))).collect(),
            tables: self.tables,
            destinations: self.destinations.into_inner(),
        };
        (self.diagnostics, known)
    }

    fn check_table_consumers(&mut self) {
        let known: HashSet<&str> = self.model.consumers.iter().map(|it| it.id.as_str()).collect();
        for (index, table) in self.model.consumer_tables.iter().enumerate() {
            for consumer in table.instances.keys().filter(|id| !known.contains(id.as_str())) {
                let place = DocPath::root().field("consumer_tables").index(index);
                let place = place.field("instances").field(consumer);
                let message = format!("no consumer has the id '{consumer}'");
                self.diagnostics.push(Diagnostic::warning(place, message));
            }
        }
    }

    /// The shared instance at `index` of the model, for this dialect.
    fn shared(&mut self, index: usize, dialect: DialectName) -> Option<Arc<Instance>> {
        if let Some(known) = self.shared.get(&(index, dialect)) {
            return known.clone();
        }
        let instance = &self.model.plugins[index];
        let place = || DocPath::root().field("plugins").index(index);
        let built = self.build(instance, instance.id.clone(), dialect, &place);
        self.shared.insert((index, dialect), built.clone());
        built
    }

    /// The consumer table at `index` of the model, for this dialect.
    fn table(&mut self, index: usize, dialect: DialectName) -> Arc<ConsumerTable> {
        if let Some(known) = self.tables.get(&(index, dialect)) {
            return Arc::clone(known);
        }
        let mut table = ConsumerTable::default();
        for (consumer, id) in &self.model.consumer_tables[index].instances {
            let Some(consumer) = self.consumers.get(&(dialect, consumer.clone())) else {
                continue;
            };
            let consumer = consumer.index;
            let shared = id.as_ref().and_then(|id| self.shared_by_id.get(id.as_str()));
            let instance = shared.copied().and_then(|shared| self.shared(shared, dialect));
            table.insert(consumer, instance);
        }
        let table = Arc::new(table);
        self.tables.insert((index, dialect), Arc::clone(&table));
        table
    }

    fn build(
        &mut self,
        instance: &PluginInstance,
        id: String,
        dialect: DialectName,
        place: &dyn Fn() -> DocPath,
    ) -> Option<Arc<Instance>> {
        let Some(plugin) = self.registry.get(&instance.name) else {
            let message = format!("no plugin is named '{}'", instance.name);
            self.diagnostics
                .push(Diagnostic::error(place().field("name"), message));
            return None;
        };
        let when = instance.when.as_ref().map(Condition::compile).transpose();
        let when = when.unwrap_or_else(|message| {
            self.diagnostics
                .push(Diagnostic::error(place().field("when"), message));
            None
        });
        let settings = self.model.settings_of(dialect);
        let context = BuildContext {
            instance_id: instance.state.as_deref().unwrap_or(&id),
            dialect,
            keys_may_repeat: settings.is_some_and(|it| it.keys_may_repeat),
            consumers_may_be_missing: settings.is_some_and(|it| it.consumers_may_be_missing),
            workspace: instance.workspace.as_ref(),
            credentials: &self.credentials,
            consumers: &self.consumers,
            indexes: &self.indexes,
            destinations: &self.destinations,
            credential_diagnostics: &self.credential_diagnostics,
        };
        let empty = serde_json::Value::Object(serde_json::Map::new());
        let config = if instance.config.is_null() {
            &empty
        } else {
            &instance.config
        };
        let known = self.destinations.borrow().len();
        let built = plugin.build(config, &context);
        match built.and_then(|filter| self.check_destinations(known).map(|()| filter)) {
            Ok(filter) => {
                let found = plugin.warnings(config, &context);
                self.diagnostics
                    .extend(within(&place().field("config"), Severity::Warning, found));
                Some(Arc::new(Instance {
                    plugin: plugin.name(),
                    phases: filter.phases(),
                    filter,
                    when,
                    refusal_body: instance.on_refusal.as_ref().map(refusal_body),
                    id,
                }))
            }
            Err(found) => {
                // No other filter uses them.
                self.destinations.borrow_mut().truncate(known);
                self.diagnostics
                    .extend(within(&place().field("config"), Severity::Error, found));
                None
            }
        }
    }

    /// Checks the destinations after the first `known` ones, which a filter has added. A fault is a fault of the
    /// filter: without it, no filter uses them.
    fn check_destinations(&self, known: usize) -> Result<(), Vec<Diagnostic>> {
        let asked = self.destinations.borrow();
        let mut found = Vec::new();
        for (name, host) in asked.iter().skip(known) {
            let services = self
                .services
                .get_or_init(|| self.model.services.iter().map(|it| it.name.as_str()).collect());
            if !services.contains(name.as_str()) {
                let message = format!("no service is named '{name}', to which a plugin sends calls");
                found.push(Diagnostic::error(DocPath::root(), message));
            }
            if let UpstreamHost::Fixed(host) | UpstreamHost::WithTargetPort(host) = host
                && let Err(message) = check_host_header(host)
            {
                found.push(Diagnostic::error(DocPath::root(), message));
            }
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

fn positions<'m>(ids: impl Iterator<Item = &'m str>) -> HashMap<&'m str, usize> {
    ids.enumerate().map(|(index, id)| (id, index)).collect()
}

/// Whether the configuration of a credential is good.
type CredentialCheck = fn(&serde_json::Value) -> Result<(), Vec<Diagnostic>>;

/// The check of a plugin's credentials, or why it has none.
fn credential_check(registry: &Registry, plugin: &str) -> Result<CredentialCheck, String> {
    let found = registry
        .get(plugin)
        .ok_or_else(|| format!("no plugin is named '{plugin}'"))?;
    let kind = found.credentials();
    kind.map(|kind| kind.check)
        .ok_or_else(|| format!("the plugin '{plugin}' has no credentials"))
}

/// Diagnostics about a part of the model, with the part's place before theirs. Whatever a plugin complains of when it
/// cannot be built refuses the model.
fn within(place: &DocPath, severity: Severity, found: Vec<Diagnostic>) -> impl Iterator<Item = Diagnostic> {
    found.into_iter().map(move |mut diagnostic| {
        let mut path = place.clone();
        path.0.append(&mut diagnostic.path.0);
        Diagnostic {
            path,
            severity,
            ..diagnostic
        }
    })
}

/// The id of an instance that stands in a chain: its own, or one that stays the same as long as the chain's
/// owner keeps its name and the plugins of this name in the chain their order.
fn instance_id(instance: &PluginInstance, dialect: DialectName, owner: &str, number: usize) -> String {
    if instance.id.is_empty() {
        format!("{}/{owner}/{}/{number}", dialect.as_str(), instance.name)
    } else {
        instance.id.clone()
    }
}

fn refusal_body(refusal: &RefusalOverride) -> RefusalBody {
    let (default_type, body) = match &refusal.body {
        serde_json::Value::String(text) => ("text/plain; charset=utf-8", text.clone()),
        other => ("application/json", other.to_string()),
    };
    RefusalBody {
        content_type: refusal.content_type.as_deref().unwrap_or(default_type).to_owned(),
        body: body.into_bytes(),
    }
}
