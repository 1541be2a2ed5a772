//! A Postman collection (format 2.0 and 2.1) as an OpenAPI document: its requests become operations, its folders tags.

mod auth;
mod body;

use crate::finding::{Finding, Level};
use crate::naming::slug;
use auth::{Requirement, Schemes};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use weir_model::DocPath;

/// The deepest folder that is read.
const MAX_DEPTH: usize = 32;
/// How long a URL becomes by its variables, in bytes, and how many it is made of: a variable may stand for others.
const MAX_URL: usize = 2 << 10;
const MAX_REPLACEMENTS: usize = 256;
/// The most requests that are read.
const MAX_REQUESTS: usize = crate::openapi::MAX_OPERATIONS;
/// The rule under which it is reported what of a collection the document does not have.
pub const NOT_TAKEN: &str = "weir-postman";
/// The most findings about that.
const MAX_NOT_TAKEN: usize = 100;

/// A collection as a document.
#[derive(Debug)]
pub struct Converted {
    /// The OpenAPI document.
    pub document: Value,
    /// What of the collection it does not have. Places are those of the document.
    pub findings: Vec<Finding>,
}

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
pub fn convert(collection: &Value) -> Result<Converted, String> {
    if !is_collection(collection) {
        return Err(
            "expected a Postman collection in format 2.0 or 2.1: 'info.schema' has neither".to_owned(),
        );
    }
    let mut reader = Reader {
        variables: variables(collection),
        paths: Map::new(),
        servers: DistinctTexts::default(),
        tags: DistinctTexts::default(),
        schemes: Schemes::default(),
        security: None,
        findings: Vec::new(),
        requests: 0,
    };
    reader.security = reader.schemes.of(collection);
    let whole = reader.security.as_ref().and_then(Requirement::value);
    let above = InheritedFields {
        tag: None,
        security: reader.security.clone(),
    };
    reader.items(collection, &above, 0)?;
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
    if !reader.schemes.all.is_empty() {
        document["components"] = json!({ "securitySchemes": reader.schemes.all });
    }
    if let Some(security) = whole {
        document["security"] = security;
    }
    Ok(Converted {
        document,
        findings: reader.findings,
    })
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
    schemes: Schemes,
    /// That of the collection.
    security: Option<Requirement>,
    findings: Vec<Finding>,
    requests: usize,
}

/// What a request has of the folders around it.
struct InheritedFields<'t> {
    tag: Option<&'t str>,
    security: Option<Requirement>,
}

