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

/// Consumers of one dialect and workspace by name.
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
        // The id of a consumer in a workspace begins with the workspace's name (`weir_model::Consumer::workspace`). A
        // claim must not lead to another workspace's consumer.
        let is_known = |id: &str| match context.workspace {
            Some(workspace) => id
                .strip_prefix(workspace.as_ref())
                .is_some_and(|rest| rest.starts_with('/')),
            None => true,
        };
        let mut names = Self::default();
        for ((dialect, id), consumer) in context.consumers {
            if *dialect != context.dialect || !is_known(id) {
                continue;
            }
            names.by_id.insert(consumer.id.clone(), Arc::clone(consumer));
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

/// By what a credential is found that counts in one scope only.
pub(crate) fn scoped_key(scope: &str, name: &str) -> Vec<u8> {
    [scope.as_bytes(), b"\0", name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use weir_model::DialectName;

    #[test]
    fn names_lead_to_consumers_of_the_own_workspace_only() {
        let consumer = |index, own: &str| ConsumerIdentity {
            index,
            id: own.into(),
            username: Some("alice".into()),
            custom_id: Some(format!("custom-{index}")),
            ..ConsumerIdentity::default()
        };
        let dialect = DialectName::NATIVE;
        let consumers = HashMap::from([
            ((dialect, "team-a/1".to_owned()), Arc::new(consumer(0, "1"))),
            ((dialect, "team-b/1".to_owned()), Arc::new(consumer(1, "1"))),
            ((dialect, "team-ab/2".to_owned()), Arc::new(consumer(2, "2"))),
        ]);
        let indexes = RefCell::default();
        let all = [ConsumerName::Id, ConsumerName::Username, ConsumerName::CustomId];
        for (workspace, own, of_others) in [
            ("team-a", 0, ["custom-1", "custom-2", "2"]),
            ("team-b", 1, ["custom-0", "custom-2", "2"]),
        ] {
            let workspace: Arc<str> = Arc::from(workspace);
            let names = ConsumerNames::of(&BuildContext {
                instance_id: "instance",
                dialect,
                keys_may_repeat: false,
                consumers_may_be_missing: false,
                workspace: Some(&workspace),
                credentials: &HashMap::new(),
                consumers: &consumers,
                indexes: &indexes,
                destinations: &RefCell::default(),
                credential_diagnostics: &RefCell::default(),
            });
            let custom = format!("custom-{own}");
            for name in ["alice", "1", custom.as_str()] {
                assert_eq!(
                    names.find(name, &all).map(|it| it.index),
                    Some(own),
                    "{workspace}: {name}"
                );
            }
            for name in of_others {
                assert!(names.find(name, &all).is_none(), "{workspace}: {name}");
            }
        }
    }
}
