//! What `opentelemetry`, `zipkin`, `prometheus` and `public-api` become in the catalogue.

use serde_json::{Value, json};
use weir_apisix::{Options, translate};
use weir_model::{Diagnostic, Model, PluginRef};

/// The model, empty if the document is refused, and the findings.
fn read(plugin: &str, config: &Value, metadata: Option<Value>) -> (Model, Vec<Diagnostic>) {
    let mut document = json!({
        "routes": [{
            "id": "1", "name": "shop", "uris": ["/a/*", "/b"], "hosts": ["h"],
            "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
            "plugins": {plugin: config},
        }],
    });
    if let Some(metadata) = metadata {
        document["plugin_metadata"] = json!([metadata]);
    }
    translate(&document, &Options::default()).unwrap_or_else(|found| (Model::default(), found))
}

fn catalogue(plugin: &str, config: &Value, metadata: Option<Value>) -> Value {
    let (model, found) = read(plugin, config, metadata);
    assert_eq!(model.routes.len(), 1, "{found:?}");
    match model.routes[0].plugins[0].plugin.as_ref().expect("a plugin") {
        PluginRef::Inline(instance) => instance.config.clone(),
        PluginRef::Shared(id) => panic!("{id}"),
    }
}

#[test]
fn samplers_and_metadata() {
    let metadata = || {
        Some(json!({
            "id": "opentelemetry", "trace_id_source": "x-request-id",
            "resource": {"service.name": "edge", "n": 1},
            "collector": {"address": "c:4318", "request_timeout": 5, "request_headers": {"K": "v", "N": 1}},
            "batch_span_processor": {"max_export_batch_size": 7, "inactive_timeout": 0.5},
        }))
    };
    let root = |name: &str, fraction: f64| json!({"root": {"name": name, "options": {"fraction": fraction}}});
    for (sampler, sampling) in [
        (
            json!({"name": "always_on"}),
            json!({"ratio": 1.0, "parent": "ignore"}),
        ),
        (
            json!({"name": "always_off"}),
            json!({"ratio": 0.0, "parent": "ignore"}),
        ),
        (
            json!({"name": "trace_id_ratio", "options": {"fraction": 0.25}}),
            json!({"ratio": 0.25, "parent": "ignore"}),
        ),
        (
            json!({"name": "parent_base", "options": root("always_on", 0.0)}),
            json!({"ratio": 1.0, "parent": "follow"}),
        ),
        (
            json!({"name": "parent_base", "options": root("trace_id_ratio", 0.5)}),
            json!({"ratio": 0.5, "parent": "follow"}),
        ),
    ] {
        let found = catalogue("opentelemetry", &json!({"sampler": sampler}), metadata());
        assert_eq!(found["sampling"], sampling, "{sampler}");
    }
    let config =
        json!({"additional_attributes": ["remote_addr"], "additional_header_prefix_attributes": ["x-*"]});
    let found = catalogue("opentelemetry", &config, metadata());
    for (place, value) in [
        ("/sampling/ratio", json!(0.0)),
        ("/export/otlp_http/url", json!("http://c:4318/v1/traces")),
        ("/export/otlp_http/timeout_ms", json!(5_000)),
        ("/export/otlp_http/headers", json!({"K": "v", "N": "1"})),
        ("/resource", json!({"service.name": "edge", "n": 1.0})),
        ("/id_header", json!("X-Request-Id")),
        ("/batch/max_entries", json!(7)),
        ("/batch/delay_ms", json!(500)),
        ("/spans/root/attributes/remote_addr", json!("${remote_addr}")),
        ("/header_attributes", json!(["x-*"])),
        ("/inject", json!(["w3c"])),
    ] {
        assert_eq!(found.pointer(place), Some(&value), "{place}");
    }
    // Without metadata nothing is traced, as in the original.
    let (_, warnings) = read("opentelemetry", &json!({}), None);
    assert!(
        warnings[0].message.contains("plugin_metadata is required"),
        "{warnings:?}"
    );
    let found = catalogue("opentelemetry", &json!({}), None);
    assert_eq!((&found["inject"], &found["export"]), (&json!([]), &Value::Null));
}

#[test]
fn zipkin_and_prometheus() {
    let found = catalogue(
        "zipkin",
        &json!({"endpoint": "http://z/api/v2/spans", "sample_ratio": 0.5, "server_addr": "10.0.0.1"}),
        None,
    );
    for (place, value) in [
        ("/export/zipkin/local_address", json!("10.0.0.1")),
        ("/sampling", json!({"ratio": 0.5, "parent": "follow"})),
        ("/spans/parts/1/name", json!("apisix.response_span")),
        ("/service_name", json!("APISIX")),
        ("/batch/retries", json!(0)),
    ] {
        assert_eq!(found.pointer(place), Some(&value), "{place}");
    }
    let metadata = json!({"id": "prometheus", "disabled_labels": {"http_status": ["node"]}});
    let found = catalogue("prometheus", &json!({}), Some(metadata));
    assert_eq!(
        found["families"][0]["labels"][6],
        json!({"name": "node", "value": ""})
    );
    assert_eq!(
        found["families"][1]["labels"][4],
        json!({"name": "node", "value": "$balancer_ip"})
    );
    let (model, _) = read("prometheus", &json!({}), None);
    let labels = &model.routes[0].labels;
    assert_eq!(
        (labels["matched_uri"].as_str(), labels["matched_host"].as_str()),
        ("/a/* /b", "h")
    );
    assert_eq!(labels["route_name"], "shop");
    let (model, _) = read("cors", &json!({}), None);
    assert!(
        model.routes[0].labels.is_empty(),
        "a route that tells of nothing carries nothing"
    );
}

