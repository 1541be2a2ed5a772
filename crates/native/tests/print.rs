//! The text form of models: how it looks, and that it reads back as the same model.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::{
    BalancingAlgorithm, ChainStep, Consumer, ConsumerTable, Credential, DialectName, ForwardedHeaders,
    GatewayHeader, GatewayHeaderValue, HashOn, HeaderMatch, HostPattern, KeepalivePool, Model, PathJoin,
    PathPattern, PathRewrite, PluginInstance, PluginRef, Predicate, Route, RouteMatch, RouteTarget, Scheme,
    Service, Target, Timeouts, Upstream, UpstreamHost, document,
};
use weir_native::{print, translate};

fn read(text: &str) -> Model {
    let document = document::parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    match translate(&document) {
        Ok((model, _)) => model,
        Err(found) => panic!("{found:#?}\n{text}"),
    }
}

#[test]
fn the_text_form_uses_short_forms_where_they_say_the_same() {
    let long = "
weir: 1
services:
  - {name: hello, url: 'http://127.0.0.1:1980', timeouts: {read_ms: 1000}}
  - {name: many, upstream: pool}
routes:
  - name: hello
    match:
      - {path: /hello, methods: [GET]}
      - {path: =/hi, methods: [GET]}
    to: {service: hello}
    path: {strip_matched: true}
    upstream_host: client
    plugins:
      - use: {name: rate-limit, config: {limits: [{count: 5, per: minute}], by: consumer}}
      - {use: shared, overrides: [vips], response_order: -1}
  - name: rest
    match: [{}]
    to: {respond: {status: 503}}
    forwarded: {via: null}
  - name: foreign
    dialect: kong
    match: [{path: '~/v\\d+/x', precedence: 7, when: [arg_a, ==, '1']}]
    to: {service: many}
upstreams:
  - name: pool
    targets: [{host: a.internal, port: 80}, {host: '::1', port: 81}, {host: b, port: 82, weight: 1}]
consumers:
  - id: alice
    username: alice
    credentials:
      - {plugin: key-auth, config: {key: '007'}}
  - {id: bob, username: Bob}
plugins: [{id: shared, name: key-auth, config: {}}]
consumer_tables: [{id: vips, instances: {alice: shared, bob: null}}]
";
    let short = r"weir: 1
services:
  - name: hello
    url: http://127.0.0.1:1980
    timeouts: {connect_ms: 5000, write_ms: 60000, read_ms: 1000}
  - name: many
    upstream: pool
routes:
  - name: hello
    paths: [/hello, '=/hi']
    methods: [GET]
    service: hello
    strip_prefix: true
    preserve_host: true
    plugins:
      - rate-limit:
          limits: [{count: 5, per: minute}]
          by: consumer
      - {use: shared, overrides: [vips], response_order: -1}
  - name: rest
    paths: ['*']
    to: {respond: {status: 503}}
    forwarded: {standard: true, via: null}
  - name: foreign
    service: many
    dialect: kong
    match:
      - {path: '~/v\d+/x', when: [arg_a, '==', '1'], precedence: 7}
upstreams:
  - name: pool
    targets: [a.internal:80, '[::1]:81', {host: b, port: 82, weight: 1}]
consumers:
  - name: alice
    credentials:
      - key-auth: {key: '007'}
  - id: bob
    username: Bob
plugins:
  - id: shared
    key-auth: {}
consumer_tables:
  - id: vips
    instances: {alice: shared, bob: null}
";
    let model = read(long);
    assert_eq!(print(&model), short);
    assert_eq!(read(short), model);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,8}",
        "[ -~]{1,8}",
        Just("yes".to_owned()),
        Just("12".to_owned())
    ]
}

fn config() -> impl Strategy<Value = Value> {
    vec(
        (
            name(),
            prop_oneof![name().prop_map(Value::from), any::<i64>().prop_map(Value::from)],
        ),
        0..3,
    )
    .prop_map(|pairs| pairs.into_iter().filter(|(key, _)| key != "<<").collect())
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let values = [
        json!(["arg_a", "==", "1"]),
        json!(["OR", ["http_x", "in", ["a", "b"]], ["uri", "!", "~~", "^/x"]]),
        json!(["AND"]),
    ];
    proptest::sample::select(values.to_vec()).prop_map(|value| Predicate::parse(&value).expect("valid"))
}

