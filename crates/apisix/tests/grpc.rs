//! What `grpc-web` and `grpc-transcode` become in the catalogue, and what is said of definitions.

use serde_json::{Value, json};
use weir_apisix::Options;
use weir_model::{Model, PluginRef, RouteTarget};

const PROTO: &str = "syntax = \"proto3\"; package a; message M { string x = 1; } service S { rpc Do(M) returns (M); rpc Up(stream M) returns (M); }";

fn read(plugins: &Value) -> Result<(Model, Vec<String>), Vec<String>> {
    let document = json!({
        "routes": [{"id": "r", "uri": "/*", "plugins": plugins, "upstream": {
            "type": "roundrobin", "scheme": "grpc", "nodes": {"127.0.0.1:1": 1}}}],
        "protos": [{"id": 7, "content": PROTO}, {"id": "bad", "content": "message M {"}],
    });
    let texts = |found: Vec<weir_model::Diagnostic>| {
        let line = |it: &weir_model::Diagnostic| format!("{:?} {}: {}", it.severity, it.path, it.message);
        found.iter().map(line).collect::<Vec<_>>()
    };
    match weir_apisix::translate(&document, &Options::default()) {
        Ok((model, found)) => Ok((model, texts(found))),
        Err(found) => Err(texts(found)),
    }
}

fn config(plugins: &Value) -> Value {
    let (model, _) = read(plugins).expect("served");
    match model.routes[0].plugins[0].plugin.as_ref().expect("a plugin") {
        PluginRef::Inline(instance) => instance.config.clone(),
        PluginRef::Shared(id) => {
            let shared = model.plugins.iter().find(|it| it.id == *id);
            shared.expect("shared").config.clone()
        }
    }
}

#[test]
fn configurations_become_those_of_the_catalogue() {
    let transcode = |more: Value| {
        let mut config = json!({"proto_id": 7, "service": "a.S", "method": "Do"});
        for (name, value) in more.as_object().expect("an object") {
            config[name] = value.clone();
        }
        json!({"grpc-transcode": config})
    };
    for (plugins, place, expected) in [
        (transcode(json!({})), "/method", json!("a.S/Do")),
        (transcode(json!({})), "/proto/text", json!(PROTO)),
        (transcode(json!({})), "/json/integers", json!("number")),
        (transcode(json!({})), "/json/defaults", json!(true)),
        (transcode(json!({})), "/errors/body", json!("none")),
        (transcode(json!({})), "/errors/unknown_status", json!(599)),
        (
            transcode(json!({"proto_id": "7", "deadline": 1.5})),
            "/deadline_ms",
            json!(2),
        ),
        (
            transcode(json!({"pb_option": ["int64_as_hexstring"]})),
            "/json/integers",
            json!("marked-hex"),
        ),
        (
            transcode(json!({"pb_option": ["int64_as_string"]})),
            "/json/integers",
            json!("marked-text"),
        ),
        (
            transcode(json!({"pb_option": ["enum_as_value"]})),
            "/json/enums",
            json!("number"),
        ),
        (
            transcode(json!({"pb_option": ["no_default_values"]})),
            "/json/defaults",
            json!(false),
        ),
        (
            transcode(json!({"show_status_in_body": true})),
            "/errors/body",
            json!("details"),
        ),
        (
            transcode(json!({"status_detail_type": "a.M"})),
            "/errors/detail_type",
            json!("a.M"),
        ),
        (
            transcode(json!({"max_resp_body_size": 9})),
            "/max_message_bytes",
            json!(9),
        ),
        (json!({"grpc-web": {}}), "/path", json!("remainder")),
        (json!({"grpc-web": {}}), "/others", json!("refuse")),
        (
            json!({"grpc-web": {"max_req_body_size": 9}}),
            "/max_request_bytes",
            json!(9),
        ),
        (
            json!({"grpc-web": {"cors_allow_headers": "x"}}),
            "/cross_origin/allow_headers",
            json!("x"),
        ),
    ] {
        assert_eq!(
            config(&plugins).pointer(place),
            Some(&expected),
            "{plugins} {place}"
        );
    }
}

#[test]
fn definitions_are_checked() {
    let place = "Dropped routes[0].plugins.grpc-transcode: ";
    for (config, expected) in [
        (
            json!({"proto_id": 8, "service": "a.S", "method": "Do"}),
            "failed to find proto by id: 8",
        ),
        (
            json!({"proto_id": "bad", "service": "a.S", "method": "Do"}),
            "failed to find proto by id: bad",
        ),
        (
            json!({"proto_id": 7, "service": "a.S", "method": "No"}),
            "proto 7: expected a method of the definitions (a.S/Do, a.S/Up), found 'a.S/No'",
        ),
        (
            json!({"proto_id": 7, "service": "a.S", "method": "Up"}),
            "proto 7: expected a method that takes one message, found 'a.S/Up'",
        ),
    ] {
        let (model, found) = read(&json!({"grpc-transcode": config})).expect("the route refuses its calls");
        assert_eq!(model.routes[0].target, RouteTarget::respond_before_plugins(503));
        assert!(found.contains(&format!("{place}{expected}")), "{found:?}");
        assert!(
            found
                .iter()
                .any(|it| it.starts_with("Dropped protos[1].content: invalid content: "))
        );
    }
}
