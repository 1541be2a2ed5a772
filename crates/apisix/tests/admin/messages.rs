//! Refusals, in APISIX's words.

use crate::api::Api;

#[tokio::test]
async fn refusals_speak_as_apisix_does() {
    Api::open()
        .await
        .play(
            r#"
GET nothing -> 404 {"error_msg": "Unsupported resource type: nothing"}
PUT routes/1 -> 400 {"error_msg": "missing configurations"}
PUT routes/1 {a} -> 400 {"error_msg": "invalid request body: Expected object key string but found invalid token at character 2", "req_body": "{a}"}
PUT routes {"uri": "/"} -> 400 {"error_msg": "missing route id"}
PUT routes/1 {"id": "2", "uri": "/"} -> 400 {"error_msg": "wrong route id"}
POST routes/1 {"uri": "/"} -> 400 {"error_msg": "wrong route id, do not need it"}
POST plugin_configs {"plugins": {}} -> 405 {"error_msg": "not supported `POST` method for plugin config"}
DELETE routes -> 400 {"error_msg": "missing route id"}
PUT routes/1 {"uri": "/", "create_time": 1} -> 400 {"error_msg": "the property is forbidden:  create_time"}
PUT routes/1 {"uri": "/", "upstream": {"update_time": 1}} -> 400 {"error_msg": "the property is forbidden:  upstream.update_time"}
PUT routes/1 {"uri": "/", "plugins": {}, "x": 1} -> 400 {"error_msg": "invalid configuration: additional properties forbidden, found x"}
PUT routes/1 {"uri": "/"} -> 400
    {"error_msg": "invalid configuration: object matches none of the required: [\"plugins\",\"uri\"] or [\"upstream\",\"uri\"] or [\"upstream_id\",\"uri\"] or [\"service_id\",\"uri\"] or [\"plugins\",\"uris\"] or [\"upstream\",\"uris\"] or [\"upstream_id\",\"uris\"] or [\"service_id\",\"uris\"] or [\"script\",\"uri\"] or [\"script\",\"uris\"]"}
PUT routes/1 {"uri": "/", "plugins": {}, "methods": ["get"]} -> 400
    {"error_msg": "invalid configuration: property \"methods\" validation failed: failed to validate item 1: matches none of the enum values"}
PUT routes/!a {"uri": "/", "plugins": {}} -> 400 {"error_msg": "invalid configuration: property \"id\" validation failed: object matches none of the required"}
PUT routes/1 {"uri": "/", "plugins": {}, "host": "a", "hosts": ["b"]} -> 400 {"error_msg": "only one of host or hosts is allowed"}
PUT routes/1 {"uri": "/", "plugins": {}, "host": "a b"} -> 400
    {"error_msg": "invalid configuration: property \"host\" validation failed: failed to match pattern \"^\\\\*$|^\\\\*?[0-9a-zA-Z-._\\\\[\\\\]:]+$\" with \"a b\""}
PUT routes/1 {"uri": "/", "plugins": {}, "vars": [["a", "x", "b"]]} -> 400 {"error_msg": "failed to validate the 'vars' expression: invalid operator 'x'"}
PUT routes/1 {"uri": "/", "plugins": {}, "vars": [["post_arg.a[.b", "==", "b"]]} -> 400 {"error_msg": "failed to validate the 'vars' expression: invalid expression \"$.a[.b\""}
PUT routes/1 {"uri": "/", "plugins": {}, "filter_func": "function(vars) "} -> 400
    {"error_msg": "failed to load 'filter_func' string: [string \"return function(vars) \"]:1: 'end' expected near '<eof>'"}
PUT routes/1 {"uri": "/", "plugins": {"no-such": {}}} -> 400 {"error_msg": "unknown plugin [no-such]"}
PUT routes/1 {"uri": "/", "plugins": {"cors": 1}} -> 400 {"error_msg": "invalid plugin conf 1 for plugin [cors]"}
PUT routes/1 {"uri": "/", "plugins": {"limit-count": {"count": 0}}} -> 400
PUT routes/1 {"uri": "/", "plugins": {"cors": {"max_age": "x"}}} -> 400
    {"error_msg": "failed to check the configuration of plugin cors err: property \"max_age\" validation failed: wrong type: expected integer, got string"}
PUT routes/1 {"uri": "/", "plugins": {"attach-consumer-label": {"headers": {"X-A": "a"}}}} -> 400
    {"error_msg": "failed to check the configuration of plugin attach-consumer-label err: property \"headers\" validation failed: failed to validate additional property X-A: failed to match pattern \"^\\\\$.*\" with \"a\""}
PUT routes/1 {"uri": "/", "plugins": {"acl": {"allow_labels": {"a": ["b"]}, "external_user_label_field": "$..([x"}}} -> 400
    {"error_msg": "failed to check the configuration of plugin acl err: invalid external_user_label_field: invalid expression \"$..([x\""}
PUT routes/1 {"uri": "/", "plugins": {"degraphql": {"query": "{ a"}}} -> 400
    {"error_msg": "failed to check the configuration of plugin degraphql err: failed to parse query: Syntax error near line 1"}
PUT routes/1 {"uri": "/", "plugins": {"graphql-limit-count": {"count": 1, "time_window": 1, "score_factor": 0}}} -> 400
    {"error_msg": "failed to check the configuration of plugin graphql-limit-count err: property \"score_factor\" validation failed: expected 0 to be greater than 0"}
PUT upstreams/1 {"nodes": {"a:0": 1}} -> 400 {"error_msg": "invalid port 0"}
PUT upstreams/1 {"nodes": [{"host": "::1", "port": 80, "weight": 1}]} -> 400 {"error_msg": "invalid configuration: IPv6 address must be enclosed with '[' and ']'"}
PUT upstreams/1 {"nodes": {"a:1": 1}, "pass_host": "rewrite"} -> 400 {"error_msg": "`upstream_host` can't be empty when `pass_host` is `rewrite`"}
PUT upstreams/1 {"nodes": {"a:1": 1}, "type": "chash"} -> 400 {"error_msg": "missing key"}
PUT upstreams/1 {"nodes": {"a:1": 1}, "type": "chash", "hash_on": "header", "key": "a b"} -> 400
PUT upstreams/1 {"nodes": {"a:1": 1}, "tls": {"client_cert_id": "c"}} -> 400 {"error_msg": "failed to fetch ssl info by ssl id [c], response code: 404"}
PUT consumers/jack {"username": "jill"} -> 400 {"error_msg": "wrong username"}
PUT consumers {"username": "a b"} -> 400
PUT consumers {"username": "a", "plugins": {"key-auth": {}}} -> 400
    {"error_msg": "invalid plugins configuration: failed to check the configuration of plugin key-auth err: property \"key\" is required"}
PUT routes/1 {"uri": "/", "plugins": {"openid-connect": {}}} -> 400
    {"error_msg": "failed to check the configuration of plugin openid-connect err: property \"session.secret\" is required when \"bearer_only\" is false"}
PUT routes/1 {"uri": "/", "plugins": {"opa": {"host": 1}}} -> 400
PUT consumers {"username": "a", "plugins": {"ldap-auth": {}}} -> 400
    {"error_msg": "invalid plugins configuration: failed to check the configuration of plugin ldap-auth err: property \"user_dn\" is required"}
PUT stream_routes/1 {"plugins": {"ip-restriction": {}}, "upstream": {"nodes": {"a:1": 1}}} -> 400
    {"error_msg": "failed to check the configuration of stream plugin [ip-restriction]: value should match only one schema, but matches none"}
PUT plugin_metadata/authz-casbin {"model": "m"} -> 400 {"error_msg": "invalid configuration: property \"policy\" is required"}
PUT routes/1 {"uri": "/", "plugins": {"cors": {"_meta": {"pre_function": "not a function"}}}} -> 400
    {"error_msg": "failed to load _meta.pre_function in plugin cors: [string \"meta pre_function\"]:1: unexpected symbol near 'not'"}
PUT services/1 {"script": "invalid script"} -> 400
    {"error_msg": "failed to load 'script' string: [string \"invalid script\"]:1: '=' expected near 'script'"}
PUT routes/1 {"uri": "/", "plugins": {"authz-casbin": {"username": "u"}}} -> 400
PUT plugin_metadata/authz-casbin {"model": "m", "policy": "p"} -> 201
PUT routes/1 {"uri": "/", "plugins": {"authz-casbin": {"username": "u"}}} -> 201
PUT plugin_metadata/nothing {} -> 400 {"error_msg": "invalid plugin name"}
PUT plugin_metadata/example-plugin {"skey": "x"} -> 400 {"error_msg": "invalid configuration: property \"ikey\" is required"}
PUT secrets/x/1 {} -> 400 {"error_msg": "invalid secret manager: x"}
PUT secrets/vault/1 {} -> 400 {"error_msg": "invalid configuration: property \"uri\" is required"}
PUT protos/1 {"content": "message M {"} -> 400 {"error_msg": "invalid content: definition.proto: expected a message field, oneof, reserved range, enum, message, option or '}', but reached end of file"}
PUT stream_routes/1 {"plugins": {"cors": {}}} -> 400 {"error_msg": "unknown plugin [cors]"}
PUT stream_routes/1 {"protocol": {"name": "x"}} -> 400 {"error_msg": "unknown protocol [x]"}
PUT routes/1?ttl=x {"uri": "/", "plugins": {}} -> 400 {"error_msg": "invalid argument ttl: should be a number"}
GET plugins/reload -> 405 {"error_msg": "please use PUT method to reload the plugins, GET method is not allowed."}
PUT plugins/reload -> 200 done
GET plugins/no-such -> 404 {"error_msg": "plugin not found in subsystem http"}
GET plugins/cors?subsystem=x -> 400 {"error_msg": "unsupported subsystem: x"}
GET plugins/cors -> 200 {"type": "object", "properties": {"max_age": {"type": "integer"}}}
GET schema/plugins/key-auth?schema_type=consumer -> 200 {"required": ["key"]}
GET plugins/list?subsystem=x -> 400 invalid subsystem passed
GET schema/route -> 200 {"type": "object", "additionalProperties": false, "properties": {"uri": {"type": "string"}}}
GET schema/x -> 400 {"error_msg": "not found schema: x"}
POST schema/validate/routes {"uri": "/", "plugins": {}} -> 200
POST schema/validate/routes {"uri": 1} -> 400 {"error_msg": "property \"uri\" validation failed: wrong type: expected string, got number"}
POST schema/validate/x {} -> 404 {"error_msg": "Unsupported resource type: x"}
"#,
        )
        .await;
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let api = Api::open().await;
    let body = "x".repeat(1_572_865);
    let length = format!("content-length: {}", body.len());
    let answer = api.call("PUT routes/1", &body, &[&length]).await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error_msg"],
        "invalid request body: request size 1572865 is greater than the maximum size 1572864 allowed"
    );
}
