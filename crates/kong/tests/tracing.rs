//! What `opentelemetry`, `zipkin` and `prometheus` become in the catalogue.

use serde_json::{Value, json};
use weir_kong::{Options, translate};
use weir_model::{Diagnostic, PluginRef};

fn read(plugin: &str, config: &Value) -> Result<(String, Value), Vec<Diagnostic>> {
    let document = json!({
        "_format_version": "3.0",
        "services": [{
            "name": "s",
            "url": "http://127.0.0.1:1",
            "routes": [{ "name": "r", "paths": ["/x"], "plugins": [{ "name": plugin, "config": config }] }],
        }],
    });
    let (model, found) = translate(&document, &Options::default())?;
    assert!(found.is_empty(), "{found:?}");
    let instance = match model.routes[0].plugins[0].plugin.as_ref().expect("a plugin") {
        PluginRef::Inline(instance) => instance,
        PluginRef::Shared(id) => model.plugins.iter().find(|it| it.id == *id).expect("shared"),
    };
    Ok((instance.name.clone(), instance.config.clone()))
}

fn catalogue(plugin: &str, config: &Value) -> Value {
    let (name, config) = read(plugin, config).expect("is accepted");
    match name.as_str() {
        "tracing" => {
            drop(serde_json::from_value::<weir_plugins::tracing::Config>(config.clone()).expect("typed"))
        }
        "prometheus" => {
            drop(serde_json::from_value::<weir_plugins::prometheus::Config>(config.clone()).expect("typed"));
        }
        other => panic!("{other}"),
    }
    config
}

#[test]
fn headers_are_read_and_written_as_the_former_and_the_present_fields_say() {
    let all = json!(["b3", "w3c", "jaeger", "ot", "datadog", "aws", "gcp"]);
    for (plugin, config, extract, inject, default) in [
        (
            "opentelemetry",
            json!({}),
            all.clone(),
            json!(["preserve"]),
            "w3c",
        ),
        ("zipkin", json!({}), all.clone(), json!(["preserve"]), "b3"),
        (
            "zipkin",
            json!({"default_header_type": "jaeger"}),
            all.clone(),
            json!(["preserve"]),
            "jaeger",
        ),
        (
            "opentelemetry",
            json!({"header_type": "ignore"}),
            json!([]),
            json!(["w3c"]),
            "w3c",
        ),
        (
            "zipkin",
            json!({"header_type": "ot"}),
            all.clone(),
            json!(["preserve", "ot"]),
            "b3",
        ),
        (
            "opentelemetry",
            json!({"propagation": {"extract": ["aws", "w3c"], "inject": ["preserve", "b3-single"]}}),
            json!(["aws", "w3c"]),
            json!(["preserve", "b3-single"]),
            "w3c",
        ),
        (
            "zipkin",
            json!({"propagation": {"clear": ["x-a"], "default_format": "gcp"}}),
            json!([]),
            json!([]),
            "gcp",
        ),
    ] {
        let mut config = config;
        if plugin == "opentelemetry" {
            config["traces_endpoint"] = json!("http://c:4318/v1/traces");
            if config["propagation"].is_object() {
                config["propagation"]["default_format"] = json!("w3c");
            }
        }
        let found = catalogue(plugin, &config);
        assert_eq!(found["extract"], extract, "{plugin} {config}");
        assert_eq!(found["inject"], inject, "{plugin} {config}");
        assert_eq!(found["default_format"], default, "{plugin} {config}");
    }
}

