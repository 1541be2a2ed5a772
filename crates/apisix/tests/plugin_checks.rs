//! What checks of plugins say that a shape cannot; what `config.yaml` changes; and hosts that plugins name.

use serde_json::{Value, json};
use weir_apisix::{CacheDisk, CacheZone, Options, Settings, translate};
use weir_model::{Diagnostic, Model, PluginRef};

/// The model, empty if the document is refused, and the findings.
fn read(plugins: Value, settings: Settings) -> (Model, Vec<Diagnostic>) {
    let document = json!({
        "routes": [{
            "id": "r", "uri": "/", "plugins": plugins,
            "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
        }],
        "upstreams": [
            {"id": "u", "type": "roundrobin", "nodes": {"a:1": 1, "b:2": 1}, "pass_host": "node"},
            {"id": "v", "nodes": {"a:1": 1}, "pass_host": "rewrite", "upstream_host": "v.test"},
        ],
    });
    let options = Options {
        settings: Box::leak(Box::new(settings)),
        ..Options::default()
    };
    translate(&document, &options).unwrap_or_else(|found| (Model::default(), found))
}

/// The configuration of the route's one plugin in the catalogue.
fn catalogue(plugins: Value, settings: Settings) -> Value {
    let (model, found) = read(plugins, settings);
    assert_eq!(model.routes.len(), 1, "{found:?}");
    match model.routes[0].plugins[0].plugin.as_ref().expect("a plugin") {
        PluginRef::Inline(instance) => instance.config.clone(),
        PluginRef::Shared(id) => panic!("{id}"),
    }
}

#[test]
fn what_a_shape_cannot_say_is_reported_in_the_originals_words() {
    for (plugin, config, words) in [
        (
            "oas-validator",
            json!({"spec": "not a document"}),
            "invalid JSON string provided, err: Expected value but found invalid token at character 1",
        ),
        (
            "chaitin-waf",
            json!({"match": [{"vars": [["arg_a", "no such", "1"]]}]}),
            "failed to validate the 'vars' expression: invalid operator 'no such'",
        ),
        (
            "chaitin-waf",
            json!({"match": [{}]}),
            "failed to validate the 'vars' expression: missing argument rule",
        ),
        (
            "response-rewrite",
            json!({"headers": {"": 2}}),
            "invalid field length in header",
        ),
        (
            "response-rewrite",
            json!({"headers": {"X-Name": []}}),
            "invalid type as header value",
        ),
        (
            "response-rewrite",
            json!({"filters": [{"regex": "a", "replace": "b", "options": "jh"}]}),
            r#"regex "a" validation failed: unknown flag "h" (flags "jh")"#,
        ),
        (
            "response-rewrite",
            json!({"vars": [{}]}),
            "failed to validate the 'vars' expression: rule too short",
        ),
        (
            "request-validation",
            json!({"body_schema": {"type": "object", "required": "a"}}),
            "table expected, got string",
        ),
        (
            "request-validation",
            json!({"header_schema": {"type": "object", "properties": {"a": {"enum": "b"}}}}),
            "table expected, got string",
        ),
        (
            "traffic-label",
            json!({"rules": [{"actions": [{"add_headers": {"X-A": "1"}}]}]}),
            "not supported action: add_headers",
        ),
        (
            "proxy-rewrite",
            json!({"regex_uri": ["^/a/(.*)", "/$`1"]}),
            "invalid regex_uri(^/a/(.*), /$`1)",
        ),
        (
            "proxy-rewrite",
            json!({"regex_uri": ["^/a/(.*)", "/$name"]}),
            "invalid regex_uri(^/a/(.*), /$name)",
        ),
        (
            "proxy-cache",
            json!({"cache_zone": "nowhere"}),
            "cache_zone nowhere not found",
        ),
    ] {
        let (_, found) = read(json!({plugin: config}), Settings::default());
        assert!(
            found.iter().any(|it| it.message.contains(words)),
            "{plugin} {config}: {found:?}"
        );
    }
    for kind in ["table", "function", "object"] {
        let (_, found) = read(
            json!({"request-validation": {"body_schema": {"type": kind}}}),
            Settings::default(),
        );
        assert!(found.is_empty(), "{kind}: {found:?}");
    }
    for replacement in ["/$1", "/${1}x", "/$$", "/plain"] {
        let (_, found) = read(
            json!({"proxy-rewrite": {"regex_uri": ["^/a/(.*)", replacement]}}),
            Settings::default(),
        );
        assert!(found.is_empty(), "{replacement}: {found:?}");
    }
}

#[test]
fn refusals_have_the_originals_words() {
    for (plugin, config, words) in [
        (
            "request-validation",
            json!({"body_schema": {"type": "test"}}),
            "invalid JSON type: test",
        ),
        (
            "fault-injection",
            json!({"abort": {"http_status": 403, "vars": [["arg_name", "!=", "jack"]]}}),
            "plugin fault-injection err: rule should be wrapped inside brackets",
        ),
        (
            "real-ip",
            json!({"source": "http_xff", "trusted_addresses": ["::1/129"]}),
            "plugin real-ip err: invalid ip address: ::1/129",
        ),
        (
            "real-ip",
            json!({"source": "http_xff", "trusted_addresses": ["127.0.0.1/33"]}),
            "failed to validate item 1: object matches none of the required",
        ),
        (
            "ip-restriction",
            json!({"whitelist": ["10.0.0.1", "2001:db8::/200"]}),
            "plugin ip-restriction err: invalid ip address: 2001:db8::/200",
        ),
        (
            "file-logger",
            json!({}),
            "property \"path\" is not set in either the plugin conf or the metadata",
        ),
    ] {
        let (_, found) = read(json!({plugin: config}), Settings::default());
        assert!(
            found.iter().any(|it| it.message.contains(words)),
            "{plugin} {config}: {found:?}"
        );
    }
}

