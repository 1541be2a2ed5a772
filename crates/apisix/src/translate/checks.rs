//! Health checks of upstreams: from APISIX's `checks` to those of the model. Probes are made by the data plane.

use serde::Deserialize;
use serde_json::Value;
use weir_model::{
    ActiveChecks, ActiveHealthy, ActiveUnhealthy, HealthChecks, NoneHealthy, PassiveChecks, PassiveHealthy,
    PassiveUnhealthy, ProbeKind, UpstreamTls,
};

/// Most probes of an upstream at once; more would be no use.
const MAX_CONCURRENCY: i64 = 1_000;

#[derive(Deserialize)]
struct Settings {
    active: Option<Active>,
    passive: Option<Passive>,
}

#[derive(Deserialize)]
struct Active {
    #[serde(rename = "type")]
    kind: String,
    timeout: f64,
    concurrency: i64,
    host: Option<String>,
    port: Option<u16>,
    http_method: String,
    http_path: String,
    http_req_body: String,
    https_verify_certificate: bool,
    #[serde(default)]
    req_headers: Vec<String>,
    healthy: Option<Healthy>,
    unhealthy: Option<Unhealthy>,
}

#[derive(Deserialize)]
struct Passive {
    healthy: Option<Healthy>,
    unhealthy: Option<Unhealthy>,
}

#[derive(Deserialize)]
struct Healthy {
    /// Seconds; active checks only.
    #[serde(default)]
    interval: u64,
    http_statuses: Vec<u16>,
    successes: u8,
}

#[derive(Deserialize)]
struct Unhealthy {
    /// Seconds; active checks only.
    #[serde(default)]
    interval: u64,
    http_statuses: Vec<u16>,
    http_failures: u8,
    tcp_failures: u8,
    timeouts: u8,
}

/// The checks of an upstream, whose shape has been checked; `None`: there are none.
pub fn translate(checks: &Value) -> Option<HealthChecks> {
    let settings = Settings::deserialize(checks).ok()?;
    Some(HealthChecks {
        active: settings.active.map(translate_active),
        passive: settings.passive.map(translate_passive),
        min_healthy_percent: 0,
        when_none_healthy: NoneHealthy::UseAll,
        shared_with: None,
    })
}

fn translate_active(active: Active) -> ActiveChecks {
    ActiveChecks {
        kind: match active.kind.as_str() {
            "https" => ProbeKind::Https,
            "tcp" => ProbeKind::Tcp,
            _ => ProbeKind::Http,
        },
        method: active.http_method,
        path: active.http_path,
        host: active.host,
        port: active.port,
        headers: active
            .req_headers
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect(),
        body: active.http_req_body,
        service: String::new(),
        tls: UpstreamTls {
            verify: active.https_verify_certificate,
            ..UpstreamTls::default()
        },
        timeout_ms: ((active.timeout * 1_000.0).ceil() as u64).max(1),
        concurrency: active.concurrency.clamp(1, MAX_CONCURRENCY) as u32,
        // A half that is not written is as the original's library has it: it does not probe.
        healthy: active
            .healthy
            .map_or_else(unprobed_healthy, |healthy| ActiveHealthy {
                interval_ms: healthy.interval.saturating_mul(1_000),
                statuses: healthy.http_statuses,
                successes: healthy.successes,
            }),
        unhealthy: active
            .unhealthy
            .map_or_else(unprobed_unhealthy, |unhealthy| ActiveUnhealthy {
                interval_ms: unhealthy.interval.saturating_mul(1_000),
                statuses: unhealthy.http_statuses,
                http_failures: unhealthy.http_failures,
                tcp_failures: unhealthy.tcp_failures,
                timeouts: unhealthy.timeouts,
            }),
    }
}

fn unprobed_healthy() -> ActiveHealthy {
    ActiveHealthy {
        interval_ms: 0,
        statuses: vec![200, 302],
        successes: 2,
    }
}

fn unprobed_unhealthy() -> ActiveUnhealthy {
    ActiveUnhealthy {
        interval_ms: 0,
        statuses: vec![429, 404, 500, 501, 502, 503, 504, 505],
        http_failures: 5,
        tcp_failures: 2,
        timeouts: 3,
    }
}

fn translate_passive(passive: Passive) -> PassiveChecks {
    let healthy = passive.healthy.map_or_else(
        || PassiveHealthy {
            successes: 5,
            ..PassiveHealthy::default()
        },
        |healthy| PassiveHealthy {
            statuses: healthy.http_statuses,
            successes: healthy.successes,
        },
    );
    let unhealthy = passive.unhealthy.map_or_else(
        || PassiveUnhealthy {
            statuses: vec![429, 500, 503],
            http_failures: 5,
            tcp_failures: 2,
            timeouts: 7,
        },
        |unhealthy| PassiveUnhealthy {
            statuses: unhealthy.http_statuses,
            http_failures: unhealthy.http_failures,
            tcp_failures: unhealthy.tcp_failures,
            timeouts: unhealthy.timeouts,
        },
    );
    PassiveChecks {
        healthy,
        unhealthy,
        ejection_ms: None,
    }
}
