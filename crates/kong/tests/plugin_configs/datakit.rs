//! `datakit` of the paid edition: its nodes in the catalogue, and those that are refused.

use super::{read, translated};
use serde_json::{Value, json};

const PLUGIN: &str = "datakit";

/// A configuration with one node.
fn one(node: Value) -> Value {
    json!({"nodes": [node]})
}

#[test]
fn nodes_of_the_paid_edition_are_nodes_of_the_catalogue() {
    for (given, wanted) in [
        (
            json!({"name": "A", "type": "call", "url": "https://a/"}),
            json!({"name": "A", "call": {"url": "https://a/", "method": "GET", "timeout_ms": 60_000, "verify_tls": true}}),
        ),
        (
            json!({"name": "A", "type": "call", "url": "http://a/", "method": "POST", "timeout": 5, "ssl_verify": false, "ssl_server_name": "b",
                "inputs": {"http_proxy": "http://p:3128", "https_proxy": "http://q:1", "proxy_auth_username": "u", "proxy_auth_password": "p"}}),
            json!({"name": "A", "call": {"url": "http://a/", "method": "POST", "timeout_ms": 5, "verify_tls": false, "server_name": "b",
                "proxy": "http://p:3128", "https_proxy": "http://q:1", "proxy_authorization": "Basic dTpw"}}),
        ),
        (
            json!({"name": "A", "type": "call", "inputs": {"url": "request.body", "http_proxy": "http://p:3128"}}),
            json!({"name": "A", "inputs": {"url": "request.body"}, "call": {"servers": ["*"], "method": "GET", "timeout_ms": 60_000,
                "verify_tls": true, "proxy": "http://p:3128", "https_proxy": ""}}),
        ),
        (
            json!({"name": "A", "type": "call", "inputs": {"url": "request.body", "https_proxy": "http://q:1"}}),
            json!({"name": "A", "inputs": {"url": "request.body"}, "call": {"servers": ["*"], "method": "GET", "timeout_ms": 60_000,
                "verify_tls": true, "https_proxy": "http://q:1"}}),
        ),
        (
            json!({"name": "A", "type": "property", "property": "kong.service.target", "input": "request.body"}),
            json!({"name": "A", "input": "request.body", "property": {"name": "upstream_target", "json": false, "required": false, "servers": ["*"]}}),
        ),
        (
            json!({"name": "A", "type": "property", "property": "kong.service.upstream", "input": "request.body"}),
            json!({"name": "A", "input": "request.body", "property": {"name": "upstream_name", "json": false, "required": false, "prefix": ""}}),
        ),
        (
            json!({"name": "A", "type": "call", "inputs": {"url": "request.body"}, "outputs": {"raw_body": "response.body"}}),
            json!({"name": "A", "inputs": {"url": "request.body"}, "outputs": {"raw_body": "response.body"},
                "call": {"servers": ["*"], "method": "GET", "timeout_ms": 60_000, "verify_tls": true}}),
        ),
        (
            json!({"name": "A", "type": "jq", "jq": ".", "inputs": {"v": "vault.v", "w": "request.body"}, "output": "response.body"}),
            json!({"name": "A", "jq": ".", "inputs": {"v": "secrets.v", "w": "request.body"}, "output": "response.body"}),
        ),
        (
            json!({"name": "A", "type": "static", "values": {"a": null, "b": [1]}}),
            json!({"name": "A", "static": {"a": null, "b": [1]}}),
        ),
        (
            json!({"name": "A", "type": "exit", "warn_headers_sent": true}),
            json!({"name": "A", "exit": {"status": 200}}),
        ),
        (
            json!({"name": "A", "type": "property", "property": "kong.ctx.shared.x", "content_type": "application/json", "non_nil": true}),
            json!({"name": "A", "property": {"name": "shared.x", "json": true, "required": true}}),
        ),
        (
            json!({"name": "A", "type": "property", "property": "kong.router.service"}),
            json!({"name": "A", "property": {"name": "route_label_service_document", "json": true, "required": false}}),
        ),
        (
            json!({"name": "A", "type": "xml_to_json", "attributes_name_prefix": "-", "input": "request.body"}),
            json!({"name": "A", "input": "request.body",
                "xml_to_json": {"attribute_prefix": "-", "text_member": "#text", "text_is_member": false, "recognize_types": true}}),
        ),
        (
            json!({"name": "A", "type": "json_to_xml", "attributes_block_name": "#a", "root_element_name": "r", "input": "request.body"}),
            json!({"name": "A", "input": "request.body", "json_to_xml": {"root": "r", "attributes_member": "#a", "text_member": "#text"}}),
        ),
    ] {
        let mut config = one(given);
        config["resources"] = json!({"vault": {"v": "s"}});
        let outcome = translated(PLUGIN, &config);
        assert_eq!(outcome["nodes"][0], wanted);
        assert_eq!(outcome["secrets"], json!({"v": "s"}));
    }
}

