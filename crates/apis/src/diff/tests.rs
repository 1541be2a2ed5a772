//! Changes between two descriptions, one by one: named, and breaking or not.

use super::*;
use crate::openapi::from_value;
use serde_json::json;

fn described(operation: Value) -> Description {
    let document = json!({
        "openapi": "3.1.0", "info": {}, "paths": {"/orders": {"get": operation}},
        "components": {"schemas": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}}},
    });
    from_value(document).expect("a description")
}

fn changes(old: Value, new: Value) -> Vec<(bool, String)> {
    let found = diff(&described(old), &described(new));
    let all = found.operations.iter().flat_map(|it| &it.changes);
    all.map(|it| (it.breaking, format!("{}: {}", it.place, it.message)))
        .collect()
}

fn with_parameter(parameter: Value) -> Value {
    json!({"operationId": "list", "parameters": [parameter], "responses": {}})
}

fn with_response(schema: Value) -> Value {
    json!({"operationId": "list", "responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}})
}

fn with_body(schema: Value) -> Value {
    json!({"operationId": "list", "requestBody": {"content": {"application/json": {"schema": schema}}}, "responses": {}})
}

#[test]
fn each_change_is_named_and_breaking_or_not() {
    let query = |more: Value| {
        let mut parameter = json!({"name": "limit", "in": "query", "schema": {"type": "integer"}});
        parameter
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        with_parameter(parameter)
    };
    let object = |required: Value, fields: Value| json!({"type": "object", "required": required, "properties": fields});
    let none = json!({"operationId": "list", "responses": {}});
    let keyed = json!({"operationId": "list", "security": [{"key": []}], "responses": {}});
    for (old, new, breaking, expected) in [
        // Parameters.
        (
            none.clone(),
            query(json!({})),
            false,
            "parameters.query.limit: a new optional parameter",
        ),
        (
            none.clone(),
            query(json!({"required": true})),
            true,
            "parameters.query.limit: a new required parameter",
        ),
        (
            query(json!({})),
            query(json!({"required": true})),
            true,
            "parameters.query.limit: is required now",
        ),
        (
            query(json!({"required": true})),
            query(json!({})),
            false,
            "parameters.query.limit: is optional now",
        ),
        (
            query(json!({})),
            none.clone(),
            false,
            "parameters.query.limit: the parameter is gone",
        ),
        (
            query(json!({"schema": {"type": "number"}})),
            query(json!({})),
            true,
            "parameters.query.limit: is integer, was number",
        ),
        (
            query(json!({})),
            query(json!({"schema": {"type": "number"}})),
            false,
            "parameters.query.limit: is number, was integer",
        ),
        (
            query(json!({"schema": {"enum": ["a", "b"]}})),
            query(json!({"schema": {"enum": ["a"]}})),
            true,
            "parameters.query.limit: the value \"b\" is no longer possible",
        ),
        (
            query(json!({"schema": {"enum": ["a"]}})),
            query(json!({"schema": {"enum": ["a", "b"]}})),
            false,
            "parameters.query.limit: the value \"b\" is new",
        ),
        (
            query(json!({"schema": {"maximum": 9}})),
            query(json!({"schema": {"maximum": 5}})),
            true,
            "parameters.query.limit: 'maximum' is 5, was 9",
        ),
        (
            query(json!({"schema": {"minLength": 2}})),
            query(json!({"schema": {"minLength": 1}})),
            false,
            "parameters.query.limit: 'minLength' is 1, was 2",
        ),
        // Bodies.
        (
            none.clone(),
            with_body(json!({})),
            false,
            "body: a body may be sent now",
        ),
        (
            with_body(object(json!([]), json!({"a": {}}))),
            with_body(object(json!(["a"]), json!({"a": {}}))),
            true,
            "body.a: is required now",
        ),
        (
            with_body(object(json!([]), json!({}))),
            with_body(object(json!([]), json!({"a": {}}))),
            false,
            "body.a: a new field",
        ),
        (
            with_body(object(json!([]), json!({}))),
            with_body(object(json!(["a"]), json!({"a": {}}))),
            true,
            "body.a: a new required field",
        ),
        (
            with_body(json!({"type": "object"})),
            with_body(json!({"type": "object", "additionalProperties": false})),
            true,
            "body: other fields are refused now",
        ),
        (
            with_body(json!({"oneOf": [{}, {}]})),
            with_body(json!({"oneOf": [{}]})),
            true,
            "body: 'oneOf' has 1 alternatives, had 2",
        ),
        // Responses.
        (
            with_response(object(json!(["a"]), json!({"a": {}}))),
            with_response(object(json!([]), json!({}))),
            true,
            "responses.200.body.a: the required field is gone",
        ),
        (
            with_response(object(json!([]), json!({"a": {}}))),
            with_response(object(json!([]), json!({}))),
            false,
            "responses.200.body.a: the field is gone",
        ),
        (
            with_response(object(json!(["a"]), json!({"a": {}}))),
            with_response(object(json!([]), json!({"a": {}}))),
            true,
            "responses.200.body.a: is no longer always there",
        ),
        (
            with_response(object(json!([]), json!({}))),
            with_response(object(json!(["a"]), json!({"a": {}}))),
            false,
            "responses.200.body.a: a new field",
        ),
        (
            with_response(json!({"type": "array", "items": {"type": "integer"}})),
            with_response(json!({"type": "array", "items": {"type": ["integer", "null"]}})),
            true,
            "responses.200.body[]: is integer or null, was integer",
        ),
        (
            with_response(json!({"enum": [1, 2]})),
            with_response(json!({"enum": [1]})),
            true,
            "responses.200.body: the value 2 is no longer possible",
        ),
        (
            with_response(json!({"allOf": [{"type": "object"}]})),
            with_response(json!({"type": "string"})),
            true,
            "responses.200.body: is string, was object",
        ),
        (
            with_response(json!({})),
            none.clone(),
            true,
            "responses.200: the response code is gone",
        ),
        (
            none.clone(),
            with_response(json!({})),
            false,
            "responses.200: a new response code",
        ),
        // Security.
        (
            none.clone(),
            keyed.clone(),
            true,
            "security: calls without credentials are no longer accepted",
        ),
        (keyed, none.clone(), false, "security: there are other ways in"),
        // Texts.
        (
            none.clone(),
            json!({"operationId": "list", "summary": "all", "responses": {}}),
            false,
            "summary: is another text",
        ),
        (
            none.clone(),
            json!({"operationId": "list", "deprecated": true, "responses": {}}),
            false,
            "deprecated: is deprecated now",
        ),
    ] {
        assert_eq!(
            changes(old.clone(), new.clone()),
            [(breaking, expected.to_owned())],
            "{old} {new}"
        );
        assert_eq!(changes(old.clone(), old), []);
    }
}

#[test]
fn recursive_schemas_are_compared_once() {
    let node = with_response(json!({"$ref": "#/components/schemas/Node"}));
    assert_eq!(changes(node.clone(), node), []);
}

#[test]
fn operations_are_found_again_by_id_then_by_path() {
    let of = |paths: Value| {
        from_value(json!({"openapi": "3.1.0", "info": {}, "paths": paths})).expect("a description")
    };
    let old = of(
        json!({"/a/{id}": {"get": {"operationId": "getA"}, "put": {}}, "/b": {"get": {"operationId": "getB"}}}),
    );
    let new = of(
        json!({"/a/{key}": {"get": {"operationId": "readA"}, "put": {}}, "/c": {"get": {"operationId": "getB"}, "post": {}}}),
    );
    let told: Vec<String> = diff(&old, &new)
        .operations
        .iter()
        .map(|it| {
            format!(
                "{:?} {} {} {}",
                it.kind,
                it.id,
                it.method,
                it.changes.iter().filter(|it| it.breaking).count()
            )
        })
        .collect();
    assert_eq!(
        told,
        ["Changed readA GET 0", "Changed getB GET 1", "Added post-c POST 0"]
    );
    let gone = diff(&old, &of(json!({})));
    assert!(gone.is_breaking());
    assert_eq!(gone.breaking().count(), 3);
}