fn instance() -> impl Strategy<Value = PluginInstance> {
    let plugin = proptest::sample::select(vec!["rate-limit", "key-auth"]);
    (plugin, option::of(name()), config(), option::of(predicate())).prop_map(|(plugin, id, config, when)| {
        PluginInstance {
            id: id.unwrap_or_default(),
            name: plugin.to_owned(),
            config,
            when,
            on_refusal: None,
            workspace: None,
            state: None,
            placeholder_for: None,
        }
    })
}

fn step() -> impl Strategy<Value = ChainStep> {
    let plugin = prop_oneof![
        name().prop_map(PluginRef::Shared),
        instance().prop_map(|instance| PluginRef::Inline(instance.into())),
    ];
    (option::of(plugin), vec(name(), 0..2), any::<bool>(), -2..2_i32).prop_map(
        |(plugin, overrides, response_only, response_order)| ChainStep {
            consumer_overrides: match plugin {
                // A step with neither would never run anything.
                None if overrides.is_empty() => vec!["table".to_owned()],
                _ => overrides,
            },
            plugin,
            response_only,
            response_order,
        },
    )
}

fn route_match() -> impl Strategy<Value = RouteMatch> {
    let host = proptest::sample::select(vec!["*", "a.com", "*.a.com:81", "a.*"]);
    let path = proptest::sample::select(vec![
        "*",
        "/",
        "/a",
        "=/a",
        "/a*",
        "/a/{id}",
        "~/v\\d+",
        "/%C3%A4%20b",
    ]);
    let header = (name(), vec(name(), 0..2), option::of(name()))
        .prop_map(|(name, values, regex)| HeaderMatch { name, values, regex });
    let method = proptest::sample::select(vec!["GET", "POST", "M-SEARCH"]).prop_map(str::to_owned);
    (
        vec(
            host.prop_map(|text| HostPattern::parse(text).expect("valid")),
            0..2,
        ),
        path.prop_map(|text| PathPattern::parse(text).expect("valid")),
        vec(method, 0..3),
        vec(header, 0..2),
        (
            option::weighted(0.2, predicate()),
            option::weighted(0.2, any::<u64>()),
            any::<bool>(),
        ),
    )
        .prop_map(
            |(hosts, path, methods, headers, (when, precedence, from_network))| RouteMatch {
                hosts,
                path,
                methods,
                headers,
                remote_addrs: match from_network {
                    true => vec!["10.0.0.0/8".parse().expect("valid")],
                    false => Vec::new(),
                },
                snis: Vec::new(),
                when,
                precedence,
            },
        )
}

/// Several matches that differ in their paths only are what the short words say.
fn matches() -> impl Strategy<Value = Vec<RouteMatch>> {
    let same = (route_match(), vec(route_match(), 1..3)).prop_map(|(first, others)| {
        let paths = others.into_iter().map(|other| other.path);
        paths
            .map(|path| RouteMatch {
                path,
                ..first.clone()
            })
            .collect()
    });
    prop_oneof![vec(route_match(), 1..3), same]
}

fn route() -> impl Strategy<Value = Route> {
    let target = prop_oneof![
        name().prop_map(RouteTarget::Service),
        (400..599_u16).prop_map(RouteTarget::respond_after_plugins),
        (400..599_u16).prop_map(RouteTarget::respond_before_plugins),
    ];
    let path =
        (any::<bool>(), option::of(name()), any::<bool>()).prop_map(|(strip_matched, base, as_texts)| {
            PathRewrite {
                strip_matched,
                base,
                join: if as_texts {
                    PathJoin::Concatenate
                } else {
                    PathJoin::Segments
                },
            }
        });
    let host = prop_oneof![
        Just(UpstreamHost::Target),
        Just(UpstreamHost::Client),
        name().prop_map(UpstreamHost::Fixed),
    ];
    let forwarded = (any::<bool>(), option::of(name())).prop_map(|(standard, via)| ForwardedHeaders {
        standard,
        via,
        ..ForwardedHeaders::default()
    });
    let header_value = prop_oneof![
        name().prop_map(GatewayHeaderValue::Text),
        Just(GatewayHeaderValue::RequestId)
    ];
    let gateway_header = (name(), header_value).prop_map(|(name, value)| GatewayHeader { name, value });
    let dialect = prop_oneof![
        Just(DialectName::NATIVE),
        Just(DialectName::new("kong")),
        Just(DialectName::new("apisix"))
    ];
    (
        (name(), dialect, matches(), target),
        (path, host, forwarded, vec(gateway_header, 0..2)),
        vec(step(), 0..3),
        (
            option::of(Just(426)),
            option::of(Just(Timeouts::default())),
            any::<bool>(),
            option::of(any::<u64>()),
        ),
    )
        .prop_map(
            |(
                (name, dialect, matches, target),
                (path, upstream_host, forwarded, gateway_headers),
                plugins,
                rest,
            )| {
                let (https_only_status, timeouts, upgrade, max_body_bytes) = rest;
                // Read from a document, so that fields which this test does not know have their defaults.
                let plain = json!({"name": name, "match": matches, "to": target});
                let route: Route = serde_json::from_value(plain).expect("a route");
                Route {
                    dialect,
                    https_only_status,
                    path,
                    upstream_host,
                    forwarded,
                    request_headers: gateway_headers,
                    timeouts,
                    upgrade,
                    max_body_bytes,
                    plugins,
                    ..route
                }
            },
        )
}

