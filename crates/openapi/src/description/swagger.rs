//! Swagger 2.0 in the form of OpenAPI 3: servers, bodies, components and security schemes. Schemas are modernised later,
//! with those of 3.0.

use super::budget::Budget;
use serde_json::{Map, Value, json};

/// The places of parts in 2.0, and their places since 3.0.
const MOVED: [(&str, &str); 4] = [
    ("#/definitions/", "#/components/schemas/"),
    ("#/parameters/", "#/components/parameters/"),
    ("#/responses/", "#/components/responses/"),
    ("#/securityDefinitions/", "#/components/securitySchemes/"),
];
/// Fields of a parameter or a header that describe its values.
const OF_A_SCHEMA: [&str; 18] = [
    "type",
    "format",
    "items",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "enum",
    "multipleOf",
    "x-nullable",
    "collectionFormat",
];

/// The same document in the form of 3.0. What is not understood stays as it is.
pub fn convert(source: &Value, budget: &Budget) -> Value {
    let mut document = Map::new();
    for field in ["info", "tags", "externalDocs", "security"] {
        if let Some(value) = source.get(field) {
            document.insert(field.to_owned(), value.clone());
        }
    }
    document.insert("servers".to_owned(), servers(source));
    document.insert("components".to_owned(), components(source, budget));
    if let Some(paths) = source.get("paths") {
        document.insert("paths".to_owned(), convert_paths(source, paths, budget));
    }
    let mut document = Value::Object(document);
    move_references(&mut document);
    document
}

