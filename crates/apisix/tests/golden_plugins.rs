//! What each plugin's configuration becomes in the catalogue. Of the result, the listed fields are compared.

use serde_json::{Value, json};
use weir_apisix::{Options, translate};
use weir_model::PluginRef;

/// The catalogue's name and configuration for a plugin of a route.
fn catalogue(plugin: &str, config: &Value) -> (String, Value) {
    let document = json!({
        "routes": [{
            "id": "r", "name": "rn", "uri": "/", "service_id": "s", "plugins": {plugin: config},
            "upstream": {"nodes": {"a:1": 1}}
        }],
        "services": [{"id": "s", "name": "sn"}],
        "plugin_metadata": [
            {"id": "limit-count", "limit_header": "X-My-RateLimit-Limit"},
            {"id": "cors", "allow_origins": {"k": "http://m.com,http://n.com", "all": "*"}},
            {"id": "graphql-limit-count", "remaining_header": "X-Left"}
        ]
    });
    let (model, _) = translate(&document, &Options::default())
        .unwrap_or_else(|diagnostics| panic!("{plugin} {config}: {diagnostics:?}"));
    match &model.routes[0].plugins[0].plugin {
        Some(PluginRef::Inline(instance)) => (instance.name.clone(), instance.config.clone()),
        other => panic!("{plugin} {config}: {other:?}"),
    }
}

fn assert_fields(plugin: &str, config: &Value, name: &str, fields: &Value) {
    let (found_name, found) = catalogue(plugin, config);
    assert_eq!(found_name, name);
    for (field, value) in fields.as_object().expect("a map") {
        assert_eq!(
            found.get(field).unwrap_or(&Value::Null),
            value,
            "{plugin} {config}: {field}"
        );
    }
}

#[test]
fn limits() {
    let names = |prefix: &str| {
        json!({
            "limit": format!("X-My-{prefix}RateLimit-Limit"),
            "remaining": format!("X-{prefix}RateLimit-Remaining"),
            "reset": format!("X-{prefix}RateLimit-Reset")
        })
    };
    for (config, fields) in [
        (
            json!({"count": 2, "time_window": 60}),
            json!({
                "limits": [{"count": 2, "per": {"seconds": 60}}], "by": "ip", "when_key_missing": "ip", "status": 503,
                "headers": names(""), "fractional_reset": true, "on_failure": "refuse", "message": null
            }),
        ),
        (
            json!({"count": "${http_x ?? 1}", "time_window": 1, "key": "consumer_name", "rejected_code": 429,
                   "rejected_msg": "slow", "allow_degradation": true, "show_limit_quota_header": false}),
            json!({
                "limits": [{"count": "${http_x ?? 1}", "per": {"seconds": 1}}],
                "by": {"template": "${consumer_name}"}, "status": 429, "message": "slow",
                "on_failure": "pass", "headers": {}
            }),
        ),
        (
            json!({"count": 1, "time_window": 1, "key_type": "constant", "key": "k", "group": "g"}),
            json!({"by": "everybody", "scope": "limit-count/group/g"}),
        ),
        (
            json!({"count": 1, "time_window": 1, "key_type": "var_combination", "key": "$uri $route_name"}),
            json!({"by": {"template": "$uri rn"}}),
        ),
        (
            json!({"rules": [{"count": 1, "time_window": 2, "key": "$a"},
                             {"count": 3, "time_window": 4, "key": "$b", "header_prefix": "U"}]}),
            json!({
                "limits": [
                    {"count": 1, "per": {"seconds": 2}, "by": {"template": "$a"}, "headers": names("1-")},
                    {"count": 3, "per": {"seconds": 4}, "by": {"template": "$b"}, "headers": names("U-")}
                ],
                "headers": {}
            }),
        ),
    ] {
        assert_fields("limit-count", &config, "rate-limit", &fields);
    }
    let scope = |config: Value| catalogue("limit-count", &config).1["scope"].clone();
    let one = scope(json!({"count": 1, "time_window": 1}));
    assert_eq!(one, scope(json!({"count": 1, "time_window": 1})));
    assert_ne!(one, scope(json!({"count": 2, "time_window": 1})));
}

