//! Plugin chains: which plugin instances process a call, in which order, and which consumers get other instances.

use crate::{Predicate, is_default};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A plugin with its configuration. Its name is that of Weir's own catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginInstance {
    /// Stable name of this instance. State that outlives a reload (rate limit counters) belongs to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The plugin's name in the catalogue.
    pub name: String,
    /// The plugin's configuration; its schema is the plugin's.
    #[serde(default = "empty_object", skip_serializing_if = "serde_json::Value::is_null")]
    pub config: serde_json::Value,
    /// Runs only for calls for which this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// The response that replaces this plugin's own refusals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_refusal: Option<RefusalOverride>,
    /// The workspace whose consumers it knows. No text form says so: it is for those who share a store.
    #[serde(skip)]
    pub workspace: Option<Arc<str>>,
    /// What its state belongs to, where that is not its id: another instance of the same plugin that says the same goes on
    /// with it. No text form says so.
    #[serde(skip)]
    pub state: Option<String>,
    /// The name, in its dialect, of the plugin that is written and that this one stands for, because it cannot be served. No
    /// text form says so.
    #[serde(skip)]
    pub placeholder_for: Option<String>,
}

fn empty_object() -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::new())
}

/// A fixed body for a plugin's refusals; the status stays the plugin's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusalOverride {
    /// The body: a text as it is, anything else as JSON.
    pub body: serde_json::Value,
    /// `Content-Type` of the body; absent: plain text for a text, else JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// A plugin written in place, or named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PluginRef {
    /// The `id` of an instance in the model's `plugins`.
    Shared(String),
    /// An instance of its own. Models that differ in another part share it.
    Inline(Arc<PluginInstance>),
}

/// One position of a chain.
///
/// For a consumer that one of the `overrides` lists (the first table counts) the instance given there runs; for
/// everybody else `plugin`, or nothing if that is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainStep {
    /// The plugin for callers that no table lists.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginRef>,
    /// Ids of consumer tables, the most specific first.
    #[serde(rename = "overrides", default, skip_serializing_if = "Vec::is_empty")]
    pub consumer_overrides: Vec<String>,
    /// Runs in the response phase only (and not when the request arrives).
    #[serde(default, skip_serializing_if = "is_default")]
    pub response_only: bool,
    /// Place in the order of response work, lowest first; steps with equal numbers keep the list's order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub response_order: i32,
}

impl ChainStep {
    /// A step that runs `instance` for everybody.
    pub fn inline(instance: PluginInstance) -> Self {
        Self {
            plugin: Some(PluginRef::Inline(instance.into())),
            ..Self::default()
        }
    }

    /// A step that runs the shared instance `id` for everybody.
    pub fn shared(id: impl Into<String>) -> Self {
        Self {
            plugin: Some(PluginRef::Shared(id.into())),
            ..Self::default()
        }
    }
}

/// For some consumers, which plugin instance runs at a step that names this table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsumerTable {
    /// The name that chain steps use.
    pub id: String,
    /// Consumer id to the `id` of a shared instance; `null`: nothing runs for that consumer.
    pub instances: std::collections::BTreeMap<String, Option<String>>,
}
