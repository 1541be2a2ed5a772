//! From stored documents to the model: the same as from a file, whatever came before.

use crate::pairs::{
    CERTIFICATE_A, CERTIFICATE_B, KEY_A, KEY_B, PKCS1_KEY, RSA_CERTIFICATE, RSA_KEY, SEC1_KEY_A,
};
use serde_json::{Value, json};
use weir_apisix::{IncrementalModel, Options, translate};
use weir_model::{Model, RouteTarget};

fn documents() -> Vec<(&'static str, Value)> {
    let node = json!({"nodes": {"127.0.0.1:80": 1}});
    vec![
        (
            "consumer_groups/g",
            json!({"id": "g", "plugins": {"limit-count": {"count": 1, "time_window": 1}}}),
        ),
        (
            "consumers/jack",
            json!({"username": "jack", "group_id": "g", "plugins": {"key-auth": {"key": "a"}}}),
        ),
        (
            "consumers/jill",
            json!({"username": "jill", "plugins": {"response-rewrite": {"status_code": 201}}}),
        ),
        (
            "global_rules/1",
            json!({"id": "1", "plugins": {"request-id": {}}}),
        ),
        ("plugin_configs/p", json!({"id": "p", "plugins": {"cors": {}}})),
        (
            "routes/a",
            json!({"id": "a", "uri": "/a", "service_id": "s", "plugins": {"key-auth": {}}}),
        ),
        (
            "routes/b",
            json!({"id": "b", "uri": "/b*", "upstream_id": "u", "plugin_config_id": "p"}),
        ),
        (
            "routes/c",
            json!({"id": "c", "uri": "/c", "upstream": node, "priority": 9}),
        ),
        (
            "routes/d",
            json!({"id": "d", "uri": "/d", "upstream": node, "status": 0}),
        ),
        (
            "services/s",
            json!({"id": "s", "upstream_id": "u", "hosts": ["a.com"], "plugins": {"cors": {"max_age": 9}}}),
        ),
        ("upstreams/u", json!({"id": "u", "nodes": {"127.0.0.1:81": 1}})),
    ]
}

fn from_file(documents: &[(&str, Value)]) -> Model {
    let mut lists = serde_json::Map::new();
    for (key, value) in documents {
        let (list, _) = key.split_once('/').expect("a list");
        let list = lists.entry(list).or_insert_with(|| json!([]));
        list.as_array_mut().expect("a list").push(value.clone());
    }
    let (mut model, _) = translate(&Value::Object(lists), &Options::default()).expect("good documents");
    model.plugins.sort_by(|one, other| one.id.cmp(&other.id));
    model
}

fn apply(stored: &mut IncrementalModel, key: &str, value: &Value) {
    stored.apply(key, Some(value.to_string().as_bytes()));
}

#[test]
fn the_order_of_changes_does_not_count() {
    let documents = documents();
    let wanted = from_file(&documents);
    for rotation in 0..documents.len() {
        let mut stored = IncrementalModel::new(Options::default());
        for (key, value) in documents[rotation..].iter().chain(&documents[..rotation]) {
            apply(&mut stored, key, value);
            if rotation % 2 == 0 {
                stored.model();
            }
        }
        let (model, broken) = stored.model();
        assert_eq!(broken, [], "{rotation}");
        assert_eq!(model, wanted, "{rotation}");
        assert_eq!(stored.model().0, wanted, "again, {rotation}");
    }
}

