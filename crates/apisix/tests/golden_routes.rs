//! What routes and upstreams become.

mod shared;

use shared::{model, read};
use weir_apisix::{Options, Router};
use weir_model::RouteTarget;

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
        // An upstream that is to know the gateway is not called without the certificate.
        (
            "upstream: {nodes: {'a:1': 1}, scheme: https, tls: {client_cert_id: ghost}}",
            "unavailable 502",
        ),
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
            RouteTarget::Respond(respond) => match respond.before_plugins {
                false => format!("unavailable {}", respond.status),
                true => format!("broken {}", respond.status),
            },
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
            "http ConsistentHashing [Template(\"${arg_x}\"), Ip] foo.svc:81*1^0 retries 1 in 0 \
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

/// Nodes of weight 0 get what APISIX gives them: nothing beside nodes of weight, and the calls that no other node can take.
#[test]
fn nodes_without_weight_are_the_last_of_their_priority() {
    let nodes = |list: &str| {
        let nodes = list.split(' ').map(|node| {
            let mut parts = node.split(['*', '^']);
            let mut part = || parts.next().expect("host*weight^priority");
            let (host, weight, priority) = (part(), part(), part());
            format!("{{host: {host}, port: 1, weight: {weight}, priority: {priority}}}")
        });
        nodes.collect::<Vec<_>>().join(", ")
    };
    let checks = ", checks: {active: {http_path: /}}";
    for (algorithm, checks, list, wanted) in [
        // Without checks nothing ever makes a node of weight leave the turn.
        ("roundrobin", "", "a*1^0 b*0^0", "a*1^0 b*0^0"),
        ("roundrobin", checks, "a*1^0 b*0^0", "a*1^0 b*1^-1"),
        ("roundrobin", checks, "a*3^0 b*2^0", "a*3^0 b*2^0"),
        ("roundrobin", checks, "a*3^5 b*2^-7", "a*3^5 b*2^-7"),
        // They come before the nodes of the next priority.
        (
            "roundrobin",
            checks,
            "a*3^5 b*0^5 c*2^-7 d*0^-7",
            "a*3^0 b*1^-1 c*2^-2 d*1^-3",
        ),
        (
            "roundrobin",
            "",
            "a*3^5 b*0^5 c*0^-7 d*0^-7",
            "a*3^5 b*0^5 c*1^-7 d*1^-7",
        ),
        ("roundrobin", "", "a*0^0 b*0^0", "a*1^0 b*1^0"),
        ("roundrobin", checks, "a*0^0 b*0^0", "a*1^0 b*1^0"),
        ("least_conn", "", "a*1^0 b*0^0", "a*1^0 b*1^-1"),
        ("ewma", checks, "a*1^0 b*0^0", "a*1^0 b*1^-1"),
        ("chash", checks, "a*1^0 b*0^0", "a*1^0 b*0^0"),
        ("chash", checks, "a*0^0", "a*1^0"),
    ] {
        let nodes = nodes(list);
        let model = model(&format!(
            "routes:\n- {{id: r, uri: /, upstream: {{type: {algorithm}, key: uri, nodes: [{nodes}]{checks}}}}}\n"
        ));
        let found: Vec<String> = model.upstreams[0]
            .targets
            .iter()
            .map(|it| format!("{}*{}^{}", it.host, it.weight, it.priority))
            .collect();
        assert_eq!(found.join(" "), wanted, "{algorithm}{checks} {list}");
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
fn a_slash_at_the_end_is_dropped_before_routes_are_matched() {
    let options = Options {
        router: Router::RadixtreeUri,
        delete_uri_tail_slash: true,
        ..Options::default()
    };
    let text = "routes:\n- {id: r, uri: /a, upstream: NODES}\n- {id: s, uri: /b/, upstream: NODES}\n";
    let (model, _) = read(text, &options).expect("served");
    assert!(model.dialect_settings[0].drops_tail_slash);
    let paths: Vec<String> = model
        .routes
        .iter()
        .map(|it| it.matches[0].path.to_string())
        .collect();
    assert_eq!(paths, ["=/a"]);
}

/// Clients that write the whole configuration at once count the changes of each item in it.
#[test]
fn counted_changes_are_no_part_of_an_item() {
    let text = |count: &str| {
        format!(
            "
routes: [{{id: r, uri: /, service_id: s, plugin_config_id: p{count}}}]
services: [{{id: s, upstream_id: u{count}}}]
upstreams: [{{id: u, nodes: {{'127.0.0.1:1': 1}}{count}}}]
plugin_configs: [{{id: p, plugins: {{cors: {{}}}}{count}}}]
global_rules: [{{id: g, plugins: {{prometheus: {{}}}}{count}}}]
consumers: [{{username: jack, plugins: {{key-auth: {{key: k}}}}{count}}}]
consumer_groups: [{{id: c, plugins: {{}}{count}}}]
plugin_metadata: [{{id: prometheus{count}}}]
protos: [{{id: x, content: 'syntax = \"proto3\";'{count}}}]
stream_routes: [{{id: t, server_port: 9000, upstream_id: u{count}}}]
"
        )
    };
    let (plain, counted) = (text(""), text(", modifiedIndex: 7"));
    let options = Options::default();
    assert_eq!(read(&counted, &options), read(&plain, &options));
    assert_eq!(model(&counted).routes.len(), 1);
}
