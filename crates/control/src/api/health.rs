//! The health of upstreams, as the gateway of this process sees it.

use super::Api;
use super::view::IndexedRow;
use crate::api::json_body::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_dialect::DialectSet;

/// The health of a target, an address or an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// It gets calls.
    Healthy,
    /// It gets none while another is healthy.
    Unhealthy,
    /// Its name cannot be resolved.
    DnsError,
    /// It gets calls, and nothing checks how healthy it is.
    Unchecked,
}

/// An upstream's health in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthSummary {
    /// Of the whole upstream.
    pub status: HealthStatus,
    /// Percent of the weight that is healthy.
    pub healthy_percent: f64,
}

/// An upstream's health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamHealth {
    /// The upstream's name in the gateway.
    pub name: String,
    /// Of the whole upstream.
    pub status: HealthStatus,
    /// Percent of the weight that is healthy.
    pub healthy_percent: f64,
    /// Its targets.
    pub targets: Vec<TargetHealth>,
}

/// A target's health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetHealth {
    /// The address or name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its share of the calls.
    pub weight: u32,
    /// Of all its addresses.
    pub status: HealthStatus,
    /// The addresses that are known.
    pub addresses: Vec<AddressHealth>,
}

/// The health of an address, with its counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressHealth {
    /// `address:port`.
    pub address: String,
    /// State.
    pub status: HealthStatus,
    /// Successes.
    pub successes: u32,
    /// Answers that count as failures.
    pub http_failures: u32,
    /// Connections that failed.
    pub tcp_failures: u32,
    /// Time-outs.
    pub timeouts: u32,
}

/// The source of the health of upstreams.
pub trait HealthSource: Send + Sync {
    /// All upstreams; empty: no calls are served here.
    fn upstreams(&self) -> Vec<UpstreamHealth>;
    /// The upstream with this name in the gateway.
    fn upstream(&self, name: &str) -> Option<UpstreamHealth>;
}

/// The health of a list's row.
pub fn summary_of(
    source: &dyn HealthSource,
    dialects: &DialectSet,
    row: &IndexedRow,
) -> Option<HealthSummary> {
    let dialect = dialects.get(row.row.dialect)?;
    let names = dialect.upstream_names(&row.row, &row.own_id);
    let found = names.iter().find_map(|name| source.upstream(name))?;
    Some(HealthSummary {
        status: found.status,
        healthy_percent: found.healthy_percent,
    })
}

/// Answers `GET /api/v1/health/upstreams`.
pub async fn list(State(api): State<Arc<Api>>) -> Json<super::shapes::List<UpstreamHealth>> {
    let source = api.options.health.as_deref();
    Json(super::shapes::List {
        items: source.map(HealthSource::upstreams).unwrap_or_default(),
    })
}
