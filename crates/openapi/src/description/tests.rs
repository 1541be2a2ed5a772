//! Documents of all versions, good and bad.

use super::*;
use crate::finding::Position;
use serde_json::json;

fn read_value(value: &Value) -> Description {
    read(&value.to_string()).expect("a description")
}

#[test]
fn every_version_is_normalised_to_the_same_operations() {
    let swagger = json!({
        "swagger": "2.0", "info": {"title": "Pets", "version": "1"}, "host": "api.example.com", "basePath": "/v1",
        "schemes": ["https"], "consumes": ["application/json"], "produces": ["application/json"],
        "securityDefinitions": {"basic": {"type": "basic"}},
        "definitions": {"Pet": {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}}}},
        "parameters": {"Id": {"name": "id", "in": "path", "required": true, "type": "string"}},
        "paths": {"/pets/{id}": {
            "parameters": [{"$ref": "#/parameters/Id"}],
            "put": {"operationId": "putPet", "parameters": [{"name": "pet", "in": "body", "required": true, "schema": {"$ref": "#/definitions/Pet"}}],
                "responses": {"200": {"description": "ok", "schema": {"$ref": "#/definitions/Pet"}}}}}},
    });
    let of_3 = |version: &str, age: Value| {
        json!({
            "openapi": version, "info": {"title": "Pets", "version": "1"},
            "servers": [{"url": "https://api.example.com/v1"}],
            "components": {
                "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
                "schemas": {"Pet": {"type": "object", "properties": {"age": age}}},
                "parameters": {"Id": {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}},
            },
            "paths": {"/pets/{id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "put": {"operationId": "putPet",
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}, "required": true},
                    "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}}},
        })
    };
    let old = json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true});
    let new = json!({"type": "integer", "exclusiveMinimum": 0});
    let expected = read_value(&of_3("3.1.0", new.clone()));
    for document in [swagger, of_3("3.0.3", old), of_3("3.2.0", new)] {
        let found = read_value(&document);
        let ids: Vec<&str> = found.operations.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["putPet"]);
        assert_eq!(
            found.operations[0].value, expected.operations[0].value,
            "{document}"
        );
        assert_eq!(found.schemas, expected.schemas);
        assert_eq!(found.servers, expected.servers);
        assert_eq!(found.security_schemes, expected.security_schemes);
        assert_eq!(found.faults, []);
    }
}

