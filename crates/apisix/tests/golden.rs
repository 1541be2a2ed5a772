//! What documents become: small documents, and the model that they make in short form.

mod shared;

use shared::{model, read};
use std::fmt::Write as _;
use weir_apisix::Options;
use weir_model::{ChainStep, PluginRef, Severity};

/// `a/b` for a step that runs instance `a/b`, with `!` if it works on responses only, `|table` for each table
/// that overrides it, and `@n` for its place in the order of response work.
fn step(step: &ChainStep) -> String {
    let mut text = match &step.plugin {
        None => "-".to_owned(),
        Some(PluginRef::Shared(id)) => format!("={id}"),
        Some(PluginRef::Inline(instance)) => instance.id.clone(),
    };
    for table in &step.consumer_overrides {
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
            "-|consumers/refused@5",
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
            "consumers/refused: c=consumers/refused",
            "consumers/response-rewrite: a=consumer_groups/g/response-rewrite b=-",
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
    let Some(PluginRef::Inline(instance)) = &model.routes[0].plugins[0].plugin else {
        panic!("an instance of the route's own");
    };
    assert_eq!(
        instance.when.as_ref().map(weir_model::Predicate::to_value),
        Some(serde_json::json!(["AND", ["arg_a", "==", "1"]]))
    );
    let answer = instance.on_refusal.as_ref().expect("an answer");
    // A map is written with a newline behind it.
    assert_eq!(answer.body, serde_json::json!("{\"message\":\"m\"}\n"));
    assert_eq!(answer.content_type.as_deref(), Some("text/plain; charset=utf-8"));
}

/// Items of a route that Weir cannot serve: the place of each, and what is said of it.
const UNSERVED: &[(&str, &str, &str)] = &[
    (
        "plugins: {cors: {_meta: {pre_function: 'return 1'}}}",
        "routes[0].plugins.cors._meta.pre_function",
        "\"pre_function\" (a function in Lua) is not available in this version of Weir",
    ),
    (
        "plugins: {limit-count: {count: 1, time_window: 1, policy: redis-sentinel, redis_role: slave, redis_master_name: m, redis_sentinels: [{host: h1, port: 1}]}}",
        "routes[0].plugins.limit-count.redis_role",
        "counting in a replica is not available in this version of Weir",
    ),
    (
        "filter_func: 'function(vars) return true end'",
        "routes[0].filter_func",
        "\"filter_func\" (a function in Lua) is not available in this version of Weir; calls are refused",
    ),
    (
        "vars: [['post_arg.x[1:2]', has, '1']]",
        "routes[0].vars",
        "the path in the variable \"post_arg.x[1:2]\" is not available in this version of Weir; calls are refused",
    ),
    (
        "vars: [[arg_a, '~~', '(?!b)']]",
        "routes[0].vars",
        "look-around in a regular expression is not available in this version of Weir; calls are refused",
    ),
    (
        "plugins: {uri-blocker: {block_rules: ['(?!a)']}}",
        "routes[0].plugins.uri-blocker.block_rules",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {ua-restriction: {denylist: ['(?!a)']}}",
        "routes[0].plugins.ua-restriction.denylist",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {request-validation: {body_schema: {properties: {a: {pattern: '(?!a)'}}}}}",
        "routes[0].plugins.request-validation.body_schema",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {request-validation: {header_schema: {patternProperties: {'(?!a)': {type: string}}}}}",
        "routes[0].plugins.request-validation.header_schema",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {proxy-rewrite: {regex_uri: ['(?=a)', b]}}",
        "routes[0].plugins.proxy-rewrite.regex_uri",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {redirect: {regex_uri: ['(?!a)', /b]}}",
        "routes[0].plugins.redirect.regex_uri",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {cors: {allow_origins_by_regex: ['(?!a)']}}",
        "routes[0].plugins.cors.allow_origins_by_regex",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {response-rewrite: {filters: [{regex: '(?<=a)b', replace: c}]}}",
        "routes[0].plugins.response-rewrite.filters",
        "look-around in a regular expression is not available in this version of Weir",
    ),
    (
        "plugins: {workflow: {rules: [{case: [[uri, ==, /]], actions: [[ai-rate-limiting, {}]]}]}}",
        "routes[0].plugins.workflow.rules",
        "the action \"ai-rate-limiting\" is not available in this version of Weir",
    ),
    (
        "plugins: {grpc-transcode: {proto_id: 99, service: a, method: b}}",
        "routes[0].plugins.grpc-transcode",
        "failed to find proto by id: 99",
    ),
    (
        "script: 'local _M = {} return _M'",
        "routes[0].script",
        "\"script\" (a function in Lua) is not available in this version of Weir; calls are refused",
    ),
];

#[test]
fn calls_that_need_what_weir_lacks_are_refused() {
    for (item, place, message) in UNSERVED {
        let text = format!(
            "routes:\n- {{id: r, uri: /, upstream: NODES, {item}}}\n- {{id: z, uri: /z, upstream: NODES}}\n"
        );
        let (model, diagnostics) = read(&text, &Options::default()).expect("the rest is served");
        let dropped: Vec<_> = diagnostics
            .iter()
            .filter(|it| it.severity == Severity::Dropped)
            .map(|it| (it.path.to_string(), it.message.as_str()))
            .collect();
        assert_eq!(dropped, [((*place).to_owned(), *message)], "{item}");
        let refused: Vec<(&str, bool)> = (model.routes.iter())
            .map(|it| {
                let is_refused = it.target == weir_model::RouteTarget::respond_before_plugins(503);
                (it.name.as_str(), is_refused)
            })
            .collect();
        assert_eq!(refused, [("r", true), ("z", false)], "{item}");
    }
}

#[test]
fn plugins_that_weir_lacks_are_reported_and_calls_are_refused_that_they_would_have_decided() {
    const OPEN: (&str, &str) = ("- {id: z, uri: /z, upstream: NODES}", "z");
    for (items, places, refused) in [
        (
            "routes:\n- {id: r, uri: /, upstream: NODES, plugins: {ext-plugin-pre-req: {}}}",
            vec!["routes[0].plugins.ext-plugin-pre-req: calls are refused"],
            vec!["r"],
        ),
        (
            "routes:\n- {id: r, uri: /, upstream: NODES, plugins: {inspect: {}, ext-plugin-pre-req: {}}}",
            vec![
                "routes[0].plugins.inspect: calls are served without (inspect: it debugs the original's own Lua code)",
                "routes[0].plugins.ext-plugin-pre-req: calls are refused",
            ],
            vec!["r"],
        ),
        (
            "routes:\n- {id: r, uri: /, upstream: NODES, plugins: {inspect: {}}}",
            vec![
                "routes[0].plugins.inspect: calls are served without (inspect: it debugs the original's own Lua code)",
            ],
            vec![],
        ),
        (
            "routes:\n- {id: r, uri: /, upstream: NODES, plugins: {mcp-bridge: {}}}",
            vec!["routes[0].plugins.mcp-bridge: calls are refused"],
            vec!["r"],
        ),
        (
            "routes:\n- {id: r, uri: /, upstream: NODES, plugins: {ext-plugin-pre-req: {_meta: {disable: true}}}}",
            vec![],
            vec![],
        ),
        (
            "services:\n- {id: s, upstream: NODES, plugins: {ext-plugin-pre-req: {}}}\nroutes:\n- {id: r, uri: /, service_id: s}",
            vec!["services[0].plugins.ext-plugin-pre-req: calls are refused"],
            vec!["r"],
        ),
        (
            "plugin_configs:\n- {id: p, plugins: {ext-plugin-pre-req: {}}}\nroutes:\n- {id: r, uri: /, upstream: NODES, plugin_config_id: p}",
            vec!["plugin_configs[0].plugins.ext-plugin-pre-req: calls are refused"],
            vec!["r"],
        ),
        (
            "global_rules:\n- {id: g, plugins: {ext-plugin-pre-req: {}}}\nroutes:\n- {id: r, uri: /, upstream: NODES}",
            vec!["global_rules[0].plugins.ext-plugin-pre-req: calls are refused"],
            vec!["r", OPEN.1],
        ),
        (
            "consumers:\n- {username: jack, plugins: {ext-plugin-pre-req: {}, key-auth: {key: k}}}\nroutes:\n- {id: r, uri: /, upstream: NODES}",
            vec!["consumers[0].plugins.ext-plugin-pre-req: calls are refused"],
            vec![],
        ),
    ] {
        let text = format!("{items}\n{}\n", OPEN.0);
        let (model, diagnostics) = read(&text, &Options::default()).expect("served");
        let names: Vec<String> = (diagnostics.iter())
            .filter(|it| it.severity == Severity::Dropped)
            .map(|it| {
                let name = it
                    .path
                    .to_string()
                    .rsplit('.')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                let lacks = format!("plugin \"{name}\" is not available in this version of Weir; ");
                format!("{}: {}", it.path, it.message.replace(&lacks, ""))
            })
            .collect();
        assert_eq!(names, places, "{items}");
        let broken: Vec<&str> = (model.routes.iter())
            .filter(|route| route.target == weir_model::RouteTarget::respond_before_plugins(503))
            .map(|route| route.name.as_str())
            .collect();
        assert_eq!(broken, refused, "{items}");
        // A consumer is known, and only then refused.
        let consumers = model.consumers.iter().map(|consumer| consumer.id.as_str());
        let tables = model.consumer_tables.iter();
        let refused = tables.filter(|table| table.id == "consumers/refused");
        let refused = refused.flat_map(|table| table.instances.keys().map(String::as_str));
        assert!(consumers.eq(refused), "{items}");
    }
}

#[test]
fn plugins_that_are_skipped_are_checked_as_in_the_original() {
    for (config, wrong) in [
        ("example-plugin: {i: 1}", None),
        (
            "example-plugin: {}",
            Some("example-plugin err: property \"i\" is required"),
        ),
        (
            "example-plugin: {i: -1, t: [a]}",
            Some("example-plugin err: property \"i\" validation failed: expected -1 to be at least 0"),
        ),
        ("example-plugin: {i: -1, _meta: {disable: true}}", None),
        ("inspect: {delay: x}, error-log-logger: {level: LOUD}", None),
    ] {
        let text = format!("routes:\n- {{id: r, uri: /, upstream: NODES, plugins: {{{config}}}}}\n");
        let (model, diagnostics) = read(&text, &Options::default()).expect("served");
        assert_eq!(model.routes.len(), usize::from(wrong.is_none()), "{config}");
        let messages: Vec<&str> = diagnostics
            .iter()
            .filter_map(|it| {
                it.message
                    .strip_prefix("failed to check the configuration of plugin ")
            })
            .collect();
        assert_eq!(messages, Vec::from_iter(wrong), "{config}");
    }
}

/// Clients of a certificate that asks them for one need it for all paths that no expression exempts.
#[test]
fn expressions_that_cannot_be_served_exempt_no_path() {
    let authority = "x".repeat(128);
    let text = format!(
        "
ssls:
- {{id: 1, sni: '*.a.com', cert: '$env://CERT', key: '$env://KEY'}}
- {{id: 2, sni: b.a.com, cert: '$env://CERT', key: '$env://KEY',
   client: {{ca: {authority}, skip_mtls_uri_regex: ['^/open', '^/(?!admin)', '(', '^/health']}}}}
- {{id: 3, sni: c.a.com, cert: '$env://CERT', key: '$env://KEY',
   client: {{ca: {authority}, skip_mtls_uri_regex: ['(a)\\1']}}}}
- {{id: 4, sni: d.a.com, cert: {authority}, key: {authority}, client: {{ca: '$env://CA'}}}}
- {{id: 5, sni: e.a.com, cert: {authority}, key: {authority}}}
"
    );
    let (model, diagnostics) = read(&text, &Options::default()).expect("served");
    let exempt: Vec<Option<&[String]>> = model
        .certificates
        .iter()
        .map(|it| it.client.as_ref().map(|client| client.exempt_paths.as_slice()))
        .collect();
    let both = ["^/open", "^/health"].map(str::to_owned);
    assert_eq!(exempt, [None, Some(&both[..]), Some(&[][..]), Some(&[][..])]);
    let found: Vec<(Severity, String)> = diagnostics
        .iter()
        .map(|it| (it.severity, it.path.to_string()))
        .collect();
    // The last is left out, while the one before it keeps its name: the compile refuses its handshakes.
    let places = [
        "ssls[4]",
        "ssls[1].client.skip_mtls_uri_regex[1]",
        "ssls[1].client.skip_mtls_uri_regex[2]",
        "ssls[2].client.skip_mtls_uri_regex[0]",
    ];
    assert_eq!(found, places.map(|place| (Severity::Dropped, place.to_owned())));
}

/// The defect: a certificate that cannot be read lost its names, and another one of them let clients in that have none.
#[test]
fn certificates_that_cannot_be_read_refuse_handshakes_if_clients_must_show_one() {
    for (field, names) in [
        ("sni: a.test, client: {ca: x}", &["a.test"][..]),
        (
            "snis: [a.test, '*.b.test', 'no name', 1], client: {}",
            &["a.test", "*.b.test"],
        ),
        ("sni: a.test, client: x", &["a.test"]),
        (
            "sni: a.test, client: {ca: x}, status: 1, type: server",
            &["a.test"],
        ),
        // Clients need none, or there are no names, or it is off.
        ("sni: a.test", &[]),
        ("sni: a.test, client: null", &[]),
        ("sni: 'no name', client: {ca: x}", &[]),
        ("sni: a.test, client: {ca: x}, status: 0", &[]),
        ("sni: a.test, client: {ca: x}, type: client", &[]),
    ] {
        let item = format!("{{id: one, cert: short, key: short, {field}}}");
        let (from_file, diagnostics) =
            read(&format!("ssls:\n- {item}\n"), &Options::default()).expect("served");
        let mut documents = weir_apisix::IncrementalModel::new(Options::default());
        let value = weir_model::document::parse(&item).expect("YAML");
        documents.apply("ssls/one", Some(value.to_string().as_bytes()));
        let (from_store, skipped) = documents.model();
        for model in [&from_file, &from_store] {
            let certificates = &model.certificates;
            let found: Vec<&String> = certificates.iter().flat_map(|it| &it.names).collect();
            assert_eq!(found, names, "{field}");
            assert!(certificates.iter().all(|it| it.refuses_handshakes()), "{field}");
        }
        let says = |text: &str| text.ends_with("handshakes for its names are refused");
        let warned: Vec<bool> = diagnostics.iter().map(|it| says(&it.message)).collect();
        assert_eq!(warned, [!names.is_empty()], "{field}: {diagnostics:?}");
        let warned: Vec<bool> = skipped.iter().map(|it| says(&it.reason)).collect();
        assert_eq!(warned, [!names.is_empty()], "{field}: {skipped:?}");
        // Without the document, nothing is left of it.
        documents.apply("ssls/one", None);
        assert_eq!(documents.model().0.certificates, Vec::new(), "{field}");
    }
}

#[test]
fn resources_that_are_not_served_yet_are_checked_and_reported() {
    let text = "
ssls:
- {id: 1, sni: a.com, cert: '$env://CERT', key: '$env://KEY'}
- {id: 2, sni: a.com}
protos:
- {id: 1, content: 'message M {}'}
- {id: 2, content: 'message {'}
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
            "Dropped protos[1].content: invalid content: definition.proto:1:9: expected an identifier, but found '{'",
            "Dropped ssls[1]: then clause did not match",
            "Warning plugins: the list of plugins to load is not served yet: all available ones are",
        ]
    );
}
