//! The places of instances of plugins: which protocols they work on, and what they may belong to.

use super::Definition;
use crate::document::common::{HTTP_PROTOCOLS, PROTOCOLS};

/// Plugins that work on streams too.
const ON_STREAMS: &[&str] = &[
    "azure-functions",
    "datadog",
    "file-log",
    "grpc-gateway",
    "grpc-web",
    "http-log",
    "ip-restriction",
    "loggly",
    "post-function",
    "pre-function",
    "prometheus",
    "proxy-cache",
    "request-transformer",
    "session",
    "statsd",
    "syslog",
    "tcp-log",
    "udp-log",
    "zipkin",
];
/// Plugins of which every instance is global.
const GLOBAL: &[&str] = &["acme"];
/// The protocols of an instance of this plugin that gives none.
const IP_RESTRICTION: &[&str] = &["http", "https", "tcp", "tls", "grpc", "grpcs"];

impl Definition {
    /// The protocols that instances may have.
    pub fn protocols(&self) -> &'static [&'static str] {
        if ON_STREAMS.contains(&self.name) {
            PROTOCOLS
        } else {
            HTTP_PROTOCOLS
        }
    }

    /// The protocols of an instance that gives none.
    pub fn standard_protocols(&self) -> &'static [&'static str] {
        match self.name {
            "ip-restriction" => IP_RESTRICTION,
            _ => HTTP_PROTOCOLS,
        }
    }

    /// The fields by which instances cannot belong to anything.
    pub fn closed_scopes(&self) -> &'static [&'static str] {
        if GLOBAL.contains(&self.name) {
            &["consumer", "service", "route"]
        } else if self.on_consumers {
            &[]
        } else {
            &["consumer"]
        }
    }
}
