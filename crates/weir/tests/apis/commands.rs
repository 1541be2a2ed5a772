//! `weir api`, as a build server calls it.

use crate::support::{until, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

impl Plane {
    pub(super) fn file(&self, name: &str, contents: &Value) -> PathBuf {
        let path = self._folder.path().join(name);
        std::fs::write(&path, contents.to_string()).expect("written");
        path
    }

    /// Its exit status, and what it prints.
    pub(super) fn api(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.weir.ask(None, &[&["api"], arguments].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

fn path(file: &Path) -> &str {
    file.to_str().expect("a text")
}

/// 18
#[test]
fn the_life_of_an_api_from_a_terminal() {
    let plane = Plane::start();
    let spec = plane.file("pets.json", &petstore());
    let (code, stdout, stderr) = plane.api(&["new", "pets", path(&spec)]);
    assert!(
        code == Some(0) && stdout.starts_with("new version 1.0.0 of pets: 3 operations, "),
        "{code:?} {stdout} {stderr}"
    );
    let where_to = plane.file("test.json", &runtime(upstream("pets")));
    let publish = [
        "publish",
        "pets",
        "1.0.0",
        "test",
        "--runtime",
        path(&where_to),
        "--note",
        "first",
    ];

    // What a dry run prints is what the wizard shows: the answer of the same call.
    let body = json!({"note": "first", "force": false, "runtime": runtime_of(&where_to)});
    let wizard = plane
        .call("POST", "/api/v1/publications/pets/1.0.0/test", &body)
        .header("Weir-Dry-Run", "true")
        .make()
        .expect(200);
    let (code, stdout, _) = plane.api(&[&publish[..], &["--dry-run", "--output", "json"]].concat());
    assert_eq!((code, stdout), (Some(0), wizard.body.clone() + "\n"));
    let (_, stdout, _) = plane.api(&[&publish[..], &["--dry-run"]].concat());
    assert_eq!(stdout, wizard.json()["text"].as_str().expect("a text"));
    assert!(
        stdout.starts_with("pets/1.0.0/test r1\n+ GET /pets (listPets)\n"),
        "{stdout}"
    );
    assert_eq!(plane.status("/v1/pets", None), Some(404), "nothing is published");

    assert_eq!(plane.api(&publish).0, Some(0));
    until("it is served", || plane.status("/v1/pets", None) == Some(200));
}

#[test]
fn changes_that_break_callers_fail_a_build_and_can_be_taken_back() {
    let plane = Plane::start();
    let spec = plane.file("pets.json", &petstore());
    let where_to = plane.file("test.json", &runtime(upstream("pets")));
    assert_eq!(plane.api(&["new", "pets", path(&spec)]).0, Some(0));
    let publish = ["publish", "pets", "1.0.0", "test", "--runtime", path(&where_to)];
    assert_eq!(plane.api(&publish).0, Some(0));
    let mut broken = petstore();
    broken["paths"]
        .as_object_mut()
        .expect("a map")
        .remove("/pets/{id}");
    let spec = plane.file("broken.json", &broken);
    let (code, stdout, _) = plane.api(&["diff", "pets", "1.0.0", "--file", path(&spec)]);
    assert!(
        code == Some(1) && stdout.contains("- GET /pets/{id} (getPet)\n    breaking: "),
        "{code:?} {stdout}"
    );
    let (_, stdout, _) = plane.api(&["new", "pets", path(&spec)]);
    assert!(
        stdout.starts_with("draft of 1.0.0 of pets: 2 operations"),
        "{stdout}"
    );
    assert_eq!(plane.api(&["diff", "pets", "1.0.0"]).0, Some(1));
    let (code, _, stderr) = plane.api(&["publish", "pets", "1.0.0", "test"]);
    assert!(
        code == Some(1) && stderr.contains("callers would break"),
        "{code:?} {stderr}"
    );
    assert_eq!(
        plane.api(&["publish", "pets", "1.0.0", "test", "--force"]).0,
        Some(0)
    );

    let (code, stdout, stderr) = plane.api(&["rollback", "pets", "1.0.0", "test"]);
    assert!(
        code == Some(0) && stdout.starts_with("pets/1.0.0/test r1\n"),
        "{stdout} {stderr}"
    );
    let to = plane.file("prod.json", &runtime(upstream("prod")));
    let (code, stdout, stderr) = plane.api(&[
        "promote",
        "pets",
        "1.0.0",
        "test",
        "--to",
        "prod",
        "--runtime",
        path(&to),
        "--output",
        "json",
    ]);
    let promoted: Value = serde_json::from_str(&stdout).unwrap_or_default();
    assert_eq!(
        (code, &promoted["publication"]),
        (Some(0), &json!("pets/1.0.0/prod")),
        "{stderr}"
    );
    let deprecate = [
        "deprecate",
        "pets",
        "1.0.0",
        "test",
        "--since",
        "2026-01-01",
        "--sunset",
        "2999-01-01",
    ];
    let (code, stdout, stderr) = plane.api(&deprecate);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "pets/1.0.0/test is deprecated\n"),
        "{stderr}"
    );
    until("callers are told", || {
        let answer = plane.through("/v1/pets", None);
        answer.and_then(|it| it.header("Deprecation")).as_deref() == Some("@1767225600")
    });
}

fn runtime_of(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).expect("readable")).expect("JSON")
}

