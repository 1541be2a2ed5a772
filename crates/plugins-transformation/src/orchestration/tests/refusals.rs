//! Configurations that are refused, each with the place and words of what is wrong.

use super::*;

/// Checks that nodes are refused at a place in words.
fn assert_refused(cases: &[(Value, &str, &str)]) {
    for (nodes, place, words) in cases {
        let config = json!({"nodes": nodes});
        let faults = build(&Orchestration::default(), &config)
            .err()
            .unwrap_or_default();
        let is_it = |fault: &Diagnostic| fault.path.to_string() == *place && fault.message.contains(words);
        assert!(faults.iter().any(is_it), "{nodes}: {place} {words}: {faults:?}");
    }
}

#[test]
fn names_and_kinds_of_work_are_refused_where_they_are_wrong() {
    let many: Vec<Value> = (0..65)
        .map(|number| json!({"name": format!("n{number}"), "static": {}}))
        .collect();
    assert_refused(&[
        (json!([]), "nodes", "expected 1 to 64 nodes"),
        (json!(many), "nodes", "found 65"),
        (json!([{"name": "a"}]), "nodes[0]", "expected one kind of work"),
        (
            json!([{"name": "a", "jq": ".", "static": {}}]),
            "nodes[0]",
            "expected one kind of work",
        ),
        (json!([{"name": "a", "jp": "."}]), "nodes[0].jp", "unknown field"),
        (
            json!([{"name": "1a", "jq": "."}]),
            "nodes[0].name",
            "begins with a letter",
        ),
        (
            json!([{"name": "a b", "jq": "."}]),
            "nodes[0].name",
            "letters, digits",
        ),
        (
            json!([{"name": "request", "jq": "."}]),
            "nodes[0].name",
            "expected another name",
        ),
        (
            json!([{"name": "a", "jq": "."}, {"name": "a", "jq": "."}]),
            "nodes[1].name",
            "a second",
        ),
    ]);
}

#[test]
fn connections_are_refused_where_they_are_wrong() {
    assert_refused(&[
        (
            json!([{"name": "a", "jq": ".", "input": "b"}]),
            "nodes[0].input",
            "expected the name of a node",
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "request.no"}]),
            "nodes[0].input",
            "has no output \"no\", but body",
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "request.headers.x"}]),
            "nodes[0].input",
            "`node.value`",
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "response"}]),
            "nodes[0].input",
            "has no outputs",
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "secrets.no"}]),
            "nodes[0].input",
            "the name of a secret",
        ),
        (
            json!([{"name": "a", "jq": ".", "output": "request"}]),
            "nodes[0].output",
            "has no inputs",
        ),
        (
            json!([{"name": "a", "jq": ".", "output": "b"}, {"name": "b", "static": {}}]),
            "nodes[0].output",
            "has no inputs",
        ),
        (
            json!([{"name": "a", "jq": ".", "outputs": {"x": "response.body"}}]),
            "nodes[0].outputs.x",
            "as a whole",
        ),
        (
            json!([{"name": "a", "jq": ".", "output": "c"}, {"name": "b", "jq": ".", "output": "c"}, {"name": "c", "jq": "."}]),
            "nodes[1].output",
            "c is connected already",
        ),
        (
            json!([{"name": "a", "jq": ".", "output": "response"}, {"name": "b", "jq": ".", "output": "response.body"}]),
            "nodes[1].output",
            "response.body is connected already",
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "b"}, {"name": "b", "jq": ".", "input": "a"}]),
            "nodes[0]",
            "no circles",
        ),
    ]);
}

#[test]
fn servers_are_refused_where_they_are_wrong() {
    assert_refused(&[
        (json!([{"name": "a", "jq": ".("}]), "nodes[0].jq", ""),
        (
            json!([{"name": "a", "call": {}}]),
            "nodes[0].call.url",
            "expected an address, or an input",
        ),
        (
            json!([{"name": "a", "call": {"url": "ftp://a"}}]),
            "nodes[0].call.url",
            "begins with http",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a/ b"}}]),
            "nodes[0].call.url",
            "begins with http",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a", "method": "get"}}]),
            "nodes[0].call.method",
            "capital",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a", "timeout_ms": 0}}]),
            "nodes[0].call.timeout_ms",
            "1 to 60000",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a", "servers": ["b"]}}]),
            "nodes[0].call.servers",
            "host:port",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a", "proxy": "https://b"}}]),
            "nodes[0].call.proxy",
            "http://",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a", "https_proxy": "https://b"}}]),
            "nodes[0].call.https_proxy",
            "http://",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://[::1]evil.example/"}}]),
            "nodes[0].call.url",
            "begins with http",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a"}, "inputs": {"boby": "request.body"}}]),
            "nodes[0].inputs.boby",
            "but body, headers",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a"}, "output": "service_request.headers"}]),
            "nodes[0].output",
            "names and texts",
        ),
        (
            json!([{"name": "a", "call": {"url": "http://a"}, "outputs": {"status": "service_request"}}]),
            "nodes[0].outputs.status",
            "an object of named values",
        ),
    ]);
}