#[test]
fn every_change_is_seen() {
    let mut current = documents();
    let mut stored = IncrementalModel::new(Options::default());
    for (key, value) in &current {
        apply(&mut stored, key, value);
    }
    stored.model();
    let changes = [
        (
            "services/s",
            json!({"id": "s", "upstream_id": "u", "plugins": {"cors": {"max_age": 8}}}),
        ),
        (
            "upstreams/u",
            json!({"id": "u", "nodes": {"127.0.0.1:82": 1}, "pass_host": "node"}),
        ),
        (
            "plugin_configs/p",
            json!({"id": "p", "plugins": {"response-rewrite": {"status_code": 202}}}),
        ),
        ("global_rules/1", json!({"id": "1", "plugins": {"cors": {}}})),
        (
            "consumers/jack",
            json!({"username": "jack", "plugins": {"proxy-rewrite": {"uri": "/x"}}}),
        ),
        ("consumer_groups/g", json!({"id": "g", "plugins": {"cors": {}}})),
        (
            "routes/c",
            json!({"id": "c", "uris": ["/c", "/cc"], "upstream_id": "u"}),
        ),
        (
            "routes/d",
            json!({"id": "d", "uri": "/d", "upstream_id": "u", "status": 1}),
        ),
    ];
    for (key, value) in changes {
        let known = current
            .iter_mut()
            .find(|(known, _)| *known == key)
            .expect("a document");
        known.1 = value.clone();
        apply(&mut stored, key, &value);
        assert_eq!(stored.model(), (from_file(&current), Vec::new()), "{key}");
    }
    for key in ["routes/a", "services/s", "consumers/jack", "global_rules/1"] {
        current.retain(|(known, _)| *known != key);
        stored.apply(key, None);
        assert_eq!(stored.model(), (from_file(&current), Vec::new()), "without {key}");
    }
}

/// What the GraphQL of a service costs, and where its schema is asked for, follow each document that says so.
#[test]
fn costs_of_graphql_follow_their_documents() {
    let mut stored = IncrementalModel::new(Options::default());
    let limit = |strategy: &str| json!({"count": 9, "time_window": 60, "cost_strategy": strategy});
    let graphql = json!({"graphql-limit-count": limit("node_quantifier")});
    let known = [
        ("upstreams/u", json!({"id": "u", "nodes": {"b:81": 1, "a:80": 1}})),
        (
            "services/s",
            json!({"id": "s", "upstream_id": "u", "plugins": graphql}),
        ),
        ("routes/r", json!({"id": "r", "uri": "/g", "service_id": "s"})),
        (
            "routes/own",
            json!({"id": "own", "uri": "/own", "service_id": "s", "plugins": {
                "graphql-limit-count": {"count": 9, "time_window": 60, "cost_strategy": "complexity",
                    "resolve_variables": false, "introspection_endpoint": "https://i/g",
                    "introspection_headers": {"K": "v"}}}}),
        ),
    ];
    for (key, value) in &known {
        apply(&mut stored, key, value);
    }
    let mut fields = |key: &str, value: Option<Value>| {
        let bytes = value.map(|value| value.to_string());
        stored.apply(key, bytes.as_ref().map(String::as_bytes));
        let (model, broken) = stored.model();
        assert_eq!(broken, [], "{key}");
        for route in &model.routes {
            assert_eq!(route.labels["service_id"], "s", "{key}");
        }
        let own = model.routes.iter().find(|route| route.name == "own");
        let own = own.and_then(|route| match &route.plugins[0].plugin {
            Some(weir_model::PluginRef::Inline(instance)) => Some(instance.config["fields"].clone()),
            _ => None,
        });
        let shared = model
            .plugins
            .first()
            .map(|instance| instance.config["fields"].clone());
        (shared.unwrap_or_default(), own.unwrap_or_default())
    };
    let decoration = "services/s/graphql_cost_decorations/d";
    let none = json!({"strategy": "node-quantifier", "resolve_variables": true});
    let weights =
        |add: f64| json!([{"path": "Query.a", "add": add, "multiply": 1.0, "multiply_arguments": ["first"]}]);
    let with = |add: f64, introspection: Value| {
        json!({"strategy": "node-quantifier", "resolve_variables": true,
            "services": [{"service": "s", "introspection": introspection, "weights": weights(add)}]})
    };
    let derived = |url: &str, of_call: bool| {
        let mut derived = json!({"url": url, "use_request_path": true, "verify_tls": false});
        if of_call {
            derived["use_request_host"] = json!(true);
        }
        derived
    };
    let explicit = json!({"strategy": "complexity", "resolve_variables": false, "services": [{"service": "s",
        "introspection": {"url": "https://i/g", "headers": {"K": "v"}, "verify_tls": false},
        "weights": weights(2.0)}]});
    let cost = |add: u8| json!({"field_path": "Query.a", "add_value": add, "mul_arguments": ["first"]});
    for (key, value, shared, own) in [
        (
            "services/other/graphql_cost_decorations/d",
            Some(cost(1)),
            none.clone(),
            None,
        ),
        (
            decoration,
            Some(cost(1)),
            with(1.0, derived("http://a:80/", true)),
            None,
        ),
        (
            decoration,
            Some(cost(2)),
            with(2.0, derived("http://a:80/", true)),
            Some(explicit),
        ),
        (
            "upstreams/u",
            Some(
                json!({"id": "u", "nodes": [{"host": "::1", "port": 9, "weight": 1}], "scheme": "https",
                "pass_host": "node"}),
            ),
            with(2.0, derived("https://[::1]:9/", false)),
            None,
        ),
        (decoration, None, none, None),
    ] {
        let found = fields(key, value);
        assert_eq!(found.0, shared, "{key}");
        if let Some(own) = own {
            assert_eq!(found.1, own, "{key}");
        }
    }
}

