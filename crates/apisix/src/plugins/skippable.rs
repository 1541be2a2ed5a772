//! Plugins that Weir may lack: calls are served without them, and get the same answers.

use super::meta::Meta;
use super::{PluginAdapter, mapping};
use serde_json::Value;

/// Those that the catalogue has no plugin for: they report calls, save work, or do nothing to a call by themselves.
const SKIPPABLE: [&str; 11] = [
    "ai",
    "batch-requests",
    "error-log-logger",
    "gm",
    "inspect",
    "log-rotate",
    "node-status",
    "ocsp-stapling",
    "proxy-buffering",
    "rocketmq-logger",
    "server-info",
];

/// Whether calls may be served without this plugin: of those that the catalogue has, it knows.
pub fn is_skippable(plugin: &str) -> bool {
    let is_so_there = |adapter: &dyn PluginAdapter| weir_plugins::is_skippable(adapter.plugin());
    SKIPPABLE.contains(&plugin) || mapping(plugin).is_some_and(is_so_there)
}

/// Whether calls are served without a plugin with this configuration that Weir lacks.
pub fn serves_without(plugin: &str, config: &Value) -> bool {
    is_skippable(plugin) || does_nothing(plugin, config)
}

/// Whether a plugin does nothing to calls by its configuration.
fn does_nothing(plugin: &str, config: &Value) -> bool {
    let is_plain = || config.get("ip").is_none() && Meta::of(config).pre_function.is_none();
    plugin == "example-plugin" && is_plain()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::catalogue::BUILT;

    #[test]
    fn plugins_without_work_take_no_route_away() {
        for adapter in BUILT.iter().filter(|adapter| adapter.plugin().is_empty()) {
            assert!(is_skippable(adapter.name()), "{}", adapter.name());
        }
        assert!(SKIPPABLE.is_sorted());
    }
}
