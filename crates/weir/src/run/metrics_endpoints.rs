//! Metrics of this process in the dialects' forms, other than counts of calls.

use crate::clock::unix_milliseconds;
use crate::run::health::health_of;
use crate::status::Status;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use weir_dialect::{Counts, DialectName, DialectSet, NodeMetrics, WaitingEntries};

/// Adds the metrics of this process to the dialects' expositions, and makes long ones on `runtime`.
pub fn describe(status: &Arc<Status>, runtime: &Handle, dialects: &DialectSet) {
    let metrics = status.plugin_metrics();
    for dialect in dialects.iter() {
        for exposition in dialect.expositions() {
            let (known, dialect) = (Arc::downgrade(status), Arc::clone(dialect));
            metrics.set_preface(exposition.name, move |lists_targets, out| {
                if let Some(status) = Weak::upgrade(&known) {
                    let node = node(&status, dialect.name(), lists_targets);
                    dialect.write_node_metrics(exposition.name, &node, out);
                }
            });
        }
    }
    metrics.set_clock(unix_milliseconds);
    let runtime = runtime.clone();
    metrics.set_runner(move |job| {
        // The job reports its end itself.
        drop(runtime.spawn_blocking(job));
    });
}

/// What is known of this process, for metrics of a dialect.
fn node(status: &Status, dialect: DialectName, lists_targets: bool) -> NodeMetrics {
    let totals = status.metrics().totals();
    let gateway = status.gateway().filter(|_| lists_targets);
    let upstreams = gateway.map_or_else(Vec::new, |gateway| gateway.health().upstreams);
    let upstreams = upstreams.iter().map(|it| (it.name.clone(), health_of(it)));
    NodeMetrics {
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        counts: Counts {
            open_connections: totals.connections_active,
            accepted_connections: totals.connections_accepted,
            requests: totals.requests,
        },
        is_store_reachable: status.reaches_store(),
        revisions: status.revisions(dialect),
        upstreams: upstreams.collect(),
        waiting_entries: waiting_entries(status),
    }
}

/// Entries of loggers that wait, with their labels as texts.
fn waiting_entries(status: &Status) -> Vec<WaitingEntries> {
    let waiting = status.metrics().log_sinks().map(|stats| stats.waiting());
    let waiting = waiting.unwrap_or_default().into_iter();
    waiting
        .map(|((logger, route, address), count)| WaitingEntries {
            logger: logger.to_string(),
            route,
            address: address.to_string(),
            count,
        })
        .collect()
}
