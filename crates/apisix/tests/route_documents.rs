//! What plugins get in addition to their configurations: the files that they name, and the route and service that they
//! work for.

use serde_json::{Value, json};
use weir_apisix::{Options, PluginFiles, Settings, translate};
use weir_model::{Diagnostic, PluginRef, Severity};

/// What a plugin of the first route is in the catalogue, by its name there, and what is said of the document.
fn catalogue(document: &Value, name: &str, settings: Settings) -> (Value, Vec<Diagnostic>) {
    let options = Options {
        settings: Box::leak(Box::new(settings)),
        ..Options::default()
    };
    let (model, diagnostics) =
        translate(document, &options).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    let plugins = model.routes[0].plugins.iter();
    let mut config = plugins.filter_map(|step| match &step.plugin {
        Some(PluginRef::Inline(instance)) if instance.name == name => Some(instance.config.clone()),
        Some(PluginRef::Shared(id)) => {
            let mut shared = model.plugins.iter();
            let instance = shared.find(|it| it.id == *id && it.name == name)?;
            Some(instance.config.clone())
        }
        _ => None,
    });
    (config.next_back().unwrap_or_default(), diagnostics)
}

#[test]
fn agents_get_route_and_service_if_the_configuration_asks_for_it() {
    let opa = |options: &Value| {
        let mut opa = json!({"host": "http://127.0.0.1:8181", "policy": "p"});
        let options = options.as_object().expect("a map").clone();
        opa.as_object_mut().expect("a map").extend(options);
        opa
    };
    let document = |on_service: &Value, on_route: &Value, service: Option<&str>| {
        json!({
            "services": [{
                "id": "s", "name": "sn", "labels": {"team": "a"},
                "plugins": {"csrf": {"key": "secret"}, "opa": on_service},
            }],
            "routes": [{
                "id": "r", "name": "rn", "uri": "/", "desc": "d", "service_id": service,
                "plugins": on_route, "upstream": {"nodes": {"a:1": 1}},
            }],
        })
    };
    let without = json!({});
    for (options, place, service, route_document, service_document) in [
        (json!({}), "service", Some("s"), false, None),
        (json!({"with_route": true}), "service", Some("s"), true, None),
        (
            json!({"with_service": true}),
            "service",
            Some("s"),
            false,
            Some(true),
        ),
        (
            json!({"with_route": true, "with_service": true}),
            "route",
            Some("s"),
            true,
            Some(true),
        ),
        (json!({"with_service": true}), "route", None, false, Some(false)),
    ] {
        let on_route = match place {
            "route" => json!({"opa": opa(&options)}),
            _ => json!({}),
        };
        let mut document = document(&opa(&options), &on_route, service);
        let route = document["routes"][0].as_object_mut().expect("a map");
        route.retain(|_, value| !value.is_null());
        let (config, _) = catalogue(&document, "opa", Settings::default());
        let document = config.get("route_document").unwrap_or(&without);
        assert_eq!(document != &without, route_document, "{options} on the {place}");
        if route_document {
            assert_eq!(document["id"], json!("r"), "{options}");
            assert_eq!(document["desc"], json!("d"));
            assert_eq!(document["uri"], json!("/"));
            assert_eq!(document["plugins"]["opa"]["with_route"], json!(true));
            assert_eq!(document["plugins"]["csrf"]["key"], json!("***"));
            assert_eq!(document.get("upstream"), None);
        }
        let document = config.get("service_document").unwrap_or(&without);
        assert_eq!(
            document != &without,
            service_document == Some(true),
            "{options} on the {place}"
        );
        assert_eq!(
            config["service"],
            json!(service_document == Some(true)),
            "{options}"
        );
        if service_document == Some(true) {
            assert_eq!(document["id"], json!("s"));
            assert_eq!(document["labels"], json!({"team": "a"}));
            assert_eq!(document["plugins"]["csrf"]["key"], json!("***"));
        }
    }
}

