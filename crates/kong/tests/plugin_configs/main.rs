//! What plugins accept, and in which words they refuse: the two transformers look at names and values each in its own way.

mod datakit;

use serde_json::{Value, json};
use weir_kong::{Options, translate};
use weir_model::{Model, Severity};
use weir_plugins::request_rewrite::expression_fault;

fn read(plugin: &str, config: &Value) -> Result<Model, Vec<String>> {
    let document = json!({
        "_format_version": "3.0",
        "routes": [{
            "name": "r",
            "paths": ["/x"],
            "plugins": [{ "name": plugin, "config": config }],
        }],
    });
    let words = |found: Vec<weir_model::Diagnostic>| found.into_iter().map(|it| it.message).collect();
    match translate(&document, &Options::default()) {
        Ok((model, found)) if found.iter().all(|it| it.severity != Severity::Error) => Ok(model),
        Ok((_, found)) | Err(found) => Err(words(found)),
    }
}

#[test]
fn names_and_values_are_checked_as_by_the_original() {
    let request = "request-transformer";
    let response = "response-transformer";
    let no_header = |name: &str| Some(format!("'{name}' is not a valid header"));
    let no_value = |name: &str| Some(format!("key '{name}' has no value"));
    let no_pair = |text: &str| Some(format!("invalid value: {text}"));
    for (plugin, operation, part, text, refused) in [
        (request, "add", "headers", "X-A:1", None),
        (request, "add", "headers", "X.A:1", no_header("X.A")),
        (request, "remove", "headers", "X.A", no_header("X.A")),
        (request, "rename", "headers", "X-A:X.B", no_header("X.B")),
        (request, "rename", "headers", "X-A:", no_header("")),
        (request, "add", "headers", "X-A", no_pair("X-A")),
        (request, "add", "querystring", "a", no_value("a")),
        (request, "rename", "body", "a", no_value("a")),
        (request, "remove", "querystring", "a", None),
        (response, "add", "headers", "X.A:1", None),
        (response, "replace", "headers", "X A:1", None),
        (response, "append", "headers", "X-A", no_pair("X-A")),
        (response, "remove", "headers", "X.A", None),
        (response, "rename", "headers", "X-A:X.B", no_header("X.B")),
        (response, "add", "json", "a", no_pair("a")),
    ] {
        let config = json!({ operation: { part: [text] } });
        match (read(plugin, &config), refused) {
            (Ok(_), None) => {}
            (Err(found), Some(words)) => assert!(found.contains(&words), "{plugin} {config}: {found:?}"),
            (found, refused) => panic!("{plugin} {config}: {found:?}, not {refused:?}"),
        }
    }
}

/// The defect: a number that the plugin has no room for was told as a fault of the whole configuration.
#[test]
fn numbers_that_cannot_be_are_named() {
    let oauth = |timeout: i64| {
        json!({
            "oauth": {"token_endpoint": "http://a/"}, "client": {"timeout": timeout}, "cache": {}, "behavior": {},
        })
    };
    let introspection = json!({"introspection_url": "http://a/", "authorization_value": "b", "timeout": -5});
    for (plugin, config, path, words) in [
        (
            "oauth2-introspection",
            introspection,
            "config.timeout",
            "the number -5 as timeout",
        ),
        (
            "upstream-oauth",
            oauth(-1),
            "config.client",
            "the number -1 as client.timeout",
        ),
    ] {
        let document = json!({
            "_format_version": "3.0",
            "routes": [{"name": "r", "paths": ["/x"], "plugins": [{"name": plugin, "config": config}]}],
        });
        let found = match translate(&document, &Options::default()) {
            Ok((_, found)) | Err(found) => found,
        };
        let faults: Vec<_> = found
            .iter()
            .filter(|it| it.severity == Severity::Error)
            .map(|it| (it.path.to_string(), it.message.clone()))
            .collect();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].0.ends_with(path) && faults[0].1.starts_with(words),
            "{faults:?}"
        );
    }
}

