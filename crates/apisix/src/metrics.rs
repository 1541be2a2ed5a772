//! Metrics of a node from the original's exporter, other than the counts of its `prometheus` plugin, under its names.
//! Those of NGINX's shared memory and of keys in etcd have no counterpart here.

use weir_plugins::prometheus::{escaped_label, write_gauges};

/// The exposition in which the plugin counts.
pub const EXPOSITION: &str = "apisix";

/// The exposition that is the answer of `/apisix/status`.
pub const STATUS_EXPOSITION: &str = "apisix node-status";

/// Writes the answer of `/apisix/status`: what the original's web server counts, as texts.
pub fn write_status(figures: &NodeMetrics, out: &mut String) {
    let text = |number: u64| serde_json::Value::from(number.to_string());
    let status = serde_json::json!({
        "id": figures.hostname,
        "status": {
            "active": text(figures.open_connections),
            "accepted": text(figures.accepted_connections),
            "handled": text(figures.accepted_connections),
            "total": text(figures.requests),
            "reading": "0",
            "writing": "0",
            "waiting": text(figures.open_connections),
        },
    });
    out.push_str(&status.to_string());
}

/// The facts about the node.
#[derive(Debug, Clone, Default)]
pub struct NodeMetrics {
    /// The prefix of the names of metrics: `apisix_`, unless `config.yaml` says otherwise.
    pub prefix: String,
    /// Client connections that are open.
    pub open_connections: u64,
    /// Client connections that were accepted.
    pub accepted_connections: u64,
    /// Requests that were answered or given up.
    pub requests: u64,
    /// Whether the store of the configuration can be reached; `None`: there is no store, and no metric of it.
    pub is_store_reachable: Option<bool>,
    /// Revisions of the store by the original's key; none without an Admin API.
    pub modify_indexes: Vec<(&'static str, u64)>,
    /// The machine's name.
    pub hostname: String,
    /// Targets whose health is checked: upstream, address, port, and whether they are healthy.
    pub targets: Vec<(String, String, u16, bool)>,
    /// Entries of loggers that wait to be sent: the logger's name, the route, the gateway's address, and how many.
    pub batches: Vec<(String, String, String, u64)>,
}

/// Writes what is known of the node.
pub fn write(figures: &NodeMetrics, out: &mut String) {
    let mut family = |name: &str, help: &str, samples: &[(String, u64)]| {
        write_gauges(&format!("{}{name}", figures.prefix), help, samples, out);
    };
    if let Some(is_reachable) = figures.is_store_reachable {
        family(
            "etcd_reachable",
            "Config server etcd reachable from APISIX, 0 is unreachable",
            &[(String::new(), u64::from(is_reachable))],
        );
    }
    if !figures.modify_indexes.is_empty() {
        let indexes = figures.modify_indexes.iter();
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
        &[(String::new(), figures.requests)],
    );
    let connections = [
        ("accepted", figures.accepted_connections),
        ("active", figures.open_connections),
        ("handled", figures.accepted_connections),
        ("reading", 0),
        ("waiting", figures.open_connections),
        ("writing", 0),
    ];
    family(
        "nginx_http_current_connections",
        "Number of HTTP connections",
        &connections.map(|(state, value)| (format!("{{state=\"{state}\"}}"), value)),
    );
    let version = env!("CARGO_PKG_VERSION");
    let hostname = escaped_label(&figures.hostname);
    let labels = format!("{{hostname=\"{hostname}\",version=\"{version}\"}}");
    family("node_info", "Info of APISIX node", &[(labels, 1)]);
    if !figures.targets.is_empty() {
        let samples = figures.targets.iter().map(|(name, ip, port, is_healthy)| {
            let labels = format!(
                "{{name=\"{}\",ip=\"{}\",port=\"{port}\"}}",
                escaped_label(name),
                escaped_label(ip)
            );
            (labels, u64::from(*is_healthy))
        });
        let samples: Vec<(String, u64)> = samples.collect();
        family("upstream_status", "Upstream status from health check", &samples);
    }
    if !figures.batches.is_empty() {
        let samples = figures.batches.iter().map(|(name, route, address, entries)| {
            let labels = format!(
                "{{name=\"{}\",route_id=\"{}\",server_addr=\"{}\"}}",
                escaped_label(name),
                escaped_label(route),
                escaped_label(address)
            );
            (labels, *entries)
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

    #[test]
    fn metrics_of_a_node_have_the_originals_names() {
        let figures = NodeMetrics {
            prefix: "apisix_".into(),
            open_connections: 2,
            accepted_connections: 7,
            requests: 30,
            is_store_reachable: Some(true),
            modify_indexes: vec![("routes", 12)],
            hostname: "gw-1".into(),
            targets: vec![("/upstreams/1".into(), "10.0.0.1".into(), 80, false)],
            batches: vec![("sys logger".into(), "9".into(), "127.0.0.1".into(), 3)],
        };
        let mut text = String::new();
        write(&figures, &mut text);
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