#[test]
fn agents_are_told_what_is_written_about_consumers_but_no_secret() {
    let document = json!({
        "consumers": [{
            "username": "ada", "desc": "d", "labels": {"custom_id": "c", "plan": "gold"},
            "plugins": {"key-auth": {"key": "a-secret"}},
        }],
        "routes": [],
    });
    let (model, _) = translate(&document, &Options::default()).expect("a good document");
    let details = serde_json::to_value(&model.consumers[0].details).expect("JSON");
    assert_eq!(details, json!({"desc": "d"}));
}

const MODEL: &str = "[request_definition]\nr = sub, obj, act\n[policy_definition]\np = sub, obj, act\n\
                     [policy_effect]\ne = some(where (p.eft == allow))\n[matchers]\nm = r.sub == p.sub\n";

fn files() -> Settings {
    Settings {
        files: PluginFiles::new(|name| match name {
            "model.conf" => Ok(MODEL.to_owned()),
            "policy.csv" => Ok("p, alice, *, *".to_owned()),
            "auth.json" => Ok(json!({
                "client_email": "a@b", "private_key": "k", "project_id": "p1",
                "token_uri": "http://127.0.0.1:1/token", "entries_uri": "http://127.0.0.1:1/entries",
            })
            .to_string()),
            _ => Err("no such file".to_owned()),
        }),
        ..Settings::default()
    }
}

fn one_plugin(plugin: &str, config: &Value) -> Value {
    json!({"routes": [{
        "id": "r", "uri": "/", "plugins": {plugin: config}, "upstream": {"nodes": {"a:1": 1}},
    }]})
}

#[test]
fn metadata_complete_policies() {
    let mut document = one_plugin("authz-casbin", &json!({"username": "user"}));
    document["plugin_metadata"] = json!([{"id": "authz-casbin", "model": MODEL, "policy": "p, alice, *, *"}]);
    let (found, diagnostics) = catalogue(&document, "casbin", Settings::default());
    assert_eq!(
        (&found["model"], &found["policy"]),
        (&json!(MODEL), &json!("p, alice, *, *"))
    );
    assert_eq!(diagnostics, []);
    // Without them, no call is allowed.
    document["plugin_metadata"] = json!([]);
    let (found, diagnostics) = catalogue(&document, "casbin", Settings::default());
    assert!(
        found["model"]
            .as_str()
            .is_some_and(|model| model.contains("m = false"))
    );
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
}

