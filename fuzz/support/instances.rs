//! Instances of the plugins that take what clients or upstreams send apart.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use weir_model::{DialectName, DocPath};
use weir_plugin::{BuildContext, ConsumerIdentity, CredentialSource, Filter, Identity};

const PROTO: &str = r#"syntax = "proto3";
package shop;
import "google/api/annotations.proto";
import "google/protobuf/timestamp.proto";
enum Color { NONE = 0; RED = 1; }
message Book {
  string id = 1; bytes title = 2; int64 pages = 3; Author author = 4; repeated string tags = 5;
  map<string, Book> parts = 6; Color color = 7; google.protobuf.Timestamp at = 8; repeated sint32 numbers = 9;
  oneof price { double euro = 10; fixed64 cent = 11; }
}
message Author { string name = 1; }
message Get { string shelf = 1; string id = 2; bool full = 3; Author by = 4; repeated int32 page = 5; Color color = 6; }
service Books {
  rpc GetBook(Get) returns (Book) {
    option (google.api.http) = {
      get: "/a/{shelf=b/*}/c/{id}"
      additional_bindings { get: "/a/{id}" }
      additional_bindings { post: "/a:find" body: "*" }
    };
  }
  rpc Put(Book) returns (Book) { option (google.api.http) = { put: "/{id=**}" body: "*" }; }
  rpc Watch(Get) returns (stream Book) { option (google.api.http) = { get: "/w" }; }
}
"#;

const SPEC: &str = r#"{"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/a/{id}": {
  "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
  "post": {"requestBody": {"content": {"application/json": {"schema": {"type": "object", "required": ["name"]}},
      "application/x-www-form-urlencoded": {"schema": {"type": "object"}}}},
    "responses": {"200": {"description": "ok", "content": {"application/json": {"example": {"a": 1}}}}}}}}}"#;

/// Plugins and how they are configured here.
fn configurations() -> Vec<(&'static str, Value)> {
    [of_callers(), of_bodies(), of_checks(), of_servers()].concat()
}

/// Of what says who calls, and may.
fn of_callers() -> Vec<(&'static str, Value)> {
    vec![
        (
            "key-auth",
            json!({"locations": [{"header": "X-Api-Key"}, {"query": "key"}, {"body": "key"}]}),
        ),
        (
            "basic-auth",
            json!({"any_case": true, "ignore_spaces": true, "strip": true}),
        ),
        (
            "hmac-auth",
            json!({"form": "hmac", "check_body": true, "clock_skew_seconds": 0}),
        ),
        (
            "hmac-auth",
            json!({"form": "signature", "clock_skew_seconds": 300}),
        ),
        (
            "jwt",
            json!({"locations": [{"header": "Authorization"}, {"cookie": "session"}, {"query": "jwt"}]}),
        ),
        (
            "jwe-decrypt",
            json!({"header": "Authorization", "forward_header": "X-Plain"}),
        ),
        (
            "webhook-signature",
            json!({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "tolerance_seconds": 300}),
        ),
        ("csrf", json!({"key": "a-long-secret", "expires_seconds": 3600})),
        (
            "cors",
            json!({"origins": ["https://app.example"], "methods": ["GET"], "credentials": true}),
        ),
        (
            "referer-restriction",
            json!({"allow": ["example.com", "*.example.com"]}),
        ),
        (
            "user-agent-restriction",
            json!({"known_bots": true, "deny": ["^Old-App/1\\."]}),
        ),
        (
            "uri-restriction",
            json!({"deny": ["\\.(git|env)(/|$)", "^/admin"], "ignore_case": true}),
        ),
        (
            "real-ip",
            json!({"from": "http_x_forwarded_for", "trusted": ["0.0.0.0/0", "::/0"], "recursive": true}),
        ),
        ("ip-restriction", json!({"deny": ["10.1.2.3"]})),
    ]
}

