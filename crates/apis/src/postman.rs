//! A Postman collection (format 2.0 and 2.1) as an OpenAPI document: its requests become operations, its folders tags.

use crate::naming::slug;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

/// The deepest folder that is read.
const MAX_DEPTH: usize = 32;
/// How long a URL becomes by its variables, in bytes, and how many it is made of: a variable may stand for others.
const MAX_URL: usize = 2 << 10;
const MAX_REPLACEMENTS: usize = 256;
/// The most requests that are read.
const MAX_REQUESTS: usize = crate::openapi::MAX_OPERATIONS;

/// Whether a value is a Postman collection.
pub fn is_collection(value: &Value) -> bool {
    value
        .pointer("/info/schema")
        .and_then(Value::as_str)
        .is_some_and(|it| it.contains("/collection/v2"))
}

/// The OpenAPI document that a collection describes.
///
/// # Errors
/// What is missing.
pub fn convert(collection: &Value) -> Result<Value, String> {
    if !is_collection(collection) {
        return Err(
            "expected a Postman collection of the format 2.0 or 2.1: 'info.schema' says no such thing"
                .to_owned(),
        );
    }
    let mut reader = Reader {
        variables: variables(collection),
        paths: Map::new(),
        servers: DistinctTexts::default(),
        tags: DistinctTexts::default(),
        requests: 0,
    };
    reader.items(collection, None, 0)?;
    let title = collection
        .pointer("/info/name")
        .and_then(Value::as_str)
        .unwrap_or("Collection");
    let servers: Vec<Value> = reader
        .servers
        .all
        .iter()
        .map(|url| json!({ "url": url }))
        .collect();
    let tags: Vec<Value> = reader
        .tags
        .all
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": "1" },
        "servers": servers,
        "tags": tags,
        "paths": reader.paths,
    });
    if let Some(text) = description(collection.get("info").unwrap_or(&Value::Null)) {
        document["info"]["description"] = text.into();
    }
    Ok(document)
}

fn variables(collection: &Value) -> BTreeMap<String, String> {
    let list = collection.get("variable").and_then(Value::as_array);
    let one = |it: &Value| {
        Some((
            it.get("key")?.as_str()?.to_owned(),
            it.get("value")?.as_str()?.to_owned(),
        ))
    };
    list.into_iter().flatten().filter_map(one).collect()
}

fn description(value: &Value) -> Option<&str> {
    match value.get("description")? {
        Value::String(text) => Some(text),
        other => other.get("content")?.as_str(),
    }
}

/// Texts in the order in which they were found, once each.
#[derive(Default)]
struct DistinctTexts {
    all: Vec<String>,
    known: HashSet<String>,
}

impl DistinctTexts {
    fn add(&mut self, text: &str) {
        if self.known.insert(text.to_owned()) {
            self.all.push(text.to_owned());
        }
    }
}

struct Reader {
    variables: BTreeMap<String, String>,
    paths: Map<String, Value>,
    servers: DistinctTexts,
    tags: DistinctTexts,
    requests: usize,
}

