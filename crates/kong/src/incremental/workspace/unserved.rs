//! Plugins of a workspace that are kept, but not served.

use super::{Workspace, key_of};
use crate::document::Entity;
use crate::plugins::{all, unserved};
use crate::translate::chain::is_served;
use serde_json::Value;
use std::collections::HashSet;
use weir_dialect::SkippedDocument;

impl Workspace {
    /// Enabled instances of plugins that are described, but not served.
    pub fn unserved(&self) -> impl Iterator<Item = SkippedDocument> {
        let unserved = all().filter(|definition| !is_served(definition));
        let unserved: HashSet<&str> = unserved.map(|definition| definition.name).collect();
        let enabled = self.store.document.plugins.iter().filter(|it| it.value.enabled);
        enabled.filter_map(move |Entity { place, value: plugin }| {
            let name = unserved.get(plugin.name.as_str())?;
            let passes = self
                .configs
                .get(&plugin.id)?
                .made
                .as_ref()
                .is_ok_and(Value::is_null);
            Some(SkippedDocument {
                document: key_of(&place.list)?,
                reason: unserved::warning(name, passes),
            })
        })
    }
}
