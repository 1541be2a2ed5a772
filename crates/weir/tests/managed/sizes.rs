//! Documents that are larger than etcd takes. Without etcd, nothing is tested.

use crate::cluster::Etcd;
use crate::ports::free_port;
use crate::support::{Answer, Call, Weir};
use serde_json::{Map, Value, json};

/// The defect: a dry run answered 200, and the publish then 503.
#[test]
fn a_publish_that_etcd_does_not_take_is_refused_by_its_dry_run_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, peers) = (free_port(), free_port());
    let Some(_etcd) = Etcd::start(folder.path(), port, peers) else {
        return;
    };
    let store = format!("etcd://127.0.0.1:{port}");
    let flags = ["--role", "control", "--store", &store, "--console", "127.0.0.1:0"];
    let weir = Weir::start(folder.path(), &flags);
    let call = |method: &str, path: &str, body: Value| -> Call {
        Call::new(method, &weir.console(), path).body(&body.to_string())
    };
    let made = |method: &str, path: &str, body: Value| call(method, path, body).make().expect(201);
    // Each operation's route has the environment's steps.
    let notice = json!({"request-termination": {"trigger": "x-notice", "body": "x".repeat(30_000)}});
    made("PUT", "/api/v1/environments/test", json!({"chain": [notice]}));
    made("PUT", "/api/v1/apis/pets", json!({}));
    let operation = |number: usize| {
        let operation = json!({"operationId": format!("get{number}"), "responses": {}});
        (format!("/pets/{number}"), json!({"get": operation}))
    };
    let paths: Map<String, Value> = (0..60).map(operation).collect();
    let document = json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": "1.0.0"}, "paths": paths});
    made("POST", "/api/v1/apis/pets/versions?version=1.0.0", document);
    let backends = json!({"main": {"url": "http://127.0.0.1:9"}});
    let runtime = json!({"runtime": {"base_path": "/v1", "backends": backends}});
    let publish = || call("POST", "/api/v1/publications/pets/1.0.0/test", runtime.clone());
    let names_parts = |answer: &Answer| {
        let text = &answer.body;
        let parts = ["services/test.pets.1.0.0.main", " bytes", "another component"];
        parts.iter().all(|part| text.contains(part))
    };
    let tried = publish().header("Weir-Dry-Run", "true").make().expect(422);
    let refused = &tried.json()["refused"][0];
    assert_eq!(refused["status"], 422, "{refused}");
    assert!(names_parts(&tried), "{refused}");
    let refused = publish().make().expect(422);
    assert!(names_parts(&refused), "{refused:?}");
    // It is served when it is small enough.
    call("PUT", "/api/v1/environments/test", json!({}))
        .make()
        .expect(200);
    publish().make().expect(200);
}
