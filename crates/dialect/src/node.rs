//! What Admin APIs know about the process that serves them.

use crate::http_client::HttpClient;
use std::sync::Arc;
use weir_plugin::SharedRecords;
use weir_plugins::logger::LogFolder;
use weir_plugins::prometheus::MetricRegistry;
use weir_plugins::proxy_cache::Caches;

/// The process.
#[derive(Clone, Default)]
pub struct Node {
    /// The machine's name.
    pub hostname: String,
    /// Where it listens for calls to be forwarded.
    pub listeners: Vec<Listener>,
    /// Where it listens for calls of this Admin API.
    pub admin_listeners: Vec<Listener>,
    /// What it counts.
    pub statistics: Option<Arc<dyn Statistics>>,
    /// What its plugins count for Prometheus.
    pub plugin_metrics: Arc<MetricRegistry>,
    /// Where its gateways write log files.
    pub log_folder: LogFolder,
    /// What it knows of the health of upstreams.
    pub health: Option<Arc<dyn HealthSource>>,
    /// The responses that it keeps; `None`: it serves no calls.
    pub caches: Option<Caches>,
    /// What plugins share over all gateways, by the plugin's name.
    pub shared: Vec<(&'static str, Arc<dyn SharedRecords>)>,
    /// Asks other servers; `None`: none can be asked.
    pub http: Option<Arc<dyn HttpClient>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Node")
            .field("hostname", &self.hostname)
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

/// An address at which a process listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The address without the port.
    pub ip: String,
    /// The port.
    pub port: u16,
    /// Whether it speaks TLS.
    pub is_tls: bool,
}

/// What a process counts.
pub trait Statistics: Send + Sync {
    /// What it has counted so far.
    fn counts(&self) -> Counts;
}

/// What a process has counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections from clients that are open.
    pub open_connections: u64,
    /// Connections from clients that were accepted.
    pub accepted_connections: u64,
    /// Calls that were answered.
    pub requests: u64,
}

/// What a process knows of the health of upstreams.
pub trait HealthSource: Send + Sync {
    /// The health of an upstream by its name in the model; `None`: nothing is known of it, as no calls go there yet or
    /// nothing checks it.
    fn upstream(&self, upstream: &str) -> Option<UpstreamHealth>;

    /// Makes a target count as healthy or not until it is found otherwise: one of its addresses, or all.
    ///
    /// # Errors
    /// Why that cannot be, for the client.
    fn mark(
        &self,
        upstream: &str,
        target: &str,
        address: Option<&str>,
        is_healthy: bool,
    ) -> Result<(), String>;
}

/// The health of an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamHealth {
    /// Whether enough of it is healthy.
    pub state: HealthState,
    /// What is known of its targets.
    pub targets: Vec<TargetHealth>,
}

/// The health of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetHealth {
    /// Its host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether its name leads to addresses at the moment.
    pub is_resolved: bool,
    /// The addresses that are known.
    pub addresses: Vec<AddressHealth>,
}

impl TargetHealth {
    /// The target as `host:port`, with brackets around an IPv6 address.
    pub fn text(&self) -> String {
        authority(&self.host, self.port)
    }
}

/// The health of an address.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressHealth {
    /// The address.
    pub ip: String,
    /// The port.
    pub port: u16,
    /// Its share of the calls.
    pub weight: u32,
    /// Whether it gets calls.
    pub state: HealthState,
    /// What its checks say: `healthy`, `mostly_healthy`, `mostly_unhealthy` or `unhealthy`.
    pub checks: &'static str,
    /// What its checks came to since that last changed.
    pub counts: CheckCounts,
}

/// Whether something gets calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthState {
    /// It is checked, and well.
    Healthy,
    /// It is checked, and not well.
    Unhealthy,
    /// Nothing checks it.
    Unchecked,
}

impl AddressHealth {
    /// The address with its port, with brackets around an IPv6 address.
    pub fn text(&self) -> String {
        authority(&self.ip, self.port)
    }
}

/// A host with a port.
fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// How often checks came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CheckCounts {
    /// They passed.
    pub success: u32,
    /// The status was one of the bad ones.
    pub http_failure: u32,
    /// There was no connection.
    pub tcp_failure: u32,
    /// It took too long.
    pub timeout_failure: u32,
}