#[test]
fn mirrors_that_cannot_be_served_are_left_out_alone() {
    for (host, is_served) in [
        ("http://127.0.0.1:1982", true),
        ("https://127.0.0.1:1982", false),
        ("grpc://127.0.0.1:1982", false),
        ("grpcs://127.0.0.1:1982", false),
    ] {
        let (model, found) = read(
            json!({"proxy-mirror": {"host": host}, "key-auth": {}}),
            Settings::default(),
        );
        assert_eq!(model.routes.len(), 1, "{host}: {found:?}");
        let names: Vec<&str> = model.routes[0]
            .plugins
            .iter()
            .filter_map(|step| match step.plugin.as_ref()? {
                PluginRef::Inline(instance) => Some(instance.name.as_str()),
                PluginRef::Shared(id) => panic!("{id}"),
            })
            .collect();
        let wanted: &[&str] = match is_served {
            true => &["key-auth", "mirror"],
            false => &["key-auth"],
        };
        assert_eq!(names, wanted, "{host}");
        let found: Vec<String> = found
            .iter()
            .map(|it| format!("{:?} {}: {}", it.severity, it.path, it.message))
            .collect();
        let message = "Dropped routes[0].plugins.proxy-mirror.host: mirroring over TLS or gRPC is not available in this \
                    version of Weir: calls are served without it";
        assert_eq!(found, if is_served { vec![] } else { vec![message] }, "{host}");
    }
}

#[test]
fn zones_say_where_responses_are_kept() {
    let settings = |path: Option<&str>| {
        let mut settings = Settings::default();
        settings.cache.ttl_seconds = 20;
        settings.cache.zones = vec![CacheZone {
            name: "z".into(),
            memory_bytes: 1 << 20,
            disk: Some(CacheDisk {
                path: path.map(str::to_owned),
                bytes: 1 << 24,
            }),
        }];
        settings
    };
    let disk = json!({"proxy-cache": {
        "cache_zone": "z", "cache_strategy": "disk", "cache_ttl": 5, "cache_control": true,
    }});
    let found = catalogue(disk.clone(), settings(Some("/var/cache/z")));
    for (field, value) in [
        ("disk", json!({"path": "/var/cache/z", "size": 1 << 24})),
        ("zone_bytes", json!(1 << 20)),
        // What the response or the server says counts, not the plugin.
        ("ttl_seconds", json!(20)),
        ("obey_lifetime", json!(true)),
        ("cache_control", json!(false)),
    ] {
        assert_eq!(found[field], value, "{field}");
    }
    let (_, found) = read(disk, settings(None));
    assert!(found[0].message.contains("kept in memory"), "{found:?}");
    let memory = json!({"proxy-cache": {
        "cache_zone": "z", "cache_strategy": "memory", "cache_ttl": 5, "cache_control": true,
    }});
    let found = catalogue(memory, settings(Some("/var/cache/z")));
    assert_eq!((&found["ttl_seconds"], &found["disk"]), (&json!(5), &Value::Null));
    assert_eq!(
        (&found["obey_lifetime"], &found["cache_control"]),
        (&json!(false), &json!(true))
    );
}

#[test]
fn splits_send_the_host_that_their_upstreams_configure() {
    let split = |upstream: Value| {
        let weighted = json!([{"weight": 1, "upstream_id": upstream.as_str()}]);
        let weighted = match upstream {
            Value::String(_) => weighted,
            own => json!([{"weight": 1, "upstream": own}]),
        };
        json!({"traffic-split": {"rules": [{"weighted_upstreams": weighted}]}})
    };
    let nodes = |nodes: Value| json!({"type": "roundrobin", "pass_host": "node", "nodes": nodes});
    for (upstream, host) in [
        (json!("u"), json!("target")),
        (json!("v"), json!({"fixed": "v.test"})),
        (nodes(json!({"a:1": 1, "b:2": 1})), json!("target")),
        (nodes(json!({"a.test:81": 1})), json!({"fixed": "a.test"})),
        (
            json!({"type": "roundrobin", "scheme": "https", "pass_host": "node", "nodes": {"a.test:81": 1}}),
            json!("target"),
        ),
    ] {
        let found = catalogue(split(upstream.clone()), Settings::default());
        assert_eq!(found["rules"][0]["choices"][0]["host"], host, "{upstream}");
    }
}

#[test]
fn metrics_of_a_route_go_before_those_of_a_global_rule() {
    let steps = |route: Value| {
        let document = json!({
            "routes": [{
                "id": "r", "uri": "/", "plugins": route,
                "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
            }],
            "global_rules": [{"id": "1", "plugins": {"prometheus": {}}}],
        });
        let (model, _) = translate(&document, &Options::default()).expect("served");
        model.routes[0].plugins.len()
    };
    assert_eq!(steps(json!({})), 1);
    assert_eq!(steps(json!({"prometheus": {}})), 1);
    assert_eq!(steps(json!({"prometheus": {"_meta": {"disable": true}}})), 1);
}
