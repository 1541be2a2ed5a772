//! Paths, base paths and bodies of documents.

use super::*;

fn api(document: &Value, base: &Base) -> Api {
    Api::compile(&document.to_string(), base, false).expect("a document")
}

fn document() -> Value {
    let get = |id: &str| json!({"get": {"operationId": id, "responses": {}}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://a.example/v1/"}, {"url": "/{stage}", "variables": {"stage": {"default": "beta"}}}],
        "paths": {
            "/": get("root"),
            "/pets/{id}": {"get": {"responses": {}}, "delete": {"responses": {}}},
            "/pets/mine": get("mine"),
            "/pets/{id}.{form}": get("form"),
            "/pets/{id}/toys/{toy}": get("toys"),
            "/files/{name}/raw": get("raw"),
        },
    })
}

/// The number of the operation and its captures, in a text.
fn found(api: &Api, call: &str) -> String {
    let (method, path) = call.split_once(' ').expect("METHOD PATH");
    match api.find(method.as_bytes(), path.as_bytes(), &WorkBudget::default()) {
        Ok(OperationMatch::Operation(number, captures)) => {
            let captures: Vec<String> = captures
                .iter()
                .map(|(name, text)| format!(" {name}={}", String::from_utf8_lossy(text)))
                .collect();
            format!("{number}{}", captures.concat())
        }
        Ok(OperationMatch::NoMethod) => "no method".to_owned(),
        Ok(OperationMatch::NoPath) => "no path".to_owned(),
        Err(message) => message,
    }
}

#[test]
fn calls_find_their_operations() {
    let plain = api(&document(), &Base::None);
    for (call, expected) in [
        ("GET /", "0"),
        ("GET /pets/1", "1 id=1"),
        ("DELETE /pets/mine", "2 id=mine"),
        ("GET /pets/mine", "3"),
        ("GET /pets/a.json", "4 id=a form=json"),
        ("POST /pets/1", "no method"),
        ("GET /pets", "no path"),
        ("GET /pets/", "no path"),
        ("GET /pets/1/toys/a%2Fb", "5 id=1 toy=a%2Fb"),
        ("GET /files/x/raw", "6 name=x"),
        ("GET /v1/pets/1", "no path"),
    ] {
        assert_eq!(found(&plain, call), expected, "{call}");
    }
    let with_servers = api(&document(), &Base::Servers);
    for (call, expected) in [
        ("GET /v1/pets/1", "1 id=1"),
        ("GET /beta/pets/1", "1 id=1"),
        ("GET /pets/1", "no path"),
    ] {
        assert_eq!(found(&with_servers, call), expected, "{call}");
    }
    let own = api(&document(), &Base::Own("/x/".to_owned()));
    assert_eq!(found(&own, "GET /x/pets/1"), "1 id=1");
}

#[test]
fn looking_for_a_path_is_bounded() {
    // Each level has two ways; none of them leads to the end.
    let mut paths = serde_json::Map::new();
    for number in 0..2_u32.pow(10) {
        let segment = |bit: u32| match number >> bit & 1 {
            0 => "/a".to_owned(),
            _ => format!("/{{p{bit}}}"),
        };
        let path: String = (0..10).map(segment).collect();
        paths.insert(format!("{path}/end"), json!({"get": {"responses": {}}}));
    }
    let api = api(
        &json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}),
        &Base::None,
    );
    let work = WorkBudget::default();
    let path = "/a".repeat(10) + "/none";
    assert!(matches!(
        api.find(b"GET", path.as_bytes(), &work),
        Ok(OperationMatch::NoPath)
    ));
    assert!(work.done() < 10_000, "{}", work.done());
}

#[test]
fn bodies_are_checked_by_their_types() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}});
    let body = json!({"required": true, "content": {
        "application/json": {"schema": schema},
        "application/x-www-form-urlencoded": {"schema": schema},
        "multipart/form-data": {"schema": schema},
        "text/plain": {"schema": {"type": "string", "maxLength": 3}},
        "image/*": {},
    }});
    let nothing = json!({});
    let mut schemas = SchemaSetBuilder::new(&nothing);
    let body = Body::read(&body, &nothing, &mut schemas).expect("a body");
    let schemas = schemas.finish();
    let part = "--x\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n7\r\n--x--\r\n";
    for (content_type, text, expected) in [
        (Some("application/json; charset=utf-8"), r#"{"n": 1}"#, ""),
        (
            Some("APPLICATION/JSON"),
            r#"{"n": "1"}"#,
            "property \"n\" validation failed: wrong type: expected integer, got string",
        ),
        (None, r#"{"n": 1}"#, ""),
        (Some("application/json"), "", "request body is required"),
        (
            Some("application/json"),
            "no",
            "expected ident at line 1 column 2",
        ),
        (Some("application/x-www-form-urlencoded"), "n=1&l=a&l=b", ""),
        (
            Some("application/x-www-form-urlencoded"),
            "n=a",
            "property \"n\" validation failed: wrong type: expected integer, got string",
        ),
        (
            Some("application/x-www-form-urlencoded"),
            "n=1&n=2",
            "property \"n\" appears twice",
        ),
        (Some("multipart/form-data; boundary=x"), part, ""),
        (Some("text/plain"), "abc", ""),
        (
            Some("text/plain"),
            "abcd",
            "string too long, expected at most 3, got 4",
        ),
        (Some("image/png"), "\u{1}", ""),
        (
            Some("application/xml"),
            "<a/>",
            "content-type 'application/xml' is not supported",
        ),
    ] {
        let content_type = content_type.map(str::as_bytes);
        let checked = body.check(content_type, text.as_bytes(), &schemas, &WorkBudget::default());
        let message = checked.err().map(|fault| fault.message()).unwrap_or_default();
        assert_eq!(message, expected, "{content_type:?} {text}");
    }
}

#[test]
fn documents_that_cannot_be_used_say_why() {
    for (text, expected) in [
        ("{}", "expected an OpenAPI document"),
        (
            r#"{"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": [{"name": "p", "in": "query", "schema": {"type": "x"}}], "responses": {}}}}}"#,
            "GET /a: parameter p: invalid JSON type: x",
        ),
    ] {
        let message = Api::compile(text, &Base::None, false).expect_err("it cannot be used");
        assert!(message.contains(expected), "{message}");
    }
}