#[test]
fn templates_that_cannot_be_read_are_for_calls_to_find_but_in_bodies_and_queries() {
    let broken = "$(headers.x +)";
    for part in ["body", "querystring"] {
        let config = json!({ "add": { part: [format!("a:{broken}")] } });
        let found = read("request-transformer", &config).expect_err("a fault");
        let begin = format!("value '{broken}' is not in supported format, error:");
        assert!(found.iter().any(|it| it.starts_with(&begin)), "{found:?}");
    }
    let config = json!({
        "add": { "headers": [format!("X-A:{broken}"), "X-B:$(headers.b"] },
        "replace": { "uri": broken },
    });
    let model = read("request-transformer", &config).expect("accepted");
    let text = serde_json::to_string(&model.routes[0].plugins).expect("JSON");
    assert!(!text.contains("headers.x +"), "{text}");
    assert!(
        text.contains("$(headers.b"),
        "what nothing closes is a text: {text}"
    );
    assert_eq!(expression_fault("$(headers.b"), None);
}

#[test]
fn a_token_must_have_the_claim_that_its_life_is_measured_by() {
    let read = |claims: Value| {
        let config = json!({ "maximum_expiration": 300, "claims_to_verify": claims });
        read("jwt", &config).map(|_| ()).map_err(|mut found| {
            found.sort();
            found
        })
    };
    assert_eq!(read(json!(["nbf", "exp"])), Ok(()));
    assert_eq!(read(Value::Null), Ok(()));
    let words = [
        "expected to contain: exp",
        "failed conditional validation given value of field 'config.maximum_expiration'",
    ];
    assert_eq!(read(json!(["nbf"])), Err(words.map(str::to_owned).to_vec()));
}

#[test]
fn ids_may_have_any_header() {
    let config = json!({ "header_name": "X.Call.Id" });
    read("correlation-id", &config).expect("accepted");
}

/// The configuration of the only plugin of a route, as it is translated.
fn translated(plugin: &str, config: &Value) -> Value {
    let model = read(plugin, config).unwrap_or_else(|words| panic!("{plugin} {config}: {words:?}"));
    let step = &model.routes[0].plugins[0];
    match &step.plugin {
        Some(weir_model::PluginRef::Inline(instance)) => instance.config.clone(),
        Some(weir_model::PluginRef::Shared(id)) => {
            let mut known = model.plugins.iter();
            known.find(|it| it.id == *id).expect("it is there").config.clone()
        }
        None => panic!("{step:?}"),
    }
}

#[test]
fn advanced_limits_are_checked_in_the_words_of_the_original() {
    let counts = "You must provide the same number of windows and limits";
    let one = |more: Value| {
        let mut config = json!({"limit": [5], "window_size": [30]});
        for (field, value) in more.as_object().expect("an object") {
            config[field] = value.clone();
        }
        config
    };
    for (config, words) in [
        (one(json!({"limit": [1, 2]})), counts),
        (one(json!({"window_size": []})), counts),
        (
            one(json!({"strategy": "redis"})),
            "sync_rate is required if not using a local strategy",
        ),
        (
            one(json!({"sync_rate": 1})),
            "sync_rate cannot be configured when using a local strategy",
        ),
        (
            one(json!({"strategy": "redis", "sync_rate": 0.01})),
            "Config option 'sync_rate' must not be a decimal between 0 and 0.02",
        ),
        (
            one(json!({"strategy": "cluster", "sync_rate": -1})),
            "Strategy 'cluster' cannot be configured with a sync_rate of -1",
        ),
        (
            one(json!({"window_type": "long"})),
            "expected one of: fixed, sliding",
        ),
        (
            one(json!({"strategy": "disk"})),
            "expected one of: cluster, redis, local",
        ),
        (json!({"limit": [5]}), "required field missing"),
    ] {
        for plugin in ["rate-limiting-advanced", "service-protection"] {
            let found = read(plugin, &config).expect_err("it is refused");
            assert!(
                found.iter().any(|it| it.contains(words)),
                "{plugin} {config}: {found:?}"
            );
        }
    }
    let groups = one(json!({"enforce_consumer_groups": true}));
    let found = read("rate-limiting-advanced", &groups).expect_err("it is refused");
    assert!(found[0].contains("not available in this version"), "{found:?}");
    let header = one(json!({"identifier": "header"}));
    assert!(read("rate-limiting-advanced", &header).is_err());
}

