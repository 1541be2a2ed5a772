//! Responses of services, and what becomes of them.

use super::*;

#[test]
fn responses_are_changed_by_what_the_service_and_servers_say() {
    let whole = filter(json!([
        {"name": "ask", "call": {"url": "http://a/", "method": "POST"}, "inputs": {"body": "service_response.body", "query": "request.query"}},
        {"name": "make", "jq": "{plan: .ask.plan, user: .was.user}", "inputs": {"ask": "ask.body", "was": "service_response.body"},
         "output": "response.body"},
        {"name": "status", "jq": ". + 1", "input": "service_response.status", "output": "set"},
        {"name": "set", "property": {"name": "response_status"}},
        {"name": "headers", "static": {"X-Secret": null, "X-New": "n"}, "output": "response.headers"},
    ]));
    let mut exchange = call("GET /?q=1", "", None);
    assert_eq!(word(&requested(&*whole, &mut exchange, &[]).1), "continue");
    let service = (200, "application/json", "{\"user\":\"u\",\"password\":\"p\"}");
    let (asked, outcome) = answered(
        &*whole,
        &mut exchange,
        service,
        &[Some((200, "application/json", "{\"plan\":\"gold\"}"))],
    );
    assert_eq!(word(&outcome), "continue");
    assert_eq!(
        asked,
        [
            "POST /?q=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n{\"user\":\"u\",\"password\":\"p\"}"
        ]
    );
    let response = &exchange.response;
    assert_eq!(response.status, 201);
    assert_eq!(
        lines(&response.headers),
        ["Content-Type: application/json", "X-New: n"]
    );
    assert_eq!(
        response.replaced_body.as_deref(),
        Some(&b"{\"plan\":\"gold\",\"user\":\"u\"}"[..])
    );
    for (nodes, service, expected, body) in [
        // Only headers: the body passes as it comes.
        (
            json!([{"name": "h", "static": {"X-New": "n"}, "output": "response.headers"}]),
            (200, "text/plain", "hello"),
            "continue",
            None,
        ),
        (
            json!([{"name": "x", "xml_to_json": {"attributes_member": "#attr"}, "input": "service_response.body", "output": "response.body"}]),
            (200, "text/xml", "<a k='1'><b>2</b></a>"),
            "continue",
            Some("{\"a\":{\"#attr\":{\"k\":\"1\"},\"b\":2}}"),
        ),
        (
            json!([{"name": "end", "exit": {"status": 418}, "inputs": {"body": "service_response.raw_body"}}]),
            (200, "application/json", "{ }"),
            "418 [text/plain; charset=utf-8] [] { }",
            Some("{ }"),
        ),
        (
            json!([{"name": "a", "jq": ".a.b", "input": "service_response.body"}]),
            (200, "application/json", "{\"a\":1}"),
            "plugin_failed 500",
            Some("{\"a\":1}"),
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "service_response.body"}]),
            (200, "application/json", "{"),
            "plugin_failed 500",
            Some("{"),
        ),
    ] {
        let filter = filter(nodes.clone());
        let mut exchange = call("GET /", "", None);
        assert_eq!(word(&requested(&*filter, &mut exchange, &[]).1), "continue");
        let (_, outcome) = answered(&*filter, &mut exchange, service, &[]);
        assert_eq!(reply(&outcome), expected, "{nodes}");
        let found = exchange
            .response
            .replaced_body
            .as_deref()
            .map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), body, "{nodes}");
    }
}

#[test]
fn responses_of_the_gateway_pass_but_those_out_of_a_cache_do_not() {
    let nodes = json!([
        {"name": "ask", "call": {"url": "http://a/"}},
        {"name": "make", "jq": "[.ask, .was]", "inputs": {"ask": "ask.body", "was": "service_response.body"}, "output": "response.body"},
    ]);
    for (is_gateway, is_from_cache, has_run, expected) in [
        (false, false, true, "[\"hi\",{\"a\":1}]"),
        (true, false, true, "none"),
        (true, true, true, "[\"hi\",{\"a\":1}]"),
        // A cache before it in the chain has answered, so that its nodes have not run.
        (true, true, false, "[\"hi\",{\"a\":1}]"),
    ] {
        let filter = filter(nodes.clone());
        let mut exchange = call("GET /", "", None);
        let hi = Some((200, "text/plain", "hi"));
        if has_run {
            assert_eq!(word(&requested(&*filter, &mut exchange, &[hi]).1), "continue");
        }
        exchange.response.is_gateway = is_gateway;
        exchange.response.is_from_cache = is_from_cache;
        let later: Vec<Answer<'_>> = if has_run { vec![] } else { vec![hi] };
        let (_, outcome) = answered(
            &*filter,
            &mut exchange,
            (200, "application/json", "{\"a\":1}"),
            &later,
        );
        assert_eq!(word(&outcome), "continue");
        let body = exchange
            .response
            .replaced_body
            .as_deref()
            .map(String::from_utf8_lossy);
        assert_eq!(
            body.as_deref().unwrap_or("none"),
            expected,
            "{is_gateway} {is_from_cache} {has_run}"
        );
    }
}

