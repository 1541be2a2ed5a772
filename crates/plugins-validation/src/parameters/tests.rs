//! Styles and schemas, with the texts in which values stand.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

/// Names and their texts.
type Texts<'t> = Vec<(&'t str, &'t str)>;

/// What is said of a parameter in a call.
fn finding_of(parameter: &Value, call: &str, headers: &[(&str, &str)], path: &[(&str, &str)]) -> String {
    let document = json!({"components": {"schemas": {"Id": {"type": "integer"}}}});
    let mut schemas = SchemaSetBuilder::new(&document);
    let parameter = Parameter::read(parameter, &document, &mut schemas).expect("a parameter");
    let schemas = schemas.finish();
    let mut exchange = exchange();
    prepare(&mut exchange, call, headers);
    let query = Query::read(exchange.request.query.as_deref());
    let path: Vec<(&str, &[u8])> = path.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let source = Source {
        request: &exchange.request,
        query: &query,
        path: &path,
    };
    let checked = parameter.check(&source, &schemas, &WorkBudget::default());
    checked.err().unwrap_or_default()
}

#[test]
fn every_style_is_read() {
    let list = json!({"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3});
    let map = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a", "b"], "additionalProperties": false});
    let one = json!({"$ref": "#/components/schemas/Id"});
    // The place, the style, whether it explodes, the schema, and the text.
    for (place, style, explode, schema, text) in [
        ("path", "simple", false, &one, "5"),
        ("path", "simple", false, &list, "3,4,5"),
        ("path", "simple", false, &map, "a,1,b,x%2Cy"),
        ("path", "simple", true, &map, "a=1,b=x"),
        ("path", "label", false, &one, ".5"),
        ("path", "label", false, &list, ".3,4,5"),
        ("path", "label", true, &list, ".3.4.5"),
        ("path", "label", true, &map, ".a=1.b=x"),
        ("path", "matrix", false, &one, ";p=5"),
        ("path", "matrix", false, &list, ";p=3,4,5"),
        ("path", "matrix", true, &list, ";p=3;p=4;p=5"),
        ("path", "matrix", false, &map, ";p=a,1,b,x"),
        ("path", "matrix", true, &map, ";a=1;b=x"),
        ("query", "form", true, &one, "p=5"),
        ("query", "form", true, &list, "p=3&p=4&x=0&p=5"),
        ("query", "form", false, &list, "p=3,4,5"),
        ("query", "form", true, &map, "a=1&b=x"),
        ("query", "form", false, &map, "p=a,1,b,x"),
        ("query", "spaceDelimited", false, &list, "p=3%204+5"),
        ("query", "pipeDelimited", false, &list, "p=3|4%7C5"),
        ("query", "deepObject", true, &map, "p[a]=1&p%5Bb%5D=x"),
        ("header", "simple", false, &list, "3, 4,5"),
        ("header", "simple", true, &map, "a=1,b=x"),
        ("cookie", "form", false, &list, "3,4,5"),
    ] {
        let parameter = json!({"name": "p", "in": place, "style": style, "explode": explode,
            "schema": schema, "required": true});
        let call = match place {
            "query" => format!("GET /?{text}"),
            _ => "GET /".to_owned(),
        };
        let cookie = format!("p={text}");
        let (headers, path): (Texts<'_>, Texts<'_>) = match place {
            "header" => (vec![("P", text)], vec![]),
            "cookie" => (vec![("Cookie", &cookie)], vec![]),
            "path" => (vec![], vec![("p", text)]),
            _ => (vec![], vec![]),
        };
        assert_eq!(
            finding_of(&parameter, &call, &headers, &path),
            "",
            "{place} {style} {explode} {text}"
        );
    }
}

#[test]
fn mismatches_are_reported() {
    let query = |schema: Value| json!({"name": "p", "in": "query", "schema": schema, "required": true});
    let optional = json!({"name": "p", "in": "query", "schema": {"type": "integer"}});
    for (parameter, call, expected) in [
        (query(json!({"type": "integer"})), "GET /", MISSING),
        (optional.clone(), "GET /", ""),
        (
            optional.clone(),
            "GET /?p=x",
            "wrong type: expected integer, got string",
        ),
        // The upstream may take any of them.
        (
            optional,
            "GET /?p=1&p=x",
            "wrong type: expected integer, got string",
        ),
        (
            query(json!({"type": "string", "maxLength": 2})),
            "GET /?p=123",
            "string too long, expected at most 2, got 3",
        ),
        (query(json!({"type": "string"})), "GET /?p=123", ""),
        (query(json!({"type": "boolean"})), "GET /?p=true", ""),
        (
            query(json!({"type": "boolean"})),
            "GET /?p=1",
            "wrong type: expected boolean, got string",
        ),
        (query(json!({"enum": [1, "a"]})), "GET /?p=1", ""),
        (query(json!({"enum": [1, "a"]})), "GET /?p=a", ""),
        (
            query(json!({"enum": [1, "a"]})),
            "GET /?p=2",
            "matches none of the enum values",
        ),
        (query(json!({"type": ["integer", "null"]})), "GET /?p=", ""),
        (query(json!({"type": "number"})), "GET /?p=1e3", ""),
        (
            query(json!({"type": "number"})),
            "GET /?p=0x10",
            "wrong type: expected number, got string",
        ),
        (
            query(json!({"type": "object", "properties": {"a": {}}})),
            "GET /?a=1&a=2",
            "property \"a\" appears twice",
        ),
        (
            json!({"name": "p", "in": "query", "content": {"application/json": {"schema": {"type": "object", "required": ["a"]}}}}),
            "GET /?p=%7B%22a%22%3A1%7D",
            "",
        ),
        (
            json!({"name": "p", "in": "query", "content": {"application/json": {"schema": {"type": "object", "required": ["a"]}}}}),
            "GET /?p=%7B%7D",
            "property \"a\" is required",
        ),
    ] {
        assert_eq!(
            finding_of(&parameter, call, &[], &[]),
            expected,
            "{parameter} {call}"
        );
    }
    let label = json!({"name": "p", "in": "path", "style": "label", "schema": {"type": "string"}});
    assert_eq!(
        finding_of(&label, "GET /", &[], &[("p", "a")]),
        "expected a value that begins with '.'"
    );
    let header = json!({"name": "X-P", "in": "header", "schema": {"type": "integer"}});
    assert_eq!(finding_of(&header, "GET /", &[("x-p", "1")], &[]), "");
    assert_ne!(
        finding_of(&header, "GET /", &[("x-p", "1"), ("X-P", "2")], &[]),
        ""
    );
}

#[test]
fn parameters_that_cannot_be_read_are_named() {
    let document = json!({});
    for (parameter, expected) in [
        (json!({"in": "query"}), "expected a name"),
        (
            json!({"name": "p", "in": "body"}),
            "parameter p: expected path, query, header or cookie in \"in\"",
        ),
        (
            json!({"name": "p", "in": "header", "style": "form"}),
            "parameter p: the style form does not exist for it",
        ),
        (
            json!({"name": "p", "in": "query", "schema": {"type": "x"}}),
            "parameter p: invalid JSON type: x",
        ),
    ] {
        let mut schemas = SchemaSetBuilder::new(&document);
        let read = Parameter::read(&parameter, &document, &mut schemas);
        assert_eq!(read.err().as_deref(), Some(expected), "{parameter}");
    }
}
