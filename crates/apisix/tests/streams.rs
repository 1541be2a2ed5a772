//! Stream routes, from documents and from a store.

mod shared;

use serde_json::json;
use shared::model;
use weir_apisix::{IncrementalModel, Options, translate};
use weir_model::document::parse;

const DOCUMENT: &str = "
stream_routes:
- {id: any, upstream_id: 1}
- {id: below, sni: '*.a.test', upstream_id: 1}
- {id: full, sni: x.a.test, upstream: {scheme: tls, nodes: {'10.0.0.2:1': 1}, timeout: {connect: 1, send: 2, read: 3}}}
- {id: port, server_port: 9100, server_addr: 127.0.0.1, remote_addr: 10.0.0.7, service_id: s, plugins: {
    ip-restriction: {whitelist: [10.0.0.0/8]}, limit-conn: {conn: 1, burst: 0, default_conn_delay: 0.1, key: remote_addr},
    prometheus: {}}}
- {id: nowhere, server_port: 1}
upstreams: [{id: 1, nodes: {'10.0.0.1:5432': 1, '10.0.0.3:5432': 1}}]
services: [{id: s, upstream_id: 1, plugins: {limit-conn: {conn: 9, burst: 0, default_conn_delay: 0.1, key: remote_addr}, cors: {}}}]
";

#[test]
fn a_document_becomes_stream_routes() {
    let model = model(DOCUMENT);
    let rows: Vec<_> = model
        .stream_routes
        .iter()
        .map(|it| {
            json!([
                it.name,
                it.service,
                it.precedence,
                it.idle_timeout_ms,
                it.plugins.len()
            ])
        })
        .collect();
    assert_eq!(
        rows,
        [
            json!(["any", "upstreams/1 for streams", 3, 600_000, 0]),
            json!(["below", "upstreams/1 for streams", 4, 600_000, 0]),
            json!(["full", "stream_routes/full for streams", 5, null, 0]),
            json!(["port", "upstreams/1 for streams", 2, 600_000, 3]),
            json!(["nowhere", null, 1, 600_000, 0]),
        ]
    );
    let port = &model.stream_routes[3];
    let ends = serde_json::to_value((&port.sources, &port.destinations)).expect("ends");
    assert_eq!(ends, json!([["10.0.0.7"], ["127.0.0.1:9100"]]));
    let schemes: Vec<_> = model.upstreams.iter().map(|it| it.scheme.as_str()).collect();
    assert_eq!(schemes, ["tcp", "tls"]);
}

#[test]
fn what_is_not_available_is_refused_by_name() {
    for (fields, place, part) in [
        (
            "plugins: {mqtt-proxy: {protocol_name: MQTT}}",
            "stream_routes[0].plugins.mqtt-proxy",
            "property \"protocol_level\" is required",
        ),
        (
            "plugins: {mqtt-proxy: {protocol_level: 400}}",
            "stream_routes[0].plugins.mqtt-proxy",
            "expected 0 to 255",
        ),
        (
            "plugins: {limit-count: {}}",
            "stream_routes[0].plugins.limit-count",
            "not available on stream routes",
        ),
        (
            "plugins: {ip-restriction: {whitelist: [x]}}",
            "stream_routes[0].plugins.ip-restriction",
            "",
        ),
        (
            "plugins: {traffic-split: {rules: [{weighted_upstreams: [{upstream_id: 9}]}]}}",
            "stream_routes[0].plugins.traffic-split",
            "no upstream 'upstreams/9 for streams'",
        ),
        (
            "protocol: {name: redis}",
            "stream_routes[0].protocol",
            "\"redis\" (xRPC)",
        ),
    ] {
        let text =
            format!("stream_routes:\n- {{id: 1, upstream: {{nodes: {{'10.0.0.1:1': 1}}}}, {fields}}}\n");
        let document = parse(&text).expect("YAML");
        let found = match translate(&document, &Options::default()) {
            Ok((model, found)) => {
                // Its sessions are closed, and go to no other route.
                assert!(
                    model.stream_routes.iter().all(|it| it.service.is_none()),
                    "{fields}"
                );
                found
            }
            Err(found) => found,
        };
        let is_reported = found
            .iter()
            .any(|it| it.path.to_string() == place && it.message.contains(part));
        assert!(is_reported, "{fields}: {found:?}");
    }
}