#[test]
fn advanced_limits_are_limits_of_the_catalogue() {
    let config = json!({
        "limit": [5, 100],
        "window_size": [60, 90],
        "identifier": "header",
        "header_name": "X-Tenant",
        "namespace": "shop",
        "retry_after_jitter_max": 3,
    });
    let limits = translated("rate-limiting-advanced", &config);
    let wanted = json!([
        {
            "count": 5,
            "per": {"sliding-seconds": 60},
            "headers": {"limit": "X-RateLimit-Limit-Minute", "remaining": "X-RateLimit-Remaining-Minute"},
        },
        {
            "count": 100,
            "per": {"sliding-seconds": 90},
            "headers": {"limit": "X-RateLimit-Limit-90", "remaining": "X-RateLimit-Remaining-90"},
        },
    ]);
    assert_eq!(limits["limits"], wanted);
    assert_eq!(limits["by"], json!({"header": "X-Tenant"}));
    assert_eq!(limits["scope"], "shop");
    assert_eq!(limits["retry_after_jitter_seconds"], 3);
    assert_eq!(limits["store"], Value::Null);
    let config = json!({
        "limit": [1],
        "window_size": [10],
        "window_type": "fixed",
        "compound_identifier": ["ip", "consumer-group"],
        "hide_client_headers": true,
        "strategy": "redis",
        "sync_rate": 2,
        "redis": {"host": "127.0.0.1"},
        "error_code": 430,
        "error_message": "slow down",
    });
    let limits = translated("rate-limiting-advanced", &config);
    assert_eq!(
        limits["limits"],
        json!([{"count": 1, "per": {"clock-seconds": 10}}])
    );
    assert_eq!(limits["by"], json!({"all": ["ip", "consumer-group"]}));
    assert_eq!(limits["store"]["sync_interval_seconds"], 2.0);
    assert_eq!(
        (&limits["status"], &limits["message"]),
        (&json!(430), &json!("slow down"))
    );
    let service = translated("service-protection", &json!({"limit": [9], "window_size": [1]}));
    assert_eq!(service["by"], "service");
}

#[test]
fn times_for_upstreams_are_times_of_the_catalogue() {
    let times = json!({"connect_timeout": 100, "send_timeout": 200, "read_timeout": 300});
    let wanted = json!({"connect_ms": 100, "write_ms": 200, "read_ms": 300});
    assert_eq!(translated("upstream-timeout", &times), wanted);
    let found = read("upstream-timeout", &json!({"read_timeout": 0})).expect_err("it is refused");
    assert!(
        found[0].contains("value should be between 1 and 2147483646"),
        "{found:?}"
    );
}

#[test]
fn caches_of_the_paid_edition_are_kept_where_they_say() {
    for plugin in ["proxy-cache-advanced", "graphql-proxy-cache-advanced"] {
        let config = json!({
            "strategy": "memory", "cache_ttl": 60, "vary_headers": ["accept"], "bypass_on_err": true,
        });
        let outcome = translated(plugin, &config);
        assert_eq!(outcome["ttl_seconds"], json!(60), "{plugin}: {outcome}");
        assert!(outcome.get("redis").is_none(), "{plugin}: {outcome}");
        let outcome = translated(plugin, &json!({"strategy": "redis", "redis": {"host": "r"}}));
        assert!(outcome["redis"].is_object(), "{plugin}: {outcome}");
        let found = read(plugin, &json!({"strategy": "disk"})).expect_err("a fault");
        assert!(
            found
                .iter()
                .any(|it| it.contains("expected one of: memory, redis")),
            "{plugin}: {found:?}"
        );
    }
    // The two have the same work, and their own options.
    let config = json!({"strategy": "memory", "response_code": [200], "request_method": ["POST"], "content_type": ["a/b"]});
    let (free, paid) = ("proxy-cache", "proxy-cache-advanced");
    assert_eq!(translated(paid, &config), translated(free, &config));
}

