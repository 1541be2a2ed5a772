//! What documents become: small documents, and the model that they make in short form.

use std::fmt::Write as _;
use weir_apisix::{Options, Router, translate};
use weir_model::{ChainStep, Diagnostic, Model, PluginUse, RouteTarget, Severity, document};

const NODES: &str = "{type: roundrobin, nodes: {'127.0.0.1:1980': 1}}";

fn read(text: &str, options: &Options) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let text = text.replace("NODES", NODES);
    translate(&document::parse(&text).expect("YAML"), options)
}

fn model(text: &str) -> Model {
    let (model, diagnostics) = read(text, &Options::default()).unwrap_or_else(|them| panic!("{them:?}"));
    assert!(
        diagnostics.iter().all(|it| it.severity == Severity::Warning),
        "{diagnostics:?}"
    );
    assert_eq!(model.validate(), Vec::new());
    model
}

/// `a/b` for a step that runs instance `a/b`, with `!` where it works on responses only, `|table` for each table
/// that overrides it, and `@n` for its place in the order of response work.
fn step(step: &ChainStep) -> String {
    let mut text = match &step.plugin {
        None => "-".to_owned(),
        Some(PluginUse::Shared(id)) => format!("={id}"),
        Some(PluginUse::Inline(instance)) => instance.id.clone(),
    };
    for table in &step.overrides {
        let _ = write!(text, "|{table}");
    }
    let mark = if step.response_only { "!" } else { "" };
    format!("{text}{mark}@{}", step.response_order)
}

fn chain(steps: &[ChainStep]) -> Vec<String> {
    steps.iter().map(step).collect()
}

#[test]
fn chains_follow_phases_then_priorities() {
    let all = "
      limit-count: {count: 1, time_window: 1}
      response-rewrite: {status_code: 201}
      proxy-rewrite: {uri: /x}
      key-auth: {}
      jwt-auth: {}
      cors: {}
      request-id: {}";
    let text = format!("routes:\n- id: r\n  uri: /\n  upstream: NODES\n  plugins:{all}\n");
    assert_eq!(
        chain(&model(&text).routes[0].plugins),
        [
            "routes/r/request-id@0",
            "routes/r/cors@1",
            "routes/r/jwt-auth@2",
            "routes/r/key-auth@3",
            "routes/r/proxy-rewrite@4",
            "routes/r/limit-count@5",
            "routes/r/response-rewrite!@6",
        ]
    );
    let text = text
        .replace("key-auth: {}", "key-auth: {_meta: {priority: 9999}}")
        .replace("time_window: 1", "time_window: 1, _meta: {priority: 99999}")
        .replace("jwt-auth: {}", "jwt-auth: {_meta: {disable: true}}");
    assert_eq!(
        chain(&model(&text).routes[0].plugins),
        [
            "routes/r/request-id@1",
            "routes/r/key-auth@2",
            "routes/r/cors@3",
            "routes/r/proxy-rewrite@4",
            "routes/r/limit-count@0",
            "routes/r/response-rewrite!@5",
        ]
    );
}

#[test]
fn routes_take_plugins_from_configs_services_and_global_rules() {
    let model = model(
        "
routes:
- {id: r, uri: /, service_id: s, plugin_config_id: p, plugins: {cors: {}, jwt-auth: {_meta: {disable: true}}}}
- {id: q, uri: /q, service_id: s}
services:
- {id: s, upstream: NODES, plugins: {cors: {max_age: 1}, jwt-auth: {}, key-auth: {}}}
plugin_configs:
- {id: p, plugins: {key-auth: {header: p}, request-id: {}}}
global_rules:
- {id: g, plugins: {limit-count: {count: 1, time_window: 1}, cors: {}}}
- {id: h, plugins: {response-rewrite: {status_code: 201}, proxy-rewrite: {uri: /g}}}
- {id: i, plugins: {proxy-rewrite: {uri: /i}}}
",
    );
    let global = [
        "=global_rules/g/cors@0",
        "=global_rules/g/limit-count@1",
        "=global_rules/h/response-rewrite!@2",
    ];
    assert_eq!(chain(&model.unmatched), global);
    assert_eq!(
        chain(&model.routes[0].plugins),
        [
            "=global_rules/g/cors@0",
            "=plugin_configs/p/request-id@3",
            "routes/r/cors@4",
            "=plugin_configs/p/key-auth@5",
            "=global_rules/g/limit-count@1",
            "=global_rules/h/response-rewrite!@2",
        ]
    );
    assert_eq!(
        chain(&model.routes[1].plugins)[1..4],
        [
            "=services/s/cors@3",
            "=services/s/jwt-auth@4",
            "=services/s/key-auth@5"
        ]
    );
}