#[test]
fn sessions_are_split_counted_and_logged() {
    let model = model(
        "
stream_routes:
- id: split
  plugins:
    traffic-split: {rules: [{weighted_upstreams: [
      {upstream: {nodes: {'10.0.0.1:1': 1}}, weight: 9}, {upstream_id: 1, weight: 1}, {weight: 1}]}]}
    prometheus: {}
    syslog: {host: 127.0.0.1, port: 5044}
  upstream: {scheme: tls, nodes: {'10.0.0.9:1': 1}}
upstreams: [{id: 1, scheme: udp, nodes: {'10.0.0.2:1': 1}}]
",
    );
    let configs: Vec<(&str, &serde_json::Value)> = model.stream_routes[0]
        .plugins
        .iter()
        .filter_map(|step| match &step.plugin {
            Some(weir_model::PluginRef::Inline(instance)) => Some((instance.name.as_str(), &instance.config)),
            _ => None,
        })
        .collect();
    let names: Vec<&str> = configs.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["traffic-split", "prometheus", "logger"]);
    let services: Vec<&str> = model.services.iter().map(|it| it.name.as_str()).collect();
    let choices = configs[0].1["rules"][0]["choices"].as_array().expect("choices");
    let chosen: Vec<_> = choices.iter().map(|it| it["service"].as_str()).collect();
    assert!(
        chosen[..2].iter().flatten().all(|it| services.contains(it)),
        "{chosen:?} {services:?}"
    );
    assert_eq!(chosen[2], None, "the route's own");
    let schemes: Vec<_> = model.upstreams.iter().map(|it| it.scheme.as_str()).collect();
    assert_eq!(
        schemes,
        ["tcp", "udp", "tls"],
        "each has the scheme that is written there"
    );
    let families = configs[1].1["families"].as_array().expect("families");
    let families: Vec<_> = families.iter().map(|it| it["name"].as_str()).collect();
    assert_eq!(
        families,
        [
            Some("apisix_stream_connection_total"),
            Some("apisix_stream_status")
        ]
    );
}

#[test]
fn sessions_of_mqtt_begin_with_a_connect_and_choose_by_its_id() {
    let model = model(
        "
stream_routes:
- id: cars
  plugins: {mqtt-proxy: {protocol_level: 4}}
  upstream: {type: chash, key: mqtt_client_id, nodes: {'10.0.0.1:1883': 1, '10.0.0.2:1883': 1}}
- {id: off, plugins: {mqtt-proxy: {_meta: {disable: true}}}, upstream: {nodes: {'10.0.0.1:1': 1}}}
",
    );
    let expected = json!({"protocol_name": "MQTT", "protocol_level": 4});
    assert_eq!(json!(model.stream_routes[0].mqtt), expected);
    assert_eq!(model.stream_routes[1].mqtt, None);
    assert_eq!(json!(model.upstreams[0].hash_on), json!(["mqtt-client-id", "ip"]));
}

#[test]
fn routes_by_server_name_are_for_tls_only() {
    let model = model(
        "
stream_routes:
- {id: plain, upstream: {nodes: {'10.0.0.1:1': 1}}}
- {id: every, sni: '*', upstream: {nodes: {'10.0.0.2:1': 1}}}
- {id: some, sni: '*.a.test', upstream: {nodes: {'10.0.0.3:1': 1}}}
- {id: one, sni: x.a.test, upstream: {nodes: {'10.0.0.4:1': 1}}}
",
    );
    let rows: Vec<_> = model
        .stream_routes
        .iter()
        .map(|it| json!([it.name, it.protocols, it.snis, it.precedence]))
        .collect();
    assert_eq!(
        rows,
        [
            json!(["plain", [], [], 1]),
            json!(["every", ["tls"], [], 2]),
            json!(["some", ["tls"], ["*.a.test"], 3]),
            json!(["one", ["tls"], ["x.a.test"], 4]),
        ]
    );
    assert!(model.validate().is_empty());
}

#[test]
fn a_store_is_served_likewise() {
    let mut stored = IncrementalModel::new(Options::default());
    stored.apply("upstreams/1", Some(br#"{"id":"1","nodes":{"10.0.0.1:1":1}}"#));
    stored.apply(
        "stream_routes/a",
        Some(br#"{"id":"a","server_port":9000,"upstream_id":"1"}"#),
    );
    stored.apply(
        "stream_routes/b",
        Some(br#"{"id":"b","upstream_id":"1","plugins":{"limit-count":{}}}"#),
    );
    let (model, broken) = stored.model();
    let names: Vec<_> = model.stream_routes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    // It lacks a plugin, so it stays and refuses its sessions.
    assert!(model.stream_routes[1].service.is_none());
    assert_eq!(model.upstreams.len(), 1);
    assert!(
        broken.iter().any(|it| it.document == "stream_routes/b"),
        "{broken:?}"
    );
    stored.apply("stream_routes/a", None);
    stored.apply("stream_routes/b", None);
    assert!(stored.model().0.stream_routes.is_empty());
}
