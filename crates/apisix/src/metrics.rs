//! Metrics of a node from the original's exporter, other than the counts of its `prometheus` plugin, under its names.
//! Those of NGINX's shared memory and of keys in etcd have no counterpart here.

use crate::Settings;
use weir_dialect::{Counts, HealthState, NodeMetrics};
use weir_plugins::prometheus::{escaped_label, write_gauges};

/// The exposition in which the plugin counts.
pub const EXPOSITION: &str = "apisix";

/// The exposition that is the answer of `/apisix/status`.
pub const STATUS_EXPOSITION: &str = "apisix node-status";

/// Writes one of the expositions. The names of metrics have the prefix that `config.yaml` gives them.
pub fn write(exposition: &str, settings: &Settings, node: &NodeMetrics, out: &mut String) {
    match exposition {
        STATUS_EXPOSITION => {
            let id = settings.id.as_deref().unwrap_or(&node.hostname);
            write_status(id, node.counts, out);
        }
        _ => write_families(&settings.prometheus.metric_prefix, node, out),
    }
}

/// Writes the answer of `/apisix/status`: what the original's web server counts, as texts.
fn write_status(id: &str, counts: Counts, out: &mut String) {
    let text = |number: u64| serde_json::Value::from(number.to_string());
    let status = serde_json::json!({
        "id": id,
        "status": {
            "active": text(counts.open_connections),
            "accepted": text(counts.accepted_connections),
            "handled": text(counts.accepted_connections),
            "total": text(counts.requests),
            "reading": "0",
            "writing": "0",
            "waiting": text(counts.open_connections),
        },
    });
    out.push_str(&status.to_string());
}

