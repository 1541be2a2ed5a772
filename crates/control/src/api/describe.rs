//! The OpenAPI 3.1 document of the API, made of its operations and their types.

mod inputs;

use super::operation::{Content, Operation, SchemaOf};
use super::shapes::ProblemShape;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The position of the schemas.
const SCHEMAS: &str = "/components/schemas";
/// The meaning of headers of calls.
const HEADERS: [(&str, &str); 6] = [
    (
        "If-Match",
        "The ETag of the version to change; if it has changed since, the call gets 412.",
    ),
    (
        "If-None-Match",
        "`*`: it must not exist yet; else it is refused with 412.",
    ),
    (
        "Weir-Dry-Run",
        "`true`: it is checked and answered, and nothing is changed.",
    ),
    (
        "Weir-Note",
        "Why it is written, for the history: percent-encoded, at most 500 characters.",
    ),
    (
        "Last-Event-ID",
        "The last event that was seen; those after it come first.",
    ),
    (
        "Origin",
        "Needed for calls with a session's cookie that change something.",
    ),
];
/// The meaning of names in paths.
const NAMES: [(&str, &str); 10] = [
    (
        "kind",
        "The kind of resource, a list of `weir.yaml` such as `services`.",
    ),
    ("name", "The name."),
    ("list", "The list."),
    ("id", "The identifier."),
    ("workspace", "The workspace."),
    ("environment", "The environment."),
    ("api", "The API."),
    ("portal", "The portal."),
    ("page", "The page's name."),
    ("upstream", "The upstream's name."),
];

/// The document.
pub fn document(operations: &[Operation]) -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = SCHEMAS.into();
            settings.meta_schema = None;
        })
    };
    let mut answers = settings().for_serialize().into_generator();
    let mut inputs = settings().for_deserialize().into_generator();
    let problem = answers.subschema_for::<ProblemShape>();
    let mut only_queries = BTreeSet::new();
    let mut paths: Map<String, Value> = Map::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations {
        if !tags.contains(&operation.tag) {
            tags.push(operation.tag);
        }
        let described = describe(operation, (&mut inputs, &mut answers), &mut only_queries);
        let path = paths
            .entry(operation.path)
            .or_insert_with(|| Value::Object(Map::new()));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    let mut schemas = answers.take_definitions(true);
    let mut inputs = inputs.take_definitions(true);
    inputs.retain(|name, _| !only_queries.contains(name));
    let renamed = inputs::join(&mut schemas, inputs);
    for operation in paths
        .values_mut()
        .filter_map(Value::as_object_mut)
        .flat_map(Map::values_mut)
    {
        for part in ["parameters", "requestBody"] {
            if let Some(part) = operation.get_mut(part) {
                inputs::rename(part, &renamed);
            }
        }
    }
    schemas.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir",
            "version": "1",
            "description": "Weir's own API. Errors are problems (RFC 9457) with stable types.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The listener of --console." }],
        "security": [{ "token": [] }, { "session": [] }],
        "tags": tags.iter().map(|tag| json!({ "name": tag })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A user's token." },
                "session": { "type": "apiKey", "in": "cookie", "name": "__Host-weir", "description": "A session's cookie; over cleartext its name is `weir`." },
            },
            "responses": {
                "Problem": {
                    "description": "The call is refused.",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
            "schemas": schemas,
        },
    })
}

