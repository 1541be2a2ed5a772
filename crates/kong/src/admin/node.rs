//! The process that serves the Admin API, as its clients are told of it.

use super::health::HealthSource;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use uuid::Uuid;
use weir_plugins::proxy_cache::Caches;

/// The process.
#[derive(Clone)]
pub struct Node {
    /// Its id, new with every start.
    pub id: Uuid,
    /// The machine's name.
    pub hostname: String,
    /// Where it listens for calls to be forwarded; TLS or not.
    pub listeners: Vec<Listener>,
    /// Where it listens for calls of the Admin API.
    pub admin_listeners: Vec<Listener>,
    /// What it counts.
    pub statistics: Option<Arc<dyn Statistics>>,
    /// What it knows of the health of upstreams.
    pub health: Option<Arc<dyn HealthSource>>,
    /// The responses that it keeps; `None`: it serves no calls.
    pub caches: Option<Caches>,
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
            health: None,
            caches: None,
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

impl Listener {
    /// The listener as the original writes it in its configuration.
    pub fn text(&self) -> String {
        let tls = if self.is_tls { " ssl" } else { "" };
        format!("{}:{}{tls}", self.ip, self.port)
    }

    /// The listener as clients read it.
    pub fn described(&self) -> Value {
        json!({
            "ip": self.ip,
            "port": self.port,
            "listener": self.text(),
            "ssl": self.is_tls,
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
}

/// What a process counts.
pub trait Statistics: Send + Sync {
    /// Connections and calls up to now.
    fn counts(&self) -> Counts;
}

/// Connections and calls of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open.
    pub open_connections: u64,
    /// Connections that were accepted.
    pub accepted_connections: u64,
    /// Calls that were answered.
    pub requests: u64,
}
