//! Routes and services of connections and datagrams, from documents and from a store.

use serde_json::{Value, json};
use weir_kong::incremental::IncrementalModel;
use weir_kong::{Options, translate};
use weir_model::document::parse;

fn model(text: &str) -> (Value, Vec<String>) {
    let document = parse(&format!("_format_version: \"3.0\"\n{text}")).expect("YAML");
    let (model, found) =
        translate(&document, &Options::default()).unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(model.validate(), Vec::new());
    let found = found.iter().map(|it| format!("{}: {}", it.path, it.message));
    (
        serde_json::to_value(&model).expect("the text form"),
        found.collect(),
    )
}

const DOCUMENT: &str = r#"
services:
- name: db
  protocol: tcp
  host: pool
  port: 5432
  read_timeout: 7000
  routes:
  - {name: by-port, protocols: [tcp], destinations: [{port: 5432}], sources: [{ip: 10.0.0.0/8}]}
  - {name: by-name, protocols: [tls], snis: [db.test]}
- {name: passed, protocol: tls_passthrough, host: 10.0.0.9, port: 443, routes: [
    {name: passed, protocols: [tls_passthrough], snis: [own.test]}]}
- {name: names, protocol: udp, host: pool, port: 53, routes: [
    {name: names, protocols: [udp], sources: [{ip: 10.0.0.1, port: 5}]}]}
- {name: secure, protocol: tls, host: pool, port: 465, routes: [
    {name: secure, protocols: [tcp], destinations: [{port: 25}]}]}
- {name: calls, host: 10.0.0.8, routes: [
    {name: unfit, protocols: [tcp], destinations: [{port: 1}]}, {name: call, paths: [/]}]}
- {name: unused, protocol: tcp, host: 10.0.0.8, port: 1, routes: [{name: unfit-call, paths: [/x]}]}
upstreams: [{name: pool, targets: [{target: "10.0.0.5:5432"}]}]
plugins:
- {name: ip-restriction, config: {deny: [10.6.6.6]}}
- {name: key-auth}
"#;

#[test]
fn a_document_becomes_stream_routes() {
    let (model, found) = model(DOCUMENT);
    let routes = model["stream_routes"].as_array().expect("a list");
    let rows: Vec<Value> = routes
        .iter()
        .map(|it| {
            let plugins = it["plugins"].as_array().map_or(0, Vec::len);
            json!([
                it["name"],
                it["protocols"],
                it["service"],
                it["precedence"],
                plugins
            ])
        })
        .collect();
    assert_eq!(
        rows,
        [
            json!(["by-port", ["tcp", "tls"], "db", 6, 1]),
            json!(["by-name", ["tls"], "db", rows[1][3], 1]),
            json!(["passed", ["tls-passthrough"], "passed", rows[2][3], 1]),
            json!(["names", ["udp"], "names", 3, 1]),
            json!(["secure", ["tcp", "tls"], "secure", rows[4][3], 1]),
            // It keeps its sessions from other routes.
            json!(["unfit", ["tcp", "tls"], null, rows[5][3], 1]),
        ],
        "global plugins for calls stand in no chain"
    );
    assert_eq!(routes[0]["sources"], json!(["10.0.0.0/8"]));
    assert_eq!(routes[0]["destinations"], json!([":5432"]));
    assert_eq!(routes[3]["sources"], json!(["10.0.0.1:5"]));
    let services = model["services"].as_array().expect("a list");
    let reached: Vec<Value> = services
        .iter()
        .map(|it| it.get("url").or(it.get("upstream")).cloned().unwrap_or_default())
        .collect();
    assert_eq!(
        reached,
        [
            "pool for streams",
            "tcp://10.0.0.9:443",
            "pool for streams",
            "pool for streams over TLS",
            "http://10.0.0.8:80",
            "tcp://10.0.0.8:1"
        ]
    );
    assert_eq!(services[0]["timeouts"]["read_ms"], 7000);
    let unfit =
        "the protocols of the route and of its service do not go together: what comes to it is refused";
    assert_eq!(
        found.iter().filter(|it| it.ends_with(unfit)).count(),
        2,
        "{found:?}"
    );
    let routes = model["routes"].as_array().expect("a list");
    let targets: Vec<&Value> = routes.iter().map(|it| &it["to"]).collect();
    assert_eq!(
        targets,
        [&json!({"service": "calls"}), &json!({"respond": {"status": 503}})]
    );
}

#[test]
fn a_store_is_served_likewise() {
    const SERVICE: &str = "5f3e1c80-0000-4000-8000-000000000001";
    const ROUTE: &str = "5f3e1c80-0000-4000-8000-000000000002";
    let mut stored = IncrementalModel::new(Options::default());
    let mut apply = |key: String, value: Option<&str>| stored.apply(&key, value.map(str::as_bytes));
    let service = r#"{"name":"s","protocol":"tcp","host":"10.0.0.1","port":5432}"#;
    let route = format!(
        r#"{{"name":"r","protocols":["tcp"],"destinations":[{{"port":5}}],"service":{{"id":"{SERVICE}"}}}}"#
    );
    let restriction = format!(
        r#"{{"name":"ip-restriction","route":{{"id":"{ROUTE}"}},"config":{{"allow":["10.0.0.0/8"]}}}}"#
    );
    for workspace in ["default", "team"] {
        apply(format!("{workspace}/services/{SERVICE}"), Some(service));
        apply(format!("{workspace}/routes/{ROUTE}"), Some(&route));
    }
    apply(format!("default/plugins/{SERVICE}"), Some(&restriction));
    let warnings = |stored: &mut IncrementalModel| -> Vec<String> {
        let (model, broken) = stored.model();
        assert_eq!(broken, Vec::new());
        let routes = model.stream_routes.iter();
        routes
            .map(|it| {
                format!(
                    "{} {} {}",
                    it.name,
                    it.service.as_deref().unwrap_or("-"),
                    it.plugins.len()
                )
            })
            .collect()
    };
    assert_eq!(warnings(&mut stored), ["r s 1", "team/r team/s 0"]);
    stored.apply(&format!("default/routes/{ROUTE}"), None);
    stored.apply(&format!("default/plugins/{SERVICE}"), None);
    assert_eq!(warnings(&mut stored), ["team/r team/s 0"]);
}

#[test]
fn loggers_work_on_streams() {
    let (model, found) = model(
        r#"
services:
- {name: db, protocol: tcp, host: 10.0.0.5, port: 5432, routes: [
    {name: db, protocols: [tcp], destinations: [{port: 5432}]}]}
plugins:
- {name: http-log, config: {http_endpoint: "http://127.0.0.1:1/"}}
- {name: tcp-log, route: db, config: {host: 127.0.0.1, port: 1}}
- {name: prometheus, route: db}
"#,
    );
    let steps = model["stream_routes"][0]["plugins"].as_array().expect("a chain");
    assert_eq!(steps.len(), 2, "{steps:?}");
    let warnings: Vec<&String> = found.iter().filter(|it| it.contains("on streams")).collect();
    assert_eq!(warnings.len(), 1, "{found:?}");
    assert!(
        warnings[0].contains("\"prometheus\" does nothing"),
        "{warnings:?}"
    );
}
