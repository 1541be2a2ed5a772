//! Calls that are refused, because a node fails or a body is none that it can read.

use super::*;

/// Checks the outcomes of calls whose servers answer so.
fn assert_outcomes(cases: &[(Value, Vec<Answer<'_>>, &str)]) {
    for (nodes, answers, expected) in cases {
        let filter = filter(nodes.clone());
        let mut exchange = call("GET /", "", None);
        let (_, outcome) = requested(&*filter, &mut exchange, answers);
        assert_eq!(word(&outcome), *expected, "{nodes} {answers:?}");
    }
}

#[test]
fn calls_to_servers_that_fail_refuse_the_call() {
    let one = |node: Value| json!([node, {"name": "end", "exit": {"status": 204}}]);
    let server = |more: Value| {
        let mut node = json!({"name": "a", "call": {"url": "http://a/"}});
        for (field, value) in more.as_object().expect("an object") {
            node[field] = value.clone();
        }
        node
    };
    let inputs = |jq: &str, to: &str| json!([{"name": "v", "jq": jq, "output": to}, server(json!({}))]);
    let plain = one(server(json!({})));
    assert_outcomes(&[
        (plain.clone(), vec![Some((200, "text/plain", "{"))], "reply 204"),
        (
            plain.clone(),
            vec![Some((299, "application/json", ""))],
            "reply 204",
        ),
        (
            plain.clone(),
            vec![Some((302, "text/plain", ""))],
            "plugin_failed 500",
        ),
        (
            plain.clone(),
            vec![Some((404, "text/plain", ""))],
            "plugin_failed 500",
        ),
        (
            plain.clone(),
            vec![Some((200, "application/json", "{"))],
            "plugin_failed 500",
        ),
        (
            plain.clone(),
            vec![Some((206, "text/plain", "part"))],
            "plugin_failed 500",
        ),
        (plain, vec![None], "plugin_failed 500"),
        (
            one(json!({"name": "a", "jq": "error(\"no\")"})),
            vec![],
            "plugin_failed 500",
        ),
        (
            one(json!({"name": "a", "jq": "[limit(1e9; repeat(1))]"})),
            vec![],
            "plugin_failed 500",
        ),
        (inputs("\"oops\"", "a.headers"), vec![], "plugin_failed 500"),
        (
            inputs("{\"a\": \"b\\nc: d\"}", "a.headers"),
            vec![],
            "plugin_failed 500",
        ),
        (inputs("[1]", "a.query"), vec![], "plugin_failed 500"),
        (inputs("\"http://b/\"", "a.url"), vec![], "plugin_failed 500"),
        (inputs("\"nonsense\"", "a.url"), vec![], "plugin_failed 500"),
        (inputs("{}", "a.url"), vec![], "plugin_failed 500"),
        (inputs("null", "a.url"), vec![Some((200, "", ""))], "continue"),
        (
            inputs("\"http://A:80/x y\"", "a.url"),
            vec![],
            "plugin_failed 500",
        ),
        (
            inputs("\"http://A:80/x\"", "a.url"),
            vec![Some((200, "", ""))],
            "continue",
        ),
        (inputs("\"text\"", "a"), vec![], "plugin_failed 500"),
        (
            inputs("{query: {b: 1}}", "a"),
            vec![Some((200, "", ""))],
            "continue",
        ),
    ]);
}

#[test]
fn nodes_that_fail_refuse_the_call() {
    assert_outcomes(&[
        (
            json!([{"name": "v", "jq": "1", "output": "b"}, {"name": "b", "branch": {}}]),
            vec![],
            "plugin_failed 500",
        ),
        (
            json!([{"name": "v", "jq": "[1]", "output": "service_request.headers"}]),
            vec![],
            "plugin_failed 500",
        ),
        (
            json!([{"name": "v", "property": {"name": "own.a", "required": true}}]),
            vec![],
            "plugin_failed 500",
        ),
        (
            json!([{"name": "v", "jq": "\"a\"", "output": "t"}, {"name": "t", "property": {"name": "upstream_target", "servers": ["*"]}}]),
            vec![],
            "plugin_failed 500",
        ),
        (
            json!([{"name": "v", "jq": "\"<a>\"", "output": "x"}, {"name": "x", "xml_to_json": {"attribute_prefix": "-"}}]),
            vec![],
            "plugin_failed 500",
        ),
        (
            json!([{"name": "v", "jq": "[]", "output": "x"}, {"name": "x", "json_to_xml": {"attribute_prefix": "-"}}]),
            vec![],
            "plugin_failed 500",
        ),
    ]);
}

#[test]
fn callers_are_told_why_only_if_the_configuration_says_so() {
    for (debug, expected) in [
        (false, None),
        (
            true,
            Some("node 1 (a, call) has failed: the status of the response is 403"),
        ),
    ] {
        let config = json!({"nodes": [{"name": "a", "call": {"url": "http://a/"}}], "debug": debug});
        let filter = build(&Orchestration::default(), &config).expect("valid");
        let (_, outcome) = requested(&*filter, &mut call("GET /", "", None), &[Some((403, "", ""))]);
        let Outcome::Refuse(refusal) = outcome else {
            panic!("it is refused");
        };
        assert_eq!(refusal.message.as_deref(), expected);
    }
}

#[test]
fn programs_of_a_call_have_steps_together() {
    let nodes: Vec<Value> = (0..40)
        .map(|number| json!({"name": format!("n{number}"), "jq": "last(range(20000))"}))
        .collect();
    for (count, expected) in [(4, "continue"), (40, "plugin_failed 500")] {
        let filter = filter(json!(nodes[..count]));
        let (_, outcome) = requested(&*filter, &mut call("GET /", "", None), &[]);
        assert_eq!(word(&outcome), expected, "{count}");
    }
}

#[test]
fn bodies_are_read_before_nodes_run_and_only_if_one_needs_them() {
    let with = |from: &str| {
        filter(json!([{"name": "a", "jq": ".", "input": from, "output": "service_request.body"}]))
    };
    for (from, has_body, content_type, body, expected) in [
        ("request.query", true, "application/json", None, "continue"),
        ("request.body", false, "application/json", None, "continue"),
        ("request.body", true, "application/json", Some("{}"), "continue"),
        ("request", true, "application/json", Some("{}"), "continue"),
        // Too large.
        ("request.body", true, "application/json", None, "unacceptable 413"),
        (
            "request.body",
            true,
            "application/json",
            Some("{"),
            "unacceptable 400",
        ),
        ("request.body", true, "text/xml", Some("<a/>"), "continue"),
    ] {
        let filter = with(from);
        let mut exchange = call("POST /", content_type, None);
        exchange.request.has_body = has_body;
        let mut outcome = filter.on_request(&mut exchange);
        if matches!(outcome, Outcome::NeedBody { .. }) {
            exchange.request.body = body.map(|body| body.as_bytes().to_vec());
            outcome = filter.on_request(&mut exchange);
        }
        assert_eq!(word(&outcome), expected, "{from} {body:?}");
    }
}