#[test]
fn documents_with_plugins_that_weir_lacks_are_the_same_from_file_and_store() {
    let lacking = json!({"ext-plugin-pre-req": {}, "key-auth": {}});
    let route = |plugins: Value| json!({"id": "c", "uri": "/c", "upstream_id": "u", "plugins": plugins});
    for (key, value) in [
        ("routes/c", route(lacking.clone())),
        (
            "routes/c",
            route(json!({"rocketmq-logger": {"nameserver_list": ["a:1"], "topic": "t"}})),
        ),
        ("routes/c", route(json!({"rocketmq-logger": {}}))),
        ("routes/c", route(json!({"inspect": {}}))),
        (
            "routes/c",
            route(json!({"proxy-mirror": {"host": "grpc://127.0.0.1:1"}})),
        ),
        ("routes/c", route(json!({"example-plugin": {"i": 1}}))),
        ("routes/c", route(json!({"example-plugin": {"i": -1}}))),
        (
            "routes/c",
            route(json!({"example-plugin": {"i": 1, "ip": "127.0.0.1"}})),
        ),
        (
            "routes/c",
            route(json!({"ext-plugin-pre-req": {"_meta": {"disable": true}}})),
        ),
        ("routes/c", route(json!({"no-such": {}}))),
        (
            "routes/c",
            route(json!({"uri-blocker": {"block_rules": ["(?!a)"]}})),
        ),
        (
            "routes/c",
            route(json!({"grpc-transcode": {"proto_id": "9", "service": "a", "method": "b"}})),
        ),
        (
            "routes/c",
            json!({"id": "c", "uri": "/c", "upstream_id": "u", "vars": [["arg_a", "~~", "(?!b)"]]}),
        ),
        (
            "routes/c",
            json!({"id": "c", "uri": "/c", "upstream_id": "u", "script": "local _M = {} return _M"}),
        ),
        (
            "upstreams/u",
            json!({"id": "u", "scheme": "kafka", "nodes": {"127.0.0.1:81": 1}}),
        ),
        ("routes/c", route(json!({"cors": {"max_age": "x"}}))),
        (
            "services/s",
            json!({"id": "s", "upstream_id": "u", "plugins": lacking}),
        ),
        ("plugin_configs/p", json!({"id": "p", "plugins": lacking})),
        ("global_rules/1", json!({"id": "1", "plugins": lacking})),
        (
            "consumers/jill",
            json!({"username": "jill", "plugins": {"ext-plugin-pre-req": {}}}),
        ),
        ("consumer_groups/g", json!({"id": "g", "plugins": lacking})),
    ] {
        let mut all = documents();
        let (_, known) = all
            .iter_mut()
            .find(|(known, _)| *known == key)
            .expect("a document");
        known.clone_from(&value);
        let mut stored = IncrementalModel::new(Options::default());
        for (key, value) in &all {
            apply(&mut stored, key, value);
        }
        let (stored, file) = (stored.model().0, from_file(&all));
        assert_eq!(stored.routes, file.routes, "{key} {value}");
        assert_eq!(stored.consumers, file.consumers, "{key} {value}");
        assert_eq!(stored.unmatched, file.unmatched, "{key} {value}");
    }
}

