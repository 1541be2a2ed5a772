//! Consumers: credentials, and the plugins that replace those of routes for a consumer or a consumer group.

use super::instances::{ConfiguredPlugin, Instances, PluginOwner, table_id};
use super::labels;
use crate::document::{self, Documents, Item, Plugins};
use crate::errors;
use crate::incremental::missing_plugins::MissingPlugins;
use crate::plugins::{self, PluginAdapter, is_skippable};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use weir_model::{Consumer, ConsumerTable, Credential, Diagnostic, DocPath, PluginInstance};

/// The table of consumers whose group does not exist, or a plugin of whom cannot be served: they are answered with 503
/// once they are recognised.
pub const REFUSED: &str = "consumers/refused";

/// The consumers, and for each plugin that one of them has, the table of instances.
#[derive(Default)]
pub struct Consumers {
    pub consumers: Vec<Consumer>,
    pub tables: Vec<ConsumerTable>,
    /// The plugins for which there is a table.
    pub plugins: Vec<&'static dyn PluginAdapter>,
    /// Whether a variable of their plugins may read labels of routes.
    pub read_labels: bool,
}

impl Consumers {
    /// Translates all consumers. Of a plugin that a consumer and its group both have, the consumer's counts.
    pub fn translate(
        documents: &Documents,
        instances: &mut Instances<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let groups: HashMap<&str, &Item<document::PluginSet>> = documents
            .consumer_groups
            .iter()
            .map(|group| (group.id.as_str(), group))
            .collect();
        let mut credentials: HashMap<&str, Vec<&Item<document::Credential>>> = HashMap::new();
        for (consumer, item) in &documents.credentials {
            credentials.entry(consumer).or_default().push(item);
        }
        let mut found = Self::default();
        let mut tables: BTreeMap<String, BTreeMap<String, Option<String>>> = BTreeMap::new();
        for item in &documents.consumers {
            let own = credentials.get(item.id.as_str()).map_or(&[][..], Vec::as_slice);
            found.consumers.push(consumer(item, own, diagnostics));
            let group_id = item.value.group_id.as_ref();
            let group = group_id.and_then(|id| groups.get(id.0.as_str()).copied());
            if group_id.is_some() && group.is_none() {
                let message = "no consumer group has this id: calls of this consumer are answered with 503";
                diagnostics.push(Diagnostic::warning(item.path.field("group_id"), message));
                refuse(item, &mut tables, instances);
            }
            let group_plugins = group.map(|group| &group.value.plugins);
            if lacks_some(&item.value.plugins) || group_plugins.is_some_and(lacks_some) {
                refuse(item, &mut tables, instances);
            }
            for (mapping, written) in effective(item, group) {
                found.read_labels |= labels::reads_labels(&written);
                let instance = match written.meta() {
                    meta if meta.disable => None,
                    meta => {
                        if meta.priority.is_some() {
                            let place = written.owner.path.field("plugins").field(mapping.name());
                            let message =
                                "a consumer's plugin works in the place of the plugin's own priority";
                            diagnostics.push(Diagnostic::warning(
                                place.field("_meta").field("priority"),
                                message,
                            ));
                        }
                        let made = instances.shared(written, diagnostics);
                        if made.is_none() && !is_skippable(mapping.name()) {
                            refuse(item, &mut tables, instances);
                        }
                        made
                    }
                };
                let table = tables.entry(table_id(mapping.name())).or_default();
                table.insert(item.id.clone(), instance);
                if !found.plugins.iter().any(|known| known.name() == mapping.name()) {
                    found.plugins.push(mapping);
                }
            }
        }
        let tables = tables.into_iter();
        found.tables = tables
            .map(|(id, instances)| ConsumerTable { id, instances })
            .collect();
        found
    }

    /// Whether there are consumers whose calls are refused.
    pub fn has_some_refused(&self) -> bool {
        self.tables.iter().any(|table| table.id == REFUSED)
    }
}

/// Whether Weir lacks a plugin without which no call of the consumer must be served.
fn lacks_some(plugins: &Plugins) -> bool {
    MissingPlugins::of_plugins(plugins.iter()).is_some_and(|lack| lack.refuses)
}

