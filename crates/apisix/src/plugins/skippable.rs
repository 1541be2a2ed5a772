//! Plugins that Weir may lack: calls are served without them, and get the same answers.

use super::meta::Meta;
use serde_json::Value;

/// Plugins without which calls get the same answers of the same servers, and the same callers are let in: they tell of
/// calls, save work, or do nothing to a call by themselves.
const SKIPPABLE: [&str; 39] = [
    "ai",
    "api-breaker",
    "batch-requests",
    "brotli",
    "clickhouse-logger",
    "datadog",
    "elasticsearch-logger",
    "error-log-logger",
    "file-logger",
    "gm",
    "google-cloud-logging",
    "graphql-proxy-cache",
    "gzip",
    "http-logger",
    "inspect",
    "kafka-logger",
    "lago",
    "log-rotate",
    "loggly",
    "loki-logger",
    "node-status",
    "ocsp-stapling",
    "opentelemetry",
    "prometheus",
    "proxy-buffering",
    "proxy-cache",
    "proxy-control",
    "proxy-mirror",
    "rocketmq-logger",
    "server-info",
    "skywalking",
    "skywalking-logger",
    "sls-logger",
    "splunk-hec-logging",
    "syslog",
    "tcp-logger",
    "tencent-cloud-cls",
    "udp-logger",
    "zipkin",
];

/// Whether calls may be served without this plugin.
pub fn is_harmless(plugin: &str) -> bool {
    SKIPPABLE.contains(&plugin)
}

/// Whether calls are served without a plugin with this configuration that Weir lacks.
pub fn serves_without(plugin: &str, config: &Value) -> bool {
    is_harmless(plugin) || does_nothing(plugin, config)
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
            assert!(is_harmless(adapter.name()), "{}", adapter.name());
        }
        assert!(SKIPPABLE.is_sorted());
    }
}