fn move_references(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                match below {
                    Value::String(target) if name == "$ref" => {
                        for (from, to) in MOVED {
                            if let Some(rest) = target.strip_prefix(from) {
                                *target = format!("{to}{rest}");
                                break;
                            }
                        }
                    }
                    below => move_references(below),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

fn servers(source: &Value) -> Value {
    let text = |field: &str| source.get(field).and_then(Value::as_str);
    let base = text("basePath").unwrap_or_default();
    let Some(host) = text("host") else {
        return match base.is_empty() {
            true => json!([]),
            false => json!([{ "url": base }]),
        };
    };
    let none = vec![json!("https")];
    let schemes = source.get("schemes").and_then(Value::as_array).unwrap_or(&none);
    let urls = schemes.iter().filter_map(Value::as_str);
    urls.map(|scheme| json!({ "url": format!("{scheme}://{host}{base}") }))
        .collect()
}

fn entries<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(field).and_then(Value::as_object).into_iter().flatten()
}

fn components(source: &Value, budget: &Budget) -> Value {
    let mut parameters = Map::new();
    for (name, parameter) in entries(source, "parameters") {
        if !is_in_body(parameter) {
            parameters.insert(name.clone(), convert_parameter(parameter));
        }
    }
    let produces = media_types(source, "produces");
    let responses: Map<String, Value> = entries(source, "responses")
        .map(|(name, response)| (name.clone(), convert_response(response, &produces, budget)))
        .collect();
    let schemes: Map<String, Value> = entries(source, "securityDefinitions")
        .map(|(name, scheme)| (name.clone(), convert_scheme(scheme)))
        .collect();
    json!({
        "schemas": source.get("definitions").cloned().unwrap_or_else(|| json!({})),
        "parameters": parameters,
        "responses": responses,
        "securitySchemes": schemes,
    })
}

fn media_types(value: &Value, field: &str) -> Vec<String> {
    let list = value.get(field).and_then(Value::as_array);
    let types = list.into_iter().flatten().filter_map(Value::as_str);
    types.map(str::to_owned).collect()
}

fn is_in_body(parameter: &Value) -> bool {
    let place = parameter.get("in").and_then(Value::as_str);
    matches!(place, Some("body" | "formData"))
}

fn convert_paths(source: &Value, paths: &Value, budget: &Budget) -> Value {
    let Value::Object(paths) = paths else {
        return paths.clone();
    };
    let mut converted = Map::new();
    for (path, item) in paths {
        let Value::Object(fields) = item else {
            converted.insert(path.clone(), item.clone());
            continue;
        };
        let none = Vec::new();
        let common = item.get("parameters").and_then(Value::as_array).unwrap_or(&none);
        let mut made = Map::new();
        for (field, value) in fields {
            match field.as_str() {
                "parameters" => {}
                "get" | "put" | "post" | "delete" | "options" | "head" | "patch" if value.is_object() => {
                    made.insert(field.clone(), convert_operation(source, value, common, budget));
                }
                _ => {
                    made.insert(field.clone(), value.clone());
                }
            }
        }
        converted.insert(path.clone(), Value::Object(made));
    }
    Value::Object(converted)
}

fn convert_operation(source: &Value, operation: &Value, common: &[Value], budget: &Budget) -> Value {
    let mut made = Map::new();
    for (field, value) in operation.as_object().into_iter().flatten() {
        if !matches!(
            field.as_str(),
            "parameters" | "responses" | "consumes" | "produces" | "schemes"
        ) {
            made.insert(field.clone(), value.clone());
        }
    }
    let own = operation.get("parameters").and_then(Value::as_array);
    // An operation's own comes behind, and takes the place of its path's.
    let all: Vec<&Value> = common
        .iter()
        .chain(own.into_iter().flatten())
        .map(|it| super::resolve(source, it).map_or(it, |(end, _)| end))
        .filter(|it| budget.take(it, 1))
        .collect();
    let types = |field: &str| match operation.get(field) {
        Some(_) => media_types(operation, field),
        None => media_types(source, field),
    };
    let parameters: Vec<Value> = all
        .iter()
        .filter(|it| !is_in_body(it))
        .map(|it| convert_parameter(it))
        .collect();
    if !parameters.is_empty() {
        made.insert("parameters".to_owned(), Value::Array(parameters));
    }
    if let Some(body) = body(&all, &types("consumes"), budget) {
        made.insert("requestBody".to_owned(), body);
    }
    let produces = types("produces");
    let responses: Map<String, Value> = entries(operation, "responses")
        .map(|(code, response)| (code.clone(), convert_response(response, &produces, budget)))
        .collect();
    if operation.get("responses").is_some() {
        made.insert("responses".to_owned(), Value::Object(responses));
    }
    Value::Object(made)
}

fn convert_parameter(parameter: &Value) -> Value {
    let Some(fields) = parameter.as_object().filter(|it| !it.contains_key("$ref")) else {
        return parameter.clone();
    };
    let (mut made, mut schema) = (Map::new(), Map::new());
    for (field, value) in fields {
        match OF_A_SCHEMA.contains(&field.as_str()) {
            true => schema.insert(field.clone(), value.clone()),
            false => made.insert(field.clone(), value.clone()),
        };
    }
    match schema.remove("collectionFormat").as_ref().and_then(Value::as_str) {
        Some("multi") => made.insert("explode".to_owned(), true.into()),
        Some("ssv") => made.insert("style".to_owned(), "spaceDelimited".into()),
        Some("pipes") => made.insert("style".to_owned(), "pipeDelimited".into()),
        Some(_) => made.insert("explode".to_owned(), false.into()),
        // Lists are separated by commas unless they say otherwise.
        None if schema.get("type").is_some_and(|it| it == "array") => {
            made.insert("explode".to_owned(), false.into())
        }
        None => None,
    };
    if !schema.is_empty() {
        made.insert("schema".to_owned(), Value::Object(schema));
    }
    Value::Object(made)
}

fn body(parameters: &[&Value], consumes: &[String], budget: &Budget) -> Option<Value> {
    let text =
        |parameter: &Value, field: &str| parameter.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_required = |parameter: &Value| parameter.get("required").is_some_and(|it| *it == true);
    if let Some(body) = parameters
        .iter()
        .find(|it| text(it, "in").as_deref() == Some("body"))
    {
        let schema = body.get("schema").cloned().unwrap_or_else(|| json!({}));
        let content = content(consumes, "application/json", &schema, budget);
        let mut made = json!({ "content": content, "required": is_required(body) });
        if let Some(description) = body.get("description") {
            made["description"] = description.clone();
        }
        return Some(made);
    }
    let (mut properties, mut required, mut has_file) = (Map::new(), Vec::new(), false);
    for field in parameters
        .iter()
        .filter(|it| text(it, "in").as_deref() == Some("formData"))
    {
        let name = text(field, "name").unwrap_or_default();
        let schema = convert_parameter(field)
            .get("schema")
            .cloned()
            .unwrap_or_else(|| json!({}));
        has_file |= schema.get("type").is_some_and(|it| it == "file");
        if is_required(field) {
            required.push(Value::from(name.clone()));
        }
        properties.insert(name, schema);
    }
    if properties.is_empty() {
        return None;
    }
    let standard = match has_file {
        true => "multipart/form-data",
        false => "application/x-www-form-urlencoded",
    };
    let is_required = !required.is_empty();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Some(json!({ "content": content(consumes, standard, &schema, budget), "required": is_required }))
}

fn content(types: &[String], standard: &str, schema: &Value, budget: &Budget) -> Value {
    let standard = [standard.to_owned()];
    let types = if types.is_empty() { &standard[..] } else { types };
    if !budget.take(schema, types.len()) {
        return json!({});
    }
    let content: Map<String, Value> = types
        .iter()
        .map(|kind| (kind.clone(), json!({ "schema": schema })))
        .collect();
    Value::Object(content)
}

fn convert_response(response: &Value, produces: &[String], budget: &Budget) -> Value {
    let Some(fields) = response.as_object().filter(|it| !it.contains_key("$ref")) else {
        return response.clone();
    };
    let mut made = Map::new();
    for (field, value) in fields {
        match field.as_str() {
            "schema" => {
                made.insert(
                    "content".to_owned(),
                    content(produces, "application/json", value, budget),
                );
            }
            "headers" => {
                let headers: Map<String, Value> = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, header)| (name.clone(), convert_parameter(header)))
                    .collect();
                made.insert("headers".to_owned(), Value::Object(headers));
            }
            "examples" => {}
            _ => {
                made.insert(field.clone(), value.clone());
            }
        }
    }
    Value::Object(made)
}

fn convert_scheme(scheme: &Value) -> Value {
    let text = |field: &str| scheme.get(field).and_then(Value::as_str);
    match text("type") {
        Some("basic") => json!({ "type": "http", "scheme": "basic" }),
        Some("oauth2") => {
            let name = match text("flow") {
                Some("application") => "clientCredentials",
                Some("accessCode") => "authorizationCode",
                Some(other) => other,
                None => "implicit",
            };
            let mut flow = json!({ "scopes": scheme.get("scopes").cloned().unwrap_or_else(|| json!({})) });
            for field in ["authorizationUrl", "tokenUrl"] {
                if let Some(url) = text(field) {
                    flow[field] = url.into();
                }
            }
            json!({ "type": "oauth2", "flows": { name: flow } })
        }
        _ => scheme.clone(),
    }
}
