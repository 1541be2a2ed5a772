//! `/metrics`: what the original reports of a node in addition to the counts of its `prometheus` plugin, under its
//! names. What is said about Lua's memory and of timers there has no counterpart here.

use crate::admin::{VERSION, process_id};
use crate::plugins::prometheus::WORKSPACE_LABEL;
use weir_dialect::{HealthState, NodeMetrics, TargetHealth};
use weir_plugins::prometheus::{escaped_label, write_gauges};

/// The exposition in which the plugin counts.
pub const EXPOSITION: &str = "kong";

const STATES: [&str; 4] = ["healthchecks_off", "healthy", "unhealthy", "dns_error"];

/// Writes what is known of the node.
pub fn write(known: &NodeMetrics, out: &mut String) {
    let node = process_id();
    let counts = known.counts;
    // With files there is no store to miss.
    let is_store_reachable = known.is_store_reachable.unwrap_or(true);
    let mut family = |name: &str, help: &str, samples: &[(String, u64)]| {
        write_gauges(&format!("kong_{name}"), help, samples, out);
    };
    family(
        "datastore_reachable",
        "Datastore reachable from Kong, 0 is unreachable",
        &[(String::new(), u64::from(is_store_reachable))],
    );
    let connections = [
        ("accepted", counts.accepted_connections),
        ("active", counts.open_connections),
        ("handled", counts.accepted_connections),
        ("reading", 0),
        ("total", counts.requests),
        ("waiting", counts.open_connections),
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
        &[(labels, counts.requests)],
    );
    let labels = format!("{{node_id=\"{node}\",version=\"{}\"}}", VERSION);
    family("node_info", "Kong Node metadata information", &[(labels, 1)]);
    let targets = known.upstreams.iter().flat_map(|(upstream, health)| {
        let targets = health.targets.iter();
        targets.flat_map(move |target| samples(upstream, target))
    });
    let samples: Vec<(String, u64)> = targets.collect();
    if !samples.is_empty() {
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

/// Samples of each address of a target, or of a name that leads nowhere.
fn samples(upstream: &str, target: &TargetHealth) -> Vec<(String, u64)> {
    let known = target.addresses.iter().map(|it| {
        let state = match it.state {
            HealthState::Healthy => "healthy",
            HealthState::Unhealthy => "unhealthy",
            HealthState::Unchecked => "healthchecks_off",
        };
        (it.text(), state)
    });
    let mut addresses: Vec<(String, &str)> = known.collect();
    if addresses.is_empty() {
        addresses.push((String::new(), "dns_error"));
    }
    let samples = addresses.iter().flat_map(|(address, current)| {
        STATES.into_iter().map(move |state| {
            let labels = format!(
                "{{upstream=\"{}\",target=\"{}:{}\",address=\"{}\",state=\"{state}\",subsystem=\"http\"}}",
                escaped_label(upstream),
                escaped_label(&target.host),
                target.port,
                escaped_label(address)
            );
            (labels, u64::from(state == *current))
        })
    });
    samples.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_dialect::{AddressHealth, CheckCounts, Counts, UpstreamHealth};

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
        let target = |host: &str, addresses| TargetHealth {
            host: host.to_owned(),
            port: 80,
            is_resolved: true,
            addresses,
        };
        let address = AddressHealth {
            ip: "10.0.0.1".to_owned(),
            port: 80,
            weight: 1,
            state: HealthState::Unhealthy,
            checks: "unhealthy",
            counts: CheckCounts::default(),
        };
        let upstream = UpstreamHealth {
            state: HealthState::Unhealthy,
            targets: vec![target("h", vec![address]), target("nowhere", Vec::new())],
        };
        let node = NodeMetrics {
            counts: Counts {
                open_connections: 2,
                accepted_connections: 7,
                requests: 30,
            },
            upstreams: vec![("u\"1".to_owned(), upstream)],
            ..NodeMetrics::default()
        };
        write(&node, &mut text);
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
        assert_eq!(lines.len(), 8);
        for (lines, target, address, state) in [
            (&lines[..4], "h", "10.0.0.1:80", "unhealthy"),
            (&lines[4..], "nowhere", "", "dns_error"),
        ] {
            let start = r#"kong_upstream_target_health{upstream="u\"1",target="#;
            let start = format!("{start}\"{target}:80\",address=\"{address}\",");
            let state = format!("state=\"{state}\"");
            for line in lines {
                assert!(line.starts_with(&start), "{line}");
                assert_eq!(line.ends_with(" 1"), line.contains(&state), "{line}");
            }
        }
    }
}