#[test]
fn searches_of_the_paid_edition_are_searches_of_the_catalogue() {
    let plugin = "ldap-auth-advanced";
    let plain = json!({"ldap_host": "h", "base_dn": "ou=people,dc=x", "attribute": "uid"});
    let outcome = translated(plugin, &plain);
    assert!(outcome.get("search").is_none(), "{outcome}");
    assert_eq!(outcome["consumer_by"], json!(["username", "custom-id"]));
    assert_eq!(
        (&outcome["consumer_required"], &outcome["port"]),
        (&json!(true), &json!(389))
    );
    assert_eq!(
        outcome["groups"],
        json!({"attribute": "memberOf", "required": [], "header": "X-Authenticated-Groups"})
    );
    let mut config = plain.clone();
    for (field, value) in [
        ("bind_dn", json!("cn=gw")),
        ("ldap_password", json!("p")),
        ("consumer_optional", json!(true)),
        ("groups_required", json!(["a b", "c"])),
        ("group_base_dn", json!("ou=groups,dc=x")),
        ("group_name_attribute", json!("cn")),
    ] {
        config[field] = value;
    }
    let outcome = translated(plugin, &config);
    assert_eq!(
        (&outcome["search"]["bind_dn"], &outcome["search"]["password"]),
        (&json!("cn=gw"), &json!("p"))
    );
    assert_eq!(outcome["consumer_required"], json!(false));
    assert!(outcome.get("consumer_by").is_none(), "{outcome}");
    assert_eq!(outcome["groups"]["required"], json!(["a b", "c"]));
    for (field, value, words) in [
        (
            "consumer_by",
            json!(["email"]),
            "expected one of: username, custom_id",
        ),
        ("attribute", Value::Null, "required field missing"),
    ] {
        let mut config = plain.clone();
        config[field] = value;
        let found = read(plugin, &config).expect_err("a fault");
        assert!(found.iter().any(|it| it.contains(words)), "{found:?}");
    }
    let mut both = plain;
    (both["ldaps"], both["start_tls"]) = (json!(true), json!(true));
    let found = read(plugin, &both).expect_err("a fault");
    assert!(
        found
            .iter()
            .any(|it| it.contains("cannot be enabled simultaneously")),
        "{found:?}"
    );
}

/// A document with two services, one of which has costs and routes of GraphQL, and a plugin of each for all.
fn graphql_document() -> Value {
    json!({
        "_format_version": "3.0",
        "upstreams": [{"name": "people", "host_header": "gql.example", "targets": [
            {"target": "10.0.0.1:81", "weight": 0}, {"target": "10.0.0.2:82"},
        ]}],
        "services": [
            {
                "id": "7f0b3a52-9a53-4a4e-8f2c-0d8d6a0c0001", "name": "gql", "url": "https://people:443/graphql",
                "graphql_ratelimiting_cost_decorations": [
                    {"type_path": "Query.allPeople", "mul_arguments": ["first"]},
                    {"type_path": "Person.name", "add_constant": 8},
                ],
                "degraphql_routes": [
                    {"uri": "/:owner/:name", "query": "query ($owner: String!) { r(o: $owner) }"},
                    {"uri": "/search", "methods": ["POST"], "query": "{ s }"},
                ],
                "routes": [{"name": "a", "paths": ["/a"]}],
            },
            {"name": "plain", "url": "http://127.0.0.1:1", "routes": [{"name": "b", "paths": ["/b"]}]},
        ],
        "graphql_ratelimiting_cost_decorations": [
            {"type_path": "Film.title", "add_constant": 2.5, "service": "gql"},
        ],
        "plugins": [
            {
                "name": "graphql-rate-limiting-advanced",
                "config": {"limit": [100], "window_size": [60], "sync_rate": 1, "max_cost": 50},
            },
            {"name": "degraphql", "config": {"graphql_server_path": "/gq"}},
        ],
    })
}

