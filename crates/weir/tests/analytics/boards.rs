//! The dashboard for Grafana and the alerting rules for Prometheus are made here of the names of metrics, and checked in:
//! `UPDATE_GOLDEN=1 cargo test -p weir --test analytics boards` writes them.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use weir_telemetry::metrics::names::{Metric, MetricType};

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
/// What the dashboard's variables choose.
const CHOSEN: &str = "{job=\"$job\",instance=~\"$instance\"}";
const ROUTES: &str = "{job=\"$job\",instance=~\"$instance\",service=~\"$service\",route=~\"$route\"}";

/// The rate of a counter, by labels.
fn rate(metric: Metric, chosen: &str, by: &str) -> String {
    let by = if by.is_empty() {
        String::new()
    } else {
        format!(" by ({by})")
    };
    format!("sum(rate({}{chosen}[$__rate_interval])){by}", metric.name())
}

/// A percentile of a histogram.
fn percentile(metric: Metric, share: f64, by: &str) -> String {
    let by = if by.is_empty() {
        "le".to_owned()
    } else {
        format!("le, {by}")
    };
    let rate = format!("rate({}_bucket{ROUTES}[$__rate_interval])", metric.name());
    format!("histogram_quantile({share}, sum({rate}) by ({by}))")
}

/// A panel: its title, its unit, and each query with its legend.
type Panel = (&'static str, &'static str, Vec<(String, &'static str)>);

/// The percentiles of a histogram.
fn percentiles(metric: Metric) -> Vec<(String, &'static str)> {
    let shares = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")];
    shares
        .map(|(share, name)| (percentile(metric, share, ""), name))
        .into()
}

fn panels() -> [(&'static str, Vec<Panel>); 5] {
    [
        ("Traffic", traffic()),
        ("Errors", errors()),
        ("Latency", latency()),
        ("Upstreams and connections", upstreams()),
        ("Configuration", configuration()),
    ]
}

fn traffic() -> Vec<Panel> {
    use Metric as M;
    let calls = rate(M::Requests, CHOSEN, "instance");
    let routes = format!("topk(10, {})", rate(M::RouteRequests, ROUTES, "service, route"));
    let codes = rate(M::RouteRequests, ROUTES, "code");
    let (received, sent) = (rate(M::BytesIn, CHOSEN, ""), rate(M::BytesOut, CHOSEN, ""));
    vec![
        ("Calls", "reqps", vec![(calls, "{{instance}}")]),
        ("Calls by route", "reqps", vec![(routes, "{{service}} {{route}}")]),
        ("Calls by status", "reqps", vec![(codes, "{{code}}")]),
        ("Bytes", "Bps", vec![(received, "received"), (sent, "sent")]),
    ]
}

fn errors() -> Vec<Panel> {
    use Metric as M;
    let failed = rate(
        M::RouteRequests,
        &ROUTES.replace('}', ",class=\"5xx\"}"),
        "service",
    );
    let share = format!("{failed} / {}", rate(M::RouteRequests, ROUTES, "service"));
    let refused = rate(M::Refusals, CHOSEN, "reason");
    let violations = rate(M::ProtocolErrors, CHOSEN, "kind");
    let retries = rate(M::UpstreamRetries, CHOSEN, "instance");
    vec![
        (
            "Share of 5xx by service",
            "percentunit",
            vec![(share, "{{service}}")],
        ),
        ("Refused calls by reason", "reqps", vec![(refused, "{{reason}}")]),
        (
            "Violations of the protocol",
            "reqps",
            vec![(violations, "{{kind}}")],
        ),
        ("Retries", "reqps", vec![(retries, "{{instance}}")]),
    ]
}

fn latency() -> Vec<Panel> {
    use Metric as M;
    let routes = format!(
        "topk(10, {})",
        percentile(M::RequestDuration, 0.95, "service, route")
    );
    vec![
        ("Time of calls", "s", percentiles(M::RequestDuration)),
        ("Time of upstreams", "s", percentiles(M::UpstreamDuration)),
        ("Time of the gateway", "s", percentiles(M::GatewayDuration)),
        ("p95 by route", "s", vec![(routes, "{{service}} {{route}}")]),
    ]
}

fn upstreams() -> Vec<Panel> {
    use Metric as M;
    let gauge = |metric: Metric| format!("sum({}{CHOSEN})", metric.name());
    let out = format!("{}{CHOSEN} == 0", M::UpstreamTargetHealthy.name());
    let (clients, servers) = (
        gauge(M::ClientConnectionsActive),
        gauge(M::UpstreamConnectionsActive),
    );
    let refused = rate(M::ClientConnectionsRefused, CHOSEN, "instance");
    let reused = rate(M::UpstreamConnectionsReused, CHOSEN, "");
    let opened = rate(M::UpstreamConnectionsOpened, CHOSEN, "");
    let share = format!("{reused} / ({reused} + {opened})");
    vec![
        (
            "Targets that get no calls",
            "none",
            vec![(out, "{{upstream}} {{address}}")],
        ),
        (
            "Open connections",
            "none",
            vec![(clients, "clients"), (servers, "upstreams")],
        ),
        ("Clients turned away", "reqps", vec![(refused, "{{instance}}")]),
        (
            "Reused upstream connections",
            "percentunit",
            vec![(share, "share")],
        ),
    ]
}

fn configuration() -> Vec<Panel> {
    use Metric as M;
    let skipped = format!("{}{CHOSEN}", M::ConfigDocumentsSkipped.name());
    let ends = format!("min({}{CHOSEN}) by (name)", M::CertificateExpires.name());
    let reloads = format!(
        "sum(increase({}{CHOSEN}[$__rate_interval])) by (result)",
        M::ConfigReloads.name()
    );
    let dropped = rate(M::AnalyticsDropped, CHOSEN, "instance");
    vec![
        ("Documents left out", "none", vec![(skipped, "{{instance}}")]),
        ("Certificates end in", "s", vec![(ends, "{{name}}")]),
        ("Reloads", "none", vec![(reloads, "{{result}}")]),
        (
            "Analytics: calls not counted",
            "reqps",
            vec![(dropped, "{{instance}}")],
        ),
    ]
}

fn dashboard() -> String {
    let (mut made, mut id, mut y) = (Vec::new(), 0, 0);
    for (title, panels) in panels() {
        id += 1;
        made.push(json!({ "id": id, "type": "row", "title": title, "collapsed": false, "panels": [], "gridPos": { "h": 1, "w": 24, "x": 0, "y": y } }));
        y += 1;
        for (place, (title, unit, queries)) in panels.into_iter().enumerate() {
            id += 1;
            let targets: Vec<Value> = queries
                .into_iter()
                .zip('A'..)
                .map(|((expr, legend), name)| json!({ "refId": name.to_string(), "expr": expr, "legendFormat": legend, "datasource": { "type": "prometheus", "uid": "$datasource" } }))
                .collect();
            made.push(json!({
                "id": id, "type": "timeseries", "title": title, "targets": targets,
                "datasource": { "type": "prometheus", "uid": "$datasource" },
                "fieldConfig": { "defaults": { "unit": unit, "min": if unit == "s" && title.starts_with("Certificates") { Value::Null } else { json!(0) } }, "overrides": [] },
                "gridPos": { "h": 8, "w": 12, "x": 12 * (place % 2), "y": y + 8 * (place / 2) },
            }));
        }
        y += 16;
    }
    let variable = |name: &str, query: String, is_many: bool| {
        json!({
            "name": name, "type": "query", "query": query, "refresh": 2, "sort": 1, "multi": is_many, "includeAll": is_many,
            "allValue": is_many.then_some(".*"), "datasource": { "type": "prometheus", "uid": "$datasource" },
        })
    };
    let (info, routes) = (Metric::BuildInfo.name(), Metric::RouteRequests.name());
    let dashboard = json!({
        "title": "Weir", "uid": "weir", "schemaVersion": 39, "version": 1, "editable": true, "tags": ["weir"],
        "time": { "from": "now-1h", "to": "now" }, "refresh": "30s", "timezone": "browser",
        "templating": { "list": [
            { "name": "datasource", "type": "datasource", "query": "prometheus" },
            variable("job", format!("label_values({info}, job)"), false),
            variable("instance", format!("label_values({info}{{job=\"$job\"}}, instance)"), true),
            variable("service", format!("label_values({routes}{{job=\"$job\"}}, service)"), true),
            variable("route", format!("label_values({routes}{{job=\"$job\",service=~\"$service\"}}, route)"), true),
        ] },
        "panels": made,
    });
    format!("{dashboard:#}\n")
}

/// A rule: its name, its expression, for how long, how much it matters, and what it says.
type Rule = (&'static str, String, &'static str, &'static str, &'static str);

/// The rate of a counter, by a label.
fn rate_of(metric: Metric, labels: &str, by: &str) -> String {
    format!("sum(rate({}{labels}[5m])) by ({by})", metric.name())
}

fn rules_of_calls() -> Vec<Rule> {
    use Metric as M;
    let all = rate_of(M::RouteRequests, "", "service");
    let failed = rate_of(M::RouteRequests, "{class=\"5xx\"}", "service");
    let no_target = rate_of(M::Refusals, "{reason=\"no_target\"}", "instance");
    let refused = rate_of(M::ClientConnectionsRefused, "", "instance");
    vec![
        (
            "WeirErrors",
            format!("{failed} / {all} > 0.05 and {all} > 0.1"),
            "5m",
            "critical",
            "More than 5 % of the calls of service {{ $labels.service }} fail.",
        ),
        (
            "WeirTargetDown",
            format!("{} == 0", M::UpstreamTargetHealthy.name()),
            "5m",
            "warning",
            "Target {{ $labels.address }} of {{ $labels.upstream }} gets no calls.",
        ),
        (
            "WeirNoTarget",
            format!("{no_target} > 0"),
            "5m",
            "critical",
            "Calls on {{ $labels.instance }} find no target.",
        ),
        (
            "WeirClientsTurnedAway",
            format!("{refused} > 0"),
            "5m",
            "warning",
            "{{ $labels.instance }} turns clients away: raise --max-connections.",
        ),
    ]
}

fn rules_of_the_configuration() -> Vec<Rule> {
    use Metric as M;
    vec![
        (
            "WeirCertificateEnds",
            format!("min({}) by (name) < 604800", M::CertificateExpires.name()),
            "1h",
            "warning",
            "The certificate {{ $labels.name }} ends in less than a week.",
        ),
        (
            "WeirConfigurationRefused",
            format!("{} == 0", M::ConfigLastReloadSuccessful.name()),
            "5m",
            "warning",
            "{{ $labels.instance }} has refused its configuration and serves the one before.",
        ),
        (
            "WeirDocumentsLeftOut",
            format!("{} > 0", M::ConfigDocumentsSkipped.name()),
            "10m",
            "warning",
            "{{ $labels.instance }} leaves out {{ $value }} documents: see /status.",
        ),
        (
            "WeirStoreAway",
            format!("{} == 0", M::ConfigStoreConnected.name()),
            "10m",
            "warning",
            "{{ $labels.instance }} does not reach its store or control plane.",
        ),
    ]
}

fn rules_of_the_process() -> Vec<Rule> {
    use Metric as M;
    let logs = rate_of(M::AccessLogLines, "{result=\"dropped\"}", "instance");
    let analytics = rate_of(M::AnalyticsDropped, "", "instance");
    vec![
        (
            "WeirPanics",
            format!("increase({}[15m]) > 0", M::Panics.name()),
            "0m",
            "warning",
            "{{ $labels.instance }} has panicked: see its log.",
        ),
        (
            "WeirLogsDropped",
            format!("{logs} > 0"),
            "10m",
            "info",
            "{{ $labels.instance }} drops lines of its access log.",
        ),
        (
            "WeirAnalyticsDropped",
            format!("{analytics} > 0"),
            "10m",
            "info",
            "{{ $labels.instance }} does not count all calls.",
        ),
        (
            "WeirRedisDown",
            format!("{} == 0", M::RedisUp.name()),
            "5m",
            "warning",
            "{{ $labels.instance }} does not reach the Redis {{ $labels.server }}.",
        ),
    ]
}

fn rules_file() -> String {
    let mut text = String::from(
        "# Alerting rules for Prometheus. Made of the names of metrics by a test: see docs/analytics.md.\ngroups:\n  - name: weir\n    rules:\n",
    );
    for (name, expr, hold, severity, summary) in [
        rules_of_calls(),
        rules_of_the_configuration(),
        rules_of_the_process(),
    ]
    .concat()
    {
        text.push_str(&format!(
            "      - alert: {name}\n        expr: '{expr}'\n        for: {hold}\n        labels: {{severity: {severity}}}\n        annotations:\n          summary: '{summary}'\n"
        ));
    }
    text
}

/// The names of metrics in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let starts = text.match_indices("weir_").map(|(at, _)| at);
    let names = starts.filter(|at| !text[..*at].ends_with(is_name));
    names
        .map(|at| text[at..].chars().take_while(|it| is_name(*it)).collect())
        .collect()
}

#[test]
fn boards_are_those_of_the_metrics() {
    for (path, made) in [
        ("grafana/weir.json", dashboard()),
        ("prometheus/weir.rules.yml", rules_file()),
    ] {
        let path = format!("{PACKAGING}/{path}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let folder = std::path::Path::new(&path).parent().expect("a folder");
            std::fs::create_dir_all(folder).expect("made");
            std::fs::write(&path, &made).expect("written");
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            known == made,
            "{path} is out of date: run UPDATE_GOLDEN=1 cargo test -p weir --test analytics boards"
        );
        // What is checked in names only metrics that there are.
        for name in names_in(&known) {
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            let is_known = Metric::ALL.iter().any(|metric| {
                metric.name() == name
                    || (Some(metric.name()) == family && metric.kind() == MetricType::Histogram)
            });
            assert!(is_known, "{path}: there is no metric {name}");
        }
    }
    assert!(serde_json::from_str::<Value>(&dashboard()).is_ok());
}
