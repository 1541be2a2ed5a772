//! Paths with parameters next to text: calls reach the operation that the document says.

use crate::support::{until, upstream};
use crate::{Plane, petstore};
use serde_json::{Value, json};

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";

/// A path that can be read, with these parameters.
fn item(names: &[&str], deprecated: bool) -> Value {
    let parameters: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    json!({"get": {"deprecated": deprecated, "parameters": parameters, "responses": {"200": {"description": "ok"}}}})
}

#[test]
fn parameters_that_share_their_segment_with_text_are_served_as_written() {
    let plane = Plane::start();
    let mut document = petstore();
    let paths = document["paths"].as_object_mut().expect("paths");
    for (path, names, deprecated) in [
        ("/files/{name}.json", &["name"][..], false),
        ("/jobs/{id}", &["id"], false),
        ("/jobs/{id}:cancel", &["id"], true),
        ("/a-{x}-b", &["x"], false),
        ("/pair/{x}-{y}", &["x", "y"], false),
    ] {
        paths.insert(path.to_owned(), item(names, deprecated));
    }
    let version = plane.version(&document);
    let findings = version["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|it| it["level"] != "error"), "{findings:?}");
    let runtime =
        json!({"base_path": "/v1.0", "backends": {"main": {"url": format!("http://{}", upstream("pets"))}}});
    plane.post(PUBLICATION, json!({ "runtime": runtime })).expect(200);
    until("it is served", || plane.status("/v1.0/pets", None) == Some(200));
    for (path, expected) in [
        ("/files/a.json", 200),
        ("/files/a.b.json", 200),
        ("/files/a", 404),
        ("/files/.json", 404),
        ("/files/a.jsonl", 404),
        ("/files/a/b.json", 404),
        ("/jobs/7", 200),
        ("/jobs/7:cancel", 200),
        ("/a-7-b", 200),
        ("/a-7-c", 404),
        ("/a--b", 404),
        ("/pair/1-2", 200),
        ("/pair/12", 404),
    ] {
        assert_eq!(
            plane.status(&format!("/v1.0{path}"), None),
            Some(expected),
            "{path}"
        );
    }
    let is_deprecated = |path: &str| {
        let answer = plane.through(path, None).expect("an answer");
        answer.header("deprecation").is_some()
    };
    assert!(is_deprecated("/v1.0/jobs/7:cancel"));
    assert!(!is_deprecated("/v1.0/jobs/7"));
}

/// Nothing says where one of two parameters ends: a finding says so, with its place.
#[test]
fn parameters_without_text_between_them_are_a_finding() {
    let plane = Plane::start();
    let mut document = petstore();
    document["paths"]["/both/{x}{y}"] = item(&["x", "y"], false);
    let version = plane.version(&document);
    let findings = version["findings"].as_array().expect("a list");
    let found = findings
        .iter()
        .find(|it| it["rule"] == "weir-path-parameter")
        .expect("a finding");
    assert_eq!(found["level"], "error");
    assert!(
        found["line"].is_u64()
            && found["message"]
                .as_str()
                .is_some_and(|it| it.contains("'{x}' ends")),
        "{found}"
    );
    let runtime =
        json!({"base_path": "/v1", "backends": {"main": {"url": format!("http://{}", upstream("pets"))}}});
    // It is served as one parameter.
    plane.post(PUBLICATION, json!({ "runtime": runtime })).expect(200);
    until("it is served", || plane.status("/v1/both/ab", None) == Some(200));
}
