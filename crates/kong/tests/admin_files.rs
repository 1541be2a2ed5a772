//! The Admin API over a `kong.yml`: it reads, takes configurations whole, and refuses all other writes.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt as _;
use weir_kong::admin::{Admin, AdminOptions};
use weir_store::DeclaredConfig;

const FILE: &str = "
_format_version: '3.0'
services:
- name: s
  url: http://127.0.0.1:9000
  tags: [a, b]
  routes:
  - name: r
    paths: [/r]
    tags: [a]
- name: t
  url: http://127.0.0.1:9001
upstreams:
- name: u
  healthchecks: {passive: {unhealthy: {http_failures: 3}}}
  targets:
  - target: 127.0.0.1:80
consumers:
- username: jack
  keyauth_credentials:
  - key: k
";
/// The form of a multipart body.
const PARTS: &str = "multipart/form-data; boundary=x";

/// An Admin API whose replacements are served, unless they name a service `refused`.
struct Client {
    router: axum::Router,
    declared: Arc<DeclaredConfig>,
}

impl Client {
    async fn open() -> Self {
        let (declared, mut replacements) = DeclaredConfig::new(FILE.into());
        let serving = Arc::clone(&declared);
        tokio::spawn(async move {
            while let Some(replacement) = replacements.recv().await {
                let is_refused = replacement.text.contains("refused");
                if !is_refused {
                    serving.served(Arc::clone(&replacement.text));
                }
                let outcome = (!is_refused).then_some(()).ok_or_else(|| "no".to_owned());
                replacement.answer(outcome);
            }
        });
        let admin = Admin::over_file(Arc::clone(&declared), AdminOptions::default()).await;
        Self {
            router: admin.expect("opens").router(),
            declared,
        }
    }

    async fn send(&self, call: &str, kind: &str, body: impl Into<Body>) -> (u16, Value) {
        let (method, path) = call.split_once(' ').expect("a call");
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind).body(body.into());
        let router = self.router.clone();
        let response = router
            .oneshot(request.expect("a request"))
            .await
            .expect("an answer");
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn call(&self, call: &str, body: Value) -> (u16, Value) {
        self.send(call, "application/json", body.to_string()).await
    }