#[test]
fn detectors_of_a_firewall_are_those_of_the_metadata() {
    let of_metadata =
        json!({"send_timeout": 5, "req_body_size": 2, "real_client_ip": false, "keepalive_size": 0});
    for (metadata, config, fields, findings) in [
        (
            json!({"nodes": [{"host": "10.0.0.5"}, {"host": "[::1]", "port": 8000}, {"host": "unix:/a.sock"}], "config": of_metadata}),
            json!({}),
            json!({
                "nodes": [{"host": "10.0.0.5", "port": 80}, {"host": "::1", "port": 8000}], "mode": "monitor",
                "header": "X-APISIX-CHAITIN-WAF", "debug_headers": false, "timeout_ms": 2005, "max_body_bytes": 2048,
                "real_client_ip": false, "pool_size": 0, "pool_idle_timeout_ms": 60_000,
            }),
            vec!["config"],
        ),
        // A configuration of the route's own takes the place of that of the metadata, except for one field.
        (
            json!({"nodes": [{"host": "a"}], "mode": "off", "config": of_metadata}),
            json!({"config": {"read_timeout": 7}, "append_waf_resp_header": false, "append_waf_debug_header": true}),
            json!({
                "mode": "off", "header": null, "debug_headers": true, "timeout_ms": 2007, "max_body_bytes": 1 << 20,
                "real_client_ip": false, "pool_size": 256,
            }),
            vec![],
        ),
        (
            json!({"nodes": [{"host": "a"}], "mode": "off"}),
            json!({"mode": "block", "match": [{"vars": [["arg_a", "==", "1"]]}], "config": {"req_body_size": 9000}}),
            json!({"mode": "block", "matches": [["AND", ["arg_a", "==", "1"]]], "max_body_bytes": 8 << 20}),
            vec!["config"],
        ),
        // A rule that always holds is one for all calls.
        (
            json!({"nodes": [{"host": "a"}]}),
            json!({"match": [{"vars": [["arg_a", "==", "1"]]}, {"vars": []}]}),
            json!({"matches": null}),
            vec![],
        ),
        (
            json!(null),
            json!({}),
            json!({"nodes": [], "mode": "monitor"}),
            vec!["mode"],
        ),
    ] {
        let mut document = one_plugin("chaitin-waf", &config);
        if let Value::Object(mut metadata) = metadata {
            metadata.insert("id".to_owned(), "chaitin-waf".into());
            document["plugin_metadata"] = json!([metadata]);
        }
        let (found, diagnostics) = catalogue(&document, "safeline-waf", Settings::default());
        for (field, value) in fields.as_object().expect("a map") {
            assert_eq!(
                found.get(field).unwrap_or(&Value::Null),
                value,
                "{config}: {field}"
            );
        }
        let places: Vec<String> = diagnostics.iter().map(|it| it.path.to_string()).collect();
        let expected = findings
            .iter()
            .map(|field| format!("routes[0].plugins.chaitin-waf.{field}"));
        assert_eq!(places, expected.collect::<Vec<_>>(), "{config}");
    }
}

#[test]
fn policies_are_read_from_files() {
    let config = |model: &str| {
        let config = json!({"username": "user", "model_path": model, "policy_path": "policy.csv"});
        one_plugin("authz-casbin", &config)
    };
    let (found, diagnostics) = catalogue(&config("model.conf"), "casbin", files());
    assert_eq!(found["model"], json!(MODEL), "{diagnostics:?}");
    assert_eq!(found["policy"], json!("p, alice, *, *"));
    assert_eq!(diagnostics, []);
    // Without a model, no call is allowed.
    for (model, settings) in [("other.conf", files()), ("model.conf", Settings::default())] {
        let (found, diagnostics) = catalogue(&config(model), "casbin", settings);
        let model = found["model"].as_str().expect("a text");
        assert!(model.contains("m = false"), "{model}");
        let paths = diagnostics.iter().map(|it| it.path.to_string());
        let paths: Vec<_> = paths.filter(|path| path.ends_with("model_path")).collect();
        assert_eq!(paths, ["routes[0].plugins.authz-casbin.model_path"]);
    }
}

#[test]
fn accounts_are_read_from_files() {
    let config = |file: &str| one_plugin("google-cloud-logging", &json!({"auth_file": file}));
    let (found, diagnostics) = catalogue(&config("auth.json"), "logger", files());
    assert_eq!(diagnostics, []);
    let target = &found["target"]["http"];
    assert_eq!(target["url"], json!("http://127.0.0.1:1/entries"), "{found}");
    let account = &target["authorization"]["service_account"];
    assert_eq!(account["email"], json!("a@b"), "{found}");
    assert_eq!(account["token_url"], json!("http://127.0.0.1:1/token"));
    assert_eq!(
        account["scopes"],
        json!(["https://www.googleapis.com/auth/cloud-platform"])
    );
    for file in ["none.json", "model.conf"] {
        let options = Options {
            settings: Box::leak(Box::new(files())),
            ..Options::default()
        };
        let (_, diagnostics) = translate(&config(file), &options).expect("the rest is served");
        assert!(diagnostics.iter().all(|it| it.severity == Severity::Dropped));
        let places: Vec<_> = diagnostics.iter().map(|it| it.path.to_string()).collect();
        assert_eq!(places, ["routes[0].plugins.google-cloud-logging.auth_file"]);
    }
}
