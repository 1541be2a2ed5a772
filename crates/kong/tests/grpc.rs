//! What `grpc-web` and `grpc-gateway` become in the catalogue.

use serde_json::{Value, json};
use weir_kong::{Options, translate};
use weir_model::PluginRef;

fn catalogue(plugin: &str, config: &Value) -> (String, Value) {
    let document = json!({
        "_format_version": "3.0",
        "services": [{
            "name": "s",
            "url": "grpc://127.0.0.1:1",
            "routes": [{ "name": "r", "paths": ["/x"], "plugins": [{ "name": plugin, "config": config }] }],
        }],
    });
    let (model, found) = translate(&document, &Options::default()).expect("is accepted");
    assert!(found.is_empty(), "{found:?}");
    let instance = match model.routes[0].plugins[0].plugin.as_ref().expect("a plugin") {
        PluginRef::Inline(instance) => instance,
        PluginRef::Shared(id) => model.plugins.iter().find(|it| it.id == *id).expect("shared"),
    };
    (instance.name.clone(), instance.config.clone())
}

#[test]
fn configurations_become_those_of_the_catalogue() {
    let file = json!({"proto": "/a/b.proto"});
    for (plugin, config, place, expected) in [
        ("grpc-gateway", &file, "/proto", json!({"file": "/a/b.proto"})),
        ("grpc-gateway", &json!({}), "/proto", Value::Null),
        ("grpc-gateway", &file, "/json/mapping", json!("fields-and-times")),
        ("grpc-gateway", &file, "/json/names", json!("proto")),
        ("grpc-gateway", &file, "/errors/unimplemented_status", json!(500)),
        ("grpc-gateway", &file, "/refusals", json!("text")),
        ("grpc-web", &file, "/proto", json!({"file": "/a/b.proto"})),
        ("grpc-web", &file, "/path", json!("client")),
        (
            "grpc-web",
            &json!({"pass_stripped_path": true}),
            "/path",
            json!("route"),
        ),
        ("grpc-web", &file, "/cross_origin/allow_origin", json!("*")),
        (
            "grpc-web",
            &json!({"allow_origin_header": "http://a"}),
            "/cross_origin/allow_origin",
            json!("http://a"),
        ),
        ("grpc-web", &file, "/cross_origin/preflight/body", json!("OK")),
    ] {
        let (name, made) = catalogue(plugin, config);
        let expected_name = match plugin {
            "grpc-gateway" => "grpc-transcode",
            own => own,
        };
        assert_eq!(name, expected_name);
        let found = made.pointer(place).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{plugin} {config} {place}");
    }
}
