//! Requests, with what servers are asked, what the service gets, and answers in its place.

use super::*;

#[test]
fn servers_are_called_in_the_order_of_the_connections_and_change_the_request() {
    // In the document, a node may stand before those whose values it gets.
    let filter = filter(json!([
        {"name": "put", "jq": "{\"X-Plan\": .plan, \"X-Gone\": null, \"Content-Length\": \"9\"}", "input": "rights.body",
         "output": "service_request.headers"},
        {"name": "rights", "call": {"url": "https://rights.example/check?all=1", "method": "POST"},
         "inputs": {"body": "question", "query": "request.query"}},
        {"name": "question", "jq": "{user: .user.id, body, kind}",
         "inputs": {"user": "user.body", "body": "request.body", "kind": "fixed.kind"}},
        {"name": "user", "call": {"url": "http://users.example:81/user"}, "inputs": {"headers": "request.headers"},
         "outputs": {"status": "query"}},
        {"name": "query", "jq": "{status: ., list: [1, 2]}", "output": "service_request.query"},
        {"name": "fixed", "static": {"kind": "k", "body": {"new": true}}, "outputs": {"body": "service_request.body"}},
    ]));
    let mut exchange = call("POST /x?q=a%26b&q=2", "application/json", Some("{\"a\":1}"));
    exchange.request.headers.append(b"X-Gone", b"1");
    let answers = [
        Some((201, "application/json", "{\"id\":\"u&1\"}")),
        Some((200, "application/json", "{\"plan\":\"gold\"}")),
    ];
    let (asked, outcome) = requested(&*filter, &mut exchange, &answers);
    assert_eq!(word(&outcome), "continue");
    assert_eq!(
        asked,
        [
            "GET /user HTTP/1.1\r\nHost: users.example:81\r\nX-User: alice\r\nContent-Type: application/json\r\n\
             X-Gone: 1\r\n\r\n",
            "POST /check?all=1&q=a%26b&q=2 HTTP/1.1\r\nHost: rights.example\r\nContent-Type: application/json\r\n\
             Content-Length: 40\r\n\r\n{\"user\":\"u&1\",\"body\":{\"a\":1},\"kind\":\"k\"}",
        ]
    );
    let mut headers = lines(&exchange.request.headers);
    headers.sort();
    assert_eq!(
        headers,
        ["Content-Type: application/json", "X-Plan: gold", "X-User: alice"]
    );
    assert_eq!(
        exchange.upstream_query.as_deref(),
        Some(&b"status=201&list=1&list=2"[..])
    );
    assert_eq!(exchange.request.body.as_deref(), Some(&b"{\"new\":true}"[..]));
}

#[test]
fn exits_answer_in_place_of_the_service() {
    for (more, expected) in [
        (json!([]), "200 [] [] "),
        (
            json!([{"name": "v", "jq": "{a: 1}", "output": "end.body"}]),
            "200 [application/json] [] {\"a\":1}",
        ),
        (
            json!([{"name": "v", "jq": "\"a\"", "output": "end.body"}]),
            "200 [text/plain; charset=utf-8] [] a",
        ),
        (
            json!([{"name": "v", "static": {"body": {"a": 1}, "headers": {"X-A": [1, 2], "X-B": null, "Content-Type": "a/b"}}, "output": "end"}]),
            "200 [] [\"X-A: 1\", \"X-A: 2\", \"Content-Type: a/b\"] {\"a\":1}",
        ),
        (
            json!([{"name": "v", "json_to_xml": {"attribute_prefix": "-"}, "inputs": {"a": "request.query"}, "output": "end.body"}]),
            "200 [application/xml] [] <a><q>1</q></a>",
        ),
        (
            json!([{"name": "v", "call": {"url": "http://a/"}, "output": "end"}]),
            "200 [] [\"Content-Type: text/plain\", \"X-Kind: good\"] hello",
        ),
        // All values of a server as one.
        (
            json!([{"name": "v", "call": {"url": "http://a/"}, "output": "end.body"}]),
            "200 [application/json] [] {\"body\":\"hello\",\"headers\":{\"Content-Type\":\"text/plain\",\"X-Kind\":\"good\"},\"status\":200}",
        ),
    ] {
        let mut nodes = more.as_array().expect("a list").clone();
        nodes.push(json!({"name": "end", "exit": {}}));
        let calls = more.to_string().contains("call");
        let answers: Vec<Answer<'_>> = if calls {
            vec![Some((200, "text/plain", "hello"))]
        } else {
            vec![]
        };
        let filter = filter(json!(nodes));
        let (_, outcome) = requested(&*filter, &mut call("GET /?q=1", "", None), &answers);
        assert_eq!(reply(&outcome), expected, "{more}");
    }
}

