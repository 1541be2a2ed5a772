//! Plugins that a document uses and Weir lacks.

use crate::plugins::{Meta, is_known, mapping};
use serde_json::{Map, Value};
use std::fmt;

/// Plugins without which calls are served as their owner means it: what they do is seen elsewhere, or not at all.
const HARMLESS: [&str; 45] = [
    "ai",
    "batch-requests",
    "brotli",
    "clickhouse-logger",
    "datadog",
    "echo",
    "elasticsearch-logger",
    "error-log-logger",
    "error-page",
    "example-plugin",
    "file-logger",
    "gm",
    "google-cloud-logging",
    "gzip",
    "http-logger",
    "inspect",
    "kafka-logger",
    "lago",
    "log-rotate",
    "loggly",
    "loki-logger",
    "mcp-bridge",
    "node-status",
    "ocsp-stapling",
    "opentelemetry",
    "prometheus",
    "proxy-buffering",
    "proxy-cache",
    "proxy-control",
    "proxy-mirror",
    "public-api",
    "rocketmq-logger",
    "server-info",
    "skywalking",
    "skywalking-logger",
    "sls-logger",
    "splunk-hec-logging",
    "syslog",
    "tcp-logger",
    "tencent-cloud-cls",
    "traffic-label",
    "udp-logger",
    "zipkin",
    "api-breaker",
    "graphql-proxy-cache",
];

/// Whether calls may be served without this plugin.
pub fn is_harmless(plugin: &str) -> bool {
    HARMLESS.contains(&plugin)
}

/// The plugins that a document lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    names: Vec<String>,
    /// Whether calls must not be served without them.
    pub refuses: bool,
}

impl Lack {
    /// Of a document; `None`: Weir has all of its plugins that are on.
    pub fn of(document: &Map<String, Value>) -> Option<Self> {
        let plugins = document.get("plugins")?.as_object()?;
        let names: Vec<String> = plugins
            .iter()
            .filter(|(name, config)| is_known(name) && mapping(name).is_none() && !Meta::of(config).disable)
            .map(|(name, _)| name.clone())
            .collect();
        let refuses = names.iter().any(|name| !is_harmless(name));
        (!names.is_empty()).then_some(Self { names, refuses })
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, are) = match self.names.len() {
            1 => ("plugin", "is"),
            _ => ("plugins", "are"),
        };
        write!(
            f,
            "{what} \"{}\" {are} not available in this version of Weir",
            self.names.join("\", \"")
        )?;
        match self.refuses {
            true => f.write_str("; calls are refused"),
            false => f.write_str("; calls are served without"),
        }
    }
}
