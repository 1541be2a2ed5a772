//! The process that serves the Admin API, as it is reported to clients.

use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use uuid::Uuid;
use weir_dialect::{HealthSource, HttpClient, Listener, PluginCheck, Statistics};
use weir_plugin::SharedRecords;
use weir_plugins::prometheus::MetricRegistry;
use weir_plugins::proxy_cache::Caches;

/// The process.
#[derive(Clone)]
pub struct Node {
    /// Its id, new with every start.
    pub id: Uuid,
    /// The machine's name.
    pub hostname: String,
    /// Its listeners for calls to be forwarded; TLS or not.
    pub listeners: Vec<Listener>,
    /// Its listeners for calls of the Admin API.
    pub admin_listeners: Vec<Listener>,
    /// Its counts.
    pub statistics: Option<Arc<dyn Statistics>>,
    /// The metrics of its plugins for Prometheus.
    pub plugin_metrics: Arc<MetricRegistry>,
    /// The health of upstreams.
    pub health: Option<Arc<dyn HealthSource>>,
    /// The responses that it keeps; `None`: it serves no calls.
    pub caches: Option<Caches>,
    /// The records that plugins share over all gateways, by the plugin's name.
    pub shared: Vec<(&'static str, Arc<dyn SharedRecords>)>,
    /// Asks other servers; `None`: none can be asked.
    pub http: Option<Arc<dyn HttpClient>>,
    /// What gateways can serve of plugins.
    pub plugin_check: PluginCheck,
}

/// The id of this process, new with every start.
pub fn process_id() -> Uuid {
    static ID: LazyLock<Uuid> = LazyLock::new(Uuid::new_v4);
    *ID
}

/// A process that serves nothing but the Admin API.
impl Default for Node {
    fn default() -> Self {
        Self {
            id: process_id(),
            hostname: "localhost".to_owned(),
            listeners: Vec::new(),
            admin_listeners: Vec::new(),
            statistics: None,
            plugin_metrics: Arc::default(),
            health: None,
            caches: None,
            shared: Vec::new(),
            http: None,
            plugin_check: PluginCheck::default(),
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Node")
            .field("id", &self.id)
            .field("hostname", &self.hostname)
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Makes it from the program's facts about the process.
    pub fn of(node: weir_dialect::Node) -> Self {
        Self {
            id: process_id(),
            hostname: node.hostname,
            listeners: node.listeners,
            admin_listeners: node.admin_listeners,
            statistics: node.statistics,
            plugin_metrics: node.plugin_metrics,
            health: node.health,
            caches: node.caches,
            shared: node.shared,
            http: node.http,
            plugin_check: PluginCheck::new(node.log_folder),
        }
    }

    /// The records that a plugin shares over all gateways.
    pub fn shared_records(&self, plugin: &str) -> Option<Arc<dyn SharedRecords>> {
        let mut all = self.shared.iter();
        all.find(|(name, _)| *name == plugin)
            .map(|(_, records)| Arc::clone(records))
    }
}

/// A listener as the original writes it in its configuration.
pub fn text_of(listener: &Listener) -> String {
    let tls = if listener.is_tls { " ssl" } else { "" };
    format!("{}:{}{tls}", listener.ip, listener.port)
}

/// A listener as clients read it.
pub fn described(listener: &Listener) -> Value {
    json!({
        "ip": listener.ip,
        "port": listener.port,
        "listener": text_of(listener),
        "ssl": listener.is_tls,
        "http2": false,
        "proxy_protocol": false,
        "deferred": false,
        "reuseport": false,
        "bind": false,
        "backlog=%d+": false,
        "ipv6only=on": false,
        "ipv6only=off": false,
        "so_keepalive=on": false,
        "so_keepalive=off": false,
        "so_keepalive=%w*:%w*:%d*": false,
    })
}