#[test]
fn a_wrong_plugin_that_is_skipped_is_named_once() {
    let mut stored = IncrementalModel::new(Options::default());
    let route = r#"{"uri": "/", "plugins": {"example-plugin": {"i": -1}}}"#;
    stored.apply("routes/x", Some(route.as_bytes()));
    let (model, skipped) = stored.model();
    assert!(model.routes.is_empty());
    let reasons: Vec<&str> = skipped.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "plugins.example-plugin: failed to check the configuration of plugin example-plugin err: property \"i\" \
          validation failed: expected -1 to be at least 0"
        ]
    );
}

/// Documents, what is said of each, and how many routes it adds.
fn broken_documents() -> Vec<(&'static str, &'static str, &'static str, usize)> {
    vec![
        (
            "routes/x",
            "{",
            "EOF while parsing an object at line 1 column 1",
            0,
        ),
        (
            "routes/x",
            r#"{"uri": 1}"#,
            "property \"uri\" validation failed: wrong type: expected string, got number",
            0,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {"no-such": {}}}"#,
            "plugins.no-such: unknown plugin [no-such]",
            0,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {"ext-plugin-pre-req": {}}}"#,
            "plugin \"ext-plugin-pre-req\" is not available in this version of Weir; calls are refused",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {"inspect": {}}}"#,
            "plugin \"inspect\" is not available in this version of Weir; calls are served without (inspect: it debugs the original's own Lua code)",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {"example-plugin": {"i": 1}}}"#,
            "plugin \"example-plugin\" is not available in this version of Weir; calls are served without",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {"grpc-transcode": {"proto_id": "9", "service": "s", "method": "m"}}}"#,
            "plugins.grpc-transcode: failed to find proto by id: 9",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {}, "filter_func": "function(vars) return true end"}"#,
            "filter_func: \"filter_func\" (a function in Lua) is not available in this version of Weir; calls are refused",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "script": "local function x() end return x"}"#,
            "script: \"script\" (a function in Lua) is not available in this version of Weir; calls are refused",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {"file-logger": {}}}"#,
            "plugins.file-logger.path: property \"path\" is not set in either the plugin conf or the metadata",
            1,
        ),
        (
            "routes/x",
            r#"{"uri": "/", "plugins": {}, "modifiedIndex": 7}"#,
            "",
            1,
        ),
        (
            "consumer_groups/x",
            r#"{"id": "x", "plugins": {"ext-plugin-pre-req": {}}}"#,
            "plugin \"ext-plugin-pre-req\" is not available in this version of Weir; calls are refused",
            1,
        ),
        ("consumer_groups/x", r#"{"id": "x", "plugins": {}}"#, "", 1),
        (
            "consumers/x",
            r#"{"username": "x", "plugins": {"ext-plugin-pre-req": {}}}"#,
            "plugin \"ext-plugin-pre-req\" is not available in this version of Weir; calls are refused",
            1,
        ),
        (
            "consumers/x",
            r#"{"username": "x", "plugins": {"ext-plugin-pre-req": {}, "key-auth": {"key": "xx"}}}"#,
            "plugin \"ext-plugin-pre-req\" is not available in this version of Weir; calls are refused",
            1,
        ),
    ]
}

