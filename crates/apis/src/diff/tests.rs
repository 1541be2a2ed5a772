//! Changes between two descriptions, one by one: named, and breaking or not.

mod alternatives;
mod oauth;

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

type Row = (Value, Value, bool, &'static str);

fn check(rows: Vec<Row>) {
    for (old, new, breaking, expected) in rows {
        assert_eq!(
            changes(old.clone(), new.clone()),
            [(breaking, expected.to_owned())],
            "{old} {new}"
        );
        assert_eq!(changes(old.clone(), old), []);
    }
}

fn none() -> Value {
    json!({"operationId": "list", "responses": {}})
}

fn query(more: Value) -> Value {
    let mut parameter = json!({"name": "limit", "in": "query", "schema": {"type": "integer"}});
    parameter
        .as_object_mut()
        .expect("a map")
        .extend(more.as_object().expect("a map").clone());
    with_parameter(parameter)
}

fn schema(schema: Value) -> Value {
    query(json!({ "schema": schema }))
}

fn object(required: Value, fields: Value) -> Value {
    json!({"type": "object", "required": required, "properties": fields})
}

#[test]
fn changes_of_parameters_are_named_and_breaking_or_not() {
    const AT: [&str; 11] = [
        "parameters.query.limit: a new optional parameter",
        "parameters.query.limit: a new required parameter",
        "parameters.query.limit: is required now",
        "parameters.query.limit: is optional now",
        "parameters.query.limit: the parameter is gone",
        "parameters.query.limit: is integer, was number",
        "parameters.query.limit: is number, was integer",
        "parameters.query.limit: the value \"b\" is no longer possible",
        "parameters.query.limit: the value \"b\" is new",
        "parameters.query.limit: 'maximum' is 5, was 9",
        "parameters.query.limit: 'minLength' is 1, was 2",
    ];
    check(vec![
        (none(), query(json!({})), false, AT[0]),
        (none(), query(json!({"required": true})), true, AT[1]),
        (query(json!({})), query(json!({"required": true})), true, AT[2]),
        (query(json!({"required": true})), query(json!({})), false, AT[3]),
        (query(json!({})), none(), false, AT[4]),
        (schema(json!({"type": "number"})), query(json!({})), true, AT[5]),
        (query(json!({})), schema(json!({"type": "number"})), false, AT[6]),
        (
            schema(json!({"enum": ["a", "b"]})),
            schema(json!({"enum": ["a"]})),
            true,
            AT[7],
        ),
        (
            schema(json!({"enum": ["a"]})),
            schema(json!({"enum": ["a", "b"]})),
            false,
            AT[8],
        ),
        (
            schema(json!({"maximum": 9})),
            schema(json!({"maximum": 5})),
            true,
            AT[9],
        ),
        (
            schema(json!({"minLength": 2})),
            schema(json!({"minLength": 1})),
            false,
            AT[10],
        ),
    ]);
}

#[test]
fn other_ways_to_write_a_parameter_break() {
    let with = |more: Value| query(more);
    let list = |mut more: Value| {
        more["schema"] = json!({"type": "array", "items": {"type": "integer"}});
        query(more)
    };
    let in_json = |kind: Value| {
        let mut operation = query(json!({"content": {"application/json": {"schema": {"type": kind}}}}));
        let parameter = operation["parameters"][0].as_object_mut().expect("a map");
        parameter.remove("schema");
        operation
    };
    const AT: [&str; 6] = [
        "parameters.query.limit: is written as 'pipeDelimited', was as 'form' with 'explode'",
        "parameters.query.limit: is written as 'form', was as 'form' with 'explode'",
        ": differs in details that callers do not notice",
        "parameters.query.limit: is string, was string or integer",
        "parameters.query.limit: is string or integer, was string",
        "parameters.query.limit: is described by 'content', was by 'schema'",
    ];
    let either = json!(["string", "integer"]);
    check(vec![
        (
            list(json!({})),
            list(json!({"style": "pipeDelimited"})),
            true,
            AT[0],
        ),
        (list(json!({})), list(json!({"explode": false})), true, AT[1]),
        (
            list(json!({})),
            list(json!({"style": "form", "explode": true})),
            false,
            AT[2],
        ),
        (with(json!({})), with(json!({"explode": false})), false, AT[2]),
        (in_json(either.clone()), in_json(json!("string")), true, AT[3]),
        (in_json(json!("string")), in_json(either), false, AT[4]),
        (with(json!({})), in_json(json!("integer")), true, AT[5]),
    ]);
}

/// A scheme keeps its name, and asks for something else.
#[test]
fn changes_of_security_schemes_break_the_operations_that_use_them() {
    let of = |scheme: &Value| {
        let used = json!({"operationId": "used", "security": [{"key": []}], "responses": {}});
        let other = json!({"operationId": "other", "security": [{"cert": []}], "responses": {}});
        let schemes = json!({"key": scheme, "cert": {"type": "mutualTLS"}});
        let document = json!({
            "openapi": "3.1.0", "info": {}, "paths": {"/orders": {"get": used, "put": other}},
            "components": {"securitySchemes": schemes},
        });
        from_value(document).expect("a description")
    };
    let key = |place: &str, name: &str| json!({"type": "apiKey", "in": place, "name": name});
    let bearer = json!({"type": "http", "scheme": "bearer"});
    let realm = |url: &str| json!({"type": "openIdConnect", "openIdConnectUrl": url});
    let rows = [
        (
            key("header", "K"),
            key("header", "OTHER"),
            "is a key in the header 'other', was a key in the header 'k'",
        ),
        (
            key("header", "K"),
            key("query", "K"),
            "is a key in the query 'K', was a key in the header 'k'",
        ),
        (
            key("header", "K"),
            bearer.clone(),
            "is HTTP 'bearer', was a key in the header 'k'",
        ),
        (
            bearer.clone(),
            json!({"type": "http", "scheme": "basic"}),
            "is HTTP 'basic', was HTTP 'bearer'",
        ),
        (
            bearer.clone(),
            json!({"type": "oauth2", "flows": {}}),
            "is 'oauth2', was HTTP 'bearer'",
        ),
        (
            realm("https://a"),
            realm("https://b"),
            "is a token of 'https://b', was a token of 'https://a'",
        ),
        (key("header", "K"), key("header", "k"), ""),
        (
            bearer,
            json!({"type": "http", "scheme": "Bearer", "description": "a token"}),
            "",
        ),
    ];
    for (old, new, expected) in rows {
        let found = diff(&of(&old), &of(&new));
        let breaking: Vec<(&str, &str, &str)> = found
            .breaking()
            .map(|(operation, it)| (operation.id.as_str(), it.place.as_str(), it.message.as_str()))
            .collect();
        let expected = match expected {
            "" => Vec::new(),
            message => vec![("used", "security.key", message)],
        };
        assert_eq!(breaking, expected, "{old} {new}");
    }
}

#[test]
fn changes_of_bodies_are_named_and_breaking_or_not() {
    let body = |required: Value, fields: Value| with_body(object(required, fields));
    let closed = json!({"type": "object", "additionalProperties": false});
    check(vec![
        (
            none(),
            with_body(json!({})),
            false,
            "body: a body may be sent now",
        ),
        (
            body(json!([]), json!({"a": {}})),
            body(json!(["a"]), json!({"a": {}})),
            true,
            "body.a: is required now",
        ),
        (
            body(json!([]), json!({})),
            body(json!([]), json!({"a": {}})),
            false,
            "body.a: a new field",
        ),
        (
            body(json!([]), json!({})),
            body(json!(["a"]), json!({"a": {}})),
            true,
            "body.a: a new required field",
        ),
        (
            body(json!(["a"]), json!({})),
            body(json!(["a"]), json!({"a": {}})),
            false,
            "body.a: a new field",
        ),
        (
            with_body(json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
            with_body(json!({"oneOf": [{"type": "integer"}, {"type": "string"}]})),
            true,
            "body.oneOf[1]: is integer, was number",
        ),
        (
            with_body(json!({"const": 1})),
            with_body(json!({"enum": [1, 2]})),
            false,
            "body: the value 2 is new",
        ),
        (
            with_body(json!({"allOf": [{"minLength": 3}, {"minLength": 1}]})),
            with_body(json!({"allOf": [{"minLength": 1}, {"minLength": 4}]})),
            true,
            "body: 'minLength' is 4, was 3",
        ),
        (
            with_body(json!({"type": "object"})),
            with_body(closed),
            true,
            "body: other fields are refused now",
        ),
        (
            with_body(json!({"oneOf": [{}, {}]})),
            with_body(json!({"oneOf": [{}]})),
            true,
            "body: 'oneOf' has 1 alternatives, had 2",
        ),
    ]);
}

#[test]
fn changes_of_responses_are_named_and_breaking_or_not() {
    let of = |required: Value, fields: Value| with_response(object(required, fields));
    let items = |kind: Value| with_response(json!({"type": "array", "items": {"type": kind}}));
    let all_of = with_response(json!({"allOf": [{"type": "object"}]}));
    const AT: &str = "responses.200.body";
    let at = |rest: &str| -> &'static str { Box::leak(format!("{AT}{rest}").into_boxed_str()) };
    check(vec![
        (
            of(json!(["a"]), json!({"a": {}})),
            of(json!([]), json!({})),
            true,
            at(".a: the required field is gone"),
        ),
        (
            of(json!([]), json!({"a": {}})),
            of(json!([]), json!({})),
            false,
            at(".a: the field is gone"),
        ),
        (
            of(json!(["a"]), json!({"a": {}})),
            of(json!([]), json!({"a": {}})),
            true,
            at(".a: is no longer always there"),
        ),
        (
            of(json!([]), json!({})),
            of(json!(["a"]), json!({"a": {}})),
            false,
            at(".a: a new field"),
        ),
        (
            items(json!("integer")),
            items(json!(["integer", "null"])),
            true,
            at("[]: is integer or null, was integer"),
        ),
        (
            with_response(json!({"enum": [1, 2]})),
            with_response(json!({"enum": [1]})),
            true,
            at(": the value 2 is no longer possible"),
        ),
        (
            all_of,
            with_response(json!({"type": "string"})),
            true,
            at(": is string, was object"),
        ),
        (
            with_response(json!({})),
            none(),
            true,
            "responses.200: the response code is gone",
        ),
        (
            none(),
            with_response(json!({})),
            false,
            "responses.200: a new response code",
        ),
    ]);
}

/// Each row counts in both directions: of what is sent, and of what is got.
#[test]
fn narrower_schemas_break_requests_and_wider_ones_break_responses() {
    let object = |more: Value| {
        let mut schema = json!({"type": "object"});
        let more = more.as_object().expect("a map").clone();
        schema.as_object_mut().expect("a map").extend(more);
        schema
    };
    let list = |more: Value| {
        let mut schema = object(more);
        schema["type"] = json!("array");
        schema
    };
    // The wide schema, the narrow one, the place of the change, what it is if it narrows, and what it is if it widens.
    let rows = [
        (
            object(json!({})),
            object(json!({"required": ["zz"]})),
            ".zz",
            "is required now",
            "is no longer always there",
        ),
        (
            object(json!({})),
            object(json!({"additionalProperties": {"type": "integer"}})),
            ".*",
            "is integer, was any type",
            "is any type, was integer",
        ),
        (
            object(json!({"additionalProperties": true})),
            object(json!({"additionalProperties": {"type": "integer"}})),
            ".*",
            "is integer, was any type",
            "is any type, was integer",
        ),
        (
            list(json!({})),
            list(json!({"items": {"type": "integer"}})),
            "[]",
            "is integer, was any type",
            "is any type, was integer",
        ),
        (
            list(json!({"prefixItems": [{"type": "number"}]})),
            list(json!({"prefixItems": [{"type": "integer"}]})),
            "[0]",
            "is integer, was number",
            "is number, was integer",
        ),
        (
            list(json!({"prefixItems": [{}]})),
            list(json!({"prefixItems": [{}, {"type": "integer"}]})),
            "[1]",
            "is integer, was any type",
            "is any type, was integer",
        ),
    ];
    for (wide, narrow, place, narrows, widens) in rows {
        let messages = |place: String, what: &str| -> Vec<String> { vec![format!("{place}: {what}")] };
        let expect = |old: Value, new: Value, breaking: bool, messages: Vec<String>| {
            let found = changes(old.clone(), new.clone());
            let expected: Vec<(bool, String)> = messages.into_iter().map(|it| (breaking, it)).collect();
            assert_eq!(found, expected, "{old} {new}");
        };
        let (body, answer) = (format!("body{place}"), format!("responses.200.body{place}"));
        let (sent, got) = (with_body, with_response);
        expect(
            sent(wide.clone()),
            sent(narrow.clone()),
            true,
            messages(body.clone(), narrows),
        );
        expect(
            sent(narrow.clone()),
            sent(wide.clone()),
            false,
            messages(body, widens),
        );
        expect(
            got(wide.clone()),
            got(narrow.clone()),
            false,
            messages(answer.clone(), narrows),
        );
        expect(got(narrow), got(wide), true, messages(answer, widens));
    }
}

#[test]
fn conditions_that_are_not_worked_out_count_as_breaking() {
    let conditions = [
        ("not", json!({"type": "string"}), json!({"type": "number"})),
        ("if", json!({"type": "string"}), json!({"type": "number"})),
        ("patternProperties", json!({"^a": {}}), json!({"^b": {}})),
        ("propertyNames", json!({"maxLength": 9}), json!({"maxLength": 8})),
        ("dependentRequired", json!({"a": ["b"]}), json!({"a": ["c"]})),
        ("dependentSchemas", json!({"a": {}}), json!({"b": {}})),
        ("contains", json!({"type": "string"}), json!({"type": "number"})),
        ("unevaluatedItems", json!(false), json!({"type": "number"})),
    ];
    const WHY: &str = "it is unclear which callers this breaks, so it counts as breaking";
    for (word, one, other) in conditions {
        let with = |value: &Value| json!({ word: value });
        let expect = |old: Value, new: Value, breaking: bool, what: &str| {
            let expected_message = match breaking {
                true => format!("'{word}' is {what}: {WHY}"),
                false => format!("'{word}' is {what}"),
            };
            let found = changes(old, new);
            let [(is_breaking, message)] = &found[..] else {
                panic!("{word} {what}: {found:?}");
            };
            assert_eq!(*is_breaking, breaking, "{word} {what}");
            assert!(message.ends_with(&expected_message), "{message}");
        };
        let none = || json!({});
        expect(with_body(none()), with_body(with(&one)), true, "new");
        expect(with_body(with(&one)), with_body(none()), false, "gone");
        expect(
            with_body(with(&one)),
            with_body(with(&other)),
            true,
            "another one",
        );
        expect(with_response(none()), with_response(with(&one)), false, "new");
        expect(with_response(with(&one)), with_response(none()), true, "gone");
        expect(
            with_response(with(&one)),
            with_response(with(&other)),
            true,
            "another one",
        );
    }
}

/// What a condition refers to counts as a part of it.
#[test]
fn conditions_are_followed_to_the_schemas_that_they_refer_to() {
    let of = |kind: &str, text: &str| {
        let schemas = json!({
            "A": {"not": {"$ref": "#/components/schemas/B"}},
            "B": {"$ref": "#/components/schemas/C"},
            "C": {"type": kind, "description": text},
        });
        with_schemas(&schemas, that_return(1, "A"))
    };
    for (new, expected) in [(of("string", "b"), false), (of("number", "a"), true)] {
        assert_eq!(diff(&of("string", "a"), &new).is_breaking(), expected);
    }
}

/// Other ways to write the same schema.
#[test]
fn schemas_that_mean_the_same_do_not_break() {
    let [a, b] = [json!({"type": "string"}), json!({"type": "integer"})];
    let texts = json!({"type": "string", "description": "a name", "title": "Name"});
    let fields =
        |name: &str, of: Value| json!({"properties": {name: of}, "required": [name], "maxProperties": 9});
    let (some, others) = (fields("a", a.clone()), fields("a", json!({"minLength": 2})));
    let closed = json!({"maxProperties": 5, "not": {"type": "null"}});
    let also_not = json!({"not": {"type": "boolean"}});
    let rows = [
        (json!({"enum": ["x"]}), json!({"const": "x"})),
        (json!({"oneOf": [a, b]}), json!({"oneOf": [b, a]})),
        (json!({"anyOf": [a, b]}), json!({"anyOf": [b, a]})),
        (json!({"oneOf": [a, b]}), json!({"oneOf": [b, texts]})),
        (json!({"allOf": [some, others]}), json!({"allOf": [others, some]})),
        (
            json!({"allOf": [some, closed, also_not]}),
            json!({"allOf": [also_not, closed, some]}),
        ),
        (json!({"not": a}), json!({"not": texts})),
    ];
    const UNNOTICED: &str = ": differs in details that callers do not notice";
    for (one, other) in rows {
        for wrap in [with_body, with_response] {
            let both_ways = [(&one, &other), (&other, &one)];
            for (old, new) in both_ways {
                let found = changes(wrap(old.clone()), wrap(new.clone()));
                assert_eq!(found, [(false, UNNOTICED.to_owned())], "{old} {new}");
            }
        }
    }
}

#[test]
fn changes_of_security_and_of_texts_are_named_and_breaking_or_not() {
    let with = |field: &str, value: Value| {
        let mut operation = none();
        operation[field] = value;
        operation
    };
    let keyed = with("security", json!([{"key": []}]));
    check(vec![
        (
            none(),
            keyed.clone(),
            true,
            "security: calls without credentials are no longer accepted",
        ),
        (keyed, none(), false, "security: there are other ways in"),
        (
            none(),
            with("summary", json!("all")),
            false,
            "summary: is another text",
        ),
        (
            none(),
            with("deprecated", json!(true)),
            false,
            "deprecated: is deprecated now",
        ),
    ]);
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
    let lines: Vec<String> = diff(&old, &new)
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
        lines,
        ["Changed readA GET 0", "Changed getB GET 1", "Added post-c POST 0"]
    );
    let gone = diff(&old, &of(json!({})));
    assert!(gone.is_breaking());
    assert_eq!(gone.breaking().count(), 3);
}

fn with_schemas(schemas: &Value, paths: Value) -> Description {
    let document =
        json!({"openapi": "3.1.0", "info": {}, "paths": paths, "components": {"schemas": schemas}});
    from_value(document).expect("a description")
}

fn that_return(count: usize, schema: &str) -> Value {
    let media = json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
    let one = |number: usize| {
        let operation = json!({"operationId": format!("o{number}"), "responses": {"200": {"description": "", "content": media}}});
        (format!("/p/{number}"), json!({"get": operation}))
    };
    (0..count).map(one).collect::<Map<String, Value>>().into()
}

#[test]
fn schemas_that_double_at_each_step_are_reported_as_too_large() {
    let twice = json!({"$ref": "#/components/schemas/A"});
    let schemas = |more: &str| json!({"A": {"allOf": [twice, twice], "x-more": more}});
    let (old, new) = (
        with_schemas(&schemas("a"), that_return(1, "A")),
        with_schemas(&schemas("b"), that_return(1, "A")),
    );
    let found = diff(&old, &new);
    let messages: Vec<&str> = found.operations[0]
        .changes
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(messages, ["has schemas that are too large to be compared whole"]);
    assert_eq!(diff(&old, &old).operations, []);
}

/// A change of one schema that all operations share: the list stays bounded, and says for each that callers break.
#[test]
fn a_change_that_is_in_all_operations_stays_bounded() {
    let field = |number: usize, kind: &str| (format!("f{number:03}"), json!({"type": kind}));
    let schema = |kind: &str| -> Value {
        let fields: Map<String, Value> = (0..100)
            .map(|it| field(it, if it == 99 { kind } else { "string" }))
            .collect();
        json!({"Big": {"type": "object", "properties": fields}, "Other": {"$ref": "#/components/schemas/Big"}})
    };
    let more = |mut schemas: Value| {
        // Changes that do not matter come first.
        for number in 0..50 {
            schemas["Big"]["properties"][format!("a{number}")] = json!({"type": "string"});
        }
        schemas
    };
    let old = with_schemas(&schema("string"), that_return(1_000, "Big"));
    let new = with_schemas(&more(schema("integer")), that_return(1_000, "Other"));
    let found = diff(&old, &new);
    assert_eq!(found.operations.len(), 1_000);
    let count: usize = found.operations.iter().map(|it| it.changes.len()).sum();
    assert!(count <= MAX_CHANGES + 1_000, "{count}");
    assert!(
        found
            .operations
            .iter()
            .all(|it| it.changes.iter().any(|it| it.breaking))
    );
}

/// Callers see the values of a path's parameters, and not their names.
#[test]
fn values_of_a_path_are_compared_by_their_places() {
    let of = |name: &str, schema: Value| {
        let path = format!("/orders/{{{name}}}/lines/{{line}}");
        let parameter = |name: &str, schema: &Value| json!({"name": name, "in": "path", "required": true, "schema": schema});
        let parameters = [parameter("line", &json!({})), parameter(name, &schema)];
        let operation = json!({"operationId": "get", "parameters": parameters, "responses": {}});
        from_value(json!({"openapi": "3.1.0", "info": {}, "paths": {path: {"get": operation}}}))
            .expect("a description")
    };
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    for (old, new, breaking, expected) in [
        (
            of("id", text.clone()),
            of("order", number.clone()),
            true,
            "parameters.path.order: is integer, was string",
        ),
        (
            of("id", json!({})),
            of("id", text.clone()),
            true,
            "parameters.path.id: is string, was any type",
        ),
        (
            of("id", json!({"maxLength": 5})),
            of("id", json!({"maxLength": 9})),
            false,
            "parameters.path.id: 'maxLength' is 9, was 5",
        ),
        (
            of("id", text.clone()),
            of("order", text),
            false,
            ": differs in details that callers do not notice",
        ),
    ] {
        let found = diff(&old, &new);
        let changes: Vec<_> = found.operations[0]
            .changes
            .iter()
            .map(|it| (it.breaking, format!("{}: {}", it.place, it.message)))
            .collect();
        assert_eq!(changes, [(breaking, expected.to_owned())]);
    }
}