/// Of bodies, caches and traces.
fn of_bodies() -> Vec<(&'static str, Value)> {
    let all = json!([{"count": 5, "per": "second"}]);
    vec![
        (
            "graphql-limit",
            json!({"limit": 100, "window_seconds": 60, "by": "ip"}),
        ),
        (
            "degraphql",
            json!({"query": "query ($name: String!) { user(name: $name) { id } }", "variables": ["name"]}),
        ),
        (
            "request-validation",
            json!({"body_schema": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "pattern": "^a+$"}, "list": {"type": "array", "uniqueItems": true}}}}),
        ),
        (
            "request-rewrite",
            json!({"path_patterns": [{"pattern": "^/v1/(.*)", "replacement": "/$1"}],
            "headers": [{"set": {"X-Version": "v1", "X-Client": "$remote_addr"}}, {"remove": ["Cookie"]}]}),
        ),
        (
            "body-transform",
            json!({"request": {"input": "xml", "template": "{{ a.b }}"}, "response": {"input": "json", "template": "{{ a }}"}}),
        ),
        (
            "body-transform",
            json!({"request": {"input": "multipart", "template": "{{ a }}"}, "response": {"input": "xml", "template": "{{ _body }}"}}),
        ),
        (
            "body-transform",
            json!({"request": {"input": "encoded", "template": "{{ a }}"}}),
        ),
        ("grpc-transcode", json!({"proto": {"text": PROTO}})),
        (
            "grpc-transcode",
            json!({"proto": {"text": PROTO}, "json": {"mapping": "fields-and-times", "names": "proto", "integers": "marked-text", "enums": "number", "defaults": true}}),
        ),
        ("grpc-web", json!({"cross_origin": {"allow_origin": "*"}})),
        ("grpc-web", json!({"proto": {"text": PROTO}})),
        (
            "proxy-cache",
            json!({"key": ["$host", "$request_uri"], "ttl_seconds": 60, "cache_control": true}),
        ),
        (
            "compression",
            json!({"coding": "gzip", "types": ["text/html"], "min_length": 1}),
        ),
        (
            "response-rate-limit",
            json!({"header": "X-Used", "limits": {"videos": all}}),
        ),
        (
            "response-rewrite",
            json!({"headers": [{"set": {"X-A": "$upstream_status"}}], "body": "x"}),
        ),
        (
            "tracing",
            json!({"service_name": "edge", "sampling": {"ratio": 1.0, "parent": "follow"},
            "extract": ["w3c", "b3", "jaeger", "ot"], "inject": ["preserve"]}),
        ),
        (
            "tracing",
            json!({"service_name": "edge", "sampling": {"ratio": 1.0, "parent": "follow"},
            "extract": ["b3-single", "datadog", "aws", "gcp", "w3c"], "inject": ["preserve"]}),
        ),
    ]
}

/// Of checks of calls, and of where they go.
fn of_checks() -> Vec<(&'static str, Value)> {
    vec![
        (
            "request-validator",
            json!({"body": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}),
        ),
        ("openapi-validation", json!({"spec": SPEC})),
        ("openapi-mock", json!({"spec": SPEC})),
        ("json-threat-protection", json!({"max_depth": 20})),
        ("xml-threat-protection", json!({"max_depth": 20})),
        ("injection-protection", json!({"rules": ["sql", "js"]})),
        (
            "jq",
            json!({"request": {"program": ".a"}, "response": {"program": "del(.secret)"}}),
        ),
        ("batch-requests", json!({"path": "/batch"})),
        (
            "skywalking",
            json!({"server": {"url": "http://127.0.0.1:12800/v3/segments"}}),
        ),
        (
            "session",
            json!({"session": {"secret": "a-secret-of-thirty-two-characters"}}),
        ),
        (
            "data-mask",
            json!({"rules": [{"part": "query", "name": "token", "action": "remove"}]}),
        ),
        (
            "upstream-address",
            json!({"host": "$(headers[\"host\"]).example"}),
        ),
        (
            "route-by-header",
            json!({"rules": [{"headers": {"Origin": "north"}, "upstream": "north"}]}),
        ),
        ("canary", json!({"percent": 10, "host": "canary.example"})),
        ("mocking", json!({"example": "{}"})),
        ("dubbo", json!({"service": "org.example.Shop", "method": "sell"})),
    ]
}