#[test]
fn what_is_broken_is_named_and_stops_nothing() {
    let mut stored = IncrementalModel::new(Options::default());
    for (key, value) in documents() {
        apply(&mut stored, key, &value);
    }
    let whole = stored.model().0.routes.len();
    for (key, value, reason, added) in broken_documents() {
        stored.apply(key, Some(value.as_bytes()));
        let (model, broken) = stored.model();
        let reasons: Vec<_> = broken
            .iter()
            .map(|it| (it.document.as_str(), it.reason.as_str()))
            .collect();
        let wanted = (!reason.is_empty()).then_some((key, reason));
        assert_eq!(reasons, Vec::from_iter(wanted), "{value}");
        assert_eq!(model.routes.len(), whole + added, "{value}");
        let refused = model
            .routes
            .iter()
            .any(|it| it.target == RouteTarget::respond_before_plugins(503));
        let must_not_pass = ["ext-plugin-pre-req", "grpc-transcode", "function"];
        let must_not_pass = must_not_pass.iter().any(|part| value.contains(part));
        assert_eq!(refused, key == "routes/x" && must_not_pass, "{value}");
        let table = model
            .consumer_tables
            .iter()
            .find(|it| it.id == "consumers/refused");
        let is_refused = table.is_some_and(|table| table.instances.contains_key("x"));
        assert_eq!(is_refused, key == "consumers/x", "{value}");
    }
}

/// Nor are they called in the clear. Sessions of stream routes may go there.
#[test]
fn upstreams_that_do_not_speak_http_take_no_calls() {
    for scheme in ["tls", "tcp", "udp", "kafka"] {
        let upstream = json!({"id": "u", "scheme": scheme, "nodes": {"127.0.0.1:1": 1}});
        for (key, place) in [("upstreams/u", "scheme"), ("routes/r", "upstream.scheme")] {
            let route = match key {
                "routes/r" => json!({"id": "r", "uri": "/", "upstream": upstream}),
                _ => json!({"id": "r", "uri": "/", "upstream_id": "u"}),
            };
            let mut stored = IncrementalModel::new(Options::default());
            apply(&mut stored, "upstreams/u", &upstream);
            apply(&mut stored, "routes/r", &route);
            let session = json!({"id": "t", "server_port": 9000, "upstream_id": "u"});
            apply(&mut stored, "stream_routes/t", &session);
            let (model, broken) = stored.model();
            assert_eq!(model.routes[0].target, RouteTarget::respond_after_plugins(503));
            assert_eq!(model.services.len(), 1, "{scheme} {key}");
            assert!(model.stream_routes[0].service.is_some());
            assert_eq!(broken.len(), 1, "{broken:?}");
            assert_eq!(broken[0].document, key);
            assert!(broken[0].reason.starts_with(place), "{broken:?}");
        }
    }
}

