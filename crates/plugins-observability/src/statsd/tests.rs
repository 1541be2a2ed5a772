//! `statsd` as servers see it.

use super::*;
use serde_json::json;
use weir_plugin::RouteInfo;
use weir_plugins_testkit::*;

fn record() -> CallRecord<'static> {
    CallRecord {
        upstream_us: Some(10_045),
        hostname: "gw.example",
        session: None,
        ..weir_plugins_testkit::record()
    }
}

/// The lines that report a call.
fn reported_lines(
    config: &Value,
    record: &CallRecord<'_>,
    prepare: impl FnOnce(&mut Exchange),
) -> Vec<String> {
    let mut config = config.clone();
    config["target"] = json!({"udp": {"host": "127.0.0.1", "port": 8125}});
    let filter = build(&Statsd, &config).expect("valid");
    let mut exchange = exchange();
    exchange.route = Some(Arc::new(RouteInfo {
        name: "r1".into(),
        service: "api.v1".into(),
        ..RouteInfo::default()
    }));
    prepare(&mut exchange);
    let mut out = Vec::new();
    filter.on_log(&mut exchange, record, &mut out);
    let lines = out.into_iter().flat_map(|entry| {
        let text = String::from_utf8(entry.bytes).expect("a text");
        text.split('\n').map(str::to_owned).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn values_and_kinds_are_written() {
    for (metric, expected) in [
        (json!({"stat": "n", "kind": "counter"}), "weir.n:1|c"),
        (
            json!({"stat": "n", "kind": "counter", "value": "request-bytes"}),
            "weir.n:77|c",
        ),
        (
            json!({"stat": "n", "kind": "gauge", "value": "response-bytes"}),
            "weir.n:300|g",
        ),
        (
            json!({"stat": "n", "kind": "timer", "value": "total-ms"}),
            "weir.n:12|ms",
        ),
        (
            json!({"stat": "n", "kind": "histogram", "value": "upstream-ms"}),
            "weir.n:10|h",
        ),
        (
            json!({"stat": "n", "kind": "meter", "value": "gateway-ms"}),
            "weir.n:2|m",
        ),
        (
            json!({"stat": "{scope}.n.{status}", "kind": "distribution"}),
            "weir.service.api_v1.n.201:1|d",
        ),
        (
            json!({"stat": "n", "kind": "set", "value": {"text": "{username}"}}),
            "weir.n:ALICE|s",
        ),
    ] {
        let lines = reported_lines(&json!({"metrics": [metric]}), &record(), |exchange| {
            exchange.identity = Some(identity("alice", None));
        });
        assert_eq!(lines, [expected], "{metric}");
    }
    let timer = json!({"stat": "n", "kind": "timer", "value": "total-ms"});
    let config = json!({"metrics": [timer], "decimals": true, "prefix": ""});
    assert_eq!(reported_lines(&config, &record(), |_| ()), ["n:12.345|ms"]);
}

#[test]
fn tags_are_written_in_each_style() {
    for (style, expected) in [
        ("plain", "weir.n:1|c"),
        ("dogstatsd", "weir.n:1|c|#app:x,node:gw.example,status:201"),
        ("influxdb", "weir.n,app:x,node=gw.example,status=201:1|c"),
        ("librato", "weir.n#app:x,node=gw.example,status=201:1|c"),
        ("signalfx", "weir.n[app:x,node=gw.example,status=201]:1|c"),
    ] {
        let config = json!({
            "style": style, "plain_tags": ["app:x"],
            "tags": {"consumer": "{consumer}", "node": "{node}", "status": "{status}"},
            "metrics": [{"stat": "n", "kind": "counter"}],
        });
        assert_eq!(reported_lines(&config, &record(), |_| ()), [expected]);
    }
}

#[test]
fn missing_values_are_not_reported() {
    let config = json!({"metrics": [
        {"stat": "user.{consumer}", "kind": "counter"},
        {"stat": "up", "kind": "timer", "value": "upstream-ms"},
        {"stat": "{scope}", "kind": "counter"},
    ]});
    let record = CallRecord {
        upstream_us: None,
        ..record()
    };
    let lines = reported_lines(&config, &record, |exchange| exchange.route = None);
    assert_eq!(lines, ["weir.global.unmatched:1|c"]);
    let none = json!({"metrics": [{"stat": "a", "kind": "counter"}], "statuses": [{"from": 500, "to": 599}]});
    assert!(reported_lines(&none, &record, |_| ()).is_empty());
}

#[test]
fn facts_cannot_forge_lines() {
    let config = json!({"style": "dogstatsd", "tags": {"p": "{path}"}, "metrics": [
        {"stat": "n", "kind": "counter"},
    ]});
    let lines = reported_lines(&config, &record(), |exchange| {
        prepare(exchange, "GET /a\nb:1|c,x@#[]=", &[]);
    });
    assert_eq!(lines, ["weir.n:1|c|#p:/a_b_1_c_x_____"]);
}

#[test]
fn some_are_drawn() {
    let config = json!({"metrics": [{"stat": "n", "kind": "counter", "sample_rate": 0.5}]});
    let mut config_on = config.clone();
    config_on["target"] = json!({"udp": {"host": "127.0.0.1", "port": 8125}});
    let filter = build(&Statsd, &config_on).expect("valid");
    let mut exchange = exchange();
    let mut out = Vec::new();
    for _ in 0..1000 {
        filter.on_log(&mut exchange, &record(), &mut out);
    }
    assert!((400..600).contains(&out.len()), "{}", out.len());
    assert_eq!(out[0].bytes, b"weir.n:1|c|@0.5");
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let udp = json!({"udp": {"host": "127.0.0.1", "port": 8125}});
    for (config, places) in [
        (json!({"target": udp}), &["metrics"][..]),
        (
            json!({"target": {"file": {"path": "/a"}}, "metrics": [{"stat": "n", "kind": "set"}]}),
            &["target.file"],
        ),
        (
            json!({"target": udp, "metrics": [{"stat": "a b", "kind": "set"}]}),
            &["metrics"],
        ),
        (
            json!({"target": udp, "metrics": [{"stat": "{none}", "kind": "set"}]}),
            &["metrics"],
        ),
        (
            json!({"target": udp, "metrics": [{"stat": "a", "kind": "set", "sample_rate": 2}]}),
            &["metrics[0].sample_rate"],
        ),
    ] {
        assert_eq!(refused_at(&Statsd, &config), places, "{config}");
    }
    assert!(build(&Statsd, &example(include_str!("mod.rs"))).is_ok());
}