#[test]
fn branches_run_one_of_two_lists() {
    let filter = filter(json!([
        {"name": "test", "branch": {"then": ["inner"], "else": ["no", "no_end"]}, "input": "is_a"},
        {"name": "is_a", "jq": ".a == \"1\"", "input": "request.query"},
        {"name": "inner", "branch": {"then": ["yes"], "else": ["maybe"]}, "input": "is_b"},
        {"name": "is_b", "jq": ".b == \"1\"", "input": "request.query"},
        {"name": "yes", "static": {"value": "yes"}},
        {"name": "maybe", "static": {"value": "maybe"}},
        {"name": "no", "static": {"value": "no"}},
        {"name": "no_end", "exit": {"status": 404}, "inputs": {"body": "no.value"}},
        // It is in no list, and gets null from what has not run.
        {"name": "all", "jq": "[.yes, .maybe, .no]", "inputs": {"yes": "yes.value", "maybe": "maybe.value", "no": "no.value"}},
        {"name": "end", "exit": {}, "inputs": {"body": "all"}},
    ]));
    for (line, expected) in [
        ("GET /?a=1&b=1", "200 [application/json] [] [\"yes\",null,null]"),
        ("GET /?a=1", "200 [application/json] [] [null,\"maybe\",null]"),
        ("GET /", "404 [text/plain; charset=utf-8] [] no"),
    ] {
        let (_, outcome) = requested(&*filter, &mut call(line, "", None), &[]);
        assert_eq!(reply(&outcome), expected, "{line}");
    }
}

#[test]
fn values_are_kept_between_calls() {
    let plugin = Orchestration::default();
    let config = json!({"nodes": [
        {"name": "key", "jq": ".k", "input": "request.query"},
        {"name": "look", "cache": {}, "inputs": {"key": "key"}},
        {"name": "test", "branch": {"then": ["data", "keep", "new"], "else": ["old"]}, "input": "look.miss"},
        {"name": "data", "call": {"url": "http://a/"}},
        {"name": "keep", "cache": {"ttl_seconds": 9}, "inputs": {"key": "key", "data": "data.body"}},
        {"name": "new", "exit": {"status": 201}, "inputs": {"body": "keep"}},
        {"name": "old", "exit": {}, "inputs": {"body": "look"}},
    ]});
    let filter = build(&plugin, &config).expect("valid");
    let large = format!("\"{}\"", "a".repeat(1_000_000));
    for (line, answer, expected) in [
        (
            "GET /?k=1",
            Some("[1]"),
            "201 [application/json] [] {\"hit\":false,\"miss\":false,\"stored\":true,\"data\":[1]}",
        ),
        (
            "GET /?k=1",
            None,
            "200 [application/json] [] {\"hit\":true,\"miss\":false,\"stored\":false,\"data\":[1]}",
        ),
        (
            "GET /?k=2",
            Some("[2]"),
            "201 [application/json] [] {\"hit\":false,\"miss\":false,\"stored\":true,\"data\":[2]}",
        ),
        ("GET /", None, "plugin_failed 500"),
    ] {
        let answers: Vec<Answer<'_>> = answer
            .map(|body| Some((200, "application/json", body)))
            .into_iter()
            .collect();
        let (_, outcome) = requested(&*filter, &mut call(line, "", None), &answers);
        assert_eq!(reply(&outcome), expected, "{line}");
    }
    for _ in 0..2 {
        let (_, outcome) = requested(
            &*filter,
            &mut call("GET /?k=3", "", None),
            &[Some((200, "application/json", &large))],
        );
        assert!(reply(&outcome).contains("\"stored\":false"), "it is too large");
    }
}