#[test]
fn calls_are_refused_that_lack_a_plugin_which_cannot_be_made() {
    let plugins = json!({"grpc-transcode": {"proto_id": "9", "service": "h.S", "method": "Run"}});
    let definitions = "syntax = \"proto3\"; package h; service S { rpc Run (M) returns (M) {} } message M {}";
    let second = json!({"id": "e", "uri": "/e", "service_id": "s"});
    for (key, refused, consumers) in [
        ("services/s", vec!["a", "e"], vec![]),
        ("plugin_configs/p", vec!["b"], vec![]),
        ("global_rules/1", vec!["a", "b", "c", "e"], vec![]),
        ("consumers/jill", vec![], vec!["jill"]),
        ("consumer_groups/g", vec![], vec!["jack"]),
    ] {
        let mut stored = IncrementalModel::new(Options::default());
        apply(&mut stored, "routes/e", &second);
        for (known, mut value) in documents() {
            if known == key {
                value["plugins"]
                    .as_object_mut()
                    .expect("plugins")
                    .extend(plugins.as_object().cloned().unwrap_or_default());
            }
            apply(&mut stored, known, &value);
        }
        let found = |model: &Model| {
            let routes = model.routes.iter();
            let routes = routes.filter(|route| route.target == RouteTarget::respond_before_plugins(503));
            let table = model
                .consumer_tables
                .iter()
                .find(|table| table.id == "consumers/refused");
            let consumers = table.map(|table| table.instances.keys().cloned().collect());
            (
                routes.map(|route| route.name.clone()).collect::<Vec<_>>(),
                consumers.unwrap_or_else(Vec::<String>::new),
            )
        };
        let wanted = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (model, broken) = stored.model();
        assert_eq!(found(&model), (wanted(&refused), wanted(&consumers)), "{key}");
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert_eq!(broken[0].document, key);
        assert_eq!(found(&stored.model().0), found(&model), "again, {key}");
        apply(
            &mut stored,
            "protos/9",
            &json!({"id": "9", "content": definitions}),
        );
        let (model, broken) = stored.model();
        assert_eq!((found(&model), broken), ((vec![], vec![]), vec![]), "{key}");
    }
}

#[test]
fn certificates_are_shown_to_clients_and_upstreams() {
    let mut current = vec![
        (
            "ssls/a",
            json!({"id": "a", "snis": ["a.com", "*.b.com"], "cert": CERTIFICATE_A, "key": SEC1_KEY_A,
                   "certs": [RSA_CERTIFICATE], "keys": [PKCS1_KEY], "client": {"ca": CERTIFICATE_B},
                   "ssl_protocols": ["TLSv1.3"]}),
        ),
        (
            "ssls/b",
            json!({"id": "b", "sni": "off.com", "cert": CERTIFICATE_B, "key": KEY_B, "status": 0}),
        ),
        (
            "ssls/c",
            json!({"id": "c", "type": "client", "cert": CERTIFICATE_A, "key": KEY_A}),
        ),
        (
            "upstreams/u",
            json!({"id": "u", "scheme": "https", "nodes": {"a:1": 1}, "tls": {"client_cert_id": "c"}}),
        ),
        ("routes/r", json!({"id": "r", "uri": "/", "upstream_id": "u"})),
    ];
    let mut stored = IncrementalModel::new(Options::default());
    for (key, value) in &current {
        apply(&mut stored, key, value);
    }
    let (model, broken) = stored.model();
    assert_eq!((broken, &model), (Vec::new(), &from_file(&current)));
    let [shown] = model.certificates.as_slice() else {
        panic!("one certificate")
    };
    assert_eq!(shown.names, ["a.com", "*.b.com"]);
    assert_eq!(shown.key_pairs.len(), 2);
    let upstream = |model: &Model| {
        let certificate = model.services.first()?.tls.certificate.as_ref();
        certificate.map(|pair| pair.key.clone())
    };
    assert_eq!(upstream(&model).as_deref(), Some(KEY_A));
    current[2].1 = json!({"id": "c", "type": "client", "cert": RSA_CERTIFICATE, "key": RSA_KEY});
    apply(&mut stored, "ssls/c", &current[2].1);
    assert_eq!(upstream(&stored.model().0).as_deref(), Some(RSA_KEY));
    stored.apply("ssls/c", None);
    // Without it, the upstream is not called.
    let refused = RouteTarget::respond_after_plugins(502);
    assert_eq!(stored.model().0.routes[0].target, refused);
    let unfit = json!({"id": "a", "sni": "a.com", "cert": CERTIFICATE_A, "key": KEY_B});
    apply(&mut stored, "ssls/a", &unfit);
    let (model, broken) = stored.model();
    assert_eq!(
        (model.certificates.len(), broken[0].document.as_str()),
        (0, "ssls/a")
    );
}
