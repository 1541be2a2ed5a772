//! The control API.

use crate::api::{Api, clock};
use serde_json::json;
use std::sync::Arc;
use weir_apisix::AdminOptions;
use weir_dialect::{AddressHealth, CheckCounts, HealthSource, HealthState, TargetHealth, UpstreamHealth};
use weir_store::memory::MemoryStore;

struct Checks;

impl HealthSource for Checks {
    fn upstream(&self, upstream: &str) -> Option<UpstreamHealth> {
        let address = AddressHealth {
            ip: "127.0.0.1".to_owned(),
            port: 1980,
            weight: 1,
            state: HealthState::Unhealthy,
            checks: "unhealthy",
            counts: CheckCounts {
                tcp_failure: 2,
                ..CheckCounts::default()
            },
        };
        (upstream == "upstreams/u").then(|| UpstreamHealth {
            state: HealthState::Unhealthy,
            targets: vec![TargetHealth {
                host: "127.0.0.1".to_owned(),
                port: 1980,
                is_resolved: true,
                addresses: vec![address],
            }],
        })
    }

    fn mark(&self, _: &str, _: &str, _: Option<&str>, _: bool) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn the_configuration_is_shown() {
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    options.health = Some(Arc::new(Checks));
    let api = Api::with(options, Arc::new(MemoryStore::new())).await;
    api.play(
        r#"
GET /v1/routes -> 200 {}
GET /v1/healthcheck -> 200 {}
PUT upstreams/u {"nodes": {"127.0.0.1:1980": 1}, "checks": {"active": {"type": "tcp"}}} -> 201
PUT services/s {"upstream_id": "u"} -> 201
PUT routes/r {"uri": "/", "service_id": "s"} -> 201
PUT plugin_metadata/example-plugin {"skey": "val", "ikey": 1} -> 201
PUT plugin_metadata/http-logger {"log_format": {"a": "b"}} -> 201
GET /v1/routes -> 200 [{"key": "/apisix/routes/r", "value": {"priority": 0}}]
GET /v1/route/r -> 200 {"value": {"id": "r"}}
GET /v1/route/x -> 404 {"error_msg": "route[x] not found"}
GET /v1/services -> 200 [{"value": {"id": "s"}}]
GET /v1/service/s -> 200
GET /v1/upstreams -> 200 [{"value": {"nodes": [{"host": "127.0.0.1", "port": 1980, "weight": 1}], "scheme": "http"}}]
GET /v1/upstream/u -> 200
GET /v1/plugin_metadatas -> 200 [{"id": "http-logger"}, {"id": "example-plugin"}]
GET /v1/plugin_metadata/http-logger -> 200 {"log_format": {"a": "b"}}
GET /v1/plugin_metadata/cors -> 404 {"error_msg": "plugin metadata[cors] not found"}
GET /v1/healthcheck/routes/r -> 404 {"error_msg": "no checker for routes[r]"}
GET /v1/healthcheck/upstreams/x -> 404 {"error_msg": "upstreams[x] not found"}
GET /v1/healthcheck/x/x -> 400 {"error_msg": "invalid src type x"}
GET /v1/healthcheck/routes -> 404 {"error_msg": "missing src id for src type routes"}
POST /v1/gc -> 200
GET /v1/nothing -> 404
"#,
    )
    .await;
    let node = json!({
        "ip": "127.0.0.1", "port": 1980, "hostname": "127.0.0.1", "status": "unhealthy",
        "counter": {"success": 0, "http_failure": 0, "tcp_failure": 2, "timeout_failure": 0},
    });
    let expected = json!({"name": "/apisix/upstreams/u", "type": "tcp", "nodes": [node]});
    let one = api.call("GET /v1/healthcheck/upstreams/u", "", &[]).await.json();
    let all = api.call("GET /v1/healthcheck", "", &[]).await.json();
    assert_eq!((&one, all), (&expected, json!([expected])));
    let page = api.call("GET /v1/healthcheck", "", &["accept: text/html"]).await;
    assert_eq!(page.header("content-type"), Some("text/html"));
    assert!(
        page.text.contains("<td>127.0.0.1:1980</td><td>unhealthy</td>"),
        "{}",
        page.text
    );
    let schema = api.call("GET /v1/schema", "", &[]).await.json();
    assert_eq!(schema.pointer("/main/route/type"), Some(&json!("object")));
    assert_eq!(schema.pointer("/plugins/cors/priority"), Some(&json!(4000)));
    let protocols = json!({
        "type": "array",
        "description": "set ssl protocols",
        "items": {"enum": ["TLSv1.1", "TLSv1.2", "TLSv1.3"]},
        "maxItems": 3,
        "uniqueItems": true,
    });
    assert_eq!(
        schema.pointer("/main/ssl/properties/ssl_protocols"),
        Some(&protocols)
    );
    for (path, description) in [
        (
            "/main/route/properties/labels",
            "key/value pairs to specify attributes",
        ),
        ("/main/route/properties/methods/items", "HTTP method"),
        ("/main/upstream/properties/pass_host", "mod of host passing"),
    ] {
        let field_description = schema
            .pointer(path)
            .and_then(|field| field["description"].as_str());
        assert_eq!(field_description, Some(description), "{path}");
    }
}

/// `_meta` is shown alike for all plugins, those of streams too; these have their own schemas there.
#[tokio::test]
async fn schemas_of_meta_and_of_stream_plugins_are_shown() {
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    let api = Api::with(options, Arc::new(MemoryStore::new())).await;
    let schema = api.call("GET /v1/schema", "", &[]).await.json();
    let meta = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "disable": {"type": "boolean"},
            "error_response": {"oneOf": [{"type": "string"}, {"type": "object"}]},
            "filter": {
                "type": "array",
                "description": "filter determines whether the plugin needs to be executed at runtime",
            },
            "pre_function": {
                "type": "string",
                "description": "function to be executed in each phase before execution of plugins. The pre_function \
                                will have access to two arguments: `conf` and `ctx`.",
            },
            "priority": {"type": "integer", "description": "priority of plugins by customized order"},
        },
    });
    let limit_conn = json!({
        "type": "object",
        "$comment": "this is a mark for our injected plugin schema",
        "properties": {
            "_meta": meta,
            "burst": {"type": "integer", "minimum": 0},
            "conn": {"type": "integer", "exclusiveMinimum": 0},
            "default_conn_delay": {"type": "number", "exclusiveMinimum": 0},
            "key": {"type": "string"},
            "key_type": {"type": "string", "enum": ["var", "var_combination"], "default": "var"},
            "only_use_default_delay": {"type": "boolean", "default": false},
        },
        "required": ["conn", "burst", "default_conn_delay", "key"],
    });
    let mqtt_proxy = json!({
        "type": "object",
        "$comment": "this is a mark for our injected plugin schema",
        "properties": {
            "_meta": meta,
            "protocol_level": {"type": "integer"},
            "protocol_name": {"type": "string", "default": "MQTT"},
        },
        "required": ["protocol_level"],
    });
    for (path, expected) in [
        ("/plugins/key-auth/schema/properties/_meta", &meta),
        ("/stream_plugins/ip-restriction/schema/properties/_meta", &meta),
        ("/stream_plugins/limit-conn/schema", &limit_conn),
        ("/stream_plugins/mqtt-proxy/schema", &mqtt_proxy),
    ] {
        assert_eq!(schema.pointer(path), Some(expected), "{path}");
    }
}

#[tokio::test]
async fn a_file_logger_needs_a_file() {
    let mut options = AdminOptions::new(clock);
    options.keys.clear();
    let api = Api::with(options, Arc::new(MemoryStore::new())).await;
    let refusal = r#"400 {"error_msg": "failed to check the configuration of plugin file-logger err: property \"path\" is not set in either the plugin conf or the metadata"}"#;
    api.play(&format!(
        r#"
PUT routes/r {{"uri": "/", "plugins": {{"file-logger": {{}}}}}} -> {refusal}
PUT routes/r {{"uri": "/", "plugins": {{"file-logger": {{"path": "a.log"}}}}}} -> 201
PUT routes/s {{"uri": "/", "plugins": {{"file-logger": {{"_meta": {{"disable": true}}}}}}}} -> 201
PUT plugin_metadata/file-logger {{"path": "b.log"}} -> 201
PUT routes/t {{"uri": "/", "plugins": {{"file-logger": {{}}}}}} -> 201
"#
    ))
    .await;
}
