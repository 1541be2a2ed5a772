//! From an OpenAPI document to a native service with its routes. No I/O.

use serde_json::{Map, Value, json};
use weir_apis::{path_pattern, render};

/// Methods that an OpenAPI path may have.
const METHODS: [&str; 9] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];
/// Operations at most.
const MAX_OPERATIONS: usize = 10_000;

/// The service that a document describes: what stands under `services` in a `weir.yaml`.
///
/// `name` stands in place of the title, `url` of the first server.
///
/// # Errors
/// If something is missing or wrong.
pub fn service(document: &Value, name: Option<&str>, url: Option<&str>) -> Result<Value, String> {
    let version = document
        .get("openapi")
        .or_else(|| document.get("swagger"))
        .and_then(Value::as_str);
    let version = version.ok_or("expected an OpenAPI document: it has no field 'openapi'")?;
    let title = document.pointer("/info/title").and_then(Value::as_str);
    let name = match (name, title) {
        (Some(name), _) => name.to_owned(),
        (None, Some(title)) => slug(title),
        (None, None) => return Err("expected a title in 'info'".to_owned()),
    };
    if name.is_empty() {
        return Err("no name can be made from the title: set a name".to_owned());
    }
    let url = match url {
        Some(url) => url.to_owned(),
        None => server(document, version).ok_or("expected an absolute URL in 'servers': give one")?,
    };
    let paths = document
        .get("paths")
        .and_then(Value::as_object)
        .ok_or("expected a map in 'paths'")?;
    let mut routes = Vec::new();
    for (path, method, operation) in operations(paths) {
        if is_served(method) {
            routes.push(route(&name, path, method, operation));
        }
    }
    if routes.len() > MAX_OPERATIONS {
        return Err(format!("more than {MAX_OPERATIONS} operations"));
    }
    Ok(json!({ "name": name, "url": url.trim_end_matches('/'), "routes": routes }))
}

/// The operations of paths: the path, the method as it is written, and what is said of it.
fn operations(paths: &Map<String, Value>) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = paths.iter().filter(|(path, _)| path.starts_with('/'));
    paths.flat_map(|(path, item)| {
        let usual = METHODS
            .into_iter()
            .filter_map(|method| Some((method, item.get(method)?)));
        let further = item.get("additionalOperations").and_then(Value::as_object);
        let further = further
            .into_iter()
            .flatten()
            // The usual ones have fields of their own.
            .filter(|(method, _)| !METHODS.iter().any(|it| method.eq_ignore_ascii_case(it)))
            .map(|(method, it)| (method.as_str(), it));
        usual
            .chain(further)
            .map(move |(method, it)| (path.as_str(), method, it))
    })
}

/// The gateway answers some methods itself.
fn is_served(method: &str) -> bool {
    render::is_served(&method.to_uppercase())
}

/// Operations of a document that become no routes, such as `TRACE /pets`.
pub fn skipped(document: &Value) -> Vec<String> {
    let Some(paths) = document.get("paths").and_then(Value::as_object) else {
        return Vec::new();
    };
    operations(paths)
        .filter(|(_, method, _)| !is_served(method))
        .map(|(path, method, _)| format!("{} {path}", method.to_uppercase()))
        .collect()
}

fn route(service: &str, path: &str, method: &str, operation: &Value) -> Value {
    let id = operation
        .get("operationId")
        .and_then(Value::as_str)
        .map(slug)
        .filter(|id| !id.is_empty());
    let name = id.unwrap_or_else(|| slug(&format!("{method} {path}")));
    json!({
        "name": format!("{service}.{name}"),
        "paths": [path_pattern::pattern(path, |it| !matches!(it, '*' | '?'))],
        "methods": [method.to_uppercase()],
    })
}