/// The plugins that count for a consumer, without those that authenticate.
fn effective<'d>(
    item: &'d Item<document::Consumer>,
    group: Option<&'d Item<document::PluginSet>>,
) -> Vec<(&'static dyn PluginAdapter, ConfiguredPlugin<'d>)> {
    let own = PluginOwner {
        section: "consumers",
        id: &item.id,
        path: &item.path,
    };
    let mut found = others(&item.value.plugins, own);
    if let Some(group) = group {
        let owner = PluginOwner {
            section: "consumer_groups",
            id: &group.id,
            path: &group.path,
        };
        let common = others(&group.value.plugins, owner)
            .into_iter()
            .filter(|(mapping, _)| !item.value.plugins.contains_key(mapping.name()));
        found.extend(common);
    }
    found
}

fn others<'d>(
    plugins: &'d Plugins,
    owner: PluginOwner<'d>,
) -> Vec<(&'static dyn PluginAdapter, ConfiguredPlugin<'d>)> {
    plugins
        .iter()
        .filter_map(|(name, config)| {
            let mapping = plugins::mapping(name).filter(|mapping| mapping.credentials().is_none())?;
            Some((
                mapping,
                ConfiguredPlugin {
                    mapping,
                    config,
                    owner,
                },
            ))
        })
        .collect()
}

fn consumer(
    item: &Item<document::Consumer>,
    credentials: &[&Item<document::Credential>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Consumer {
    let mut found = credentials_of(&item.value.plugins, None, &item.path, diagnostics);
    for credential in credentials {
        found.extend(credentials_of(
            &credential.value.plugins,
            Some(&credential.id),
            &credential.path,
            diagnostics,
        ));
    }
    Consumer {
        id: item.id.clone(),
        username: Some(item.value.username.clone()),
        custom_id: item.value.labels.get("custom_id").cloned(),
        group: item.value.group_id.as_ref().map(|id| id.0.clone()),
        labels: item.value.labels.clone(),
        details: details(&item.value),
        credentials: found,
        dialect: crate::NAME,
        workspace: None,
    }
}

/// What policy agents are told about a consumer besides its names, group and labels. Most have nothing of it, and take no room
/// for it.
fn details(consumer: &document::Consumer) -> BTreeMap<String, Value> {
    let desc = consumer.desc.clone().map(Value::from);
    desc.map(|desc| ("desc".to_owned(), desc)).into_iter().collect()
}

fn credentials_of(
    plugins: &Plugins,
    id: Option<&str>,
    place: &DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Credential> {
    let mut found = Vec::new();
    for (name, config) in plugins {
        let Some((mapping, credentials)) =
            plugins::mapping(name).and_then(|mapping| Some((mapping, mapping.credentials()?)))
        else {
            continue;
        };
        let place = place.field("plugins").field(name.as_str());
        if config.get("key") == Some(&Value::from("")) {
            let message = "an empty key identifies no consumer; it is skipped";
            diagnostics.push(Diagnostic::warning(place.field("key"), message));
            continue;
        }
        if let Some((field, message)) = credentials.warning(config) {
            diagnostics.push(Diagnostic::warning(place.field(field), message));
        }
        match credentials.translate(config) {
            Ok(config) => found.push(Credential {
                id: id.map(str::to_owned),
                plugin: mapping.plugin().to_owned(),
                config,
                expires: None,
            }),
            // What the error says could hold a part of a secret.
            Err(_) => diagnostics.push(Diagnostic::error(place, "not a credential of this plugin")),
        }
    }
    found
}

/// Makes the gateway answer the calls of a consumer with 503.
fn refuse(
    item: &Item<document::Consumer>,
    tables: &mut BTreeMap<String, BTreeMap<String, Option<String>>>,
    instances: &mut Instances<'_>,
) {
    let answer = weir_plugins::request_termination::Config {
        status: 503,
        body: Some(errors::page(503)),
        content_type: Some(errors::HTML.to_owned()),
        ..weir_plugins::request_termination::Config::default()
    };
    // A struct of texts and numbers has a JSON form.
    let config = serde_json::to_value(answer).unwrap_or_default();
    instances.add(PluginInstance {
        id: REFUSED.to_owned(),
        name: "request-termination".to_owned(),
        config,
        when: None,
        on_refusal: None,
        workspace: None,
        state: None,
        placeholder_for: None,
    });
    let table = tables.entry(REFUSED.to_owned()).or_default();
    table.insert(item.id.clone(), Some(REFUSED.to_owned()));
}
