//! Bodies of a collection's requests and examples, as OpenAPI has them: a media type with a schema and an example.

use serde_json::{Map, Value, json};

/// The deepest value that a schema is made of.
const MAX_DEPTH: usize = 16;
/// The most fields of a form.
const MAX_FIELDS: usize = 1_000;

/// The body of a request.
pub fn of_request(request: &Value) -> Option<Value> {
    let body = request.get("body")?;
    if body.get("disabled") == Some(&Value::Bool(true)) {
        return None;
    }
    let (kind, media) = match body.get("mode").and_then(Value::as_str)? {
        "raw" => {
            let text = body
                .get("raw")
                .and_then(Value::as_str)
                .filter(|it| !it.is_empty())?;
            let language = body.pointer("/options/raw/language").and_then(Value::as_str);
            of_text(text, content_type(request.get("header")), language)
        }
        "urlencoded" => (
            "application/x-www-form-urlencoded".to_owned(),
            form(body.get("urlencoded")),
        ),
        "formdata" => ("multipart/form-data".to_owned(), form(body.get("formdata"))),
        "graphql" => {
            let query = json!({ "query": body.pointer("/graphql/query").cloned().unwrap_or_default() });
            (
                "application/json".to_owned(),
                json!({ "schema": schema_of(&query, 0), "example": query }),
            )
        }
        "file" => (
            "application/octet-stream".to_owned(),
            json!({ "schema": { "type": "string", "format": "binary" } }),
        ),
        _ => return None,
    };
    Some(json!({ "content": { kind: media } }))
}

/// The content of an example of a response.
pub fn of_response(response: &Value) -> Option<Value> {
    let text = response
        .get("body")
        .and_then(Value::as_str)
        .filter(|it| !it.is_empty())?;
    let language = response.get("_postman_previewlanguage").and_then(Value::as_str);
    let (kind, media) = of_text(text, content_type(response.get("header")), language);
    Some(json!({ kind: media }))
}

/// The media type and its content of a text, of which a header and the editor's language may say what it is.
fn of_text(text: &str, header: Option<String>, language: Option<&str>) -> (String, Value) {
    let example = serde_json::from_str::<Value>(text).ok();
    let kind = header.unwrap_or_else(|| {
        let kind = match language {
            Some("json") => "application/json",
            Some("xml") => "application/xml",
            Some("html") => "text/html",
            Some("javascript") => "text/javascript",
            _ if example.is_some() => "application/json",
            _ => "text/plain",
        };
        kind.to_owned()
    });
    let is_json = kind.ends_with("/json") || kind.ends_with("+json");
    let media = match example.filter(|_| is_json) {
        Some(example) => json!({ "schema": schema_of(&example, 0), "example": example }),
        // With variables in it, it is no JSON yet, and nothing is known of its fields.
        None if is_json => json!({ "schema": {} }),
        None => json!({ "schema": { "type": "string" }, "example": text }),
    };
    (kind, media)
}

/// The media type that a list of headers names.
fn content_type(headers: Option<&Value>) -> Option<String> {
    let headers = headers?.as_array()?;
    let is_it = |it: &&Value| {
        let key = it.get("key").and_then(Value::as_str);
        key.is_some_and(|key| key.eq_ignore_ascii_case("content-type"))
            && it.get("disabled") != Some(&Value::Bool(true))
    };
    let value = headers.iter().find(is_it)?.get("value")?.as_str()?;
    let kind = value.split(';').next()?.trim().to_ascii_lowercase();
    let is_good = |it: char| it.is_ascii_alphanumeric() || "/+-._".contains(it);
    (kind.contains('/') && kind.chars().all(is_good)).then_some(kind)
}

