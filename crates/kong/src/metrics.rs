//! `/metrics`: what the original reports of a node in addition to the counts of its `prometheus` plugin, under its
//! names. What is said about Lua's memory and of timers there has no counterpart here.

use crate::admin::{VERSION, process_id};
use crate::plugins::prometheus::WORKSPACE_LABEL;
use weir_plugins::prometheus::{escaped_label, write_gauges};

/// The exposition in which the plugin counts.
pub const EXPOSITION: &str = "kong";

/// The facts about the node.
#[derive(Debug, Clone, Default)]
pub struct NodeMetrics {
    /// Client connections that are open.
    pub open_connections: u64,
    /// Client connections that were accepted.
    pub accepted_connections: u64,
    /// Requests that were answered or given up.
    pub requests: u64,
    /// Whether the store of the configuration can be reached.
    pub is_store_reachable: bool,
    /// Targets, if they are to be listed.
    pub targets: Vec<Target>,
}

/// How a target stands.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its upstream.
    pub upstream: String,
    /// The target as it is written: `host:port`.
    pub target: String,
    /// The address; empty if its name leads nowhere.
    pub address: String,
    /// `healthchecks_off`, `healthy`, `unhealthy` or `dns_error`.
    pub state: &'static str,
}

const STATES: [&str; 4] = ["healthchecks_off", "healthy", "unhealthy", "dns_error"];

/// Writes what is known of the node.
pub fn write(figures: &NodeMetrics, out: &mut String) {
    let node = process_id();
    let mut family = |name: &str, help: &str, samples: &[(String, u64)]| {
        write_gauges(&format!("kong_{name}"), help, samples, out);
    };
    family(
        "datastore_reachable",
        "Datastore reachable from Kong, 0 is unreachable",
        &[(String::new(), u64::from(figures.is_store_reachable))],
    );
    let connections = [
        ("accepted", figures.accepted_connections),
        ("active", figures.open_connections),
        ("handled", figures.accepted_connections),
        ("reading", 0),
        ("total", figures.requests),
        ("waiting", figures.open_connections),
        ("writing", 0),
    ];
    family(
        "nginx_connections_total",
        "Number of connections by subsystem",
        &connections.map(|(state, value)| {
            let labels = format!("{{node_id=\"{node}\",subsystem=\"http\",state=\"{state}\"}}");
            (labels, value)
        }),
    );
    let labels = format!("{{node_id=\"{node}\",subsystem=\"http\"}}");
    family(
        "nginx_requests_total",
        "Number of requests total",
        &[(labels, figures.requests)],
    );
    let labels = format!("{{node_id=\"{node}\",version=\"{}\"}}", VERSION);
    family("node_info", "Kong Node metadata information", &[(labels, 1)]);
    if !figures.targets.is_empty() {
        let samples: Vec<(String, u64)> = figures.targets.iter().flat_map(samples).collect();
        family(
            "upstream_target_health",
            "Health status of targets of upstream. States = healthchecks_off|healthy|unhealthy|dns_error, value is 1 \
             when state is populated.",
            &samples,
        );
    }
}

/// The samples of a text that are counted for this workspace, with what is said about their families.
pub fn of_workspace(text: &str, workspace: &str) -> String {
    let label = format!("{WORKSPACE_LABEL}=\"{}\"", escaped_label(workspace));
    let is_own = |sample: &str| {
        // A quote within a value has a backslash before it, so nothing but a label begins like this.
        let mut found = sample.match_indices(&label);
        found.any(|(at, _)| at > 0 && matches!(sample.as_bytes()[at - 1], b'{' | b','))
    };
    let (mut own, mut about) = (String::new(), String::new());
    let mut is_begun = false;
    for line in text.lines() {
        if line.starts_with('#') {
            if is_begun {
                about.clear();
                is_begun = false;
            }
            about.push_str(line);
            about.push('\n');
            continue;
        }
        is_begun = true;
        if is_own(line) {
            own.push_str(&std::mem::take(&mut about));
            own.push_str(line);
            own.push('\n');
        }
    }
    own
}

fn samples(target: &Target) -> impl Iterator<Item = (String, u64)> {
    STATES.into_iter().map(|state| {
        let labels = format!(
            "{{upstream=\"{}\",target=\"{}\",address=\"{}\",state=\"{state}\",subsystem=\"http\"}}",
            escaped_label(&target.upstream),
            escaped_label(&target.target),
            escaped_label(&target.address)
        );
        (labels, u64::from(state == target.state))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_sees_its_own_metrics() {
        let text = "# HELP a A\n# TYPE a gauge\na 1\n# HELP b B\n# TYPE b counter\n\
            b{route=\"r\",workspace=\"default\"} 1\nb{route=\"workspace=\\\"team\\\"\",workspace=\"x\"} 2\n\
            b{workspace=\"team\",consumer=\"\"} 3\nb{route=\"r\",workspace=\"team\"} 4\n# HELP c C\n\
            c{workspace=\"team2\"} 5\n";
        let own = "# HELP b B\n# TYPE b counter\nb{workspace=\"team\",consumer=\"\"} 3\nb{route=\"r\",workspace=\"team\"} 4\n";
        assert_eq!(of_workspace(text, "team"), own);
        assert_eq!(of_workspace(text, "none"), "");
    }

    #[test]
    fn metrics_of_a_node_have_the_originals_names() {
        let mut text = String::new();
        let figures = NodeMetrics {
            open_connections: 2,
            accepted_connections: 7,
            requests: 30,
            is_store_reachable: true,
            targets: vec![Target {
                upstream: "u\"1".into(),
                target: "h:80".into(),
                address: "10.0.0.1:80".into(),
                state: "unhealthy",
            }],
        };
        write(&figures, &mut text);
        let text = text
            .replace(&process_id().to_string(), "ID")
            .replace(VERSION, "V");
        let expected = r#"# HELP kong_datastore_reachable Datastore reachable from Kong, 0 is unreachable
# TYPE kong_datastore_reachable gauge
kong_datastore_reachable 1
# HELP kong_nginx_connections_total Number of connections by subsystem
# TYPE kong_nginx_connections_total gauge
kong_nginx_connections_total{node_id="ID",subsystem="http",state="accepted"} 7
kong_nginx_connections_total{node_id="ID",subsystem="http",state="active"} 2
kong_nginx_connections_total{node_id="ID",subsystem="http",state="handled"} 7
kong_nginx_connections_total{node_id="ID",subsystem="http",state="reading"} 0
kong_nginx_connections_total{node_id="ID",subsystem="http",state="total"} 30
kong_nginx_connections_total{node_id="ID",subsystem="http",state="waiting"} 2
kong_nginx_connections_total{node_id="ID",subsystem="http",state="writing"} 0
# HELP kong_nginx_requests_total Number of requests total
# TYPE kong_nginx_requests_total gauge
kong_nginx_requests_total{node_id="ID",subsystem="http"} 30
# HELP kong_node_info Kong Node metadata information
# TYPE kong_node_info gauge
kong_node_info{node_id="ID",version="V"} 1
"#;
        let (node, targets) = text.split_once("# HELP kong_upstream").expect("targets");
        assert_eq!(node, expected);
        let lines: Vec<&str> = targets.lines().skip(2).collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines
                .iter()
                .all(|line| line.ends_with(" 1") == line.contains("state=\"unhealthy\""))
        );
        assert!(lines[0].starts_with(r#"kong_upstream_target_health{upstream="u\"1",target="h:80","#));
    }
}