/// An operation, its schemas made by the generator of what goes in and by that of what comes out.
fn describe(
    operation: &Operation,
    (inputs, answers): (&mut SchemaGenerator, &mut SchemaGenerator),
    queries: &mut BTreeSet<String>,
) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
    });
    if !operation.description.is_empty() {
        described["description"] = operation.description.into();
    }
    described["x-weir-action"] = operation.action.as_str().into();
    if operation.is_public {
        described["security"] = json!([]);
    }
    let mut parameters = path_parameters(operation.path);
    if let Some(query) = operation.query {
        parameters.extend(query_parameters(query, inputs, queries));
    }
    for name in operation.headers {
        let meaning = HEADERS.iter().find(|(known, _)| known == name);
        parameters.push(json!({
            "name": name,
            "in": "header",
            "description": meaning.map_or("", |(_, meaning)| *meaning),
            "schema": { "type": "string" },
        }));
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = operation.body {
        described["requestBody"] = json!({ "required": true, "content": content(body, inputs) });
    }
    let mut good = json!({ "description": operation.status.canonical_reason().unwrap_or("OK") });
    if let Some(answer) = operation.answer {
        good["content"] = content(answer, answers);
    }
    let mut responses = Map::new();
    responses.insert(operation.status.as_u16().to_string(), good);
    if let Some((statuses, schema)) = operation.refusal {
        let problem = Content {
            media: "application/problem+json",
            schema: Some(schema),
        };
        for status in statuses {
            let refused =
                json!({ "description": "The call is refused.", "content": content(problem, answers) });
            responses.insert(status.as_u16().to_string(), refused);
        }
    }
    responses.insert(
        "default".to_owned(),
        json!({ "$ref": "#/components/responses/Problem" }),
    );
    described["responses"] = responses.into();
    described
}

fn content(content: Content, generator: &mut SchemaGenerator) -> Value {
    let schema = match content.schema {
        Some(schema) => schema(generator).to_value(),
        None => json!({ "type": "string" }),
    };
    json!({ content.media: { "schema": schema } })
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    let one = |name: &str| {
        let meaning = NAMES.iter().find(|(known, _)| *known == name);
        json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": meaning.map_or("", |(_, meaning)| *meaning),
            "schema": { "type": "string" },
        })
    };
    names.map(one).collect()
}

/// The names of a query's parameters.
pub fn query_names(query: SchemaOf) -> Vec<String> {
    let mut generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let (_, schema) = query_schema(query, &mut generator);
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map_or_else(Vec::new, |all| all.keys().cloned().collect())
}

/// The name of a query's type, and its schema.
fn query_schema(query: SchemaOf, generator: &mut SchemaGenerator) -> (String, Value) {
    let schema = query(generator).to_value();
    let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
    let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
    let schema = generator.definitions().get(&name).cloned().unwrap_or(schema);
    (name, schema)
}

/// A query is a list of parameters here, so its type is no schema of its own.
fn query_parameters(
    query: SchemaOf,
    generator: &mut SchemaGenerator,
    queries: &mut BTreeSet<String>,
) -> Vec<Value> {
    let (name, schema) = query_schema(query, generator);
    queries.insert(name);
    let none = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let is_required = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|all| all.iter().any(|it| it == name))
            && properties.get(name).is_some_and(|it| it.get("default").is_none())
    };
    let one = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|it| it.remove("description"));
        forget_null(&mut schema);
        json!({
            "name": name,
            "in": "query",
            "required": is_required(name) && !is_optional(properties.get(name)),
            "description": description.unwrap_or_else(|| "".into()),
            "schema": schema,
        })
    };
    properties.iter().map(one).collect()
}

fn is_optional(schema: Option<&Value>) -> bool {
    let is_null = |it: &Value| *it == "null" || it.get("type").is_some_and(|it| it == "null");
    let lists = |field: &str| schema?.get(field)?.as_array();
    [lists("type"), lists("anyOf")]
        .into_iter()
        .flatten()
        .flatten()
        .any(is_null)
}

/// A parameter is there or not; it is never `null`.
fn forget_null(schema: &mut Value) {
    if let Some(types) = schema.get("type").and_then(Value::as_array) {
        let others: Vec<Value> = types.iter().filter(|it| *it != "null").cloned().collect();
        if let [only] = others.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(parts) = schema.get("anyOf").and_then(Value::as_array) {
        let others: Vec<Value> = parts
            .iter()
            .filter(|it| it.get("type").is_none_or(|it| it != "null"))
            .cloned()
            .collect();
        if let [only] = others.as_slice() {
            *schema = only.clone();
        }
    }
}