impl Reader {
    fn items(&mut self, holder: &Value, tag: Option<&str>, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("folders are nested deeper than {MAX_DEPTH}"));
        }
        for item in holder.get("item").and_then(Value::as_array).into_iter().flatten() {
            let name = item.get("name").and_then(Value::as_str);
            if item.get("item").is_some() {
                name.into_iter().for_each(|name| self.tags.add(name));
                self.items(item, name.or(tag), depth + 1)?;
            } else if let Some(request) = item.get("request") {
                self.requests += 1;
                if self.requests > MAX_REQUESTS {
                    return Err(format!("more than {MAX_REQUESTS} requests"));
                }
                self.request(name.unwrap_or("request"), request, item, tag);
            }
        }
        Ok(())
    }

    fn request(&mut self, name: &str, request: &Value, item: &Value, tag: Option<&str>) {
        let url = match request.get("url").unwrap_or(request) {
            Value::String(url) => url.clone(),
            url => url
                .get("raw")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        };
        let method = request
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or("GET")
            .to_lowercase();
        let (server, path, query) = self.split(&url);
        server.iter().for_each(|server| self.servers.add(server));
        let mut parameters = Vec::new();
        let segments: Vec<String> = path
            .split('/')
            .map(|segment| {
                let inner = segment.strip_prefix("{{").and_then(|it| it.strip_suffix("}}"));
                match segment.strip_prefix(':').or(inner) {
                    Some(name) if !name.is_empty() => {
                        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
                        format!("{{{name}}}")
                    }
                    _ => segment.to_owned(),
                }
            })
            .collect();
        let path = segments.join("/");
        for pair in query.split('&').filter(|it| !it.is_empty()) {
            let name = pair.split('=').next().unwrap_or_default();
            parameters.push(json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
        }
        let mut operation = json!({
            "operationId": slug(name),
            "summary": name,
            "responses": responses(item),
        });
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(text) = description(request) {
            operation["description"] = text.into();
        }
        if let Some(tag) = tag {
            operation["tags"] = json!([tag]);
        }
        if let Some(body) = body(request) {
            operation["requestBody"] = body;
        }
        let known = self.paths.entry(path).or_insert_with(|| json!({}));
        // Of several requests to one operation (examples of it), the first describes it.
        if known.get(&method).is_none() {
            known[method] = operation;
        }
    }

    /// Server, path and query. Variables of the collection are replaced by their values.
    fn split(&self, url: &str) -> (Option<String>, String, String) {
        let mut whole = String::new();
        self.replace(url, (&mut whole, &mut { MAX_REPLACEMENTS }));
        let url = whole;
        let (url, query) = match url.split_once('?') {
            Some((url, query)) => (url.to_owned(), query.to_owned()),
            None => (url, String::new()),
        };
        let start = url.find("://").map_or(0, |at| at + 3);
        let (server, path) = match url[start..].find('/') {
            Some(at) => url.split_at(start + at),
            None => (url.as_str(), "/"),
        };
        let is_absolute = start > 0 && !server.contains("{{");
        (is_absolute.then(|| server.to_owned()), path.to_owned(), query)
    }

    /// Appends a text in which variables of the collection stand for their values. Those of an environment stay.
    fn replace(&self, text: &str, (out, left): (&mut String, &mut usize)) {
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            out.push_str(before);
            let named = behind.split_once("}}");
            match named.and_then(|(name, behind)| Some((self.variables.get(name)?, behind))) {
                Some((value, behind)) if *left > 0 && out.len() + value.len() <= MAX_URL => {
                    *left -= 1;
                    self.replace(value, (out, left));
                    rest = behind;
                }
                _ => {
                    out.push_str("{{");
                    rest = behind;
                }
            }
        }
        out.push_str(rest);
    }
}

fn responses(item: &Value) -> Value {
    let mut made = Map::new();
    for response in item
        .get("response")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let code = response.get("code").and_then(Value::as_u64).unwrap_or(200);
        let name = response.get("name").and_then(Value::as_str).unwrap_or("Answer");
        made.entry(code.to_string())
            .or_insert_with(|| json!({ "description": name }));
    }
    if made.is_empty() {
        made.insert("default".to_owned(), json!({ "description": "Answer" }));
    }
    Value::Object(made)
}