fn upstream() -> impl Strategy<Value = Upstream> {
    let host = prop_oneof![
        "[a-z]{1,5}([.][a-z]{1,5})?",
        Just("::1".to_owned()),
        Just("127.0.0.1".to_owned())
    ];
    let target =
        (host, 1..=u16::MAX, 99..102_u32, 0..2_i32).prop_map(|(host, port, weight, priority)| Target {
            host,
            port,
            weight,
            priority,
            zone: (priority > 0).then(|| "a".to_owned()),
        });
    let hash_on = prop_oneof![Just(HashOn::Ip), name().prop_map(HashOn::Header)];
    (name(), vec(target, 0..3), vec(hash_on, 0..2), any::<bool>()).prop_map(
        |(name, targets, hash_on, other)| {
            let plain: Upstream =
                serde_json::from_value(json!({"name": name, "targets": targets})).expect("an upstream");
            Upstream {
                scheme: if other { Scheme::Https } else { Scheme::Http },
                algorithm: if other {
                    BalancingAlgorithm::Ewma
                } else {
                    BalancingAlgorithm::RoundRobin
                },
                hash_on,
                keepalive: KeepalivePool {
                    size: if other { 3 } else { KeepalivePool::default().size },
                    ..KeepalivePool::default()
                },
                ..plain
            }
        },
    )
}

fn consumer() -> impl Strategy<Value = Consumer> {
    let plugin = Just("key-auth");
    let credential = (plugin, option::of(name()), config(), option::of(0..9_u64));
    let credential = credential.prop_map(|(plugin, id, config, expires)| Credential {
        id,
        plugin: plugin.to_owned(),
        config,
        expires,
    });
    (
        name(),
        0..3,
        option::of(name()),
        btree_map("[a-z]{1,3}", name(), 0..2),
        vec(credential, 0..3),
    )
        .prop_map(|(id, named, group, labels, credentials)| Consumer {
            username: [None, Some(id.clone()), Some("other".to_owned())][named as usize].clone(),
            id,
            custom_id: None,
            group,
            labels,
            details: std::collections::BTreeMap::new(),
            credentials,
            dialect: DialectName::NATIVE,
            workspace: None,
        })
}

fn model() -> impl Strategy<Value = Model> {
    let service = (name(), name(), 0..3_u32).prop_map(|(name, url, retries)| {
        let plain: Service = serde_json::from_value(json!({"name": name, "url": url})).expect("a service");
        Service { retries, ..plain }
    });
    let table = (name(), btree_map("[a-z]{1,3}", option::of(name()), 0..3))
        .prop_map(|(id, instances)| ConsumerTable { id, instances });
    (
        vec(service, 0..3),
        vec(route(), 0..3),
        vec(upstream(), 0..2),
        vec(consumer(), 0..2),
        (vec(instance(), 0..2), vec(table, 0..2), vec(step(), 0..2)),
    )
        .prop_map(
            |(services, routes, upstreams, consumers, (plugins, consumer_tables, unmatched))| Model {
                weir: 1,
                services: services.into_iter().map(Arc::new).collect(),
                routes: routes.into_iter().map(Arc::new).collect(),
                upstreams: upstreams.into_iter().map(Arc::new).collect(),
                consumers,
                plugins,
                consumer_tables,
                unmatched,
                ..Model::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_back_as_the_same_model(model in model()) {
        let text = print(&model);
        let again = read(&text);
        prop_assert_eq!(&again, &model, "{}", text);
        prop_assert_eq!(print(&again), text);
    }
}