#[test]
fn consumers_and_groups_override_by_tables() {
    let model = model(
        "
routes:
- {id: r, uri: /, upstream: NODES, plugins: {key-auth: {}, limit-count: {count: 9, time_window: 1}, proxy-rewrite: {uri: /r}}}
- {id: open, uri: /open, upstream: NODES, plugins: {limit-count: {count: 9, time_window: 1}}}
consumers:
- username: a
  group_id: g
  labels: {custom_id: c7}
  plugins: {key-auth: {key: ka}, limit-count: {count: 1, time_window: 1}, proxy-rewrite: {uri: /a}, cors: {}}
- {username: b, group_id: g, plugins: {response-rewrite: {status_code: 201, _meta: {disable: true}}}}
- {username: c, group_id: ghost}
- {id: b/credentials/k1, plugins: {key-auth: {key: kb}}}
- {id: b/credentials/j1, plugins: {jwt-auth: {key: j, secret: s}}}
consumer_groups:
- {id: g, plugins: {limit-count: {count: 2, time_window: 1}, response-rewrite: {status_code: 202}}}
",
    );
    assert_eq!(
        chain(&model.routes[0].plugins),
        [
            "routes/r/key-auth@1",
            "routes/r/proxy-rewrite@2",
            "-|consumers/without-group@5",
            "-|consumers/cors@0",
            "routes/r/limit-count|consumers/limit-count@3",
            "-|consumers/response-rewrite!@4",
        ]
    );
    assert_eq!(chain(&model.routes[1].plugins), ["routes/open/limit-count@0"]);
    let tables: Vec<String> = model
        .consumer_tables
        .iter()
        .map(|table| {
            let instances = table.instances.iter();
            let entries: Vec<String> = instances
                .map(|(consumer, instance)| format!("{consumer}={}", instance.as_deref().unwrap_or("-")))
                .collect();
            format!("{}: {}", table.id, entries.join(" "))
        })
        .collect();
    assert_eq!(
        tables,
        [
            "consumers/cors: a=consumers/a/cors",
            "consumers/limit-count: a=consumers/a/limit-count b=consumer_groups/g/limit-count",
            "consumers/proxy-rewrite: a=consumers/a/proxy-rewrite",
            "consumers/response-rewrite: a=consumer_groups/g/response-rewrite b=-",
            "consumers/without-group: c=consumers/without-group",
        ]
    );
    let credentials: Vec<String> = model
        .consumers
        .iter()
        .flat_map(|consumer| {
            consumer
                .credentials
                .iter()
                .map(move |it| format!("{} {:?} {}", consumer.id, it.id, it.plugin))
        })
        .collect();
    assert_eq!(
        credentials,
        ["a None key-auth", "b Some(\"k1\") key-auth", "b Some(\"j1\") jwt"]
    );
    assert_eq!(model.consumers[0].custom_id.as_deref(), Some("c7"));
    assert!(!format!("{:?}", model.consumers).contains("ka"));
}

#[test]
fn calls_go_where_the_original_sends_them() {
    for (route, wanted) in [
        ("upstream: NODES", "service routes/r"),
        ("upstream_id: u", "service upstreams/u"),
        ("service_id: inline", "service services/inline"),
        ("service_id: byid", "service upstreams/u"),
        ("service_id: inline, upstream: NODES", "service routes/r"),
        ("service_id: inline, upstream_id: u", "service upstreams/u"),
        ("service_id: bare", "unavailable 503"),
        ("plugins: {cors: {}}", "unavailable 503"),
        ("upstream_id: ghost", "unavailable 502"),
        ("upstream: {nodes: []}", "unavailable 503"),
        ("service_id: ghost", "broken 404"),
        ("service_id: ghost, plugin_config_id: ghost", "broken 503"),
    ] {
        let text = format!(
            "
routes:
- {{id: r, uri: /, {route}}}
services:
- {{id: inline, upstream: NODES}}
- {{id: byid, upstream_id: u}}
- {{id: bare}}
upstreams:
- {{id: u, nodes: [{{host: foo.com, weight: 1}}], scheme: https}}
"
        );
        let target = match model(&text).routes[0].target.clone() {
            RouteTarget::Service(name) => format!("service {name}"),
            RouteTarget::Unavailable(status) => format!("unavailable {status}"),
            RouteTarget::Broken(status) => format!("broken {status}"),
        };
        assert_eq!(target, wanted, "{route}");
    }
}