fn body(request: &Value) -> Option<Value> {
    let body = request.get("body")?;
    let fields = |name: &str| -> Value {
        let list = body.get(name).and_then(Value::as_array);
        let names = list
            .into_iter()
            .flatten()
            .filter_map(|it| it.get("key")?.as_str());
        let properties: Map<String, Value> = names
            .map(|it| (it.to_owned(), json!({ "type": "string" })))
            .collect();
        json!({ "schema": { "type": "object", "properties": properties } })
    };
    let (kind, media) = match body.get("mode").and_then(Value::as_str)? {
        "raw" => {
            let text = body.get("raw").and_then(Value::as_str).unwrap_or_default();
            match serde_json::from_str::<Value>(text) {
                Ok(example) => ("application/json", json!({ "example": example })),
                Err(_) => ("text/plain", json!({ "example": text })),
            }
        }
        "urlencoded" => ("application/x-www-form-urlencoded", fields("urlencoded")),
        "formdata" => ("multipart/form-data", fields("formdata")),
        _ => return None,
    };
    Some(json!({ "content": { kind: media } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::from_value;

    #[test]
    fn requests_become_operations() {
        let collection = json!({
            "info": {"name": "Shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            "variable": [{"key": "base", "value": "https://shop.test/v1"}],
            "item": [
                {"name": "Orders", "item": [
                    {"name": "List orders", "request": {"method": "GET", "url": {"raw": "{{base}}/orders?limit=5&page=1"}}},
                    {"name": "Make an order", "request": {"method": "POST", "url": "{{base}}/orders", "body": {"mode": "raw", "raw": "{\"n\":1}"}},
                        "response": [{"name": "Created", "code": 201}]},
                ]},
                {"name": "One order", "request": {"method": "GET", "url": {"raw": "{{base}}/orders/:id"}}},
                {"name": "Again", "request": {"method": "GET", "url": {"raw": "{{base}}/orders/:id"}}},
                {"name": "Plain", "request": "https://other.test"},
            ],
        });
        let document = convert(&collection).expect("a document");
        let description = from_value(document.clone()).expect("a description");
        let told: Vec<String> = description
            .operations
            .iter()
            .map(|it| format!("{} {} {}", it.id, it.method, it.path))
            .collect();
        assert_eq!(
            told,
            [
                "list-orders GET /v1/orders",
                "make-an-order POST /v1/orders",
                "one-order GET /v1/orders/{id}",
                "plain GET /"
            ]
        );
        assert_eq!(
            document["servers"],
            json!([{"url": "https://shop.test"}, {"url": "https://other.test"}])
        );
        assert_eq!(
            document["paths"]["/v1/orders"]["get"]["parameters"][1]["name"],
            "page"
        );
        assert_eq!(
            document["paths"]["/v1/orders"]["post"]["responses"]["201"]["description"],
            "Created"
        );
        assert_eq!(document["paths"]["/v1/orders"]["get"]["tags"], json!(["Orders"]));
    }

    #[test]
    fn other_values_are_refused() {
        assert!(
            convert(&json!({"openapi": "3.0.0"}))
                .expect_err("refused")
                .contains("Postman collection")
        );
        let mut nested = json!({"item": []});
        for _ in 0..40 {
            nested = json!({"name": "f", "item": [nested]});
        }
        nested["info"] = json!({"schema": "https://schema.getpostman.com/json/collection/v2.0.0/"});
        assert!(convert(&nested).expect_err("refused").contains("nested deeper"));
    }

    fn path_of(variables: Value, url: &str) -> String {
        let collection = json!({
            "info": {"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            "variable": variables, "item": [{"name": "a", "request": url}],
        });
        let document = convert(&collection).expect("a document");
        let paths = document["paths"].as_object().expect("paths");
        paths.keys().next().expect("a path").clone()
    }

    #[test]
    fn variables_stand_for_values_and_not_for_gigabytes() {
        let variable = |name: String, value: String| json!({"key": name, "value": value});
        let named = json!([{"key": "z", "value": "{{a}}/v1"}, {"key": "a", "value": "http://a.test"}]);
        for (url, expected) in [
            ("{{z}}/orders", "/v1/orders"),
            ("{{a}}/{{id}}", "/{id}"),
            ("{{a}}/{{", "/{{"),
            ("{{a}}/x{{}}", "/x{{}}"),
        ] {
            assert_eq!(path_of(named.clone(), url), expected, "{url}");
        }
        // Each stands for the next one twice, or for itself.
        let doubling: Vec<Value> = (0..64)
            .map(|it| {
                variable(
                    format!("v{it:02}"),
                    format!("{{{{v{:02}}}}}{{{{v{:02}}}}}", it + 1, it + 1),
                )
            })
            .chain([variable("v64".into(), "x".into())])
            .collect();
        for variables in [
            json!(doubling),
            json!([{"key": "v00", "value": "{{v00}}{{v00}}"}]),
        ] {
            let path = path_of(variables, "http://a.test/{{v00}}");
            assert!(path.len() < 2 * MAX_URL, "{}", path.len());
        }
    }
}