/// The first server's URL, its variables at their defaults.
fn server(document: &Value, version: &str) -> Option<String> {
    if version.starts_with('2') {
        let host = document.get("host")?.as_str()?;
        let scheme = document
            .pointer("/schemes/0")
            .and_then(Value::as_str)
            .unwrap_or("https");
        let base = document
            .get("basePath")
            .and_then(Value::as_str)
            .unwrap_or_default();
        return Some(format!("{scheme}://{host}{base}"));
    }
    let server = document.pointer("/servers/0")?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    let none = Map::new();
    let variables = server
        .get("variables")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    for (name, variable) in variables {
        let default = variable
            .get("default")
            .and_then(Value::as_str)
            .unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    (url.starts_with("http://") || url.starts_with("https://")).then_some(url)
}

/// Small letters, digits, and a hyphen between words.
fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'a'..='z' | '0'..='9' | '_' | '.' => slug.push(character),
            'A'..='Z' => slug.push(character.to_ascii_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The service as it is to be stored: what users have added to the one that is there (plugins and whatever else a
/// description says nothing of) stays, on the service and on the routes of the same name.
pub fn merged(fresh: Value, known: Option<&Value>) -> Value {
    let (Value::Object(mut fresh), Some(Value::Object(known))) = (fresh.clone(), known) else {
        return fresh;
    };
    keep(&mut fresh, known, &["name", "url", "upstream", "routes"]);
    let none = Vec::new();
    let old = known.get("routes").and_then(Value::as_array).unwrap_or(&none);
    if let Some(Value::Array(routes)) = fresh.get_mut("routes") {
        for route in routes.iter_mut().filter_map(Value::as_object_mut) {
            let same = old
                .iter()
                .find(|it| it.get("name") == route.get("name"))
                .and_then(Value::as_object);
            if let Some(same) = same {
                keep(route, same, &["name", "paths", "methods"]);
            }
        }
    }
    Value::Object(fresh)
}

fn keep(fresh: &mut Map<String, Value>, known: &Map<String, Value>, described: &[&str]) {
    for (field, value) in known {
        if !described.contains(&field.as_str()) && !fresh.contains_key(field) {
            fresh.insert(field.clone(), value.clone());
        }
    }
}

/// The changes of the routes by an import: names of those that are created, changed, removed.
pub fn difference(before: Option<&Value>, after: &Value) -> Value {
    let none = Vec::new();
    let routes = |service: Option<&Value>| -> Vec<Value> {
        service
            .and_then(|it| it.get("routes"))
            .and_then(Value::as_array)
            .unwrap_or(&none)
            .clone()
    };
    let (before, after) = (routes(before), routes(Some(after)));
    let same = |list: &[Value], route: &Value| {
        list.iter()
            .find(|it| it.get("name") == route.get("name"))
            .cloned()
    };
    let names =
        |list: Vec<&Value>| -> Vec<Value> { list.iter().filter_map(|it| it.get("name").cloned()).collect() };
    json!({
        "created": names(after.iter().filter(|it| same(&before, it).is_none()).collect()),
        "changed": names(after.iter().filter(|it| same(&before, it).is_some_and(|known| known != **it)).collect()),
        "removed": names(before.iter().filter(|it| same(&after, it).is_none()).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop(paths: Value) -> Value {
        json!({
            "openapi": "3.1.0",
            "info": { "title": "Pet Shop!" },
            "servers": [{ "url": "https://{region}.example.com/v1/", "variables": { "region": { "default": "eu" } } }],
            "paths": paths,
        })
    }

    #[test]
    fn operations_become_routes() {
        let document = shop(json!({
            "/pets": { "get": { "operationId": "listPets" }, "post": {} },
            "/pets/{petId}": { "get": {} },
            "/files/{name}.json": { "get": {}, "trace": {}, "query": {}, "additionalOperations": { "CONNECT": {}, "COPY": {} } },
        }));
        assert_eq!(
            skipped(&document),
            ["TRACE /files/{name}.json", "CONNECT /files/{name}.json"]
        );
        let service = service(&document, None, None).expect("a service");
        assert_eq!(service["name"], "pet-shop");
        assert_eq!(service["url"], "https://eu.example.com/v1");
        let routes = service["routes"].as_array().expect("routes");
        let lines: Vec<String> = routes
            .iter()
            .map(|it| format!("{} {} {}", it["name"], it["methods"][0], it["paths"][0]))
            .collect();
        assert_eq!(
            lines,
            [
                r#""pet-shop.listpets" "GET" "=/pets""#,
                r#""pet-shop.post-pets" "POST" "=/pets""#,
                r#""pet-shop.get-pets-petid" "GET" "/pets/{petId}""#,
                r#""pet-shop.get-files-name-.json" "GET" "/files/{name}.json""#,
                r#""pet-shop.query-files-name-.json" "QUERY" "/files/{name}.json""#,
                r#""pet-shop.copy-files-name-.json" "COPY" "/files/{name}.json""#,
            ]
        );
        assert!(weir_native::incremental::resource("services", "pet-shop", &service).is_ok());
    }

    #[test]
    fn what_users_added_stays() {
        let before = service(
            &shop(json!({ "/a": { "get": {} }, "/b": { "get": {} } })),
            None,
            None,
        )
        .expect("a service");
        let mut edited = before.clone();
        edited["retries"] = 3.into();
        edited["routes"][0]["plugins"] = json!([{ "cors": {} }]);
        let fresh = service(
            &shop(json!({ "/a": { "get": {} }, "/c": { "get": {} } })),
            None,
            None,
        )
        .expect("a service");
        let after = merged(fresh, Some(&edited));
        assert_eq!(after["retries"], 3);
        assert_eq!(after["routes"][0]["plugins"], json!([{ "cors": {} }]));
        let difference = difference(Some(&edited), &after);
        assert_eq!(
            difference,
            json!({ "created": ["pet-shop.get-c"], "changed": [], "removed": ["pet-shop.get-b"] })
        );
    }

    #[test]
    fn missing_parts_are_reported() {
        for (document, part) in [
            (json!({}), "openapi"),
            (json!({ "openapi": "3.0.0", "paths": {} }), "title"),
            (
                json!({ "openapi": "3.0.0", "info": { "title": "x" }, "paths": {} }),
                "servers",
            ),
            (
                json!({ "openapi": "3.0.0", "info": { "title": "x" }, "servers": [{ "url": "http://h" }] }),
                "paths",
            ),
        ] {
            let error = service(&document, None, None).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
    }
}
