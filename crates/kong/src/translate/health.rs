//! Health checks of upstreams: from Kong's `healthchecks` to those of the model. Probes are made by the data plane.

use crate::document::Upstream;
use serde::Deserialize;
use std::collections::BTreeMap;
use weir_model::{
    ActiveChecks, ActiveHealthy, ActiveUnhealthy, HealthChecks, NoneHealthy, PassiveChecks, PassiveHealthy,
    PassiveUnhealthy, ProbeKind, UpstreamTls,
};

/// How long a probe may take that is given no time: as long as a socket of the original then waits.
const ENDLESS_PROBE_MS: u64 = 60_000;
/// Most probes of an upstream at once; more would be no use.
const MAX_CONCURRENCY: i64 = 1_000;

#[derive(Deserialize)]
struct Settings {
    active: Active,
    passive: Passive,
    threshold: f64,
}

#[derive(Deserialize)]
struct Active {
    #[serde(rename = "type")]
    kind: String,
    timeout: f64,
    concurrency: i64,
    http_path: String,
    https_sni: Option<String>,
    https_verify_certificate: bool,
    headers: Option<BTreeMap<String, Vec<String>>>,
    healthy: Healthy,
    unhealthy: Unhealthy,
}

#[derive(Deserialize)]
struct Passive {
    healthy: Healthy,
    unhealthy: Unhealthy,
}

#[derive(Deserialize)]
struct Healthy {
    /// Seconds; active checks only.
    #[serde(default)]
    interval: f64,
    http_statuses: Vec<u16>,
    successes: u8,
}

#[derive(Deserialize)]
struct Unhealthy {
    /// Seconds; active checks only.
    #[serde(default)]
    interval: f64,
    http_statuses: Vec<u16>,
    http_failures: u8,
    tcp_failures: u8,
    timeouts: u8,
}

impl Unhealthy {
    fn counts(&self) -> bool {
        self.http_failures > 0 || self.tcp_failures > 0 || self.timeouts > 0
    }
}

/// The health checks of an upstream; `None`: none are switched on. They are when something is probed, or when calls
/// can make a target unhealthy.
pub fn checks(upstream: &Upstream) -> Option<HealthChecks> {
    // The document has been checked and its defaults are filled in.
    let settings = Settings::deserialize(&upstream.healthchecks).ok()?;
    let active = &settings.active;
    let is_probed = active.healthy.interval > 0.0 || active.unhealthy.interval > 0.0;
    let is_watched = settings.passive.unhealthy.counts();
    if !is_probed && !is_watched {
        return None;
    }
    let passive = settings.passive;
    Some(HealthChecks {
        active: is_probed.then(|| translate_active(settings.active, upstream.host_header.as_deref())),
        passive: (is_watched || passive.healthy.successes > 0).then_some(PassiveChecks {
            healthy: PassiveHealthy {
                statuses: passive.healthy.http_statuses,
                successes: passive.healthy.successes,
            },
            unhealthy: PassiveUnhealthy {
                statuses: passive.unhealthy.http_statuses,
                http_failures: passive.unhealthy.http_failures,
                tcp_failures: passive.unhealthy.tcp_failures,
                timeouts: passive.unhealthy.timeouts,
            },
            ejection_ms: None,
        }),
        min_healthy_percent: settings.threshold.clamp(0.0, 100.0).ceil() as u8,
        when_none_healthy: NoneHealthy::Refuse,
        shared_with: None,
    })
}

fn translate_active(active: Active, host: Option<&str>) -> ActiveChecks {
    let headers = active.headers.unwrap_or_default();
    let lines = headers
        .into_iter()
        .flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));
    ActiveChecks {
        kind: match active.kind.as_str() {
            "http" => ProbeKind::Http,
            "https" => ProbeKind::Https,
            "grpc" => ProbeKind::Grpc,
            "grpcs" => ProbeKind::Grpcs,
            _ => ProbeKind::Tcp,
        },
        path: active.http_path,
        host: host.map(str::to_owned),
        headers: lines.collect(),
        tls: UpstreamTls {
            verify: active.https_verify_certificate,
            server_name: active.https_sni,
            ..UpstreamTls::default()
        },
        timeout_ms: match milliseconds(active.timeout) {
            0 => ENDLESS_PROBE_MS,
            millis => millis,
        },
        concurrency: active.concurrency.clamp(1, MAX_CONCURRENCY) as u32,
        healthy: ActiveHealthy {
            interval_ms: milliseconds(active.healthy.interval),
            statuses: active.healthy.http_statuses,
            successes: active.healthy.successes,
        },
        unhealthy: ActiveUnhealthy {
            interval_ms: milliseconds(active.unhealthy.interval),
            statuses: active.unhealthy.http_statuses,
            http_failures: active.unhealthy.http_failures,
            tcp_failures: active.unhealthy.tcp_failures,
            timeouts: active.unhealthy.timeouts,
        },
        ..ActiveChecks::default()
    }
}

fn milliseconds(seconds: f64) -> u64 {
    // The conversion saturates, and the schema allows no negative numbers.
    (seconds * 1_000.0).ceil() as u64
}