    async fn read(&self, path: &str) -> Value {
        let (status, body) = self.send(&format!("GET {path}"), "application/json", "").await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let found = self.read(path).await;
        let names = found["data"].as_array().expect("a list").iter();
        let mut names: Vec<String> = names
            .filter_map(|it| Some(it["name"].as_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn what_the_file_says_is_read() {
    let client = Client::open().await;
    for (path, names) in [
        ("/services", &["s", "t"][..]),
        ("/services?tags=a,b", &["s"]),
        ("/services/s/routes", &["r"]),
        ("/routes?tags=a", &["r"]),
        ("/upstreams", &["u"]),
    ] {
        assert_eq!(client.names(path).await, names, "{path}");
    }
    let first = client.read("/services?size=1").await;
    let next = first["next"].as_str().expect("a second page");
    assert_eq!(client.read(next).await["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        client.read("/consumers/jack/key-auth").await["data"][0]["key"],
        "k"
    );
    assert_eq!(
        client.read("/tags/a").await["data"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(
        client.read("/upstreams/u/health").await["data"][0]["target"],
        "127.0.0.1:80"
    );
    assert!(client.read("/endpoints").await["data"].is_array());
    assert!(client.read("/schemas/services").await["fields"].is_array());
    assert_eq!(client.read("/").await["configuration"]["database"], "off");
    let status = client.read("/status").await;
    let hash = status["configuration_hash"].as_str().expect("a hash");
    assert_eq!((hash.len(), &status["database"]), (32, &Value::Null));
    let config = client.read("/config").await;
    assert!(config["config"].as_str().is_some_and(|it| it.contains("name: r")));
}

#[tokio::test]
async fn a_changed_file_is_read_again() {
    let client = Client::open().await;
    assert_eq!(client.names("/services").await, ["s", "t"]);
    let hash = client.read("/status").await["configuration_hash"].clone();
    let text = "_format_version: '3.0'\nservices: [{name: v, url: 'http://h'}]\n";
    client.declared.served(text.into());
    assert_eq!(client.names("/services").await, ["v"]);
    assert_ne!(client.read("/status").await["configuration_hash"], hash);
}

#[tokio::test]
async fn writes_of_single_entities_are_refused_as_without_a_database() {
    let client = Client::open().await;
    let service = json!({ "name": "n", "url": "http://h" });
    let id = client.read("/services/s").await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let unsupported = |what: &str| format!("cannot {what} when not using a database");
    for (call, body, status, message) in [
        (
            "POST /services",
            service.clone(),
            405,
            unsupported("create 'services' entities"),
        ),
        // What a database would find is not found.
        (
            "POST /services",
            json!({ "name": "s", "url": "http://h" }),
            405,
            unsupported("create 'services' entities"),
        ),
        (
            "PUT /services/x",
            json!({ "url": "http://h" }),
            405,
            unsupported("create or update 'services' entities by 'name'"),
        ),
        (
            "PATCH /services/s",
            json!({ "retries": 1 }),
            405,
            unsupported("update 'services' entities by 'name'"),
        ),
        (
            "DELETE /services/s",
            Value::Null,
            405,
            unsupported("remove 'services' entities by 'name'"),
        ),
        ("DELETE /services/nothing", Value::Null, 204, String::new()),
        (
            "PATCH /services/ID",
            json!({ "retries": 1 }),
            405,
            unsupported("update 'services' entities"),
        ),
        (
            "DELETE /services/ID",
            Value::Null,
            405,
            unsupported("remove 'services' entities"),
        ),
        (
            "POST /services/s/routes",
            json!({ "paths": ["/x"] }),
            405,
            unsupported("create 'routes' entities"),
        ),
        (
            "POST /consumers/jack/key-auth",
            json!({ "key": "z" }),
            405,
            unsupported("create 'keyauth_credentials' entities"),
        ),
        (
            "POST /upstreams/u/targets",
            json!({ "target": "h:1" }),
            405,
            unsupported("create 'targets' entities"),
        ),
        // What is wrong with the call itself comes first.
        ("POST /services", json!({ "name": "n" }), 400, String::new()),
        (
            "POST /services/nothing/routes",
            json!({ "paths": ["/x"] }),
            404,
            String::new(),
        ),
        // These change nothing that is configured.
        (
            "PUT /upstreams/u/targets/127.0.0.1:80/healthy",
            json!({}),
            204,
            String::new(),
        ),
        ("POST /schemas/services/validate", service, 200, String::new()),
    ] {
        let call = call.replace("ID", &id);
        let (found, answer) = client.call(&call, body).await;
        assert_eq!(found, status, "{call}: {answer}");
        if !message.is_empty() {
            let wanted = json!({ "code": 12, "name": "operation unsupported", "message": message });
            assert_eq!(answer, wanted, "{call}");
        }
    }
    assert_eq!(client.names("/services").await, ["s", "t"]);
}

#[tokio::test]
async fn a_configuration_is_replaced_whole() {
    let text =
        |name: &str| format!("_format_version: '3.0'\nservices: [{{name: {name}, url: 'http://h'}}]\n");
    let form = |name: &str| format!("config={}", text(name).replace('\'', "%27").replace('\n', "%0A"));
    let parts = |name: &str| {
        format!(
            "--x\r\nContent-Disposition: form-data; name=\"config\"\r\n\r\n{}\r\n--x--\r\n",
            text(name)
        )
    };
    let client = Client::open().await;
    let mut hashes = vec![client.read("/status").await["configuration_hash"].clone()];
    for (kind, body, name) in [
        (
            "application/json",
            json!({ "_format_version": "3.0", "services": [{ "name": "a", "url": "http://h" }] }).to_string(),
            "a",
        ),
        (
            "application/json",
            json!({ "config": text("b") }).to_string(),
            "b",
        ),
        ("application/x-www-form-urlencoded", form("c"), "c"),
        (PARTS, parts("d"), "d"),
        ("text/yaml", text("e"), "e"),
    ] {
        let (status, body_read) = client.send("POST /config", kind, body).await;
        assert_eq!(status, 201, "{kind}: {body_read}");
        let body_read = body_read["services"].as_object().expect("services by id");
        assert_eq!(
            body_read.values().map(|it| &it["name"]).collect::<Vec<_>>(),
            [name]
        );
        assert_eq!(client.names("/services").await, [name]);
        assert!(client.declared.current().1.contains(name), "it is served");
        hashes.push(client.read("/status").await["configuration_hash"].clone());
    }
    let mut distinct = hashes.clone();
    distinct.sort_by_key(Value::to_string);
    distinct.dedup();
    assert_eq!(distinct.len(), hashes.len(), "each has a hash of its own");
    for (name, status) in [("e", 304), ("f", 201), ("f", 304)] {
        let body = json!({ "config": text(name) }).to_string();
        let found = client
            .send("POST /config?check_hash=1", "application/json", body)
            .await;
        assert_eq!(found.0, status, "{name}");
    }
    // What the gateway refuses changes nothing here either.
    let (status, refusal) = client.send("POST /config", "text/yaml", text("refused")).await;
    assert_eq!((status, &refusal["code"]), (400, &json!(14)), "{refusal}");
    assert_eq!(client.names("/services").await, ["f"]);
    // Nor does what is wrong, entity by entity for who asks for it so.
    let wrong = json!({ "_format_version": "3.0", "services": [{ "name": "g" }] });
    let (status, refusal) = client.call("POST /config?flatten_errors=1", wrong).await;
    assert_eq!(
        (status, &refusal["name"]),
        (400, &json!("invalid declarative configuration"))
    );
    assert_eq!(refusal["flattened_errors"][0]["entity_name"], "g", "{refusal}");
    assert_eq!(client.names("/services").await, ["f"]);
}