#[test]
fn authentication() {
    let identity = json!({
        "skip_authenticated": false, "on_preflight": true, "anonymous_header": null,
        "headers": [
            {"name": "X-Consumer-Username", "value": "consumer-username"},
            {"name": "X-Credential-Identifier", "value": "credential-id"},
            {"name": "X-Consumer-Custom-ID", "value": "consumer-custom-id"}
        ]
    });
    assert_fields(
        "key-auth",
        &json!({}),
        "key-auth",
        &json!({
            "locations": [{"header": "apikey"}, {"query": "apikey"}], "strip": "no", "on_multiple": "first",
            "empty_is_missing": false, "challenge": "apikey realm=\"key\"", "identity": identity
        }),
    );
    assert_fields(
        "key-auth",
        &json!({"header": "X-Key", "query": "k", "hide_credentials": true, "realm": "my realm"}),
        "key-auth",
        &json!({
            "locations": [{"header": "X-Key"}, {"query": "k"}], "strip": "found",
            "challenge": "apikey realm=\"my realm\""
        }),
    );
    assert_fields(
        "jwt-auth",
        &json!({}),
        "jwt",
        &json!({
            "locations": [{"header": "authorization"}, {"query": "jwt"}, {"cookie": "jwt"}], "on_multiple": "first",
            "schemes": ["Bearer", "bearer"], "scheme_required": false, "key_claim": "key",
            "required_claims": [], "checked_claims": ["exp", "nbf"],
            "challenge": "Bearer realm=\"jwt\"", "token_challenge": "Bearer realm=\"jwt\"", "identity": identity
        }),
    );
    assert_fields(
        "jwt-auth",
        &json!({"claims_to_verify": ["exp"], "key_claim_name": "iss", "anonymous_consumer": "anon"}),
        "jwt",
        &json!({"required_claims": ["exp"], "checked_claims": [], "key_claim": "iss"}),
    );
}

#[test]
fn cross_origin() {
    for (config, fields) in [
        (
            json!({}),
            json!({
                "origins": ["*"], "methods": ["*"], "headers": ["*"], "exposed_headers": [],
                "max_age_seconds": 5, "vary": false, "preflight": "answer-options", "preflight_status": 200,
                "headers_on": "all", "refused": "untouched", "credentials": false
            }),
        ),
        (
            json!({"allow_origins": "**", "allow_methods": "**", "allow_headers": "**", "expose_headers": "**",
                   "allow_credential": true}),
            json!({
                "origins": ["**"], "headers": [], "exposed_headers": ["**"], "vary": true,
                "methods": ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE"],
                "credentials": true, "credentials_for_any_origin": true
            }),
        ),
        (
            json!({"allow_origins": "null", "allow_origins_by_regex": ["x$"]}),
            json!({"origins": [], "origin_patterns": ["x$"], "vary": true}),
        ),
        (
            json!({"allow_origins_by_metadata": ["k", "absent"]}),
            json!({"origins": ["http://m.com", "http://n.com"], "vary": false}),
        ),
        (
            json!({"allow_origins": "http://a.com", "allow_origins_by_metadata": ["k"]}),
            json!({"origins": ["http://a.com", "http://m.com", "http://n.com"], "vary": true}),
        ),
        (
            json!({"timing_allow_origins": "http://a.com,http://b.com"}),
            json!({"timing_origins": ["http://a.com", "http://b.com"]}),
        ),
    ] {
        assert_fields("cors", &config, "cors", &fields);
    }
    assert_fields(
        "cors",
        &json!({"allow_origins": "http://a.com", "allow_origins_by_metadata": ["all"]}),
        "cors",
        &json!({"origins": ["http://a.com"], "origin_patterns": [""]}),
    );
}

#[test]
fn templates_may_be_base64() {
    for (transform, template) in [
        (json!({"template": "e3thfX0="}), "{{a}}"),
        (json!({"template": "abcd"}), "abcd"),
        (json!({"template": "YWJj", "template_is_base64": true}), "abc"),
        (json!({"template": "YWJj", "input_format": "json"}), "abc"),
        (
            json!({"template": "e3thfX0=", "input_format": "args"}),
            "e3thfX0=",
        ),
    ] {
        let (_, found) = catalogue("body-transformer", &json!({"response": transform}));
        assert_eq!(found["response"]["template"], template, "{transform}");
    }
}

#[test]
fn queries_are_limited_by_what_they_cost() {
    assert_fields(
        "graphql-limit-count",
        &json!({"count": 9, "time_window": 60, "max_cost": 5, "score_factor": 1.5}),
        "graphql-limit",
        &json!({
            "limit": 9, "window_seconds": 60, "max_cost": 5, "cost_factor": 1.5, "remaining_header": "X-Left",
            "limit_header": "X-RateLimit-Limit", "cost_header": "X-Graphql-Query-Cost",
        }),
    );
}