#[test]
fn build_servers_get_reports_and_exit_statuses() {
    let plane = Plane::start();
    let spec = plane.file("pets.json", &petstore());
    let lint = |more: &[&str]| plane.api(&[&["lint", path(&spec)], more].concat());
    assert_eq!(lint(&[]).0, Some(0));
    let (code, stdout, _) = lint(&["--fail-on", "warn", "--output", "junit"]);
    assert!(
        code == Some(1) && stdout.contains("<failure message=") && stdout.contains("operation-tags"),
        "{stdout}"
    );
    let (_, stdout, _) = lint(&["--output", "json"]);
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(
        report["findings"].as_array().is_some_and(|it| !it.is_empty()),
        "{stdout}"
    );
    let rules = plane._folder.path().join("rules.yaml");
    std::fs::write(&rules, "extends: [[spectral:oas, off]]\n").expect("written");
    assert_eq!(lint(&["--fail-on", "hint", "--rules", path(&rules)]).0, Some(0));
    std::fs::write(&spec, "openapi: [").expect("written");
    let (code, stdout, _) = lint(&[]);
    assert!(code == Some(1) && stdout.contains(":1:"), "{code:?} {stdout}");
    for (arguments, expected) in [
        (&["lint", "none.yaml"][..], Some(2)),
        (&["publish", "none", "1", "test"], Some(1)),
        (
            &["diff", "pets", "1.0.0", "--server", "http://127.0.0.1:1"],
            Some(2),
        ),
        (&["deprecate", "pets", "1", "test", "--since", "soon"], Some(2)),
        (&["deprecate", "pets", "1", "test"], Some(1)),
        (&["new", "pets", path(&rules), "--version", "2.0"], Some(2)),
        (&["diff", "pets", "1.0.0", "--token-file", "none"], Some(2)),
    ] {
        assert_eq!(plane.api(arguments).0, expected, "{arguments:?}");
    }
    // A document without a version that one can name makes no API.
    let dated = plane.file(
        "dated.json",
        &json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": 1.1}, "paths": {}}),
    );
    let (code, _, stderr) = plane.api(&["new", "dated", path(&dated)]);
    assert!(
        code == Some(2) && stderr.contains("put it in quotes"),
        "{code:?} {stderr}"
    );
    plane.get("/api/v1/apis/dated").expect(404);
}

#[test]
fn a_name_that_no_user_can_have_is_refused_in_words() {
    let plane = Plane::start();
    let arguments = ["user", "add", "a/b", "--role", "admin"];
    let output = plane.weir.ask(None, &arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("'a/b' is not a valid name of a user: expected 1 to 128 bytes without '/'"),
        "{stderr}"
    );
}

#[test]
fn a_refused_document_makes_no_api() {
    let plane = Plane::start();
    let cyclic = plane.file(
        "cyclic.json",
        &json!({"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": {},
            "components": {"schemas": {"A": {"$ref": "#/components/schemas/A"}}}}),
    );
    let good = plane.file("pets.json", &petstore());
    for (arguments, part) in [
        (&["new", "half", path(&cyclic)][..], "is circular"),
        // Only the server knows.
        (
            &["new", "half", path(&good), "--api-version", "a b"],
            "is not a valid version",
        ),
    ] {
        let (code, _, stderr) = plane.api(arguments);
        assert!(
            code == Some(1) && stderr.contains(part),
            "{arguments:?}: {code:?} {stderr}"
        );
        plane.get("/api/v1/apis/half").expect(404);
    }
    // One that was there stays.
    let (code, ..) = plane.api(&["new", "pets", path(&good), "--api-version", "a b"]);
    assert_eq!(code, Some(1));
    plane.get("/api/v1/apis/pets").expect(200);
}

#[test]
fn a_postman_collection_is_linted_and_imported() {
    let plane = Plane::start();
    let collection = json!({
        "info": {"name": "Shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
        "auth": {"type": "apikey", "apikey": [{"key": "key", "value": "X-Key"}]},
        "item": [
            {"name": "List", "request": {"method": "GET", "url": "https://shop.test/orders"}},
            {"name": "Once more", "request": {"method": "GET", "url": "https://shop.test/orders"}},
        ],
    });
    let file = plane.file("pm.json", &collection);
    let (code, stdout, errors) = plane.api(&["lint", path(&file)]);
    assert!(
        code == Some(0) && stdout.contains("weir-postman") && stdout.contains("'Once more'"),
        "{code:?} {stdout} {errors}"
    );
    assert!(errors.contains("a Postman collection"), "{errors}");
    let (code, stdout, stderr) = plane.api(&["new", "shop", path(&file), "--output", "json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let made: Value = serde_json::from_str(&stdout).expect("JSON");
    let findings = made["findings"].as_array().expect("a list");
    let found = findings.iter().find(|it| it["rule"] == "weir-postman");
    assert!(
        found.is_some_and(|it| it["line"].as_u64().is_some_and(|line| line > 1)),
        "{made:#}"
    );
    // One operation, and the security scheme that it asks for.
    assert_eq!(made["operations"].as_array().map(Vec::len), Some(1), "{made:#}");
    let rules = json!({"rules": "rules: {r: {given: $.components.securitySchemes.apikey.name, then: {function: undefined}}}"});
    let linted = plane
        .post("/api/v1/apis/shop/versions/1/lint", rules)
        .expect(200)
        .json();
    let findings = linted["findings"].as_array().expect("a list");
    assert!(findings.iter().any(|it| it["rule"] == "r"), "{linted:#}");
}
