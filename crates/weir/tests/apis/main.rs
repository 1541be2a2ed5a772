//! API management with real processes: versions, publications in environments, plans, subscriptions, approvals. What it
//! has to show is in the list of [`acceptance`], each with the tests that show it.

mod acceptance;
mod adopting;
mod approving;
mod bad_input;
mod changing;
mod commands;
mod conditional;
mod dry_runs;
mod ends;
mod erasing;
mod events;
mod explaining;
mod foreign_routes;
mod kinds;
mod lifecycle;
mod multi_cluster;
mod notifications;
mod pages;
mod paths;
mod plans;
mod products;
#[path = "../support/provider.rs"]
mod provider;
mod refusing;
mod reviewing;
mod seeing;
mod subscribing;
#[path = "../managed/support.rs"]
#[allow(dead_code, reason = "no test asks for all of it")]
mod support;
mod testing;
mod tokens;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;

use serde_json::{Value, json};
use std::net::SocketAddr;
use support::{Answer, Call};
use tempfile::TempDir;
use weir::Weir;

/// A control plane that serves the environment `test` itself.
struct Plane {
    _folder: TempDir,
    weir: Weir,
}

impl Plane {
    fn start() -> Self {
        Self::with(&["--environment", "test"])
    }

    fn with(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let flags = [&["--data", "data", "--console", "127.0.0.1:0"], more].concat();
        let weir = Weir::start(folder.path(), &flags);
        let plane = Self {
            _folder: folder,
            weir,
        };
        plane.put("/api/v1/environments/test", json!({})).expect(201);
        plane
            .put(
                "/api/v1/environments/prod",
                json!({"kind": "production", "order": 1}),
            )
            .expect(201);
        plane.put("/api/v1/apis/pets", json!({})).expect(201);
        plane
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Call {
        Call::new(method, &self.weir.console(), path).body(&body.to_string())
    }

    fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, &body).make()
    }

    fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, &body).make()
    }

    fn get(&self, path: &str) -> Answer {
        Call::get(&self.weir.console(), path).make()
    }

    /// Makes the version 1.0.0 of this document.
    fn version(&self, document: &Value) -> Value {
        self.post("/api/v1/apis/pets/versions?version=1.0.0", document.clone())
            .expect(201)
            .json()
    }

    /// Publishes the draft to an environment.
    fn publish(&self, environment: &str, server: SocketAddr) -> Value {
        let path = format!("/api/v1/publications/pets/1.0.0/{environment}");
        self.post(&path, json!({"runtime": runtime(server)}))
            .expect(200)
            .json()
    }

    /// The status of a call through the gateway, with a key.
    fn status(&self, path: &str, key: Option<&str>) -> Option<u16> {
        self.through(path, key).map(|it| it.status)
    }

    /// A call through the gateway, with a key.
    fn through(&self, path: &str, key: Option<&str>) -> Option<Answer> {
        let call = Call::get(&self.weir.proxy(), path);
        match key {
            Some(key) => call.header("X-API-Key", key).attempt(),
            None => call.attempt(),
        }
    }
}

fn runtime(server: SocketAddr) -> Value {
    json!({"base_path": "/v1", "backends": {"main": {"url": format!("http://{server}")}}})
}

fn petstore() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1.0.0"},
        "paths": {
            "/pets": {
                "get": {"operationId": "listPets", "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
                    "responses": {"200": {"description": "ok"}}},
                "post": {"operationId": "addPet", "responses": {"201": {"description": "ok"}}},
            },
            "/pets/{id}": {"get": {"operationId": "getPet", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}}}},
        },
    })
}
