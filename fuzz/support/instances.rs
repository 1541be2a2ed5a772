//! Instances of the plugins that take what clients or upstreams send apart.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use weir_model::{DocPath, Dialect};
use weir_plugin::{BuildContext, ConsumerIdentity, Filter, Identity, ModelCredential};

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

/// Plugins and how they are configured here.
fn configurations() -> Vec<(&'static str, Value)> {
    let all = json!([{"count": 5, "per": "second"}]);
    vec![
        ("key-auth", json!({"locations": [{"header": "X-Api-Key"}, {"query": "key"}, {"body": "key"}]})),
        ("basic-auth", json!({"any_case": true, "ignore_spaces": true, "strip": true})),
        ("hmac-auth", json!({"form": "hmac", "check_body": true, "clock_skew_seconds": 0})),
        ("hmac-auth", json!({"form": "signature", "clock_skew_seconds": 300})),
        ("jwt", json!({"locations": [{"header": "Authorization"}, {"cookie": "session"}, {"query": "jwt"}]})),
        ("jwe-decrypt", json!({"header": "Authorization", "forward_header": "X-Plain"})),
        ("webhook-signature", json!({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "tolerance_seconds": 300})),
        ("csrf", json!({"key": "a-long-secret", "expires_seconds": 3600})),
        ("cors", json!({"origins": ["https://app.example"], "methods": ["GET"], "credentials": true})),
        ("referer-restriction", json!({"allow": ["example.com", "*.example.com"]})),
        ("user-agent-restriction", json!({"known_bots": true, "deny": ["^Old-App/1\\."]})),
        ("uri-restriction", json!({"deny": ["\\.(git|env)(/|$)", "^/admin"], "ignore_case": true})),
        ("real-ip", json!({"from": "http_x_forwarded_for", "trusted": ["0.0.0.0/0", "::/0"], "recursive": true})),
        ("ip-restriction", json!({"deny": ["10.1.2.3"]})),
        ("graphql-limit", json!({"limit": 100, "window_seconds": 60, "by": "ip"})),
        ("degraphql", json!({"query": "query ($name: String!) { user(name: $name) { id } }", "variables": ["name"]})),
        ("request-validation", json!({"body_schema": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "pattern": "^a+$"}, "list": {"type": "array", "uniqueItems": true}}}})),
        ("request-rewrite", json!({"path_patterns": [{"pattern": "^/v1/(.*)", "replacement": "/$1"}],
            "headers": [{"set": {"X-Version": "v1", "X-Client": "$remote_addr"}}, {"remove": ["Cookie"]}]})),
        ("body-transform", json!({"request": {"input": "xml", "template": "{{ a.b }}"}, "response": {"input": "json", "template": "{{ a }}"}})),
        ("body-transform", json!({"request": {"input": "multipart", "template": "{{ a }}"}, "response": {"input": "xml", "template": "{{ _body }}"}})),
        ("body-transform", json!({"request": {"input": "encoded", "template": "{{ a }}"}})),
        ("grpc-transcode", json!({"proto": {"text": PROTO}})),
        ("grpc-transcode", json!({"proto": {"text": PROTO}, "json": {"mapping": "fields-and-times", "names": "proto", "integers": "marked-text", "enums": "number", "defaults": true}})),
        ("grpc-web", json!({"cross_origin": {"allow_origin": "*"}})),
        ("grpc-web", json!({"proto": {"text": PROTO}})),
        ("proxy-cache", json!({"key": ["$host", "$request_uri"], "ttl_seconds": 60, "cache_control": true})),
        ("compression", json!({"coding": "gzip", "types": ["text/html"], "min_length": 1})),
        ("response-rate-limit", json!({"header": "X-Used", "limits": {"videos": all}})),
        ("response-rewrite", json!({"headers": [{"set": {"X-A": "$upstream_status"}}], "body": "x"})),
        ("tracing", json!({"service_name": "edge", "sampling": {"ratio": 1.0, "parent": "follow"},
            "extract": ["w3c", "b3", "jaeger", "ot"], "inject": ["preserve"]})),
        ("tracing", json!({"service_name": "edge", "sampling": {"ratio": 1.0, "parent": "follow"},
            "extract": ["b3-single", "datadog", "aws", "gcp", "w3c"], "inject": ["preserve"]})),
        ("redirect", json!({"location": "https://new.example$request_uri", "status": 301})),
        ("traffic-label", json!({"rules": [{"when": ["arg_beta", "==", "1"], "actions": [{"weight": 1, "headers": [{"set": {"X-Group": "a"}}]}]}]})),
    ]
}

/// What their credentials are.
fn credentials() -> [(&'static str, Value); 5] {
    [
        ("key-auth", json!({"key": "k"})),
        ("basic-auth", json!({"username": "u", "password": "p"})),
        ("hmac-auth", json!({"key": "k", "secret": "s"})),
        ("jwt", json!({"key": "k", "algorithm": "HS256", "secret": "s"})),
        ("jwe-decrypt", json!({"key": "k", "secret": "0123456789abcdef0123456789abcdef"})),
    ]
}

/// All instances.
pub fn instances() -> &'static [(&'static str, Arc<dyn Filter>)] {
    static INSTANCES: OnceLock<Vec<(&'static str, Arc<dyn Filter>)>> = OnceLock::new();
    INSTANCES.get_or_init(build)
}

fn build() -> Vec<(&'static str, Arc<dyn Filter>)> {
    let consumer = Arc::new(ConsumerIdentity { id: "alice".into(), ..ConsumerIdentity::default() });
    let secrets = credentials();
    let known: HashMap<_, _> = secrets
        .iter()
        .map(|(plugin, config)| {
            let credential = ModelCredential {
                config,
                place: DocPath::root(),
                identity: Identity { consumer: Arc::clone(&consumer), credential_id: None },
                dialect: Dialect::Native,
                workspace: None,
            };
            ((*plugin).to_owned(), vec![credential])
        })
        .collect();
    let context = BuildContext {
        instance_id: "instance",
        dialect: Dialect::Native,
        workspace: None,
        credentials: &known,
        consumers: &HashMap::from([((Dialect::Native, "alice".to_owned()), consumer)]),
        indexes: &RefCell::default(),
        destinations: &RefCell::default(),
        credential_diagnostics: &RefCell::default(),
    };
    let registry = weir_plugins::registry();
    let build = |(name, config): (&'static str, Value)| {
        let plugin = registry.get(name).expect(name);
        let filter = plugin.build(&config, &context).unwrap_or_else(|found| panic!("{name}: {found:?}"));
        (name, filter)
    };
    configurations().into_iter().map(build).collect()
}
