//! Consumers by the names that others know them by: for plugins that learn from a token, a directory or a certificate who
//! calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use weir_plugin::{BuildContext, ConsumerIdentity};

/// By what a consumer is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConsumerName {
    /// Its id.
    Id,
    /// Its name.
    Username,
    /// Its name in another system.
    CustomId,
}

/// Consumers of one dialect by name.
#[derive(Default)]
pub(crate) struct ConsumerNames {
    by_id: HashMap<String, Arc<ConsumerIdentity>>,
    by_username: HashMap<String, Arc<ConsumerIdentity>>,
    by_custom_id: HashMap<String, Arc<ConsumerIdentity>>,
}

impl ConsumerNames {
    /// The names of all consumers that an instance may know. Made once for a snapshot.
    pub(crate) fn of(context: &BuildContext<'_>) -> Arc<Self> {
        let slot = (
            "consumer names".to_owned(),
            "",
            context.dialect,
            context.workspace.cloned(),
        );
        if let Some(known) = context.indexes.borrow().get(&slot)
            && let Ok(known) = Arc::clone(known).downcast::<Self>()
        {
            return known;
        }
        let mut names = Self::default();
        for ((dialect, id), consumer) in context.consumers {
            if *dialect != context.dialect {
                continue;
            }
            names.by_id.insert(id.clone(), Arc::clone(consumer));
            if let Some(name) = &consumer.username {
                names.by_username.insert(name.clone(), Arc::clone(consumer));
            }
            if let Some(name) = &consumer.custom_id {
                names.by_custom_id.insert(name.clone(), Arc::clone(consumer));
            }
        }
        let names = Arc::new(names);
        let shared = Arc::clone(&names) as Arc<dyn Any + Send + Sync>;
        context.indexes.borrow_mut().insert(slot, shared);
        names
    }

    /// The consumer of this name; `by` says which names count, in order.
    pub(crate) fn find(&self, name: &str, by: &[ConsumerName]) -> Option<&Arc<ConsumerIdentity>> {
        by.iter().find_map(|kind| match kind {
            ConsumerName::Id => self.by_id.get(name),
            ConsumerName::Username => self.by_username.get(name),
            ConsumerName::CustomId => self.by_custom_id.get(name),
        })
    }
}