#[test]
fn options_become_those_of_the_catalogue() {
    for (plugin, config, expected) in [
        (
            "opentelemetry",
            json!({
                "endpoint": "https://c:4318/v1/traces", "headers": {"X-Key": "k"}, "sampling_rate": 0.5,
                "resource_attributes": {"service.name": "edge"}, "http_response_header_for_traceid": "X-T",
            }),
            vec![
                ("/export/otlp_http/url", json!("https://c:4318/v1/traces")),
                ("/export/otlp_http/headers", json!({"X-Key": "k"})),
                ("/export/otlp_http/timeout_ms", json!(11_000)),
                ("/sampling", json!({"ratio": 0.5, "parent": "limit"})),
                ("/resource", json!({"service.name": "edge"})),
                ("/echo_header", json!("X-T")),
                ("/batch/max_entries", json!(200)),
                ("/spans/attempts/name", json!("kong.balancer")),
            ],
        ),
        (
            "opentelemetry",
            json!({"traces_endpoint": "http://c/"}),
            vec![("/sampling/ratio", json!(0.01))],
        ),
        (
            "zipkin",
            json!({
                "http_endpoint": "http://z:9411/api/v2/spans", "sample_ratio": 1, "traceid_byte_count": 8,
                "http_span_name": "method_path", "static_tags": [{"name": "zone", "value": "$1"}],
                "phase_duration_flavor": "tags", "default_service_name": "d", "local_service_name": "edge",
            }),
            vec![
                ("/service_name", json!("edge")),
                ("/short_ids", json!(true)),
                ("/share_spans", json!(true)),
                ("/sampling", json!({"ratio": 1.0, "parent": "follow"})),
                ("/tags_header", json!("Zipkin-Tags")),
                ("/spans/root/name", json!("$request_method $uri")),
                ("/spans/root/fixed", json!({"zone": "$1"})),
                ("/spans/root/attributes/kong.credential", json!("$credential_id")),
                ("/spans/parts/0/name", json!("$request_method $uri (proxy)")),
                ("/spans/parts/0/leads", json!(true)),
                (
                    "/spans/parts/0/durations/0/name",
                    json!("kong.access.duration_ms"),
                ),
                ("/export/zipkin/default_service", json!("d")),
                ("/batch/delay_ms", json!(0)),
            ],
        ),
        (
            "zipkin",
            json!({"include_credential": false}),
            vec![
                ("/spans/parts/0/events/0", json!({"name": "kas", "at": "start"})),
                ("/export", Value::Null),
            ],
        ),
        (
            "prometheus",
            json!({"upstream_health_metrics": true}),
            vec![
                ("/families", json!([])),
                ("/target_health", json!(true)),
                ("/exposition", json!("kong")),
            ],
        ),
        (
            "prometheus",
            json!({"per_consumer": true, "status_code_metrics": true}),
            vec![
                ("/families/0/name", json!("kong_http_requests_total")),
                (
                    "/families/0/labels/5",
                    json!({"name": "consumer", "value": "$consumer_name"}),
                ),
            ],
        ),
    ] {
        let found = catalogue(plugin, &config);
        for (place, value) in expected {
            assert_eq!(found.pointer(place), Some(&value), "{plugin} {config} {place}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused_in_the_originals_words() {
    for (plugin, config, words) in [
        (
            "opentelemetry",
            json!({}),
            "at least one of these fields must be non-empty: 'traces_endpoint', 'logs_endpoint'",
        ),
        (
            "opentelemetry",
            json!({"traces_endpoint": "c:4318"}),
            "missing host in url",
        ),
        (
            "opentelemetry",
            json!({"traces_endpoint": "http://c", "sampling_rate": 2}),
            "value should be between 0 and 1",
        ),
        (
            "zipkin",
            json!({"traceid_byte_count": 9}),
            "expected one of: 8, 16",
        ),
        (
            "zipkin",
            json!({"static_tags": [{"name": "lc", "value": "x"}]}),
            "must not be one of: error",
        ),
        ("prometheus", json!({"per_consumer": "yes"}), "expected a boolean"),
    ] {
        let found = read(plugin, &config).expect_err("is refused");
        assert!(found[0].message.contains(words), "{plugin}: {}", found[0].message);
        assert!(found[0].path.to_string().contains("config") || plugin == "opentelemetry");
    }
}