/// The fields of a form, with the values that they have as examples.
fn form(fields: Option<&Value>) -> Value {
    let mut properties = Map::new();
    let fields = fields.and_then(Value::as_array).into_iter().flatten();
    for field in fields.take(MAX_FIELDS) {
        let text = |name: &str| field.get(name).and_then(Value::as_str);
        let Some(key) = text("key").filter(|it| !it.is_empty()) else {
            continue;
        };
        let mut schema = match text("type") {
            Some("file") => json!({ "type": "string", "format": "binary" }),
            _ => json!({ "type": "string" }),
        };
        if let Some(value) = text("value").filter(|it| !it.is_empty() && !it.contains("{{")) {
            schema["example"] = value.into();
        }
        if let Some(text) = super::description(field) {
            schema["description"] = text.into();
        }
        properties.insert(key.to_owned(), schema);
    }
    json!({ "schema": { "type": "object", "properties": properties } })
}

/// A schema that a value keeps to. What an example has is not required: it is one of many.
fn schema_of(value: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return json!({});
    }
    match value {
        // Other examples may have something.
        Value::Null => json!({}),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(items) => {
            let mut schemas = items.iter().map(|it| schema_of(it, depth + 1));
            let first = schemas.next().unwrap_or_else(|| json!({}));
            // Items of several kinds are told by none of them.
            let is_same = schemas.all(|it| it == first);
            let items = if is_same { first } else { json!({}) };
            json!({ "type": "array", "items": items })
        }
        Value::Object(map) => {
            let properties: Map<String, Value> = map
                .iter()
                .map(|(name, value)| (name.clone(), schema_of(value, depth + 1)))
                .collect();
            json!({ "type": "object", "properties": properties })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_become_media_types() {
        for (request, expected) in [
            (json!({}), Value::Null),
            (json!({"body": {"mode": "raw", "raw": ""}}), Value::Null),
            (
                json!({"body": {"mode": "raw", "raw": "{\"n\":1,\"tags\":[\"a\",\"b\"],\"x\":[1,\"a\"],\"o\":null}"}}),
                json!({"application/json": {
                    "schema": {"type": "object", "properties": {
                        "n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
                        "x": {"type": "array", "items": {}}, "o": {},
                    }},
                    "example": {"n": 1, "tags": ["a", "b"], "x": [1, "a"], "o": null},
                }}),
            ),
            (
                json!({"body": {"mode": "raw", "raw": "{\"id\": {{id}}}", "options": {"raw": {"language": "json"}}}}),
                json!({"application/json": {"schema": {}}}),
            ),
            (
                json!({"body": {"mode": "raw", "raw": "<a/>", "options": {"raw": {"language": "xml"}}}}),
                json!({"application/xml": {"schema": {"type": "string"}, "example": "<a/>"}}),
            ),
            (
                json!({"header": [{"key": "content-type", "value": "application/vnd.a+json; charset=utf-8"}],
                    "body": {"mode": "raw", "raw": "true"}}),
                json!({"application/vnd.a+json": {"schema": {"type": "boolean"}, "example": true}}),
            ),
            (
                json!({"body": {"mode": "urlencoded", "urlencoded": [
                    {"key": "a", "value": "1", "description": "one"}, {"key": "b", "value": "{{b}}"}, {"value": "x"}]}}),
                json!({"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {
                    "a": {"type": "string", "example": "1", "description": "one"}, "b": {"type": "string"}}}}}),
            ),
            (
                json!({"body": {"mode": "formdata", "formdata": [{"key": "photo", "type": "file", "src": "/a.png"}]}}),
                json!({"multipart/form-data": {"schema": {"type": "object", "properties": {
                    "photo": {"type": "string", "format": "binary"}}}}}),
            ),
            (
                json!({"body": {"mode": "file", "file": {"src": "/a.bin"}}}),
                json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}),
            ),
            (
                json!({"body": {"mode": "graphql", "graphql": {"query": "{a}"}}}),
                json!({"application/json": {
                    "schema": {"type": "object", "properties": {"query": {"type": "string"}}},
                    "example": {"query": "{a}"}}}),
            ),
        ] {
            let found = of_request(&request).unwrap_or_default();
            assert_eq!(found["content"], expected, "{request}");
        }
    }
}