/// The original calls any server that a node names, whichever of the two says that they are connected.
#[test]
fn addresses_of_other_nodes_lead_anywhere() {
    for (giver, is_any) in [
        (json!({"output": "C.url"}), true),
        (json!({"output": "C"}), true),
        (json!({"output": "C.body"}), false),
        (json!({"output": "CC.url"}), false),
    ] {
        let mut first = json!({"name": "A", "type": "jq", "jq": "."});
        first["output"] = giver["output"].clone();
        let call = |name: &str| json!({"name": name, "type": "call", "url": "http://a/"});
        let outcome = translated(PLUGIN, &json!({"nodes": [first, call("C"), call("CC")]}));
        let servers = &outcome["nodes"][1]["call"]["servers"];
        assert_eq!(*servers == json!(["*"]), is_any, "{giver}");
    }
    let by_name =
        json!({"name": "A", "type": "static", "values": {"u": "http://b/"}, "outputs": {"u": "C.url"}});
    let call = json!({"name": "C", "type": "call"});
    let outcome = translated(PLUGIN, &json!({"nodes": [by_name, call]}));
    assert_eq!(outcome["nodes"][1]["call"]["servers"], json!(["*"]));
}

#[test]
fn nodes_get_another_name_than_the_secrets() {
    let config = json!({"nodes": [
        {"name": "secrets", "type": "static", "values": {"v": "http://p:1"}, "outputs": {"v": "A.a"}},
        {"name": "A", "type": "jq", "jq": ".", "inputs": {"b": "secrets.v", "c": "vault.v"}, "output": "B"},
        {"name": "B", "type": "branch", "then": ["secrets"]},
        {"name": "C", "type": "call", "url": "http://a/", "inputs": {"body": "secrets", "http_proxy": "secrets.v"}},
    ], "resources": {"vault": {"v": "s"}}});
    let outcome = translated(PLUGIN, &config);
    let nodes = &outcome["nodes"];
    assert_eq!(nodes[0]["name"], "secrets-node");
    assert_eq!(nodes[0]["outputs"], json!({"v": "A.a"}));
    assert_eq!(
        nodes[1]["inputs"],
        json!({"b": "secrets-node.v", "c": "secrets.v"})
    );
    assert_eq!(nodes[2]["branch"]["then"], json!(["secrets-node"]));
    assert_eq!(nodes[3]["inputs"], json!({"body": "secrets-node"}));
    assert_eq!(nodes[3]["call"]["proxy"], "http://p:1");
}

#[test]
fn caches_and_branches_are_those_of_the_catalogue() {
    let kept = json!({"name": "B", "type": "cache", "bypass_on_error": true, "input": "A"});
    let branch = json!({"name": "C", "type": "branch", "then": ["D"], "input": "B.hit"});
    let exit = json!({"name": "D", "type": "exit", "status": 204});
    let key = json!({"name": "A", "type": "static", "values": {"key": "k"}});
    let config = json!({
        "debug": true, "nodes": [key, kept, branch, exit],
        "resources": {"cache": {"strategy": "redis", "redis": {"host": "r"}}},
    });
    let outcome = translated(PLUGIN, &config);
    assert_eq!(
        outcome["nodes"][1]["cache"],
        json!({"ttl_seconds": 300, "bypass_on_error": true})
    );
    assert_eq!(outcome["nodes"][2]["branch"], json!({"then": ["D"]}));
    assert_eq!(
        (&outcome["redis"]["host"], &outcome["debug"]),
        (&json!("r"), &json!(true))
    );
}

#[test]
fn nodes_that_are_not_served_are_refused_by_name() {
    for (config, words) in [
        (json!({}), "required field missing"),
        (json!({"nodes": []}), "length must be at least 1"),
        (one(json!({"name": "A"})), "required field missing"),
        (
            one(json!({"name": "A", "type": "loop"})),
            "expected one of: branch, cache, call",
        ),
        (
            one(json!({"name": "A", "type": "exit", "url": "http://a"})),
            "unknown field",
        ),
        (one(json!({"type": "exit"})), "required field missing"),
        (one(json!({"name": "A", "type": "jq"})), "required field missing"),
        (
            one(json!({"name": "A", "type": "exit", "status": 100})),
            "between 200 and 599",
        ),
        (
            one(json!({"name": "A", "type": "call", "url": "http://a", "method": "get"})),
            "invalid value",
        ),
        (
            one(json!({"name": "A", "type": "cache", "input": "A"})),
            "needs 'resources.cache'",
        ),
        (
            one(json!({"name": "A", "type": "xml_to_json", "input": "request.body"})),
            "attributes_block_name",
        ),
        (
            one(
                json!({"name": "A", "type": "xml_to_json", "input": "request.body", "attributes_block_name": "a", "xpath": "/a"}),
            ),
            "`xpath` (a `jq` node selects parts) of the node `A`",
        ),
        (
            one(json!({"name": "A", "type": "jwt_sign", "algorithm": "HS256"})),
            "the type `jwt_sign` of the node `A`",
        ),
        (
            one(json!({"name": "A", "type": "branch", "input": "A", "output": "B"})),
            "an output (a `branch` has none",
        ),
        (
            one(json!({"name": "A", "type": "property", "property": "kong.node.id"})),
            "the property `kong.node.id` of the node `A` (these are: kong.client.consumer",
        ),
        (
            json!({"nodes": [
                {"name": "P", "type": "jq", "jq": "\"http://p\""},
                {"name": "A", "type": "call", "url": "http://a", "inputs": {"http_proxy": "P"}},
            ]}),
            "`http_proxy` that a node computes, in the node `A`",
        ),
    ] {
        let found = read(PLUGIN, &config).expect_err("it is refused");
        assert!(found.iter().any(|it| it.contains(words)), "{config}: {found:?}");
    }
}
