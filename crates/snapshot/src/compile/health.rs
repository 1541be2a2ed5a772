//! The checks of an upstream: what is wrong with them, and their compiled form.

use super::url::{check_host_header, check_path};
use crate::health::Checks;
use crate::persistent_state::PersistentState;
use crate::tls::ClientTls;
use std::sync::Arc;
use weir_flow::health::{Rules, Thresholds};
use weir_model::{self as model, Diagnostic, DocPath, HealthChecks, ProbeKind};
use weir_plugin::headers::{is_name, is_value};

/// Longest time between two probes in milliseconds; a configured one that is longer is a mistake.
const MAX_INTERVAL_MS: u64 = 24 * 60 * 60 * 1_000;
/// Longest name of a service of gRPC.
const MAX_SERVICE: usize = 1_024;
/// Most probes of an upstream that may be under way at once.
const MAX_CONCURRENCY: u32 = 1_000;

/// Compiles the checks at `place`.
///
/// # Errors
/// Probes cannot use TLS in the configured way.
pub(super) fn compile(
    checks: &HealthChecks,
    place: &DocPath,
    persistent: &PersistentState,
) -> Result<Checks, Diagnostic> {
    let active = checks.active.as_ref();
    let over_tls = active.filter(|active| matches!(active.kind, ProbeKind::Https | ProbeKind::Grpcs));
    let tls = over_tls.map(|active| {
        let place = place.field("active").field("tls");
        persistent.client(&active.tls, |id| {
            ClientTls::compile(&active.tls, &place, persistent.roots(), id)
        })
    });
    let passive = checks.passive.as_ref();
    Ok(Checks {
        active: active.cloned(),
        tls: tls.transpose()?,
        probe_rules: active.map_or_else(Rules::default, probe_rules),
        call_rules: passive.map_or_else(Rules::default, call_rules),
        ejection_ms: passive.and_then(|passive| passive.ejection_ms),
        min_healthy_percent: checks.min_healthy_percent,
        when_none_healthy: checks.when_none_healthy,
        is_shared: checks.shared_with.is_some(),
    })
}

fn probe_rules(active: &model::ActiveChecks) -> Rules {
    let (healthy, unhealthy) = (&active.healthy, &active.unhealthy);
    Rules {
        healthy: healthy.statuses.iter().copied().collect(),
        unhealthy: unhealthy.statuses.iter().copied().collect(),
        thresholds: Thresholds {
            successes: healthy.successes,
            http_failures: unhealthy.http_failures,
            tcp_failures: unhealthy.tcp_failures,
            timeouts: unhealthy.timeouts,
        },
    }
}

fn call_rules(passive: &model::PassiveChecks) -> Rules {
    let (healthy, unhealthy) = (&passive.healthy, &passive.unhealthy);
    Rules {
        healthy: healthy.statuses.iter().copied().collect(),
        unhealthy: unhealthy.statuses.iter().copied().collect(),
        thresholds: Thresholds {
            successes: healthy.successes,
            http_failures: unhealthy.http_failures,
            tcp_failures: unhealthy.tcp_failures,
            timeouts: unhealthy.timeouts,
        },
    }
}

/// What is wrong with the checks that stand at `place`.
pub(super) fn check(checks: &HealthChecks, place: &DocPath, found: &mut Vec<Diagnostic>) {
    if checks.min_healthy_percent > 100 {
        let message = format!(
            "expected a percentage up to 100, found {}",
            checks.min_healthy_percent
        );
        found.push(Diagnostic::error(place.field("min_healthy_percent"), message));
    }
    if let Some(active) = &checks.active {
        check_probe(active, &place.field("active"), found);
        let (healthy, unhealthy) = (&active.healthy, &active.unhealthy);
        let lists = [("healthy", &healthy.statuses), ("unhealthy", &unhealthy.statuses)];
        check_statuses(lists, &place.field("active"), found);
        for (name, interval_ms) in [
            ("healthy", healthy.interval_ms),
            ("unhealthy", unhealthy.interval_ms),
        ] {
            if interval_ms > MAX_INTERVAL_MS {
                let place = place.field("active").field(name).field("interval_ms");
                let message = format!("expected at most {MAX_INTERVAL_MS} milliseconds, found {interval_ms}");
                found.push(Diagnostic::error(place, message));
            }
        }
    }
    if let Some(passive) = &checks.passive {
        let lists = [
            ("healthy", &passive.healthy.statuses),
            ("unhealthy", &passive.unhealthy.statuses),
        ];
        check_statuses(lists, &place.field("passive"), found);
    }
}

fn check_probe(active: &model::ActiveChecks, place: &DocPath, found: &mut Vec<Diagnostic>) {
    let mut fault = |field: &str, message: String| {
        found.push(Diagnostic::error(place.field(field), message));
    };
    let (path, query) = active.path.split_once('?').unwrap_or((&active.path, ""));
    if let Err(message) = check_path(path) {
        fault("path", message);
    } else if !query.bytes().all(|byte| byte.is_ascii_graphic()) {
        fault("path", "expected a query of printable characters".to_owned());
    }
    if !is_name(active.method.as_bytes()) {
        fault(
            "method",
            format!("expected a method, found '{}'", active.method.escape_debug()),
        );
    }
    if let Some(Err(message)) = active.host.as_deref().map(check_host_header) {
        fault("host", message);
    }
    if active.port == Some(0) {
        fault("port", "expected a port from 1 to 65535, found 0".to_owned());
    }
    let is_header = |(name, value): &(String, String)| is_name(name.as_bytes()) && is_value(value.as_bytes());
    if let Some((name, _)) = active.headers.iter().find(|header| !is_header(header)) {
        fault(
            "headers",
            format!("expected a header, found '{}'", name.escape_debug()),
        );
    }
    if active.service.len() > MAX_SERVICE {
        fault(
            "service",
            format!("expected a name of at most {MAX_SERVICE} bytes"),
        );
    }
    if active.timeout_ms == 0 {
        fault(
            "timeout_ms",
            "expected at least 1 millisecond, found 0".to_owned(),
        );
    }
    if !(1..=MAX_CONCURRENCY).contains(&active.concurrency) {
        let message = format!("expected 1 to {MAX_CONCURRENCY}, found {}", active.concurrency);
        fault("concurrency", message);
    }
}

fn check_statuses(lists: [(&str, &Vec<u16>); 2], place: &DocPath, found: &mut Vec<Diagnostic>) {
    for (name, statuses) in lists {
        for (index, status) in statuses.iter().enumerate() {
            if !(100..=999).contains(status) {
                let place = place.field(name).field("statuses").index(index);
                let message = format!("expected a status from 100 to 999, found {status}");
                found.push(Diagnostic::error(place, message));
            }
        }
    }
}

/// What is wrong with checks that share the health of another upstream.
pub(super) fn check_sharing(upstreams: &[Arc<model::Upstream>]) -> Vec<Diagnostic> {
    let shared_with = |upstream: &model::Upstream| upstream.checks.as_ref()?.shared_with.clone();
    let mut found = Vec::new();
    for (index, upstream) in upstreams.iter().enumerate() {
        let Some(owner) = shared_with(upstream) else {
            continue;
        };
        let is_owner = |other: &model::Upstream| {
            other.name == owner && other.checks.is_some() && shared_with(other).is_none()
        };
        if !upstreams.iter().any(|other| is_owner(other)) {
            let place = DocPath::root().field("upstreams").index(index).field("checks");
            let message = format!(
                "expected an upstream with its own health checks, found '{}'",
                owner.escape_debug()
            );
            found.push(Diagnostic::error(place.field("shared_with"), message));
        }
    }
    found
}