#[test]
fn plugins_get_what_entities_say_of_graphql() {
    let (model, found) = translate(&graphql_document(), &Options::default()).expect("valid");
    assert!(found.iter().all(|it| it.severity != Severity::Error), "{found:?}");
    let config = |name: &str| {
        &model
            .plugins
            .iter()
            .find(|it| it.name == name)
            .expect(name)
            .config
    };
    let limits = config("rate-limit");
    let service = "7f0b3a52-9a53-4a4e-8f2c-0d8d6a0c0001";
    assert_eq!(
        limits["graphql"],
        json!({
            "strategy": "complexity", "factor": 1.0, "max": 50, "header": "X-Gql-Query-Cost",
            "services": [{
                "service": service,
                "introspection": {"url": "https://10.0.0.2:82/graphql", "host": "gql.example", "verify_tls": false},
                "weights": [
                    {"path": "Query.allPeople", "add": 1.0, "multiply": 1.0, "multiply_arguments": ["first"]},
                    {"path": "Person.name", "add": 8.0, "multiply": 1.0},
                    {"path": "Film.title", "add": 2.5, "multiply": 1.0},
                ],
            }],
        })
    );
    assert_eq!(
        (&limits["across"], &limits["by"]),
        (&json!("gateways"), &json!("consumer"))
    );
    assert_eq!(limits["limits"][0]["per"], json!({"sliding-seconds": 60}));
    let queries = config("degraphql");
    assert_eq!(
        queries["routes"],
        json!([
            {"service": service, "methods": ["GET"], "path": "/:owner/:name",
                "query": "query ($owner: String!) { r(o: $owner) }"},
            {"service": service, "methods": ["POST"], "path": "/search", "query": "{ s }"},
        ])
    );
    assert_eq!(
        (&queries["path"], &queries["only_routes"]),
        (&json!("/gq"), &json!(true))
    );
    let route = model.routes.iter().find(|it| it.name == "a").expect("a route");
    assert_eq!(route.labels.get("service_id").map(String::as_str), Some(service));
}

/// A cost that is for all services. Those that cannot be asked for a schema are no fault of the plugin.
#[test]
fn costs_of_all_services_spare_those_without_http() {
    let nowhere = "http://127.0.0.1:1/";
    for (service, expected) in [
        (
            json!({"url": "http://10.0.0.1/graphql"}),
            "http://10.0.0.1:80/graphql",
        ),
        (json!({"url": "https://10.0.0.1"}), "https://10.0.0.1:443/"),
        (json!({"protocol": "grpc", "host": "10.0.0.1"}), nowhere),
        (json!({"protocol": "grpcs", "host": "10.0.0.1"}), nowhere),
        (json!({"protocol": "tcp", "host": "10.0.0.1", "port": 5}), nowhere),
        (json!({"host": "10.0.0.1", "path": "/a@b"}), nowhere),
        (json!({"host": "10.0.0.1", "port": 0}), nowhere),
    ] {
        let mut document = graphql_document();
        let mut odd = json!({"name": "odd"});
        odd.as_object_mut()
            .expect("an object")
            .extend(service.as_object().expect("an object").clone());
        document["services"].as_array_mut().expect("a list").push(odd);
        document["graphql_ratelimiting_cost_decorations"] = json!([{"type_path": "Film.title"}]);
        let (model, found) = translate(&document, &Options::default()).expect("valid");
        assert!(found.iter().all(|it| it.severity != Severity::Error), "{found:?}");
        let limits = model
            .plugins
            .iter()
            .find(|it| it.name == "rate-limit")
            .expect("a limit");
        let services = limits.config["graphql"]["services"].as_array().expect("a list");
        assert_eq!(services.len(), 3, "{service}");
        assert_eq!(services[2]["introspection"]["url"], expected, "{service}");
    }
}

/// The configuration of the first instance of a plugin in a model.
fn config_within<'m>(model: &'m Value, name: &str) -> Option<&'m Value> {
    if model["name"] == name {
        return model.get("config");
    }
    match model {
        Value::Object(members) => members.values().find_map(|it| config_within(it, name)),
        Value::Array(items) => items.iter().find_map(|it| config_within(it, name)),
        _ => None,
    }
}

