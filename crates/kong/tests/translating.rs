//! Small documents and what becomes of them: a path into the model's text form, and the value there.

use serde_json::{Value, json};
use weir_kong::{Options, RouterFlavor, translate};
use weir_model::document::parse;
use weir_model::{Diagnostic, Model, Severity};

fn read(text: &str, router: RouterFlavor) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let document = parse(&format!("_format_version: \"3.0\"\n{text}")).expect("YAML");
    translate(&document, &Options { router })
}

fn model(text: &str) -> Value {
    let (model, _) = read(text, RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
    serde_json::to_value(model).expect("the text form")
}

/// The value at a path such as `/routes/0/name`; `null` if there is none.
fn at(model: &Value, path: &str) -> Value {
    model.pointer(path).cloned().unwrap_or_default()
}

const SERVICE: &str = "
services:
- name: s
  url: http://x.test:81/base
  routes:
  - name: r
";

#[test]
fn a_proxy_that_leaves_the_check_of_certificates_on_brings_no_warning() {
    for (tls_verify, https_verify, of) in [
        ("true", "true", "s"),
        ("false", "false", "s"),
        // The instance is for another service.
        ("true", "false", "t"),
    ] {
        let text = format!(
            "services: [{{name: s, url: 'https://x.test', tls_verify: {tls_verify}}}, {{name: t, url: 'https://y.test'}}]\nplugins: [{{name: forward-proxy, service: {of}, config: {{http_proxy_host: p, http_proxy_port: 1, https_verify: {https_verify}}}}}]"
        );
        let (_, found) = read(&text, RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn what_agents_are_told_of_consumers_is_no_secret() {
    let text = "consumers: [{username: ada, custom_id: c, tags: [gold], keyauth_credentials: [{key: k1}]}]";
    let (model, _) = read(text, RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
    let details = serde_json::to_value(&model.consumers[0].details).expect("JSON");
    assert_eq!(details, json!({"tags": ["gold"]}));
}

#[test]
fn counts_belong_to_what_a_plugin_is_for() {
    let states = |id: &str| {
        let limit = |name: &str| format!("{{name: {name}, id: {id}, config: {{minute: 5}}}}");
        let text = format!(
            "{SERVICE}    paths: [/]\n    plugins: [{}]\nplugins: [{}]",
            limit("rate-limiting"),
            limit("rate-limiting").replace("0001", "0002"),
        );
        let (model, _) = read(&text, RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
        let own = model.routes[0]
            .plugins
            .iter()
            .find_map(|step| match &step.plugin {
                Some(weir_model::PluginRef::Inline(instance)) => instance.state.clone(),
                _ => None,
            });
        [own, model.plugins[0].state.clone()]
    };
    let first = states("00000000-0000-4000-8000-000000000001");
    assert_eq!(first, states("90000000-0000-4000-8000-000000000001"));
    assert_eq!(first[1].as_deref(), Some("rate-limiting/-/-/-"));
    assert!(first[0].is_some() && first[0] != first[1], "{first:?}");
}

#[test]
fn keys_of_both_plugins_belong_to_their_consumers() {
    let text = "consumers: [{username: ada, keyauth_credentials: [{key: k1}], keyauth_enc_credentials: [{key: k2}]}]\n\
                keyauth_enc_credentials: [{key: k3, consumer: ada}]";
    let (model, _) = read(text, RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
    let credentials = model.consumers[0].credentials.iter();
    let keys: Vec<Value> = credentials.map(|it| it.config["key"].clone()).collect();
    assert_eq!(keys, [json!("k1"), json!("k2"), json!("k3")], "{keys:?}");
    let twice = "consumers: [{username: ada, keyauth_enc_credentials: [{key: secret}, {key: secret}]}]";
    let found = read(twice, RouterFlavor::default()).expect_err("a key stands twice");
    assert!(found[0].message.contains("(hidden)"), "{found:?}");
}

#[test]
fn agents_are_told_of_routes_and_services() {
    let (route_id, service_id) = (
        "00000000-0000-4000-8000-00000000000a",
        "00000000-0000-4000-8000-00000000000b",
    );
    let document = |config: &str| {
        format!(
            "services: [{{id: {service_id}, name: s, host: x.test, tags: [t], updated_at: 7, routes: [{{id: {route_id}, name: r, \
             paths: [/p], created_at: 5}}]}}]\nplugins: [{{name: opa, config: {{opa_path: /v1/x{config}}}}}]"
        )
    };
    for config in [
        ", include_route_in_opa_input: true",
        ", include_service_in_opa_input: true",
    ] {
        let (model, _) =
            read(&document(config), RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
        let label = |name: &str| -> Value {
            serde_json::from_str(&model.routes[0].labels[name]).expect("a document")
        };
        let (route, service) = (label("route_document"), label("service_document"));
        assert_eq!(
            route,
            json!({
                "id": route_id, "name": "r", "paths": ["/p"], "protocols": ["http", "https"], "created_at": 5,
                "https_redirect_status_code": 426, "strip_path": true, "preserve_host": false, "regex_priority": 0,
                "path_handling": "v0", "request_buffering": true, "response_buffering": true,
                "service": {"id": service_id},
            })
        );
        assert_eq!(
            service,
            json!({
                "id": service_id, "name": "s", "host": "x.test", "port": 80, "protocol": "http", "retries": 5,
                "tags": ["t"], "connect_timeout": 60_000, "write_timeout": 60_000, "read_timeout": 60_000,
                "enabled": true, "updated_at": 7,
            })
        );
    }
    let (model, _) = read(&document(""), RouterFlavor::default()).unwrap_or_else(|found| panic!("{found:?}"));
    assert!(model.routes[0].labels.is_empty(), "nothing is told");
}

#[test]
fn services_and_routes() {
    for (rest, path, expected) in [
        ("", "/services/0/name", json!("s")),
        ("", "/services/0/url", json!("http://x.test:81")),
        ("", "/services/0/retries", json!(5)),
        ("", "/services/0/timeouts/connect_ms", json!(60_000)),
        ("", "/routes/0/to", json!({"service": "s"})),
        (
            "",
            "/routes/0/path",
            json!({"strip_matched": true, "base": "/base"}),
        ),
        ("", "/routes/0/match/0/path", json!("/p*")),
        (
            "",
            "/routes/0/request_headers/0",
            json!({"name": "X-Kong-Request-Id", "value": "request-id"}),
        ),
        (
            "    strip_path: false",
            "/routes/0/path",
            json!({"base": "/base"}),
        ),
        (
            "    preserve_host: true",
            "/routes/0/upstream_host",
            json!("client"),
        ),
        (
            "    protocols: [https]",
            "/routes/0/https_only_status",
            json!(426),
        ),
        (
            "    protocols: [https]\n    https_redirect_status_code: 308",
            "/routes/0/https_only_status",
            json!(308),
        ),
        (
            "    protocols: [http]",
            "/routes/0/https_only_status",
            Value::Null,
        ),
        (
            "    hosts: [a.test, '*.b.test']",
            "/routes/0/match/0/hosts",
            json!(["a.test", ".b.test", "*.b.test"]),
        ),
        ("    hosts: ['::1']", "/routes/0/match/0/hosts", json!(["[::1]"])),
        (
            "    hosts: [a.test, B.test]",
            "/routes/0/match/1",
            json!({
                "hosts": ["b.test"],
                "path": "/p*",
                "when": ["http_host", "~~", "^(?:B\\.test)(?::[0-9]+)?$"],
                "precedence": 2,
            }),
        ),
        (
            "    headers: {X-A: ['1', '~*^B']}",
            "/routes/0/match/0/headers",
            json!([{"name": "X-A", "values": ["1"], "regex": "(?i)(?:^b)"}]),
        ),
        ("    protocols: [grpc]", "/routes/0/grpc_only_status", json!(415)),
    ] {
        let model = model(&format!("{SERVICE}    paths: [/p]\n{rest}\n"));
        assert_eq!(at(&model, path), expected, "{rest} {path}");
    }
}

#[test]
fn what_is_not_there_leads_nowhere() {
    for (text, path, expected) in [
        (
            "routes: [{name: r, paths: [/p]}]",
            "/routes/0/to",
            json!({"respond": {"status": 503}}),
        ),
        (
            "services: [{name: s, host: x, enabled: false, routes: [{name: r, paths: [/p]}]}]",
            "/routes",
            Value::Null,
        ),
        (
            "services: [{name: s, host: x, protocol: tcp, routes: [{name: r, paths: [/p]}]}]",
            "/routes/0/to",
            json!({"respond": {"status": 503}}),
        ),
    ] {
        assert_eq!(at(&model(text), path), expected, "{text}");
    }
}

#[test]
fn upstreams() {
    let text = "
services:
- {name: a, url: 'http://u.test/x', routes: [{name: a, paths: [/a]}]}
- {name: b, url: 'https://u.test', routes: [{name: b, paths: [/b]}]}
upstreams:
- name: u.test
  host_header: h.test
  hash_on: cookie
  hash_on_cookie: c
  targets: [{target: '127.0.0.1'}, {target: 'x.test:81', weight: 0}, {target: '[::1]:82'}]
- {name: none.test, algorithm: latency}
";
    let model = model(text);
    for (path, expected) in [
        ("/services/0/upstream", json!("u.test")),
        ("/services/0/url", Value::Null),
        ("/services/1/upstream", json!("u.test over TLS")),
        ("/upstreams/0/name", json!("u.test")),
        ("/upstreams/0/algorithm", json!("consistent-hashing")),
        (
            "/upstreams/0/hash_on",
            json!([{"cookie": {
                "name": "c",
                "set_for_path": "/",
                "attributes": "Same-Site=Lax; HttpOnly",
            }}]),
        ),
        (
            "/upstreams/0/targets/0",
            json!({"host": "127.0.0.1", "port": 8000}),
        ),
        (
            "/upstreams/0/targets/1",
            json!({"host": "x.test", "port": 81, "weight": 0}),
        ),
        ("/upstreams/0/targets/2", json!({"host": "::1", "port": 82})),
        ("/upstreams/1/scheme", json!("https")),
        ("/upstreams/2/algorithm", json!("ewma")),
        ("/upstreams/2/targets", json!([])),
        ("/routes/0/upstream_host", json!({"with-target-port": "h.test"})),
    ] {
        assert_eq!(at(&model, path), expected, "{path}");
    }
}

#[test]
fn certificates_of_services_come_before_those_of_their_upstreams() {
    let [first, second, key] = ["first", "second", "key"].map(|name| format!("{{vault://env/{name}}}"));
    let certificates = json!([
        {"id": "00000000-0000-4000-8000-000000000001", "cert": first, "key": key},
        {"id": "00000000-0000-4000-8000-000000000002", "cert": second, "key": key},
    ]);
    for (service, shown) in [
        ("protocol: https", json!(first)),
        (
            "protocol: https, client_certificate: {id: 00000000-0000-4000-8000-000000000002}",
            json!(second),
        ),
        ("protocol: http", Value::Null),
    ] {
        let text = format!(
            "certificates: {certificates}\nservices:\n- {{name: a, host: u.test, {service}}}\n\
             upstreams:\n- {{name: u.test, client_certificate: {{id: 00000000-0000-4000-8000-000000000001}}}}\n"
        );
        let found = at(&model(&text), "/services/0/tls/certificate/certificate");
        assert_eq!(found, shown, "{service}");
    }
}

#[test]
fn keys_of_sets_come_to_the_plugins_that_name_them() {
    let jwk = r#"{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"AAAA\"}"#;
    let text = format!(
        "key_sets: [{{name: mine}}, {{name: theirs}}]\n\
         keys:\n\
         - {{name: a, kid: a, set: mine, jwk: \"{jwk}\"}}\n\
         - {{name: b, kid: b, set: mine, pem: {{private_key: P, public_key: Q}}}}\n\
         - {{name: c, kid: c, set: mine, pem: {{public_key: Q}}}}\n\
         - {{name: d, kid: d, set: theirs, jwk: '{{vault://env/d}}'}}\n\
         routes: [{{name: r, paths: [/]}}]\n\
         plugins: [{{name: jwe-decrypt, config: {{key_sets: [mine]}}}}]\n"
    );
    let model = model(&text);
    let keys = at(&model, "/plugins/0/config/keys");
    let expected = json!([{"id": "a", "jwk": jwk.replace("\\\"", "\"")}, {"id": "b", "pem": "P"}]);
    assert_eq!(keys, expected);
}

/// The order in which the router asks the routes, the winner first.
fn order(router: RouterFlavor, routes: &[&str]) -> Vec<String> {
    let text = format!("routes:\n- {}\n", routes.join("\n- "));
    let (model, _) = read(&text, router).unwrap_or_else(|found| panic!("{found:?}"));
    let mut matches: Vec<(u64, String)> = Vec::new();
    for route in &model.routes {
        for it in &route.matches {
            matches.push((
                it.precedence.expect("a precedence"),
                format!("{} {}", route.name, it.path),
            ));
        }
    }
    matches.sort();
    matches.into_iter().rev().map(|(_, name)| name).collect()
}

#[test]
fn routes_are_ranked_as_the_routers_do() {
    use RouterFlavor::{Traditional, TraditionalCompatible};
    let by_conditions = [
        "{name: long, paths: [/very/long]}",
        "{name: two, paths: [/a], methods: [GET]}",
        "{name: split, paths: [/b, /bbbb, ~/c]}",
        "{name: low, paths: [~/d], regex_priority: 1}",
        "{name: wild, paths: [/aa], hosts: ['*.x.test']}",
        "{name: plain, paths: [/a], hosts: [x.test]}",
    ];
    assert_eq!(
        order(Traditional, &by_conditions),
        [
            "plain /a*",
            "wild /aa*",
            "two /a*",
            "low ~/d",
            "split ~/c",
            "long /very/long*",
            "split /bbbb*",
            "split /b*"
        ]
    );
    assert_eq!(
        order(TraditionalCompatible, &by_conditions),
        [
            "plain /a*",
            "low ~/d",
            "split ~/c",
            "wild /aa*",
            "two /a*",
            "long /very/long*",
            "split /bbbb*",
            "split /b*"
        ]
    );
    let negative = [
        "{name: up, paths: [~/d], methods: [GET]}",
        "{name: down, paths: [~/d], regex_priority: -1}",
    ];
    assert_eq!(order(TraditionalCompatible, &negative), ["down ~/d", "up ~/d"]);
    assert_eq!(order(Traditional, &negative), ["up ~/d", "down ~/d"]);
    let tied = ["{name: a, paths: [/x]}", "{name: b, paths: [/y]}"];
    assert_eq!(order(Traditional, &tied), ["a /x*", "b /y*"]);
}

#[test]
fn instances_are_chosen_by_scope() {
    let text = "
services:
- name: s
  url: http://x.test
  plugins: [{name: rate-limiting, config: {minute: 2}}]
  routes:
  - {name: plain, paths: [/a]}
  - {name: own, paths: [/b], plugins: [{name: rate-limiting, config: {minute: 3}}, {name: cors}]}
  - {name: both, paths: [/c]}
  - {name: off, paths: [/d], plugins: [{name: rate-limiting, enabled: false, config: {minute: 9}}]}
routes: [{name: alone, paths: [/e]}]
consumers:
- {username: c, plugins: [{name: rate-limiting, config: {minute: 5}}]}
plugins:
- {id: 00000000-0000-4000-8000-000000000001, name: rate-limiting, config: {minute: 1}}
- {name: rate-limiting, service: s, route: both, config: {minute: 4}}
- {name: rate-limiting, consumer: c, service: s, config: {minute: 6}}
- {name: rate-limiting, consumer: c, route: own, config: {minute: 7}}
";
    let model = model(text);
    let minutes = |instance: &Value| instance["config"]["limits"][0]["count"].clone();
    let shared = |id: &Value| {
        let plugins = model["plugins"].as_array().expect("a list");
        minutes(
            plugins
                .iter()
                .find(|plugin| plugin["id"] == *id)
                .expect("the instance"),
        )
    };
    let expected = [
        ("plain", json!(2), vec!["service", "everywhere"]),
        ("own", json!(3), vec!["route", "service", "everywhere"]),
        ("both", json!(4), vec!["service"]),
        ("off", json!(2), vec!["service", "everywhere"]),
        ("alone", json!(1), vec!["everywhere"]),
    ];
    for (index, (name, count, tables)) in expected.into_iter().enumerate() {
        let route = &model["routes"][index];
        assert_eq!(route["name"], name);
        let steps = route["plugins"].as_array().expect("a list");
        let step = steps.last().expect("a step");
        let used = match &step["use"] {
            Value::String(_) => shared(&step["use"]),
            inline => minutes(inline),
        };
        assert_eq!(used, count, "{name}");
        let found: Vec<&str> = step["overrides"]
            .as_array()
            .expect("tables")
            .iter()
            .map(|table| match table.as_str().expect("a name") {
                table if table.contains("route") => "route",
                table if table.contains("service") => "service",
                _ => "everywhere",
            })
            .collect();
        assert_eq!(found, tables, "{name}");
    }
    assert_eq!(model["consumer_tables"].as_array().map(Vec::len), Some(3));
    assert_eq!(at(&model, "/routes/1/plugins/0/use/name"), "cors");
    assert_eq!(
        model["unmatched"],
        json!([{"use": "00000000-0000-4000-8000-000000000001", "response_only": true}])
    );
}

#[test]
fn consumers_and_their_credentials() {
    let text = "
consumers:
- username: nested
  custom_id: c-1
  keyauth_credentials: [{key: one}]
  jwt_secrets: [{key: i, secret: s}]
keyauth_credentials: [{key: two, consumer: nested}]
plugins:
- {name: key-auth, config: {anonymous: nested, realm: r, key_names: [api_key], key_in_query: false}}
";
    let model = model(text);
    for (path, expected) in [
        ("/consumers/0/id", json!("e0738823-015e-54c2-bf4b-a11942b7fc75")),
        ("/consumers/0/dialect", json!("kong")),
        ("/consumers/0/credentials/0/config", json!({"key": "one"})),
        ("/consumers/0/credentials/1/config", json!({"key": "two"})),
        ("/consumers/0/credentials/2/plugin", json!("jwt")),
        ("/consumers/0/credentials/2/config/secret", json!("s")),
        (
            "/plugins/0/config/identity/anonymous",
            json!("e0738823-015e-54c2-bf4b-a11942b7fc75"),
        ),
        ("/plugins/0/config/challenge", json!("Key realm=\"r\"")),
        (
            "/plugins/0/config/locations",
            json!([{"header": "api_key"}, {"header": "api-key"}]),
        ),
    ] {
        assert_eq!(at(&model, path), expected, "{path}");
    }
}

#[test]
fn what_cannot_be_served_is_said_with_its_place() {
    for (text, place, severity, part) in [
        (
            "plugins: [{name: ai-proxy-advanced}]",
            "plugins[0].name",
            Severity::Error,
            "not available",
        ),
        (
            "plugins: [{name: nope}]",
            "plugins[0].name",
            Severity::Error,
            "not enabled",
        ),
        (
            "filter_chains: [{}]",
            "filter_chains",
            Severity::Error,
            "not available",
        ),
        ("nope: []", "nope", Severity::Error, "unknown field"),
        (
            "routes: [{name: r, paths: [/x], headers: {a: ['~*(']}}]",
            "routes[0].headers",
            Severity::Error,
            "invalid regex",
        ),
        (
            "routes: [{name: r, paths: ['~/(?=a)']}]",
            "routes[0].paths[0]",
            Severity::Error,
            "invalid regex",
        ),
        (
            "consumers: [{username: a, keyauth_credentials: [{key: k1}, {key: k1}]}]",
            "consumers[0].keyauth_credentials[1]",
            Severity::Error,
            "key set to '(hidden)'",
        ),
        (
            "services: [{name: s, url: 'https://x.test', tls_verify: true}, {name: t, url: 'https://y.test'}]\nplugins: [{name: forward-proxy, config: {http_proxy_host: p, http_proxy_port: 1}}]",
            "plugins[0].config.https_verify",
            Severity::Warning,
            "turns off 'tls_verify' of 's':",
        ),
        (
            "services: [{name: s, url: 'https://x.test', tls_verify: true, routes: [{name: r, paths: [/], plugins: [{name: forward-proxy, config: {http_proxy_host: p, http_proxy_port: 1}}]}]}]",
            "services[0].routes[0].plugins[0].config.https_verify",
            Severity::Warning,
            "'https_verify: true'",
        ),
    ] {
        let found = match read(text, RouterFlavor::default()) {
            Ok((_, found)) => found,
            Err(found) => found,
        };
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].path.to_string(), place, "{text}");
        assert_eq!(found[0].severity, severity, "{text}");
        assert!(found[0].message.contains(part), "{}", found[0].message);
    }
}

/// An answer with all that is wrong would be many times as long as what was sent.
#[test]
fn of_unknown_fields_only_so_many_are_told() {
    let unknown = |before: &str| {
        let lines = (0..5_000).map(|it| format!("{before}k{it}: {{}}\n"));
        lines.collect::<String>()
    };
    for text in [
        unknown(""),
        format!("services:\n- name: s\n  url: http://a.test\n{}", unknown("  ")),
    ] {
        let found = read(&text, RouterFlavor::default()).expect_err("it is refused");
        let errors = found.iter().filter(|it| it.severity == Severity::Error);
        assert_eq!(errors.count(), 1_000);
    }
}