#[test]
fn coded_responses_are_decoded() {
    let packed = gzip(b"{\"a\":1}");
    for (coding, body, expected) in [
        ("gzip", packed.as_slice(), Some("{\"b\":1}")),
        ("gzip", b"nonsense", None),
        ("zstd", b"nonsense", None),
    ] {
        let filter = filter(
            json!([{"name": "a", "jq": "{b: .a}", "input": "service_response.body", "output": "response.body"}]),
        );
        let mut exchange = call("GET /", "", None);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        exchange.response.status = 200;
        for (name, value) in [("Content-Type", "application/json"), ("Content-Encoding", coding)] {
            exchange
                .response
                .headers
                .append(name.as_bytes(), value.as_bytes());
        }
        filter.on_response(&mut exchange);
        exchange.response.replaced_body = Some(body.to_vec());
        let outcome = word(&filter.on_waiting_response(&mut exchange));
        let found = exchange
            .response
            .replaced_body
            .as_deref()
            .map(String::from_utf8_lossy);
        match expected {
            Some(expected) => {
                assert_eq!((outcome.as_str(), found.as_deref()), ("continue", Some(expected)));
                assert_eq!(
                    lines(&exchange.response.headers),
                    ["Content-Type: application/json"]
                );
            }
            None => assert_eq!(outcome, "plugin_failed 500", "{coding}"),
        }
    }
}

#[test]
fn responses_without_a_body_are_left_to_nodes_that_read_none() {
    let filter = filter(json!([
        {"name": "keys", "jq": "keys", "input": "service_response.body"},
        {"name": "first", "jq": ".[0] + 1", "input": "keys", "output": "response.body"},
        {"name": "fixed", "static": {"X-New": "n"}, "output": "response.headers"},
    ]));
    for (line, status, body) in [
        ("HEAD /", 200, None),
        ("GET /", 204, None),
        ("GET /", 304, None),
        // It has one, and the nodes cannot read it.
        ("GET /", 200, Some("plugin_failed 500")),
    ] {
        let mut exchange = call(line, "", None);
        assert_eq!(word(&requested(&*filter, &mut exchange, &[]).1), "continue");
        let (_, outcome) = answered(&*filter, &mut exchange, (status, "application/json", ""), &[]);
        assert_eq!(word(&outcome), body.unwrap_or("continue"), "{line} {status}");
        let response = &exchange.response;
        assert_eq!(response.hold.is_some(), body.is_some(), "{line} {status}");
        if body.is_none() {
            assert_eq!(response.headers.get(b"x-new"), Some(&b"n"[..]), "{line} {status}");
            assert_eq!(response.replaced_body, None, "{line} {status}");
        }
    }
}

#[test]
fn services_answer_in_codings_that_can_be_undone() {
    let reads =
        |from: &str| filter(json!([{"name": "a", "jq": ".", "input": from, "output": "response.body"}]));
    for (from, given, expected) in [
        ("service_response.body", "zstd, gzip;q=0.5, br", "gzip;q=0.5, br"),
        ("service_response.raw_body", "zstd", "identity"),
        ("service_response.body", "*", "identity"),
        ("service_response.body", "GZIP", "GZIP"),
        ("service_response.status", "zstd", "zstd"),
    ] {
        let mut exchange = call("GET /", "", None);
        exchange
            .request
            .headers
            .append(b"Accept-Encoding", given.as_bytes());
        assert_eq!(word(&requested(&*reads(from), &mut exchange, &[]).1), "continue");
        let found = exchange.request.headers.joined(b"accept-encoding");
        let found = found.map(|it| String::from_utf8_lossy(&it).into_owned());
        assert_eq!(found.as_deref(), Some(expected), "{from} {given}");
    }
}