/// An instance that belongs to a service, or to a route of one, has what is said of that one.
#[test]
fn instances_have_what_their_service_says() {
    for (scope, costs, routes) in [
        (json!({}), 2, 2),
        (json!({"service": "gql"}), 1, 2),
        (json!({"route": "a"}), 1, 2),
        (json!({"service": "plain"}), 1, 0),
        (json!({"route": "b"}), 1, 0),
    ] {
        let mut document = graphql_document();
        document["graphql_ratelimiting_cost_decorations"] = json!([{"type_path": "Film.title"}]);
        for plugin in document["plugins"].as_array_mut().expect("a list") {
            let plugin = plugin.as_object_mut().expect("an object");
            plugin.extend(scope.as_object().expect("an object").clone());
        }
        let (model, found) = translate(&document, &Options::default()).expect("valid");
        assert!(found.iter().all(|it| it.severity != Severity::Error), "{found:?}");
        let model = serde_json::to_value(&model).expect("JSON");
        for (name, list, expected) in [
            ("rate-limit", "/graphql/services", costs),
            ("degraphql", "/routes", routes),
        ] {
            let config = config_within(&model, name).expect(name);
            let list = config.pointer(list).and_then(Value::as_array);
            assert_eq!(list.map_or(0, Vec::len), expected, "{scope} {name}");
        }
    }
}

#[test]
fn what_entities_say_of_graphql_is_checked() {
    for (list, member, words) in [
        (
            "graphql_ratelimiting_cost_decorations",
            json!({}),
            "required field missing",
        ),
        (
            "graphql_ratelimiting_cost_decorations",
            json!({"type_path": "a..b"}),
            "expected a path such as",
        ),
        (
            "graphql_ratelimiting_cost_decorations",
            json!({"type_path": "a.b", "mul_constant": -1}),
            "value should be between 0 and",
        ),
        (
            "degraphql_routes",
            json!({"uri": "/x", "query": "{ a"}),
            "failed to parse the GraphQL query",
        ),
        (
            "degraphql_routes",
            json!({"uri": "x", "query": "{ a }"}),
            "should start with: /",
        ),
        (
            "degraphql_routes",
            json!({"uri": "/x", "query": "{ a }", "methods": ["LOOK"]}),
            "expected one of: GET",
        ),
        (
            "degraphql_routes",
            json!({"uri": "/x", "query": "query A { a } query B { b }"}),
            "one operation",
        ),
        (
            "degraphql_routes",
            json!({"uri": "/x", "query": "{ a }", "methods": []}),
            "length must be at least 1",
        ),
        (
            "degraphql_routes",
            json!({"uri": "/x".repeat(33), "query": "{ a }"}),
            "expected at most 32 segments",
        ),
    ] {
        let mut document = graphql_document();
        document["services"][0][list] = json!([member]);
        let found = translate(&document, &Options::default()).expect_err("a fault");
        assert!(
            found.iter().any(|it| it.message.contains(words)),
            "{list} {member}: {found:?}"
        );
    }
    for (plugin, config, words) in [
        (
            "degraphql",
            json!({"graphql_server_path": "x"}),
            "should start with: /",
        ),
        (
            "graphql-rate-limiting-advanced",
            json!({"limit": [1], "window_size": [1]}),
            "required field missing",
        ),
        (
            "graphql-rate-limiting-advanced",
            json!({"limit": [1], "window_size": [1, 2], "sync_rate": -1}),
            "same number of windows and limits",
        ),
        (
            "graphql-rate-limiting-advanced",
            json!({"limit": [1], "window_size": [1], "sync_rate": -1, "strategy": "local"}),
            "expected one of: cluster, redis",
        ),
        (
            "graphql-rate-limiting-advanced",
            json!({"limit": [1], "window_size": [1], "sync_rate": -1, "pass_all_downstream_headers": true}),
            "not available in this version",
        ),
    ] {
        let found = read(plugin, &config).expect_err("it is refused");
        assert!(
            found.iter().any(|it| it.contains(words)),
            "{plugin} {config}: {found:?}"
        );
    }
    let own = json!({"limit": [1], "window_size": [1], "sync_rate": -1});
    let outcome = translated("graphql-rate-limiting-advanced", &own);
    assert!(
        outcome.get("across").is_none(),
        "a rate of -1 settles nothing: {outcome}"
    );
}

