//! The state that the workers of a gateway share: the published snapshot, options, and messages for other threads.
//! Nothing in it is written on the request path, and it runs nothing itself.

use crate::calls::Calls;
use crate::dns::NameServers;
use crate::h3::config::{Common, Http3};
use crate::health::HealthNotifier;
use crate::kafka::turns::Turns;
use crate::limits::Limits;
use crate::log_sinks::{GatewayLogLevels, LogSinks};
use crate::proxy_protocol::ProxyProtocolTrust;
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::sync::watch;
use weir_model::DialectName;
use weir_plugin::error_renderer;
use weir_snapshot::Snapshot;
use weir_telemetry::metrics::{Registry, SeriesId};
use weir_telemetry::redis::RedisStats;

/// The error renderers of all dialects.
#[derive(Clone)]
pub struct ErrorRenderers {
    /// Each with its dialect.
    pub all: Vec<(DialectName, Arc<dyn error_renderer::ErrorRenderer>)>,
    /// That of dialects that are not among them.
    pub fallback: Arc<dyn error_renderer::ErrorRenderer>,
}

impl ErrorRenderers {
    /// The error renderer of a dialect.
    pub fn get(&self, dialect: DialectName) -> &dyn error_renderer::ErrorRenderer {
        let found = self.all.iter().find(|(name, _)| *name == dialect);
        found.map_or(&*self.fallback, |(_, renderer)| &**renderer)
    }
}

/// A snapshot as it was published.
pub struct PublishedSnapshot {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The metrics series of each route.
    pub series: Vec<SeriesId>,
    /// Counts published snapshots from 1.
    pub generation: u64,
}

/// The state that workers share. Nothing in it is written on the request path.
pub struct Shared {
    pub published: ArcSwap<PublishedSnapshot>,
    pub generation: AtomicU64,
    pub limits: Limits,
    pub error_renderers: ErrorRenderers,
    pub drain: watch::Sender<bool>,
    pub drain_timeout: Duration,
    pub name_servers: NameServers,
    pub fallback_tls: Option<Arc<ServerConfig>>,
    pub http3: Option<(Http3, Common)>,
    /// The same for streams, whose protocols the gateway does not know.
    pub fallback_stream_tls: Option<Arc<ServerConfig>>,
    pub proxy_protocol: Option<ProxyProtocolTrust>,
    pub health: HealthNotifier,
    /// The state of servers that hold counts.
    pub redis: Arc<RedisStats>,
    pub log_sinks: LogSinks,
    /// Who reads for which group of Kafka.
    pub kafka_turns: Turns,
    /// Which lines of the gateway's own log anything of the snapshot takes.
    pub gateway_log_levels: Arc<GatewayLogLevels>,
    pub calls: Option<Arc<Calls<PublishedSnapshot>>>,
}

/// Makes a snapshot ready to be served.
pub fn publish(metrics: &Registry, snapshot: Snapshot, generation: u64) -> PublishedSnapshot {
    let names = snapshot
        .routes
        .iter()
        .map(|route| (route.series_names.0.as_ref(), route.series_names.1.as_ref()));
    let series = metrics.allocate(names);
    PublishedSnapshot {
        snapshot,
        series,
        generation,
    }
}