/// Writes what is known of the node.
fn write_families(prefix: &str, node: &NodeMetrics, out: &mut String) {
    let counts = node.counts;
    let mut family = |name: &str, help: &str, samples: &[(String, u64)]| {
        write_gauges(&format!("{prefix}{name}"), help, samples, out);
    };
    if let Some(is_reachable) = node.is_store_reachable {
        family(
            "etcd_reachable",
            "Config server etcd reachable from APISIX, 0 is unreachable",
            &[(String::new(), u64::from(is_reachable))],
        );
    }
    if !node.revisions.is_empty() {
        let indexes = node.revisions.iter();
        let samples: Vec<_> = indexes
            .map(|(key, index)| (format!("{{key=\"{key}\"}}"), *index))
            .collect();
        family(
            "etcd_modify_indexes",
            "Etcd modify index for APISIX keys",
            &samples,
        );
    }
    family(
        "http_requests_total",
        "The total number of client requests since APISIX started",
        &[(String::new(), counts.requests)],
    );
    let connections = [
        ("accepted", counts.accepted_connections),
        ("active", counts.open_connections),
        ("handled", counts.accepted_connections),
        ("reading", 0),
        ("waiting", counts.open_connections),
        ("writing", 0),
    ];
    family(
        "nginx_http_current_connections",
        "Number of HTTP connections",
        &connections.map(|(state, value)| (format!("{{state=\"{state}\"}}"), value)),
    );
    let version = env!("CARGO_PKG_VERSION");
    let hostname = escaped_label(&node.hostname);
    let labels = format!("{{hostname=\"{hostname}\",version=\"{version}\"}}");
    family("node_info", "Info of APISIX node", &[(labels, 1)]);
    let checked = node.upstreams.iter();
    let checked = checked.filter(|(_, health)| health.state != HealthState::Unchecked);
    let samples = checked.flat_map(|(name, health)| {
        let addresses = health.targets.iter().flat_map(|target| &target.addresses);
        addresses.map(move |it| {
            let labels = format!(
                "{{name=\"{}\",ip=\"{}\",port=\"{}\"}}",
                escaped_label(name),
                escaped_label(&it.ip),
                it.port
            );
            (labels, u64::from(it.state == HealthState::Healthy))
        })
    });
    let samples: Vec<(String, u64)> = samples.collect();
    if !samples.is_empty() {
        family("upstream_status", "Upstream status from health check", &samples);
    }
    if !node.waiting_entries.is_empty() {
        let samples = node.waiting_entries.iter().map(|it| {
            let labels = format!(
                "{{name=\"{}\",route_id=\"{}\",server_addr=\"{}\"}}",
                escaped_label(&it.logger),
                escaped_label(&it.route),
                escaped_label(&it.address)
            );
            (labels, it.count)
        });
        let samples: Vec<(String, u64)> = samples.collect();
        family(
            "batch_process_entries",
            "batch process remaining entries",
            &samples,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_dialect::{AddressHealth, CheckCounts, TargetHealth, UpstreamHealth, WaitingEntries};

    const COUNTS: Counts = Counts {
        open_connections: 2,
        accepted_connections: 7,
        requests: 30,
    };

    #[test]
    fn the_status_has_the_id_of_the_settings_or_the_hostname() {
        let node = NodeMetrics {
            hostname: "gw-1".to_owned(),
            counts: COUNTS,
            ..NodeMetrics::default()
        };
        let named = Settings {
            id: Some("edge".to_owned()),
            ..Settings::stock().clone()
        };
        for (settings, id) in [(Settings::stock(), "gw-1"), (&named, "edge")] {
            let mut text = String::new();
            write(STATUS_EXPOSITION, settings, &node, &mut text);
            let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(answer["id"], id);
            assert_eq!(answer["status"]["total"], "30");
        }
    }

    #[test]
    fn metrics_of_a_node_have_the_originals_names() {
        let upstream = |state, ip: &str| UpstreamHealth {
            state,
            targets: vec![TargetHealth {
                host: "h".to_owned(),
                port: 80,
                is_resolved: true,
                addresses: vec![AddressHealth {
                    ip: ip.to_owned(),
                    port: 80,
                    weight: 1,
                    state,
                    checks: "unhealthy",
                    counts: CheckCounts::default(),
                }],
            }],
        };
        let node = NodeMetrics {
            hostname: "gw-1".to_owned(),
            counts: COUNTS,
            is_store_reachable: Some(true),
            revisions: vec![("routes", 12)],
            upstreams: vec![
                (
                    "/upstreams/1".to_owned(),
                    upstream(HealthState::Unhealthy, "10.0.0.1"),
                ),
                (
                    "/upstreams/2".to_owned(),
                    upstream(HealthState::Unchecked, "10.0.0.2"),
                ),
            ],
            waiting_entries: vec![WaitingEntries {
                logger: "sys logger".to_owned(),
                route: "9".to_owned(),
                address: "127.0.0.1".to_owned(),
                count: 3,
            }],
        };
        let mut text = String::new();
        write(EXPOSITION, Settings::stock(), &node, &mut text);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let info = format!(
            "apisix_node_info{{hostname=\"gw-1\",version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(
            samples,
            [
                "apisix_etcd_reachable 1",
                "apisix_etcd_modify_indexes{key=\"routes\"} 12",
                "apisix_http_requests_total 30",
                "apisix_nginx_http_current_connections{state=\"accepted\"} 7",
                "apisix_nginx_http_current_connections{state=\"active\"} 2",
                "apisix_nginx_http_current_connections{state=\"handled\"} 7",
                "apisix_nginx_http_current_connections{state=\"reading\"} 0",
                "apisix_nginx_http_current_connections{state=\"waiting\"} 2",
                "apisix_nginx_http_current_connections{state=\"writing\"} 0",
                info.as_str(),
                "apisix_upstream_status{name=\"/upstreams/1\",ip=\"10.0.0.1\",port=\"80\"} 0",
                "apisix_batch_process_entries{name=\"sys logger\",route_id=\"9\",server_addr=\"127.0.0.1\"} 3",
            ]
        );
    }
}