#[test]
fn schemas_of_3_0_are_modernised() {
    for (old, new) in [
        (
            json!({"type": "string", "nullable": true, "enum": ["a"]}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (
            json!({"maximum": 5, "exclusiveMaximum": false}),
            json!({"maximum": 5}),
        ),
        (json!({"example": 1}), json!({"examples": [1]})),
        (
            json!({"$ref": "#/x", "description": "no"}),
            json!({"$ref": "#/x"}),
        ),
        (
            json!({"items": {"nullable": true, "type": "integer"}}),
            json!({"items": {"type": ["integer", "null"]}}),
        ),
    ] {
        let mut schema = old.clone();
        schemas::modernise(&mut schema, Format::V3_0);
        assert_eq!(schema, new, "{old}");
        let mut schema = old.clone();
        schemas::modernise(&mut schema, Format::V3_1);
        assert_eq!(schema, old);
    }
}

#[test]
fn operations_have_ids_of_their_own() {
    let found = read_value(&json!({
        "openapi": "3.2.0", "info": {}, "paths": {
            "/a": {"get": {"operationId": "x"}, "post": {"operationId": "x"}, "delete": {}, "query": {},
                "additionalOperations": {"COPY": {"operationId": "copy"}}},
            "/b": {"$ref": "#/components/pathItems/B"},
        },
        "components": {"pathItems": {"B": {"get": {"summary": "B", "tags": ["t"], "deprecated": true}}}},
    }));
    let operations: Vec<String> = found
        .operations
        .iter()
        .map(|it| format!("{} {} {}", it.id, it.method, it.path))
        .collect();
    assert_eq!(
        operations,
        [
            "x GET /a",
            "x-2 POST /a",
            "delete-a DELETE /a",
            "query-a QUERY /a",
            "copy COPY /a",
            "get-b GET /b"
        ]
    );
    let last = &found.operations[5];
    assert_eq!(
        (last.summary.as_deref(), last.deprecated, last.tags.as_slice()),
        (Some("B"), true, &["t".to_owned()][..])
    );
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    let cyclic = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      parameters:\n        - $ref: '#/components/parameters/A'\ncomponents:\n  parameters:\n    A: {$ref: '#/components/parameters/B'}\n    B: {$ref: '#/components/parameters/A'}\n";
    for (text, part, line, column) in [
        ("", "found nothing", 1, 1),
        ("a: [", "not YAML", 2, 1),
        (
            "{\"openapi\": \"3.0.0\",\n \"paths\": {\"a\" 1}}",
            "not JSON",
            2,
            16,
        ),
        ("title: x", "neither 'openapi'", 1, 1),
        ("openapi: 3.9.0\npaths: {}", "OpenAPI 3.9.0 is not known", 1, 1),
        ("openapi: 3.0.0\ninfo: {}", "expected a map of paths", 1, 1),
        ("openapi: 3.0.0\npaths:\n  pets: {}\n", "begins with '/'", 3, 3),
        (
            "openapi: 3.0.0\npaths:\n  /pets: 1\n",
            "expected a map of operations",
            3,
            3,
        ),
        (cyclic, "circular", 6, 11),
        (
            "{\"openapi\":\"3.0.0\",\"paths\":{\"/a\":{\"get\":{\"parameters\":[{\"$ref\":\"#/x\"}]}}},\"x\":{\"$ref\":\"#/x\"}}",
            "circular",
            1,
            57,
        ),
    ] {
        let found = read(text).expect_err(text);
        assert!(found[0].message.contains(part), "{text}: {found:?}");
        assert_eq!(
            found[0].position,
            Some(Position { line, column }),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn references_that_lead_nowhere_are_reported_and_do_not_stop_the_rest() {
    let text = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      parameters:\n        - $ref: '#/no'\n        - $ref: other.yaml\n      responses: {}\n";
    let found = read(text).expect("a description");
    let faults: Vec<String> = found.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "6:11: error: '#/no' refers to nothing (invalid-ref) at paths./a.get.parameters[0].$ref",
            "7:11: error: 'other.yaml' refers to another document; expected '#/…': files are not read (invalid-ref) at paths./a.get.parameters[1].$ref",
        ]
    );
}

#[test]
fn what_is_large_is_refused_in_bounded_memory() {
    let many: String = (0..=MAX_OPERATIONS)
        .map(|it| format!("\"/{it}\":{{\"get\":{{}}}},"))
        .collect();
    let many = format!(
        "{{\"openapi\":\"3.1.0\",\n \"paths\":{{{}}}}}",
        many.trim_end_matches(',')
    );
    let found = read(&many).expect_err("too many");
    assert_eq!(found[0].message, "50001 operations: expected at most 50000");
    assert_eq!(found[0].position, Some(Position { line: 2, column: 2 }));

    let values = format!("[{}0]", "0,".repeat(json_text::MAX_VALUES));
    let found = read(&values).expect_err("too many");
    assert_eq!(found[0].message, "more than 5000000 values");

    // 1,000 references to 20,000 values.
    let long: Vec<u32> = (0..20_000).collect();
    let paths: Map<String, Value> = (0..1_000)
        .map(|it| {
            (
                format!("/{it}"),
                json!({"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}}),
            )
        })
        .collect();
    let document = json!({"openapi": "3.1.0", "paths": paths, "components": {"parameters": {"P": {"name": "p", "in": "query", "schema": {"enum": long}}}}});
    let found = from_value(document).expect_err("too much");
    assert!(found[0].message.contains("expand to more than"), "{found:?}");
}

/// To look for a free number from 2 on, each time, would take minutes.
#[test]
fn fifty_thousand_operations_of_one_id_get_numbers() {
    let one = |it: usize| (format!("/{it}"), json!({"get": {"operationId": "same"}}));
    let paths: Map<String, Value> = (0..MAX_OPERATIONS).map(one).collect();
    let found = from_value(json!({"openapi": "3.1.0", "paths": paths})).expect("a description");
    let last = found.operations.last().expect("operations");
    assert_eq!(
        (found.operations[0].id.as_str(), last.id.as_str()),
        ("same", "same-50000")
    );
}

#[test]
fn positions_are_those_of_the_text() {
    let json = "{\n  \"a\": {\"b\\u0041\": [1, {\"c\": \"x\\\"y\"}]},\n\t\"ü\": 2, \"d\": 3}";
    let yaml = "a:\n  bA:\n    - 1\n    - {c: x}\nü: 2\nd: 3\n";
    let path = |steps: &[&str]| {
        steps
            .iter()
            .fold(DocPath::root(), |path, step| match step.parse() {
                Ok(index) => path.index(index),
                Err(_) => path.field(*step),
            })
    };
    let paths = [
        path(&["a"]),
        path(&["a", "bA", "1"]),
        path(&["a", "bA", "1", "c"]),
        path(&["d"]),
        path(&["a", "gone", "x"]),
    ];
    let refs: Vec<&DocPath> = paths.iter().collect();
    let found = |text| -> Vec<(usize, usize)> {
        positions(text, &refs)
            .iter()
            .map(|it| (it.line, it.column))
            .collect()
    };
    assert_eq!(found(json), [(2, 3), (2, 24), (2, 25), (3, 10), (2, 3)]);
    assert_eq!(found(yaml), [(1, 1), (4, 7), (4, 8), (6, 1), (1, 1)]);
}

/// As Swagger 2.0 says: separated by commas, unless there is a `collectionFormat`.
#[test]
fn lists_of_swagger_are_separated_by_commas() {
    for (more, expected) in [
        (json!({}), json!({"explode": false})),
        (json!({"collectionFormat": "csv"}), json!({"explode": false})),
        (json!({"collectionFormat": "multi"}), json!({"explode": true})),
        (
            json!({"collectionFormat": "pipes"}),
            json!({"style": "pipeDelimited"}),
        ),
        (json!({"type": "string"}), json!({})),
    ] {
        let mut parameter =
            json!({"name": "ids", "in": "query", "type": "array", "items": {"type": "integer"}});
        let fields = parameter.as_object_mut().expect("a map");
        fields.extend(more.as_object().expect("a map").clone());
        let found = read_value(&json!({
            "swagger": "2.0", "info": {"title": "a", "version": "1"},
            "paths": {"/a": {"get": {"operationId": "a", "parameters": [parameter], "responses": {}}}},
        }));
        let made = &found.operations[0].value["parameters"][0];
        for field in ["explode", "style"] {
            assert_eq!(made.get(field), expected.get(field), "{more}: {made}");
        }
    }
}
