//! What a process knows of itself for metrics. A dialect writes it under the names that its original has for it.
//!
//! **What it is not**: what plugins count of calls, which stands behind it in the same exposition.

use crate::{Counts, UpstreamHealth};

/// A text of metrics, with names of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposition {
    /// What plugins that count in it call it.
    pub name: &'static str,
    /// Where the status listener serves it; `None`: nowhere but among all others.
    pub path: Option<&'static str>,
}

/// What a process knows of itself.
#[derive(Debug, Clone, Default)]
pub struct NodeMetrics {
    /// The machine's name.
    pub hostname: String,
    /// Connections and requests.
    pub counts: Counts,
    /// Whether the store of the configuration can be reached; `None`: there is none that outlives the process.
    pub is_store_reachable: Option<bool>,
    /// What [`Revisions`](crate::Revisions) the dialect's Admin API has; none as long as it is not open.
    pub revisions: Vec<(&'static str, u64)>,
    /// Upstreams by name, those without checks too; none if they are not to be listed.
    pub upstreams: Vec<(String, UpstreamHealth)>,
    /// Entries of loggers that wait to be sent.
    pub waiting_entries: Vec<WaitingEntries>,
}

/// Entries of a logger that wait to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingEntries {
    /// The logger's name.
    pub logger: String,
    /// The route.
    pub route: String,
    /// The address at which the gateway took the calls.
    pub address: String,
    /// How many.
    pub count: u64,
}