impl Reader {
    fn items(&mut self, holder: &Value, above: &InheritedFields<'_>, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("folders are nested deeper than {MAX_DEPTH}"));
        }
        for item in holder.get("item").and_then(Value::as_array).into_iter().flatten() {
            let name = item.get("name").and_then(Value::as_str);
            if item.get("item").is_some() {
                name.into_iter().for_each(|name| self.tags.add(name));
                let inner = InheritedFields {
                    tag: name.or(above.tag),
                    security: self.schemes.of(item).or_else(|| above.security.clone()),
                };
                self.items(item, &inner, depth + 1)?;
            } else if let Some(request) = item.get("request") {
                self.requests += 1;
                if self.requests > MAX_REQUESTS {
                    return Err(format!("more than {MAX_REQUESTS} requests"));
                }
                self.request(name.unwrap_or("request"), request, item, above);
            }
        }
        Ok(())
    }

    fn request(&mut self, name: &str, request: &Value, item: &Value, above: &InheritedFields<'_>) {
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
        let (path, parameters) = parameters(&path, &query);
        let place = DocPath::root()
            .field("paths")
            .field(path.as_str())
            .field(method.as_str());
        let known = self.paths.get(&path).and_then(|it| it.get(&method));
        // Of several requests to one operation (examples of it), the first describes it.
        if let Some(first) = known.and_then(|it| it.get("summary")).and_then(Value::as_str) {
            let note = format!("The request '{name}' is the same operation as '{first}' and is ignored.");
            self.report_skipped(place, note);
            return;
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
        if let Some(tag) = above.tag {
            operation["tags"] = json!([tag]);
        }
        if let Some(body) = body::of_request(request) {
            operation["requestBody"] = body;
        }
        let security = self.schemes.of(request).or_else(|| above.security.clone());
        if let Some(Requirement::Unknown(kind)) = &security {
            let message = format!(
                "The auth '{kind}' of '{name}' is ignored: OpenAPI cannot describe it, its addresses are missing, or the collection has too many others."
            );
            self.report_skipped(place, message);
        }
        let security = security.as_ref().and_then(Requirement::value);
        if security != self.security.as_ref().and_then(Requirement::value) {
            operation["security"] = security.unwrap_or_else(|| json!([]));
        }
        self.paths.entry(path).or_insert_with(|| json!({}))[method] = operation;
    }

    fn report_skipped(&mut self, place: DocPath, message: String) {
        if self.findings.len() < MAX_NOT_TAKEN {
            self.findings.push(Finding {
                level: Level::Warn,
                ..Finding::error(NOT_TAKEN, place, message)
            });
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

/// The path as OpenAPI writes it, and the parameters of path and query.
fn parameters(path: &str, query: &str) -> (String, Vec<Value>) {
    let mut parameters = Vec::new();
    let mut known = HashSet::new();
    let segments: Vec<String> = path
        .split('/')
        .map(|segment| {
            let inner = segment.strip_prefix("{{").and_then(|it| it.strip_suffix("}}"));
            match segment.strip_prefix(':').or(inner) {
                Some(name) if !name.is_empty() => {
                    if known.insert(name) {
                        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
                    }
                    format!("{{{name}}}")
                }
                _ => segment.to_owned(),
            }
        })
        .collect();
    let mut known = HashSet::new();
    for pair in query.split('&').filter(|it| !it.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default();
        // A name that is there twice takes several values.
        if known.insert(name) {
            parameters.push(json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
        }
    }
    (segments.join("/"), parameters)
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
        made.entry(code.to_string()).or_insert_with(|| {
            let mut made = json!({ "description": name });
            if let Some(content) = body::of_response(response) {
                made["content"] = content;
            }
            made
        });
    }
    if made.is_empty() {
        made.insert("default".to_owned(), json!({ "description": "Answer" }));
    }
    Value::Object(made)
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
                        "response": [{"name": "Created", "code": 201, "body": "{\"id\":7}"}]},
                ]},
                {"name": "One order", "request": {"method": "GET", "url": {"raw": "{{base}}/orders/:id"}}},
                {"name": "Again", "request": {"method": "GET", "url": {"raw": "{{base}}/orders/:id"}}},
                {"name": "Plain", "request": "https://other.test"},
            ],
        });
        let Converted { document, findings } = convert(&collection).expect("a document");
        let messages: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "1:1: warning: The request 'Again' is the same operation as 'One order' and is ignored. (weir-postman) at paths./v1/orders/{id}.get"
            ]
        );
        let description = from_value(document.clone()).expect("a description");
        let operations: Vec<String> = description
            .operations
            .iter()
            .map(|it| format!("{} {} {}", it.id, it.method, it.path))
            .collect();
        assert_eq!(
            operations,
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
        let post = &document["paths"]["/v1/orders"]["post"];
        for (pointer, expected) in [
            (
                "/requestBody/content/application~1json/schema/properties/n/type",
                json!("integer"),
            ),
            ("/requestBody/content/application~1json/example", json!({"n": 1})),
            (
                "/responses/201/content/application~1json/example",
                json!({"id": 7}),
            ),
        ] {
            assert_eq!(post.pointer(pointer), Some(&expected), "{pointer}");
        }
    }

    /// A request has the auth of its folder, and a folder that of the collection.
    #[test]
    fn auth_becomes_security() {
        let bearer = json!({"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}"}]});
        let collection = json!({
            "info": {"name": "Shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            "auth": {"type": "apikey", "apikey": [{"key": "key", "value": "X-Key"}, {"key": "value", "value": "s3cret"}]},
            "item": [
                {"name": "a", "request": "https://a.test/a"},
                {"name": "b", "request": {"url": "https://a.test/b", "auth": {"type": "noauth"}}},
                {"name": "f", "auth": bearer, "item": [
                    {"name": "c", "request": "https://a.test/c"},
                    {"name": "d", "request": {"url": "https://a.test/d", "auth": {"type": "basic"}}},
                    {"name": "e", "request": {"url": "https://a.test/e", "auth": {"type": "hawk"}}},
                ]},
            ],
        });
        let Converted { document, findings } = convert(&collection).expect("a document");
        assert_eq!(document["security"], json!([{"apikey": []}]));
        assert_eq!(
            document["components"]["securitySchemes"],
            json!({
                "apikey": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            })
        );
        let of = |path: &str| document["paths"][path]["get"].get("security").cloned();
        assert_eq!(of("/a"), None);
        assert_eq!(of("/b"), Some(json!([])));
        assert_eq!(of("/c"), Some(json!([{"bearer": []}])));
        assert_eq!(of("/d"), Some(json!([{"basic": []}])));
        assert_eq!(of("/e"), Some(json!([])));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].message.contains("'hawk' of 'e'"), "{findings:?}");
        let text = document.to_string();
        assert!(!text.contains("s3cret"), "{text}");
        // What is made of a collection is as OpenAPI has it.
        let description = from_value(document).expect("a description");
        let found = crate::lint::run(&text, &description, &Default::default(), Default::default());
        assert!(found.iter().all(|it| it.rule != "oas3-schema"), "{found:?}");
    }

    #[test]
    fn the_number_of_schemes_is_bounded() {
        let item = |index: usize| {
            json!({"name": index.to_string(), "request": {"url": format!("https://a.test/{index}"),
            "auth": {"type": "apikey", "apikey": {"key": format!("X-{index}")}}}})
        };
        let items: Vec<Value> = (0..2_000).map(item).collect();
        let schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";
        let collection = json!({"info": {"name": "Many", "schema": schema}, "item": items});
        let Converted { document, findings } = convert(&collection).expect("a document");
        let schemes = document["components"]["securitySchemes"].as_object();
        assert_eq!(schemes.map(Map::len), Some(50));
        assert_eq!(
            document["paths"]["/49"]["get"]["security"],
            json!([{"apikey-50": []}])
        );
        assert_eq!(document["paths"]["/50"]["get"].get("security"), None);
        assert!(findings[0].message.contains("'apikey' of '50'"), "{findings:?}");
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
        let document = convert(&collection).expect("a document").document;
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
