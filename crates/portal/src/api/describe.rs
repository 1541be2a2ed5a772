//! The OpenAPI 3.1 document of `/portal/v1`, made of its operations and their types.

use super::operation::{Operation, SchemaOf};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The position of the schemas.
const SCHEMAS: &str = "/components/schemas";

/// The document.
pub fn document(operations: &[Operation]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = SCHEMAS.into();
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator();
    let mut only_queries = BTreeSet::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let described = describe(operation, &mut generator, &mut only_queries);
        let path = paths
            .entry(operation.path)
            .or_insert_with(|| Value::Object(Map::new()));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    let mut schemas = generator.take_definitions(true);
    schemas.retain(|name, _| !only_queries.contains(name));
    schemas.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir's developer portal",
            "version": "1",
            "description": "The API of the pages of a developer portal. Errors are problems (RFC 9457) with stable types.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "A listener of --portal." }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A developer's personal token." },
                "session": { "type": "apiKey", "in": "cookie", "name": "__Host-weir-portal", "description": "A developer's session; over cleartext its name is `weir-portal`." },
            },
            "responses": {
                "Problem": {
                    "description": "The call is refused.",
                    "content": { "application/problem+json": { "schema": problem() } },
                },
            },
            "schemas": schemas,
        },
    })
}

fn problem() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": text, "title": text, "status": { "type": "integer" }, "detail": text,
            "errors": { "type": "array", "items": { "type": "object", "properties": { "path": text, "message": text } } },
        },
    })
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator, queries: &mut BTreeSet<String>) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
    });
    if operation.needs_session {
        described["security"] = json!([{ "session": [] }]);
    } else if operation.is_personal {
        described["security"] = json!([{ "session": [] }, { "token": [] }]);
    }
    let mut parameters: Vec<Value> = operation
        .path
        .split('/')
        .filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if let Some(query) = operation.query {
        parameters.extend(query_parameters(query, generator, queries));
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = operation.body {
        let schema = body(generator).to_value();
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    let mut good = json!({ "description": operation.status.canonical_reason().unwrap_or("OK") });
    if let Some(answer) = operation.answer {
        let schema = answer(generator).to_value();
        good["content"] = json!({ operation.media: { "schema": schema } });
    }
    described["responses"] = json!({
        operation.status.as_str(): good,
        "default": { "$ref": "#/components/responses/Problem" },
    });
    described
}

/// A query is a list of parameters here, so its type is no schema of its own.
fn query_parameters(
    query: SchemaOf,
    generator: &mut SchemaGenerator,
    queries: &mut BTreeSet<String>,
) -> Vec<Value> {
    let schema = query(generator).to_value();
    let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
    let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
    let schema = generator.definitions().get(&name).cloned().unwrap_or(schema);
    queries.insert(name);
    let properties = schema.get("properties").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| {
        let about = schema.get("description").cloned().unwrap_or_default();
        json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string" } })
    };
    properties.into_iter().flatten().map(one).collect()
}
