//! What a `weir.yaml` translates to, and what is said about one that is wrong.

use weir_model::{Model, RouteTarget, UpstreamHost, document};
use weir_native::{recognises, translate};
use weir_plugin::uri::NormalForm;

fn model(text: &str) -> Model {
    let document = document::parse(text).expect("YAML");
    match translate(&document) {
        Ok((model, _)) => model,
        Err(found) => panic!("{found:#?}\n{text}"),
    }
}

/// The findings, as they are shown.
fn findings(text: &str) -> Vec<String> {
    let document = document::parse(text).expect("YAML");
    let found = match translate(&document) {
        Ok((_, warnings)) => warnings,
        Err(found) => found,
    };
    found.iter().map(|it| it.render("w.yaml", text)).collect()
}

#[test]
fn documents_are_recognised_by_their_version() {
    for (text, is_native) in [
        ("weir: 1", true),
        ("weir: 2", true),
        ("_format_version: '3.0'", false),
        ("routes: []", false),
        ("", false),
    ] {
        assert_eq!(
            recognises(&document::parse(text).expect("YAML")),
            is_native,
            "{text}"
        );
    }
}

/// Each pair says the same in short and at length.
#[test]
fn short_forms_mean_the_long_ones() {
    for (short, long) in [
        (
            "
weir: 1
services:
  - name: hello
    url: http://127.0.0.1:1980
    routes:
      - name: hello
        paths: [/hello, =/hi]
        methods: [GET]
        hosts: [a.example.com]
        strip_prefix: true
        preserve_host: true
routes:
  - {name: other, hosts: [b.example.com], service: hello}
",
            "
weir: 1
services: [{name: hello, url: http://127.0.0.1:1980}]
routes:
  - name: hello
    match:
      - {hosts: [a.example.com], methods: [GET], path: /hello}
      - {hosts: [a.example.com], methods: [GET], path: =/hi}
    to: {service: hello}
    path: {strip_matched: true}
    upstream_host: client
  - name: other
    match: [{hosts: [b.example.com]}]
    to: {service: hello}
",
        ),
        (
            "
weir: 1
upstreams: [{name: u, targets: ['127.0.0.1:80', '[::1]:81']}]
consumers: [{name: alice, credentials: [{key-auth: {key: k}}, {id: c, key-auth: {key: l}}]}]
",
            "
weir: 1
upstreams: [{name: u, targets: [{host: 127.0.0.1, port: 80}, {host: '::1', port: 81}]}]
consumers:
  - id: alice
    username: alice
    credentials:
      - {plugin: key-auth, config: {key: k}}
      - {plugin: key-auth, config: {key: l}, id: c}
",
        ),
        (
            "
weir: 1
plugins: [{id: shared, key-auth: {}}, {id: bare, cors: }]
unmatched:
  - rate-limit: {limits: [{count: 5, per: minute}]}
  - key-auth: {}
    id: k
    when: [arg_a, ==, b]
    response_order: 3
  - name: cors
  - use: shared
",
            "
weir: 1
plugins: [{id: shared, name: key-auth, config: {}}, {id: bare, name: cors, config: {}}]
unmatched:
  - use: {name: rate-limit, config: {limits: [{count: 5, per: minute}]}}
  - use: {name: key-auth, id: k, when: [arg_a, ==, b]}
    response_order: 3
  - use: {name: cors}
  - use: shared
",
        ),
    ] {
        assert_eq!(model(short), model(long), "{short}");
    }
}

#[test]
fn nested_routes_lead_to_their_service() {
    let model = model("{weir: 1, services: [{name: s, url: 'http://x', routes: [{name: r, paths: [/]}]}]}");
    assert_eq!(model.routes[0].target, RouteTarget::Service("s".to_owned()));
    assert_eq!(model.routes[0].upstream_host, UpstreamHost::Target);
}

/// People write paths as they read them; calls have them encoded.
#[test]
fn paths_are_matched_as_calls_have_them() {
    for (written, wanted, call) in [
        ("/küche", "/k%C3%BCche", "/k%c3%bcche"),
        ("=/küche", "=/k%C3%BCche", "/küche"),
        ("/k%c3%bcche*", "/k%C3%BCche*", "/k%C3%BCche"),
        ("/grün/{größe}/%41", "/gr%C3%BCn/{größe}/A", ""),
        ("/a b|c", "/a%20b%7Cc", "/a%20b|c"),
        ("/50%", "/50%", ""),
        ("/~me/a.b;c=d", "/~me/a.b;c=d", "/~me/a.b;c=d"),
        ("*", "*", ""),
        ("~/kü", "~/kü", ""),
    ] {
        for field in ["paths: [P]", "match: [{path: P}]"] {
            let field = field.replace('P', &format!("'{written}'"));
            let text = format!(
                "{{weir: 1, services: [{{name: s, url: 'http://x', routes: [{{name: r, {field}}}]}}]}}"
            );
            let pattern = model(&text).routes[0].matches[0].path.to_string();
            assert_eq!(pattern, wanted, "{field}");
        }
        if !call.is_empty() {
            let mut path = Vec::new();
            NormalForm::Unambiguous
                .apply(call.as_bytes(), &mut path)
                .expect("a path");
            let path = String::from_utf8_lossy(&path).into_owned();
            assert_eq!(path, wanted.trim_matches(['=', '*']), "{written}");
        }
    }
}

/// It is not served, and what is wrong with it is said all the same.
#[test]
fn disabled_routes_take_no_calls() {
    let routes = |is_disabled: bool| {
        model(&format!(
            "{{weir: 1, services: [{{name: s, url: 'http://x', routes: [{{name: r, paths: [/], disabled: {is_disabled}}}]}}]}}"
        ))
        .routes
        .len()
    };
    assert_eq!([routes(false), routes(true)], [1, 0]);
    let found = findings(&with_route("disabled: true\n    methods: [get it]"));
    assert!(
        found.iter().any(|it| it.contains("routes[0].methods")),
        "{found:?}"
    );
    let found = findings(&with_route("disabled: soon"));
    assert!(found.iter().any(|it| it.contains("disabled")), "{found:?}");
}

/// A document with `line` in a route, on line 6.
fn with_route(line: &str) -> String {
    format!("weir: 1\nroutes:\n  - name: r\n    service: s\n    paths: [/]\n    {line}\n")
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, wanted) in [
        (
            "weir: 2\n".to_owned(),
            "w.yaml:1: error: weir: expected '1', the version of the text form",
        ),
        (
            "weir: 1\nservces: []\n".to_owned(),
            "w.yaml:2: error: servces: unknown field 'servces': did you mean 'services'? Expected one of weir, dialect, \
             services, routes, ",
        ),
        (
            "weir: 1\nroutes: {}\n".to_owned(),
            "w.yaml:2: error: routes: expected a list, found a map",
        ),
        (
            "weir: 1\nroutes:\n- x\n".to_owned(),
            "w.yaml:3: error: routes[0]: expected a map, found a text",
        ),
        (
            "weir: 1\nroutes:\n- {name: r, service: s}\n".to_owned(),
            "w.yaml:3: error: routes[0]: expected at least one of hosts, paths, methods, headers, match",
        ),
        (
            "weir: 1\nroutes:\n- {name: r, paths: [/]}\n".to_owned(),
            "w.yaml:3: error: routes[0]: expected 'service', the name of the service that gets the calls",
        ),
        (
            "weir: 1\nroutes:\n- {service: s, paths: [/]}\n".to_owned(),
            "w.yaml:3: error: routes[0]: 'name' is missing",
        ),
        (
            with_route("to: {service: t}"),
            "w.yaml:4: error: routes[0].service: expected either 'service' or 'to', not both",
        ),
        (
            with_route("match: [{path: /}]"),
            "w.yaml:5: error: routes[0].paths: expected either 'paths' or 'match', not both",
        ),
        (
            with_route("hosts: [a b]"),
            "w.yaml:6: error: routes[0].hosts[0]: expected a host name, found 'a b'",
        ),
        (
            with_route("methods: [get]"),
            "w.yaml:6: warning: routes[0].methods[0]: methods are case-sensitive: did you mean 'GET'?",
        ),
        (
            with_route("strip_prefix: 1"),
            "w.yaml:6: error: routes[0].strip_prefix: expected true or false, found a whole number",
        ),
        (
            with_route("timeouts: {conect_ms: 1}"),
            "w.yaml:6: error: routes[0].timeouts.conect_ms: unknown field 'conect_ms': did you mean 'connect_ms'? \
             Expected one of connect_ms, write_ms, read_ms",
        ),
        (
            with_route("plugins: [{}]"),
            "w.yaml:6: error: routes[0].plugins[0]: expected a plugin's name and its configuration, such as 'cors: {}'",
        ),
        (
            with_route("plugins: [{cors: {}, key-auth: {}}]"),
            "w.yaml:6: error: routes[0].plugins[0].key-auth: expected one plugin in an item of the list: begin the next \
             with '- '",
        ),
        (
            "weir: 1\nservices:\n- name: s\n".to_owned(),
            "w.yaml:3: error: services[0]: expected 'url' (one target) or 'upstream' (several)",
        ),
        (
            "weir: 1\nservices: [{name: s, url: x, routes: [{name: r, service: s, paths: [/]}]}]\n"
                .to_owned(),
            "w.yaml:2: error: services[0].routes[0].service: unknown field 'service': Expected one of name, hosts, \
             paths, methods, headers, strip_prefix, preserve_host, disabled, dialect, match, ",
        ),
        (
            "weir: 1\nupstreams: [{name: u, targets: [localhost]}]\n".to_owned(),
            "w.yaml:2: error: upstreams[0].targets[0]: expected 'host:port', found 'localhost'",
        ),
        (
            "weir: 1\nconsumers: [{name: a, username: b}]\n".to_owned(),
            "w.yaml:2: error: consumers[0].username: expected either 'name' or 'username', not both",
        ),
        (
            "weir: 1\nconsumers: [{credentials: []}]\n".to_owned(),
            "w.yaml:2: error: consumers[0]: 'name' is missing",
        ),
    ] {
        let found = findings(&text);
        assert!(
            found.len() == 1 && found[0].starts_with(wanted),
            "{found:#?}\n{text}"
        );
    }
}

#[test]
fn unknown_plugins_are_guessed() {
    for (line, place, guess) in [
        (
            "plugins: [{rate-limits: {}}]",
            "plugins[0].rate-limits",
            "did you mean 'rate-limit'?",
        ),
        ("plugins: [{whn: {}}]", "plugins[0].whn", "did you mean 'when'?"),
        (
            "plugins: [{name: keyauth}]",
            "plugins[0].name",
            "did you mean 'key-auth'?",
        ),
    ] {
        let found = findings(&with_route(line));
        let start = format!("w.yaml:6: error: routes[0].{place}: no plugin is named");
        assert!(
            found.len() == 1 && found[0].starts_with(&start) && found[0].contains(guess),
            "{found:?}"
        );
    }
    let found = findings("{weir: 1, consumers: [{name: a, credentials: [{cors: {}}]}]}");
    assert!(
        found[0]
            .contains("consumers[0].credentials[0].cors: no plugin 'cors' has credentials: Expected one of"),
        "{found:?}"
    );
}

#[test]
fn several_mistakes_are_named_at_once() {
    let text = "weir: 1\nbad: 1\nroutes:\n- {nme: r, paths: [x], service: s}\n- 3\n";
    let found = findings(text);
    let lines: Vec<&str> = found
        .iter()
        .map(|it| it.split(": ").next().expect("a place"))
        .collect();
    assert_eq!(
        lines,
        ["w.yaml:2", "w.yaml:4", "w.yaml:4", "w.yaml:5"],
        "{found:#?}"
    );
}

#[test]
fn secrets_do_not_show_in_findings() {
    for text in [
        "{weir: 1, consumers: [{name: a, credentials: [{key-auth: {key: s3cret}, jwt: s3cret}]}]}",
        "{weir: 1, consumers: [{name: a, credentials: [s3cret]}]}",
        "{weir: 1, consumers: [{name: a, labels: s3cret}]}",
        "{weir: 1, routes: [{name: r, service: s, paths: [/], timeouts: s3cret}]}",
    ] {
        let found = findings(text);
        assert!(
            !found.is_empty() && !found.concat().contains("s3cret"),
            "{found:?}"
        );
    }
}

/// An answer with all that is wrong would be many times as long as what was sent.
#[test]
fn what_is_told_of_a_document_is_bounded() {
    let unknown: String = (0..1_500).map(|it| format!("k{it}: {{}}\n")).collect();
    let route = |it: usize| format!("{{name: r{it}, paths: [/], x: 1}}");
    let routes: Vec<String> = (0..1_500).map(route).collect();
    for text in [
        format!("weir: 1\n{unknown}"),
        format!(
            "weir: 1\nservices: [{{name: s, url: 'http://a.test', routes: [{}]}}]",
            routes.join(",")
        ),
    ] {
        let document = document::parse(&text).expect("YAML");
        let found = translate(&document).expect_err("it is refused");
        assert_eq!(found.len(), 1_000);
    }
}