#[test]
fn properties_are_read_and_set() {
    let reads = |name: &str| {
        filter(json!([
            {"name": "a", "property": {"name": name}},
            {"name": "end", "exit": {}, "inputs": {"body": "all"}},
            {"name": "all", "jq": "{a: .}", "input": "a"},
        ]))
    };
    for (name, expected) in [
        ("remote_addr", "{\"a\":\"10.0.0.1\"}"),
        ("peer_port", "{\"a\":4711}"),
        ("server_port", "{\"a\":8000}"),
        ("host", "{\"a\":\"api.example\"}"),
        ("scheme", "{\"a\":\"http\"}"),
        ("http_x_user", "{\"a\":\"alice\"}"),
        ("http_x_none", "{\"a\":null}"),
        ("own.none", "{\"a\":null}"),
        ("shared.none", "{\"a\":null}"),
        (
            "consumer",
            "{\"a\":{\"id\":\"alice\",\"username\":\"ALICE\",\"custom_id\":\"cid\"}}",
        ),
    ] {
        let mut exchange = call("GET /", "", None);
        exchange.identity = Some(identity("alice", None));
        let (_, outcome) = requested(&*reads(name), &mut exchange, &[]);
        assert_eq!(
            reply(&outcome),
            format!("200 [application/json] [] {expected}"),
            "{name}"
        );
    }
    let mut exchange = call("GET /", "", None);
    let set = filter(json!([
        {"name": "v", "static": {"target": "other.example:81", "data": {"a": [1]}}},
        {"name": "target", "property": {"name": "upstream_target"}, "input": "v.target"},
        {"name": "shared", "property": {"name": "shared.x", "json": true}, "input": "v.data"},
        {"name": "own", "property": {"name": "own.x"}, "input": "v.data"},
    ]));
    assert_eq!(word(&requested(&*set, &mut exchange, &[]).1), "continue");
    let target = exchange
        .target_override
        .as_deref()
        .map(|it| (it.host.as_deref(), it.port));
    assert_eq!(target, Some((Some("other.example"), Some(81))));
    // What one instance shares, others of the call read.
    let get = filter(json!([
        {"name": "text", "property": {"name": "shared.x"}},
        {"name": "value", "property": {"name": "shared.x", "json": true}},
        {"name": "own", "property": {"name": "own.x"}},
        {"name": "all", "jq": "[.text, .value.a, .own]", "inputs": {"text": "text", "value": "value", "own": "own"}},
        {"name": "end", "exit": {}, "inputs": {"body": "all"}},
    ]));
    let (_, outcome) = requested(&*get, &mut exchange, &[]);
    assert_eq!(
        reply(&outcome),
        "200 [application/json] [] [\"{\\\"a\\\":[1]}\",[1],null]"
    );
    let upstream = filter(json!([
        {"name": "v", "static": {"name": "green"}},
        {"name": "set", "property": {"name": "upstream_name"}, "input": "v.name"},
    ]));
    let mut exchange = call("GET /", "", None);
    assert_eq!(word(&requested(&*upstream, &mut exchange, &[]).1), "continue");
    let name = exchange.target_override.and_then(|it| it.upstream);
    assert_eq!(name.as_deref(), Some("green"));
}