#[test]
fn fixed_values_are_refused_where_they_are_wrong() {
    assert_refused(&[
        (
            json!([{"name": "v", "static": {"headers": "oops"}}, {"name": "a", "call": {"url": "http://a"}, "input": "v"}]),
            "nodes[1].input",
            "names and texts as a.headers",
        ),
        (
            json!([{"name": "v", "static": {"x": 1}}, {"name": "a", "call": {"url": "http://a"}, "input": "v"}]),
            "nodes[1].input",
            "has none of the inputs",
        ),
        (
            json!([{"name": "v", "static": {"x": 1}}, {"name": "a", "exit": {}, "inputs": {"headers": "v.x"}}]),
            "nodes[1].inputs.headers",
            "names and texts",
        ),
        (
            json!([{"name": "v", "static": {"x": 1}}, {"name": "a", "jq": ".", "input": "v.y"}]),
            "nodes[1].input",
            "has no value \"y\"",
        ),
    ]);
}

#[test]
fn nodes_are_refused_where_they_are_wrong() {
    assert_refused(&[
        (
            json!([{"name": "a", "exit": {"status": 199}}]),
            "nodes[0].exit.status",
            "200 to 599",
        ),
        (
            json!([{"name": "a", "cache": {}}]),
            "nodes[0].inputs",
            "an input `key`",
        ),
        (
            json!([{"name": "a", "branch": {}}]),
            "nodes[0].input",
            "true or false",
        ),
        (
            json!([{"name": "a", "branch": {}, "input": "request.headers"}]),
            "nodes[0].input",
            "true or false",
        ),
        (
            json!([{"name": "a", "branch": {"then": ["b"]}, "input": "c"}, {"name": "c", "jq": "true"}]),
            "nodes[0].branch.then[0]",
            "expected names of nodes",
        ),
        (
            json!([{"name": "a", "branch": {"then": ["c"], "else": ["c"]}, "input": "c"}, {"name": "c", "jq": "true"}]),
            "nodes[0].branch.else[0]",
            "in another one",
        ),
        (
            json!([{"name": "a", "branch": {"then": ["c"]}, "input": "c"}, {"name": "c", "jq": "true"}]),
            "nodes[0]",
            "no circles",
        ),
        (
            json!([{"name": "a", "property": {"name": "own.x"}, "inputs": {"a": "request.body"}}]),
            "nodes[0].inputs.a",
            "one input",
        ),
        (
            json!([{"name": "a", "jq": ".", "input": "service_response.body", "output": "service_request.body"}]),
            "nodes[0].output",
            "before the service is called",
        ),
        (
            json!([{"name": "a", "xml_to_json": {}}]),
            "nodes[0].xml_to_json",
            "attributes_member",
        ),
        (
            json!([{"name": "a", "json_to_xml": {"attributes_member": "a", "attribute_prefix": "b"}}]),
            "nodes[0].json_to_xml",
            "attributes_member",
        ),
    ]);
}

#[test]
fn properties_are_refused_where_they_are_wrong() {
    assert_refused(&[
        (
            json!([{"name": "a", "property": {"name": "nothing"}}]),
            "nodes[0].property.name",
            "expected a variable",
        ),
        (
            json!([{"name": "a", "property": {"name": "post_arg.x"}}]),
            "nodes[0].property.name",
            "`request.body`",
        ),
        (
            json!([{"name": "a", "property": {"name": "own."}}]),
            "nodes[0].property.name",
            "behind the dot",
        ),
        (
            json!([{"name": "a", "property": {"name": "remote_addr"}, "input": "request"}]),
            "nodes[0].property.name",
            "only be read",
        ),
        (
            json!([{"name": "a", "property": {"name": "response_status"}}]),
            "nodes[0].property.name",
            "only be set",
        ),
        (
            json!([{"name": "a", "property": {"name": "upstream_target"}, "input": "request.path"}]),
            "nodes[0].property.servers",
            "or `*` for any",
        ),
        (
            json!([{"name": "a", "property": {"name": "upstream_target", "servers": ["b"]}, "input": "request.path"}]),
            "nodes[0].property.servers",
            "`host:port`",
        ),
        (
            json!([{"name": "a", "property": {"name": "own.x", "servers": ["b:1"]}, "input": "request.path"}]),
            "nodes[0].property.servers",
            "expected none",
        ),
        (
            json!([{"name": "a", "property": {"name": "own.x", "prefix": ""}, "input": "request.path"}]),
            "nodes[0].property.prefix",
            "expected none",
        ),
        (
            json!([{"name": "a", "property": {"name": "upstream_target"}, "input": "service_response.status"}]),
            "nodes[0].property.name",
            "before the service is called",
        ),
    ]);
}

#[test]
fn bounds_are_refused_where_they_are_wrong() {
    for (field, value, place) in [
        ("max_body_bytes", json!((8 << 20) + 1), "max_body_bytes"),
        ("timeout_ms", json!(0), "timeout_ms"),
        ("timeout_ms", json!(600_001), "timeout_ms"),
        ("redis", json!({}), "redis"),
    ] {
        let mut config = json!({"nodes": [{"name": "a", "jq": "."}]});
        config[field] = value;
        assert_eq!(
            refused_at(&Orchestration::default(), &config),
            [place],
            "{config}"
        );
    }
}