#[test]
fn limits_of_what_responses_use_count_over_all_gateways() {
    let config = json!({"policy": "redis", "redis": {"host": "r"}, "limits": {"v": {"hour": 1}}});
    let outcome = translated("response-ratelimiting", &config);
    assert!(
        outcome["store"].is_object() && outcome.get("across").is_none(),
        "{outcome}"
    );
}

#[test]
fn callouts_of_the_paid_edition_are_callouts_of_the_catalogue() {
    let plugin = "request-callout";
    let config = json!({
        "callouts": [{
            "name": "user",
            "request": {
                "url": "http://127.0.0.1:1980/$(headers.x_user)",
                "headers": {"forward": true, "custom": {"X-A": "1"}},
                "http_opts": {"proxy": {"http_proxy": "http://p:3128", "auth_username": "u", "auth_password": "p"}},
                "error": {"on_error": "retry", "http_statuses": [503], "error_response_code": 502},
            },
            "response": {"body": {"decode": true}},
        }],
        "cache": {"strategy": "memory", "cache_ttl": 60},
        "upstream": {"headers": {"custom": {"X-B": "$(kong.ctx.shared.callouts.user.response.body.id)"}}},
    });
    let outcome = translated(plugin, &config);
    let callout = &outcome["callouts"][0];
    for (field, wanted) in [
        ("method", json!("GET")),
        ("on_error", json!("retry")),
        ("retries", json!(2)),
        ("error_statuses", json!([503])),
        ("status", json!(502)),
        ("message", json!("service callout error")),
        ("decode", json!(true)),
        ("cache", json!(true)),
        ("verify_tls", json!(false)),
        ("proxy", json!("http://p:3128")),
        ("proxy_authorization", json!("Basic dTpw")),
    ] {
        assert_eq!(callout[field], wanted, "{field}: {callout}");
    }
    assert_eq!(
        (&callout["send"]["forward_headers"], &callout["send"]["headers"]),
        (&json!(true), &json!({"X-A": "1"}))
    );
    assert_eq!(
        (&outcome["upstream"]["headers"], &outcome["cache_seconds"]),
        (&json!({"X-B": "$(callouts.user.response.body.id)"}), &json!(60))
    );
    assert_eq!(outcome["upstream"]["forward_headers"], json!(true));
    assert_eq!(outcome.get("redis"), None);
    let mut in_redis = config.clone();
    in_redis["cache"] = json!({"strategy": "redis", "redis": {"host": "r", "timeout": 5}});
    let outcome = translated(plugin, &in_redis);
    assert_eq!(
        (
            &outcome["redis"]["host"],
            &outcome["redis"]["timeout_ms"],
            &outcome["cache_seconds"]
        ),
        (&json!("r"), &json!(5), &json!(300))
    );
    for (path, value, words) in [
        ("/callouts/0/request/by_lua", json!("return 1"), "code of Lua"),
        ("/callouts/0/response/by_lua", json!("return 1"), "code of Lua"),
        ("/upstream/by_lua", json!("return 1"), "code of Lua"),
        (
            "/callouts/0/request/http_opts/ssl_server_name",
            json!("a"),
            "a server name of its own",
        ),
        (
            "/callouts/0/request/error/on_error",
            json!("stop"),
            "expected one of: continue, fail, retry",
        ),
        ("/callouts", json!([]), "length must be at least 1"),
        ("/callouts/0/name", Value::Null, "required field missing"),
    ] {
        let mut changed = config.clone();
        let (parent, field) = path.rsplit_once('/').expect("a path");
        let place = changed.pointer_mut(parent).expect("a place");
        place[field] = value;
        let found = read(plugin, &changed).expect_err("it is refused");
        assert!(found.iter().any(|it| it.contains(words)), "{path}: {found:?}");
    }
}
