//! Metrics of this process in the dialects' forms, other than counts of calls.

use crate::clock::unix_milliseconds;
use crate::status::Status;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use weir_apisix::Settings;
use weir_proxy::health::{Status as TargetStatus, UpstreamReport};

/// Adds the metrics of this process to the dialects' expositions, and makes long ones on `runtime`. APISIX's metrics
/// have names that begin with those of `settings`.
pub fn describe(status: &Arc<Status>, runtime: &Handle, settings: &'static Settings) {
    let prefix = settings.prometheus.metric_prefix.as_str();
    let metrics = status.plugin_metrics();
    let known = Arc::downgrade(status);
    metrics.set_preface(weir_kong::metrics::EXPOSITION, move |targets, out| {
        if let Some(status) = Weak::upgrade(&known) {
            weir_kong::metrics::write(&kong(&status, targets), out);
        }
    });
    let known = Arc::downgrade(status);
    metrics.set_preface(weir_apisix::metrics::EXPOSITION, move |targets, out| {
        if let Some(status) = Weak::upgrade(&known) {
            weir_apisix::metrics::write(&apisix(&status, targets, prefix), out);
        }
    });
    let known = Arc::downgrade(status);
    metrics.set_preface(weir_apisix::metrics::STATUS_EXPOSITION, move |_, out| {
        if let Some(status) = Weak::upgrade(&known) {
            let mut figures = apisix(&status, false, prefix);
            figures.hostname = settings.id.clone().unwrap_or(figures.hostname);
            weir_apisix::metrics::write_status(&figures, out);
        }
    });
    metrics.set_clock(unix_milliseconds);
    let runtime = runtime.clone();
    metrics.set_runner(move |job| {
        // The job reports its end itself.
        drop(runtime.spawn_blocking(job));
    });
}

fn upstreams(status: &Status, wanted: bool) -> Vec<UpstreamReport> {
    let gateway = status.gateway().filter(|_| wanted);
    gateway.map_or_else(Vec::new, |gateway| gateway.health().upstreams)
}

fn kong(status: &Status, targets: bool) -> weir_kong::metrics::NodeMetrics {
    let totals = status.metrics().totals();
    let samples = upstreams(status, targets).into_iter().flat_map(|upstream| {
        let targets = upstream.targets.into_iter();
        targets.flat_map(move |target| {
            let upstream = upstream.name.clone();
            let written = format!("{}:{}", target.host, target.port);
            let one = move |address: String, status: TargetStatus| weir_kong::metrics::Target {
                upstream: upstream.clone(),
                target: written.clone(),
                address,
                state: match status {
                    TargetStatus::Healthy => "healthy",
                    TargetStatus::Unhealthy => "unhealthy",
                    TargetStatus::DnsError => "dns_error",
                    TargetStatus::ChecksOff => "healthchecks_off",
                },
            };
            match target.addresses.is_empty() {
                true => vec![one(String::new(), TargetStatus::DnsError)],
                false => {
                    let addresses = target.addresses.iter();
                    addresses
                        .map(|it| one(it.address.to_string(), it.status))
                        .collect()
                }
            }
        })
    });
    weir_kong::metrics::NodeMetrics {
        open_connections: totals.connections_active,
        accepted_connections: totals.connections_accepted,
        requests: totals.requests,
        // With files there is no store to miss.
        is_store_reachable: status.reaches_store().unwrap_or(true),
        targets: samples.collect(),
    }
}

/// Entries of loggers that wait, with their labels as texts.
fn batches(status: &Status) -> Vec<(String, String, String, u64)> {
    let waiting = status.metrics().log_sinks().map(|stats| stats.waiting());
    let waiting = waiting.unwrap_or_default().into_iter();
    waiting
        .map(|((name, route, address), entries)| (name.to_string(), route, address.to_string(), entries))
        .collect()
}

fn apisix(status: &Status, targets: bool, prefix: &str) -> weir_apisix::metrics::NodeMetrics {
    let totals = status.metrics().totals();
    let checked = upstreams(status, targets).into_iter();
    let samples = checked
        .filter(|upstream| upstream.status != TargetStatus::ChecksOff)
        .flat_map(|upstream| {
            let addresses = upstream.targets.into_iter().flat_map(|target| target.addresses);
            addresses.map(move |it| {
                let is_healthy = it.status == TargetStatus::Healthy;
                let (ip, port) = (it.address.ip().to_string(), it.address.port());
                (upstream.name.clone(), ip, port, is_healthy)
            })
        });
    weir_apisix::metrics::NodeMetrics {
        prefix: prefix.to_owned(),
        open_connections: totals.connections_active,
        accepted_connections: totals.connections_accepted,
        requests: totals.requests,
        is_store_reachable: status.reaches_store(),
        modify_indexes: status.revisions(weir_apisix::NAME),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        targets: samples.collect(),
        batches: batches(status),
    }
}