#[test]
fn restrictions_by_service_use_the_id_in_the_routes_labels() {
    let document = json!({
        "routes": [
            {"id": "a", "uri": "/a", "service_id": 1, "upstream": {"nodes": {"a:1": 1}},
             "plugins": {"consumer-restriction": {"type": "service_id", "whitelist": ["1"]}}},
            {"id": "b", "uri": "/b", "upstream": {"nodes": {"a:1": 1}},
             "plugins": {"consumer-restriction": {"type": "service_id", "whitelist": ["1"]}}},
            {"id": "c", "uri": "/c", "service_id": 1, "plugins": {"key-auth": {}}},
            {"id": "d", "uri": "/d", "service_id": 1},
        ],
        "services": [{"id": 1, "upstream": {"nodes": {"a:1": 1}}}],
        "consumers": [{"username": "jack", "plugins": {
            "key-auth": {"key": "k"},
            "consumer-restriction": {"type": "service_id", "blacklist": ["1"]},
        }}],
    });
    let (model, _) = translate(&document, &Options::default()).expect("a good document");
    for (name, expected) in [("a", Some("1")), ("b", Some("")), ("c", Some("1")), ("d", None)] {
        let route = model.routes.iter().find(|route| route.name == name).expect(name);
        assert_eq!(
            route.labels.get("service_id").map(String::as_str),
            expected,
            "{name}"
        );
        assert_eq!(route.labels.len(), usize::from(expected.is_some()), "{name}");
    }
}

/// The model calls routes by their ids; what else variables tell of them stands in labels. Routes have none that are not
/// read.
#[test]
fn routes_have_labels_where_a_variable_may_read_them() {
    let filter = |name: &str| json!({"_meta": {"filter": [[name, "==", "private"]]}});
    let rewrite = json!({"proxy-rewrite": {"headers": {"set": {"x-a": "$matched_uri"}}}});
    let deny = json!({"workflow": {"rules": [{
        "case": [["matched_host", "==", "a.com"]], "actions": [["return", {"code": 403}]]
    }]}});
    let (sent, none) = (json!({"udp-logger": {"host": "a", "port": 1}}), json!({}));
    let hashed = json!({"type": "chash", "key": "service_name", "nodes": {"a:1": 1}});
    let plain = json!({"nodes": {"a:1": 1}});
    let auth = json!({"key-auth": {}});
    // The plugins of the route, its service, a global rule and a consumer, and the upstream.
    for (route, service, global, consumer, upstream, has_labels) in [
        (&none, &none, &none, &none, &plain, false),
        (
            &json!({"key-auth": filter("route_name")}),
            &none,
            &none,
            &none,
            &plain,
            true,
        ),
        (
            &json!({"key-auth": filter("uri")}),
            &none,
            &none,
            &none,
            &plain,
            false,
        ),
        (
            &none,
            &json!({"key-auth": filter("service_name")}),
            &none,
            &none,
            &plain,
            true,
        ),
        (
            &none,
            &none,
            &json!({"key-auth": filter("service_id")}),
            &none,
            &plain,
            true,
        ),
        (&rewrite, &none, &none, &none, &plain, true),
        (&deny, &none, &none, &none, &plain, true),
        (&auth, &none, &none, &deny, &plain, true),
        (&none, &none, &none, &deny, &plain, false),
        (&auth, &none, &none, &sent, &plain, true),
        (&none, &none, &none, &none, &hashed, true),
    ] {
        let mut consumer = consumer.clone();
        consumer["key-auth"] = json!({"key": "k"});
        let mut document = json!({
            "routes": [{"id": "r", "name": "private", "uri": "/a", "host": "a.com", "service_id": 1, "plugins": route}],
            "services": [{"id": 1, "upstream": upstream, "plugins": service}],
            "consumers": [{"username": "jack", "plugins": consumer}],
        });
        if global != &none {
            document["global_rules"] = json!([{"id": 1, "plugins": global}]);
        }
        let (model, _) = translate(&document, &Options::default()).expect("a good document");
        let labels = &model.routes[0].labels;
        assert_eq!(!labels.is_empty(), has_labels, "{document}");
        if has_labels {
            assert_eq!(labels["route_name"], "private", "{document}");
            assert_eq!(labels["matched_uri"], "/a", "{document}");
        }
    }
}