#[test]
fn faults_are_reported_in_the_originals_words() {
    for (plugin, config, words) in [
        (
            "zipkin",
            json!({"endpoint": "http://z", "sample_ratio": -0.1}),
            "property \"sample_ratio\" validation failed: expected -0.1 to be at least 1e-05",
        ),
        (
            "zipkin",
            json!({"endpoint": "http://z", "sample_ratio": 2}),
            "property \"sample_ratio\" validation failed: expected 2 to be at most 1",
        ),
        (
            "zipkin",
            json!({"endpoint": "http://z", "sample_ratio": 1, "server_addr": "badip"}),
            "failed to match pattern",
        ),
        (
            "zipkin",
            json!({"sample_ratio": 1}),
            "property \"endpoint\" is required",
        ),
        (
            "opentelemetry",
            json!({"sampler": {"name": "maybe"}}),
            "matches none of the enum values",
        ),
        (
            "prometheus",
            json!({"prefer_name": 1}),
            "wrong type: expected boolean, got number",
        ),
    ] {
        let (_, found) = read(plugin, &config, None);
        assert!(
            found.iter().any(|it| it.message.contains(words)),
            "{plugin}: {found:?}"
        );
    }
}

/// `plugin_attr.batch-requests.uri`.
#[test]
fn batches_are_public_at_their_own_path() {
    let text = "plugin_attr: {batch-requests: {uri: /foo/bar}}";
    let (moved, _) = weir_apisix::read_settings(text, &|_| None).expect("settings");
    let moved: &'static weir_apisix::Settings = Box::leak(Box::new(moved));
    let stock = weir_apisix::Settings::stock();
    let usual = "/apisix/batch-requests";
    for (settings, uri, expected) in [
        (stock, None, Some(json!(usual))),
        (stock, Some(usual), Some(Value::Null)),
        (stock, Some("/foo/bar"), None),
        (moved, None, Some(json!("/foo/bar"))),
        (moved, Some("/foo/bar"), Some(Value::Null)),
        (moved, Some(usual), None),
    ] {
        let config = uri.map_or_else(|| json!({}), |uri| json!({"uri": uri}));
        let upstream = json!({"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}});
        let route = json!({"id": "1", "uri": "/*", "upstream": upstream, "plugins": {"public-api": config}});
        let options = Options {
            settings,
            ..Options::default()
        };
        let (model, _) = translate(&json!({"routes": [route]}), &options).expect("a model");
        let Some(PluginRef::Inline(instance)) = &model.routes[0].plugins[0].plugin else {
            panic!("{config}");
        };
        let batches = instance
            .config
            .get("batches")
            .filter(|batches| batches.is_object());
        let path = batches.map(|batches| batches.get("path").cloned().unwrap_or_default());
        assert_eq!(path, expected, "{config}");
    }
}

#[test]
fn logins_at_wolf_servers_are_public_where_they_are_asked_for() {
    let below = |name: &str| format!("/apisix/plugin/wolf-rbac/{name}");
    for (config, expected) in [
        (
            json!({}),
            json!([
                {"serves": "login", "path": below("login")},
                {"serves": "user-info", "path": below("user_info")},
                {"serves": "change-password", "path": below("change_pwd")},
            ]),
        ),
        (json!({"uri": below("login")}), json!([{"serves": "login"}])),
        (
            json!({"uri": below("change_pwd")}),
            json!([{"serves": "change-password"}]),
        ),
        (json!({"uri": "/apisix/status"}), Value::Null),
    ] {
        let (model, diagnostics) = read("public-api", &config, None);
        assert_eq!(diagnostics, [], "{config}");
        let Some(PluginRef::Inline(instance)) = &model.routes[0].plugins[0].plugin else {
            panic!("{config}");
        };
        let found = instance.config.get("wolf").cloned().unwrap_or_default();
        assert_eq!(found, expected, "{config}");
    }
    // The original has no such interface either, and answers 404.
    let (_, diagnostics) = read("public-api", &json!({"uri": below("other")}), None);
    assert_eq!(diagnostics, []);
    let purge = json!({"uri": "/apisix/plugin/graphql-proxy-cache/disk/1/k"});
    let (_, diagnostics) = read("public-api", &purge, None);
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
}