#[test]
fn upstreams_keep_their_meaning() {
    for (upstream, wanted) in [
        (
            "{nodes: {'a:1': 0}}",
            "http RoundRobin [] a:1*1^0 retries 0 in 0 timeouts 60000/60000/60000 Client",
        ),
        (
            "{type: chash, hash_on: header, key: X-K, nodes: {'a:1': 0, 'b': 3}, pass_host: node}",
            "http ConsistentHashing [Header(\"X-K\"), Ip] a:1*0^0 b:80*3^0 retries 1 in 0 \
             timeouts 60000/60000/60000 Target",
        ),
        (
            "{type: chash, key: remote_addr, nodes: {'[::1]:8': 1}, scheme: https, retries: 5, retry_timeout: 1.5}",
            "https ConsistentHashing [Ip] ::1:8*1^0 retries 5 in 1500 timeouts 60000/60000/60000 Client",
        ),
        (
            "{type: chash, key: arg_x, service_name: 'foo.svc:81', discovery_type: dns, pass_host: rewrite, upstream_host: h}",
            "http ConsistentHashing [Template(\"${arg_x}\"), Ip] foo.svc:81*1^0 retries 0 in 0 \
             timeouts 60000/60000/60000 Fixed(\"h\")",
        ),
        (
            "{type: least_conn, nodes: [{host: a, port: 1, weight: 2, priority: -1}], timeout: {connect: 0.5, send: 1, read: 2}}",
            "http LeastConnections [] a:1*2^-1 retries 0 in 0 timeouts 500/1000/2000 Client",
        ),
    ] {
        let model = model(&format!("routes:\n- {{id: r, uri: /, upstream: {upstream}}}\n"));
        let (upstream, service) = (&model.upstreams[0], &model.services[0]);
        let targets: Vec<String> = upstream
            .targets
            .iter()
            .map(|it| format!("{}:{}*{}^{}", it.host, it.port, it.weight, it.priority))
            .collect();
        let times = service.timeouts;
        let found = format!(
            "{} {:?} {:?} {} retries {} in {} timeouts {}/{}/{} {:?}",
            serde_json::to_value(upstream.scheme)
                .expect("a text")
                .as_str()
                .expect("a text"),
            upstream.algorithm,
            upstream.hash_on,
            targets.join(" "),
            service.retries,
            service.retry_timeout_ms,
            times.connect_ms,
            times.write_ms,
            times.read_ms,
            model.routes[0].upstream_host,
        );
        assert_eq!(found, wanted);
    }
}

