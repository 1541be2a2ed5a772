//! The plugins that would work on a call, with where each comes from.

use super::Explainer;
use super::verdict::StepVerdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::{ChainStep, DocPath, PluginInstance, PluginRef};
use weir_snapshot::Chain;

/// Consumers of a step that are named at most.
const MAX_CONSUMERS: usize = 10;

/// A position of the chain.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct PluginStep {
    /// The plugin that runs for all consumers but the exceptions; `null`: none.
    pub plugin: Option<Instance>,
    /// Whether it works on the response only.
    pub response_only: bool,
    /// Consumers with other plugins or configurations.
    pub exceptions: Vec<Exception>,
    /// How many more of those there are.
    pub exceptions_not_shown: usize,
    /// Its verdict about this call.
    pub verdict: StepVerdict,
}

/// A plugin with its origin.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Instance {
    /// Its name in the catalogue.
    pub name: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The condition for running it.
    pub when: Option<serde_json::Value>,
    /// Whether several chains share it.
    pub is_shared: bool,
    /// Its location: a file, and a line if that is known.
    pub at: Option<String>,
    /// The name, in its dialect, of the plugin that is written there and is not served: this one refuses calls in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder_for: Option<String>,
}

/// The plugin that runs for one consumer.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Exception {
    /// The consumer's id.
    pub consumer: String,
    /// The plugin that runs for it; `None`: none.
    pub plugin: Option<Instance>,
}

impl Explainer<'_> {
    /// The steps of a chain that do anything, and (from 1) the order in which they work on the response.
    pub(super) fn chain(
        &self,
        steps: &[ChainStep],
        compiled: &Chain,
        place: &DocPath,
    ) -> (Vec<PluginStep>, Vec<usize>) {
        let mut explained = Vec::new();
        let mut compiled_steps = compiled.steps.iter().peekable();
        for (index, step) in steps.iter().enumerate() {
            let place = place.index(index);
            let plugin = step.plugin.as_ref().and_then(|it| self.used(it, &place));
            let name = plugin.as_ref().map(|it| it.name.as_str());
            let is_compiled = |compiled: &&weir_snapshot::Step| {
                compiled.instance(None).map(|instance| instance.plugin) == name
            };
            // The compile leaves out what has no work in any phase.
            if compiled_steps.next_if(is_compiled).is_none() {
                continue;
            }
            let exceptions = self.exceptions(step);
            explained.push(PluginStep {
                plugin,
                response_only: step.response_only,
                exceptions_not_shown: exceptions.len().saturating_sub(MAX_CONSUMERS),
                exceptions: exceptions.into_iter().take(MAX_CONSUMERS).collect(),
                verdict: StepVerdict::default(),
            });
        }
        let response_order = compiled.response_order.iter().map(|step| usize::from(*step) + 1);
        (explained, response_order.collect())
    }

    fn used(&self, plugin: &PluginRef, place: &DocPath) -> Option<Instance> {
        match plugin {
            PluginRef::Inline(instance) => Some(self.instance(instance, false, &place.field("use"))),
            PluginRef::Shared(id) => self.shared(id),
        }
    }

    fn shared(&self, id: &str) -> Option<Instance> {
        let index = self.model.plugins.iter().position(|instance| instance.id == id)?;
        let place = DocPath::root().field("plugins").index(index);
        Some(self.instance(&self.model.plugins[index], true, &place))
    }

    fn instance(&self, instance: &PluginInstance, is_shared: bool, place: &DocPath) -> Instance {
        Instance {
            name: instance.name.clone(),
            id: Some(instance.id.clone()).filter(|id| !id.is_empty()),
            when: instance.when.as_ref().map(weir_model::Predicate::to_value),
            is_shared,
            at: (self.place)(place),
            placeholder_for: instance.placeholder_for.clone(),
        }
    }

    /// For whom another instance runs; the first table that names a consumer counts.
    fn exceptions(&self, step: &ChainStep) -> Vec<Exception> {
        let mut exceptions: Vec<Exception> = Vec::new();
        for id in &step.consumer_overrides {
            let Some(table) = self.model.consumer_tables.iter().find(|table| table.id == *id) else {
                continue;
            };
            for (consumer, instance) in &table.instances {
                if exceptions.iter().all(|known| known.consumer != *consumer) {
                    exceptions.push(Exception {
                        consumer: consumer.clone(),
                        plugin: instance.as_deref().and_then(|id| self.shared(id)),
                    });
                }
            }
        }
        exceptions
    }
}
