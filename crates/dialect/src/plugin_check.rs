//! What the catalogue says of a plugin's configuration by itself: for the answers to writes, before any call comes to it.

use crate::DialectName;
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, EmptyContext, Registry};
use weir_plugins::logger::LogFolder;

/// Looks at configurations. No call ever comes to its plugins.
#[derive(Clone)]
pub struct PluginCheck(Arc<Registry>);

impl PluginCheck {
    /// For gateways that write log files in this folder.
    pub fn new(files: LogFolder) -> Self {
        Self(Arc::new(weir_plugins::registry_with(files)))
    }

    /// What cannot be served of a configuration, or not all of it. It must hold no references to secrets, whose values are
    /// not known here.
    pub fn findings(&self, plugin: &str, config: &Value, dialect: DialectName) -> Vec<Diagnostic> {
        let Some(plugin) = self.0.get(plugin) else {
            return Vec::new();
        };
        let empty = EmptyContext::default();
        let context = BuildContext {
            keys_may_repeat: true,
            consumers_may_be_missing: true,
            ..empty.of("", dialect)
        };
        match plugin.build(config, &context) {
            Ok(_) => plugin.warnings(config, &context),
            Err(found) => found,
        }
    }
}

impl Default for PluginCheck {
    fn default() -> Self {
        Self::new(LogFolder::default())
    }
}

impl std::fmt::Debug for PluginCheck {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PluginCheck").finish_non_exhaustive()
    }
}