#[test]
fn rewrites() {
    for (config, fields) in [
        (
            json!({"uri": "/x/$arg_a", "host": "h.com:1", "method": "POST"}),
            json!({"path": "/x/$arg_a", "host": "h.com:1", "method": "POST", "decoded_paths": true, "headers": []}),
        ),
        (
            json!({"regex_uri": ["^/a(.*)", "/b$1", "^/c", "/d"], "use_real_request_uri_unsafe": true}),
            json!({
                "path_patterns": [
                    {"pattern": "^/a(.*)", "replacement": "/b$1"}, {"pattern": "^/c", "replacement": "/d"}
                ],
                "unsafe_original_target": true
            }),
        ),
        (
            json!({"headers": {"set": {"X-N": 1, "A B": "$service_name"}, "add": {"X-A": "1"}, "remove": ["X-R"]}}),
            json!({"headers": [
                {"append": {"X-A": "1"}}, {"set": {"X-N": "1", "A%20B": "sn"}}, {"remove": ["X-R"]}
            ]}),
        ),
        (
            json!({"headers": {"X-L": "v", "X-D": ""}}),
            json!({"headers": [{"set": {"X-L": "v", "X-D": ""}}]}),
        ),
    ] {
        assert_fields("proxy-rewrite", &config, "request-rewrite", &fields);
    }
    for (config, fields) in [
        (
            json!({"status_code": 201, "body": "eA==", "body_base64": true, "vars": [["status", "==", 200]]}),
            json!({"status": 201, "body": "eA==", "body_is_base64": true, "when": ["AND", ["status", "==", 200]]}),
        ),
        (
            json!({"headers": {"add": ["X-A: 1", "X-A:2"], "set": {"X-S": "$route_id"}}}),
            json!({"headers": [{"append": {"X-A": "1"}}, {"append": {"X-A": "2"}}, {"set": {"X-S": "$route_id"}}]}),
        ),
        (
            json!({"filters": [{"regex": "(", "replace": "x"}]}),
            json!({"body": ""}),
        ),
    ] {
        assert_fields("response-rewrite", &config, "response-rewrite", &fields);
    }
}

#[test]
fn request_ids() {
    for (config, fields) in [
        (
            json!({}),
            json!({"header": "X-Request-Id", "generator": "uuid", "keep_client_id": true, "echo": "if-absent"}),
        ),
        (
            json!({"algorithm": "range_id", "range_id": {"length": 8, "char_set": "abcdef"},
                   "include_in_response": false}),
            json!({"generator": {"random": {"characters": "abcdef", "length": 8}}, "echo": "no"}),
        ),
        (json!({"algorithm": "uuidv7"}), json!({"generator": "uuid-v7"})),
    ] {
        assert_fields("request-id", &config, "request-id", &fields);
    }
}

#[test]
fn logins_and_documents() {
    for (plugin, config, name, fields) in [
        (
            "ldap-auth-advanced",
            json!({"ldap_uri": "a:389", "base_dn": "dc=a", "realm": "r"}),
            "ldap-auth",
            json!({"challenge": "ldap realm=\"r\""}),
        ),
        (
            "ldap-auth-advanced",
            json!({"ldap_uri": "a:389", "base_dn": "dc=a", "header_type": "basic"}),
            "ldap-auth",
            json!({"challenge": "Basic realm=\"ldap\""}),
        ),
        // A text in the document holds a line end as it is.
        (
            "oas-validator",
            json!({"spec": "{\n\"openapi\": \"3.0.0\", \"info\": {\"title\": \"a\nb\", \"version\": \"1\"}, \"paths\": {}}"}),
            "openapi-validation",
            json!({"spec": "{\n\"openapi\": \"3.0.0\", \"info\": {\"title\": \"a\\u000ab\", \"version\": \"1\"}, \"paths\": {}}"}),
        ),
    ] {
        assert_fields(plugin, &config, name, &fields);
    }
    let casdoor = json!({
        "endpoint_addr": "http://a", "client_id": "app", "client_secret": "secret", "callback_url": "http://b/callback"
    });
    let (_, login) = catalogue("authz-casdoor", &casdoor);
    // SHA-256 of "app"
    assert_eq!(
        login["session"]["cookie_name"],
        "authz_casdoor_session_a172cedcae47474b615c54d510a5d84a8dea3032e958587430b413538be3f333"
    );
}