/// Of what other servers are asked.
fn of_servers() -> Vec<(&'static str, Value)> {
    vec![
        ("oauth2-server", json!({"grants": ["client-credentials"]})),
        ("opa", json!({"url": "http://127.0.0.1:8181/v1/data/example"})),
        ("forward-auth", json!({"url": "http://127.0.0.1:9000/check"})),
        (
            "authz-keycloak",
            json!({"token_endpoint": "https://id.example.com/token", "client_id": "orders", "permissions": ["orders"]}),
        ),
        ("wolf-rbac", json!({})),
        (
            "safeline-waf",
            json!({"nodes": [{"host": "10.0.0.5"}], "header": "X-Waf"}),
        ),
        (
            "cas-login",
            json!({"url": "https://cas.example.com/cas", "callback": "/cas_callback", "logout_path": "/logout",
            "session": {"secret": "0123456789abcdef"}}),
        ),
        (
            "openid-connect",
            json!({"discovery": "https://id.example.com", "client_id": "shop", "client_secret": "a-secret",
            "session": {"secret": "a-secret-of-thirty-two-characters"}}),
        ),
        (
            "ldap-auth",
            json!({"host": "ldap.example.com", "base_dn": "ou=people,dc=example,dc=com", "attribute": "uid"}),
        ),
        (
            "upstream-oauth",
            json!({"token_endpoint": "https://id.example.com/token", "client_id": "gateway", "client_secret": "a-secret"}),
        ),
        (
            "vault-auth",
            json!({"vault": {"address": "https://vault.example.com:8200", "mount": "callers", "token": "a-token"}}),
        ),
        (
            "callout",
            json!({"callouts": [{"name": "user", "url": "http://users/"}]}),
        ),
        (
            "orchestration",
            json!({"nodes": [{"name": "user", "call": {"url": "http://users/"}}]}),
        ),
        (
            "remote-function",
            json!({"url": "https://shop.example/api/prices"}),
        ),
        (
            "redirect",
            json!({"location": "https://new.example$request_uri", "status": 301}),
        ),
        (
            "traffic-label",
            json!({"rules": [{"when": ["arg_beta", "==", "1"], "actions": [{"weight": 1, "headers": [{"set": {"X-Group": "a"}}]}]}]}),
        ),
    ]
}

/// What their credentials are.
fn credentials() -> [(&'static str, Value); 5] {
    [
        ("key-auth", json!({"key": "k"})),
        ("basic-auth", json!({"username": "u", "password": "p"})),
        ("hmac-auth", json!({"key": "k", "secret": "s"})),
        ("jwt", json!({"key": "k", "algorithm": "HS256", "secret": "s"})),
        (
            "jwe-decrypt",
            json!({"key": "k", "secret": "0123456789abcdef0123456789abcdef"}),
        ),
    ]
}

/// All instances.
pub fn instances() -> &'static [(&'static str, Arc<dyn Filter>)] {
    static INSTANCES: OnceLock<Vec<(&'static str, Arc<dyn Filter>)>> = OnceLock::new();
    INSTANCES.get_or_init(build)
}

fn build() -> Vec<(&'static str, Arc<dyn Filter>)> {
    let consumer = Arc::new(ConsumerIdentity {
        id: "alice".into(),
        ..ConsumerIdentity::default()
    });
    let secrets = credentials();
    let known: HashMap<_, _> = secrets
        .iter()
        .map(|(plugin, config)| {
            let credential = CredentialSource {
                config,
                place: DocPath::root(),
                identity: Identity {
                    consumer: Arc::clone(&consumer),
                    credential_id: None,
                },
                expires: None,
                dialect: DialectName::NATIVE,
                workspace: None,
            };
            ((*plugin).to_owned(), vec![credential])
        })
        .collect();
    let context = BuildContext {
        instance_id: "instance",
        dialect: DialectName::NATIVE,
        keys_may_repeat: false,
        consumers_may_be_missing: false,
        workspace: None,
        credentials: &known,
        consumers: &HashMap::from([((DialectName::NATIVE, "alice".to_owned()), consumer)]),
        indexes: &RefCell::default(),
        destinations: &RefCell::default(),
        credential_diagnostics: &RefCell::default(),
    };
    let registry = weir_plugins::registry();
    let build = |(name, config): (&'static str, Value)| {
        let plugin = registry.get(name).expect(name);
        let filter = plugin
            .build(&config, &context)
            .unwrap_or_else(|found| panic!("{name}: {found:?}"));
        (name, filter)
    };
    configurations().into_iter().map(build).collect()
}