#[test]
fn routes_keep_their_conditions() {
    let model = model(
        "
routes:
- id: r
  uris: [/a, /b/*]
  hosts: [A.com, '*.b.com']
  methods: [GET]
  remote_addrs: [10.0.0.0/8, '::1']
  vars: [[arg_x, '==', '1']]
  enable_websocket: true
  timeout: {connect: 1, send: 1, read: 1}
  upstream: NODES
- {id: off, uri: /off, status: 0, upstream: NODES}
- {id: s, uri: /s, service_id: s}
services:
- {id: s, hosts: [s.com], enable_websocket: true, upstream: NODES}
",
    );
    let names: Vec<&str> = model.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["r", "s"]);
    let route = &model.routes[0];
    assert_eq!(
        serde_json::to_value(&route.matches[0]).expect("serializable"),
        serde_json::json!({
            "hosts": ["a.com"], "path": "=/a", "methods": ["GET"],
            "remote_addrs": ["10.0.0.0/8", "::1/128"],
            "when": ["AND", ["arg_x", "==", "1"]], "precedence": 4
        })
    );
    assert_eq!(route.matches.len(), 4);
    assert!(route.upgrade && route.timeouts.is_some());
    assert!(model.routes[1].upgrade);
    assert_eq!(model.routes[1].matches[0].hosts[0].to_string(), "s.com");
}

#[test]
fn meta_becomes_a_condition_and_an_answer() {
    let model = model(
        "
routes:
- id: r
  uri: /
  upstream: NODES
  plugins:
    key-auth: {_meta: {filter: [[arg_a, '==', '1']], error_response: {message: m}}}
",
    );
    let Some(PluginUse::Inline(instance)) = &model.routes[0].plugins[0].plugin else {
        panic!("an instance of the route's own");
    };
    assert_eq!(
        instance.when.as_ref().map(weir_model::Predicate::to_value),
        Some(serde_json::json!(["AND", ["arg_a", "==", "1"]]))
    );
    let answer = instance.on_refusal.as_ref().expect("an answer");
    assert_eq!(answer.body, serde_json::json!({"message": "m"}));
    assert_eq!(answer.content_type.as_deref(), Some("text/plain; charset=utf-8"));
}

#[test]
fn what_weir_lacks_is_an_error_at_its_place() {
    for (item, place, message) in [
        (
            "plugins: {mocking: {}}",
            "routes[0].plugins.mocking",
            "plugin \"mocking\" is not available in this version of Weir",
        ),
        (
            "plugins: {cors: {_meta: {pre_function: 'return 1'}}}",
            "routes[0].plugins.cors._meta.pre_function",
            "\"pre_function\" (a function in Lua) is not available in this version of Weir",
        ),
        (
            "plugins: {limit-count: {count: 1, time_window: 1, policy: redis, redis_host: h1}}",
            "routes[0].plugins.limit-count.policy",
            "policy \"redis\" of plugin \"limit-count\" is not available in this version of Weir",
        ),
        (
            "plugins: {key-auth: {realm: '$env://R'}}",
            "routes[0].plugins.key-auth",
            "references to secrets are not available in this version of Weir",
        ),
        (
            "filter_func: 'function(vars) return true end'",
            "routes[0].filter_func",
            "\"filter_func\" (a function in Lua) is not available in this version of Weir",
        ),
        (
            "vars: [[post_arg.x, '==', '1']]",
            "routes[0].vars",
            "the variable \"post_arg.x\" is not available in this version of Weir",
        ),
    ] {
        let text = format!("routes:\n- {{id: r, uri: /, upstream: NODES, {item}}}\n");
        let diagnostics = read(&text, &Options::default()).expect_err("refused");
        let errors: Vec<_> = diagnostics
            .iter()
            .filter(|it| it.severity == Severity::Error)
            .map(|it| (it.path.to_string(), it.message.as_str()))
            .collect();
        assert_eq!(errors, [(place.to_owned(), message)], "{item}");
    }
    let disabled =
        "routes:\n- {id: r, uri: /, upstream: NODES, plugins: {mocking: {_meta: {disable: true}}}}\n";
    assert!(read(disabled, &Options::default()).is_ok());
}

#[test]
fn resources_that_are_not_served_yet_are_checked_and_told() {
    let text = "
ssls:
- {id: 1, sni: a.com, cert: c, key: k}
- {id: 2, sni: a.com}
stream_routes:
- {id: 1, server_port: 1}
protos:
- {id: 1, content: x}
plugins:
- {name: cors}
consumers:
- {id: ghost/credentials/x, plugins: {key-auth: {key: k}}}
";
    let (_, diagnostics) = read(text, &Options::default()).expect("served");
    let mut found: Vec<String> = diagnostics
        .iter()
        .map(|it| format!("{:?} {}: {}", it.severity, it.path, it.message))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "Dropped consumers[0]: failed to get the consumer for the credential: no consumer 'ghost'",
            "Dropped ssls[1]: property \"cert\" is required",
            "Warning plugins: the list of plugins to load is not served yet: all available ones are",
            "Warning protos[0]: 'protos' are not served yet",
            "Warning ssls[0]: 'ssls' are not served yet",
            "Warning stream_routes[0]: 'stream_routes' are not served yet",
        ]
    );
}

#[test]
fn a_router_that_drops_slashes_forwards_what_it_matched() {
    let options = Options {
        router: Router::RadixtreeUri,
        delete_uri_tail_slash: true,
    };
    let text = "routes:\n- {id: r, uri: /a, upstream: NODES, plugins: {proxy-rewrite: {host: h}}}\n";
    let (model, _) = read(text, &options).expect("served");
    let paths: Vec<String> = model.routes[0]
        .matches
        .iter()
        .map(|it| it.path.to_string())
        .collect();
    assert_eq!(paths, ["=/a/", "=/a"]);
    let Some(PluginUse::Inline(instance)) = &model.routes[0].plugins[0].plugin else {
        panic!("an instance of the route's own");
    };
    assert_eq!(instance.config["path_patterns"][0]["pattern"], "^(.+)/$");
}
