//! Chains: the filters that work on a call, in order, with those that replace them for some consumers.

use std::collections::HashMap;
use std::sync::Arc;
use weir_plugin::{Condition, Filter, Identity, Phases};

/// The plugin steps of a route. That of a route without plugins holds no memory.
#[derive(Default)]
pub struct Chain {
    /// The steps, in the order of request work.
    pub steps: Box<[Step]>,
    /// Indexes of the steps that may have response work, in the order of that work.
    pub response_order: Box<[u16]>,
    /// Indexes of the steps that may log finished calls.
    pub log_steps: Box<[u16]>,
    /// Whether any step may have request work, or needs the body.
    pub has_request_work: bool,
    /// Whether a step reads variables that are in the request's body.
    pub needs_body: bool,
    /// Whether clients are asked for a certificate in the TLS handshake.
    pub requests_client_certificate: bool,
}

/// One position of a chain.
pub struct Step {
    /// No request work is done here, whatever the filter could do.
    pub response_only: bool,
    /// The plugin for callers that no table lists.
    pub(crate) instance: Option<Arc<Instance>>,
    /// Replacements by consumer, the first that lists the consumer counts.
    pub(crate) tables: Box<[Arc<ConsumerTable>]>,
}

/// By a consumer's position in the snapshot: what runs for it, `None` for nothing.
pub(crate) type ConsumerTable = HashMap<u32, Option<Arc<Instance>>, foldhash::fast::RandomState>;

impl Step {
    /// What runs for this caller; `None`: nothing.
    #[inline]
    pub fn instance(&self, identity: Option<&Identity>) -> Option<&Arc<Instance>> {
        if let Some(identity) = identity {
            let consumer = identity.consumer.index;
            for table in &self.tables {
                if let Some(instance) = table.get(&consumer) {
                    return instance.as_ref();
                }
            }
        }
        self.instance.as_ref()
    }

    /// Every instance that may run here.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &Arc<Instance>> {
        let replacements = self.tables.iter().flat_map(|table| table.values().flatten());
        self.instance.iter().chain(replacements)
    }
}

/// A plugin with its configuration, built.
pub struct Instance {
    /// Stable id; what the instance keeps over reloads belongs to it.
    pub id: String,
    /// The plugin's name in the catalogue.
    pub plugin: &'static str,
    /// What works on calls.
    pub filter: Arc<dyn Filter>,
    /// The filter's phases.
    pub phases: Phases,
    /// The instance works only on calls for which this holds.
    pub when: Option<Condition>,
    /// The body that replaces the one of this instance's refusals.
    pub refusal_body: Option<RefusalBody>,
}

impl Instance {
    /// Whether it, or its condition, reads variables that are in the request's body.
    pub(crate) fn needs_body(&self) -> bool {
        self.filter.needs_body() || self.when.as_ref().is_some_and(Condition::needs_body)
    }
}

/// A fixed body for refusals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalBody {
    /// Its `Content-Type`.
    pub content_type: String,
    /// The bytes.
    pub body: Vec<u8>,
}