#[test]
fn values_name_targets_that_are_allowed() {
    let to = |servers: Value| {
        filter(json!([
            {"name": "v", "jq": ".to", "input": "request.query"},
            {"name": "set", "property": {"name": "upstream_target", "servers": servers}, "input": "v"},
        ]))
    };
    for (servers, query, expected) in [
        (json!(["b.example:80", "[::1]:81"]), "to=B.example:80", "continue"),
        (json!(["b.example:80", "[::1]:81"]), "to=[0::1]:81", "continue"),
        (json!(["b.example:80"]), "to=b.example:81", "plugin_failed 500"),
        (json!(["b.example:80"]), "to=10.0.0.1:80", "plugin_failed 500"),
        (json!(["*"]), "to=10.0.0.1:80", "continue"),
        (json!(["b.example:80"]), "", "continue"),
    ] {
        let mut exchange = call(&format!("GET /?{query}"), "", None);
        let (_, outcome) = requested(&*to(servers.clone()), &mut exchange, &[]);
        assert_eq!(word(&outcome), expected, "{servers} {query}");
    }
}

/// Behind the prefix of a workspace, a value names nothing of another one.
#[test]
fn values_name_upstreams_behind_a_prefix() {
    for (prefix, query, expected) in [
        (json!("team/"), "to=green", Some("team/green")),
        (json!("team/"), "to=other/green", None),
        (json!(""), "to=green", Some("green")),
        (json!(""), "to=team/green", None),
        (json!(null), "to=team/green", Some("team/green")),
    ] {
        let mut property = json!({"name": "upstream_name"});
        if !prefix.is_null() {
            property["prefix"] = prefix.clone();
        }
        let filter = filter(json!([
            {"name": "v", "jq": ".to", "input": "request.query"},
            {"name": "set", "property": property, "input": "v"},
        ]));
        let mut exchange = call(&format!("GET /?{query}"), "", None);
        let (_, outcome) = requested(&*filter, &mut exchange, &[]);
        let is_good = matches!(outcome, Outcome::Continue);
        assert_eq!(is_good, expected.is_some(), "{prefix} {query}");
        let name = exchange.target_override.and_then(|it| it.upstream);
        assert_eq!(name.as_deref(), expected, "{prefix} {query}");
    }
}

#[test]
fn servers_do_not_get_what_is_of_the_callers_call() {
    let filter = filter(json!([
        {"name": "a", "call": {"url": "http://a/"}, "inputs": {"headers": "request.headers"}},
    ]));
    let mut exchange = call("GET /", "", None);
    for (name, value) in [
        ("Range", "bytes=0-1"),
        ("If-None-Match", "\"a\""),
        ("If-Range", "\"a\""),
        ("Accept-Encoding", "gzip"),
        ("Content_Length", "9"),
        ("X-Own", "1"),
    ] {
        exchange.request.headers.append(name.as_bytes(), value.as_bytes());
    }
    exchange.request.headers.remove(b"content-type");
    let (asked, _) = requested(&*filter, &mut exchange, &[Some((200, "", ""))]);
    assert_eq!(
        asked,
        ["GET / HTTP/1.1\r\nHost: a\r\nX-User: alice\r\nX-Own: 1\r\n\r\n"]
    );
}

#[test]
fn proxies_are_those_of_the_schemes() {
    for (given, http, https) in [
        (json!({"proxy": "http://p:1"}), Some("p"), Some("p")),
        (
            json!({"proxy": "http://p:1", "https_proxy": "http://q:2"}),
            Some("p"),
            Some("q"),
        ),
        (json!({"proxy": "http://p:1", "https_proxy": ""}), Some("p"), None),
        (json!({"https_proxy": "http://q:2"}), None, Some("q")),
    ] {
        for (url, expected) in [("http://a/", http), ("https://a/", https)] {
            let mut node = given.clone();
            node["servers"] = json!(["*"]);
            let filter = filter(json!([
                {"name": "v", "static": {"url": url}},
                {"name": "a", "call": node, "inputs": {"url": "v.url"}},
            ]));
            let outcome = filter.on_request(&mut call("GET /", "", None));
            let Outcome::Subrequest(asked) = outcome else {
                panic!("{given} {url}: {}", word(&outcome));
            };
            let proxy = asked.connector.as_ref().and_then(|it| it.proxy.as_ref());
            let found = proxy.map(|it| it.host.as_str());
            assert_eq!(found, expected, "{given} {url}");
        }
    }
}
